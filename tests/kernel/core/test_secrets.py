"""No secret is shown in any form that libraries print, and nothing else is rewritten."""

from __future__ import annotations

import copy
import json
import os
import pickle
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from retrieval_bench.core import secrets

SECRET = "p/a ss'+\\wörd\"1"


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_filled", {})
    monkeypatch.setattr(os, "environ", {})


def fill(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    monkeypatch.setattr(secrets, "_filled", values)


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        repr(SECRET)[1:-1],
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
    ],
)
def test_a_secret_is_found_in_every_form_that_libraries_print(
    monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    fill(monkeypatch, PASS=SECRET)
    assert secrets.redact(f"GET /?q={form}&x") == "GET /?q=${PASS}&x"


@pytest.mark.parametrize(
    ("filled", "given", "shown"),
    [
        ({"FIELD": "mean"}, {"mean": [{"mean": "mean"}]}, {"mean": [{"mean": "${FIELD}"}]}),
        ({"SHORT": "abcd", "LONG": "abcd-efgh"}, "abcd-efgh abcd", "${LONG} ${SHORT}"),
        ({"RAW": "abc\udcffdef"}, "abc\udcffdef abc%FFdef", "${RAW} ${RAW}"),
        ({"MY_TOKEN": "s3cret-value", "WORD": "TOKEN"}, "s3cret-value", "${MY_TOKEN}"),
    ],
    ids=["keys stay", "one within another", "no unicode", "a word in the name of another"],
)
def test_what_is_shown_in_its_place_and_that_redacting_twice_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, filled: dict[str, str], given: Any, shown: Any
) -> None:
    fill(monkeypatch, **filled)
    assert secrets.redact(given) == shown
    assert secrets.redact(secrets.redact(given)) == shown


@pytest.mark.parametrize(
    ("name", "secret"),
    [*((name, True) for name in ("API_KEY", "HF_TOKEN", "CLIENT_SECRET", "PGPASSWORD", "api_key")),
     *((name, False) for name in ("PATH", "KEYBOARD", "TOKENIZERS_PARALLELISM"))],
)  # fmt: skip
def test_a_variable_with_the_name_of_a_secret_is_one(
    monkeypatch: pytest.MonkeyPatch, name: str, secret: bool
) -> None:
    monkeypatch.setattr(os, "environ", {name: "12345678"})
    assert secrets.redact("key 12345678") == (f"key ${{{name}}}" if secret else "key 12345678")


def test_short_values_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"API_KEY": "1234567"})
    fill(monkeypatch, TINY="abc")
    assert secrets.redact("1234567 abc") == "1234567 abc"


def test_of_a_manifest_only_the_retriever_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(monkeypatch, FIELD="test")
    manifest: dict[str, Any] = {
        "dataset": {"split": "test"},
        "metrics": ["test"],
        "retriever": {
            "name": "test",
            "target": "test",
            "hash": "test",
            "params": {"test": "a test"},
            "source": "a test",
            "facts": ["test"],
        },
    }
    shown = secrets.redact_manifest(manifest)
    assert shown == manifest | {
        "retriever": manifest["retriever"]
        | {"params": {"test": "a ${FIELD}"}, "source": "a ${FIELD}", "facts": ["${FIELD}"]}
    }
    assert secrets.redact_manifest({"k": 3}) == {"k": 3}


def test_a_filled_text_knows_what_came_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {"A": "one", "B": "", "NESTED": "${A}"})
    filled = secrets.expand({"a": ["x ${A} y ${B}${A}"]}, "here")["a"][0]
    assert filled == "x one y one"
    assert isinstance(filled, secrets.Filled)
    assert [filled[start:end] for start, end in filled.spans] == ["one", "", "one"]
    assert type(secrets.expand("plain", "here")) is str
    assert copy.deepcopy(filled).spans == pickle.loads(pickle.dumps(filled)).spans == filled.spans
    nested = secrets.expand("${NESTED}", "here")
    assert secrets.expand(nested, "here") == "${A}"


def test_a_masked_text_is_written_as_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_masked", {})
    secrets.mask("db://me:hunter2@host/x", "db://me:***@host/x")
    secrets.mask("abc", "never: too short to look for")
    told = secrets.redact({"dsn": "db://me:hunter2@host/x", "other": "abc"})
    assert told == {"dsn": "db://me:***@host/x", "other": "abc"}
