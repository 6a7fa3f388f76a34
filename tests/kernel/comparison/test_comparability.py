"""What two runs have in common, and what they have not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from retrieval_bench.comparison.pairs.comparability import other_settings
from tests.builders.runs import run


def told(*retrievers: tuple[str, dict[str, Any]]) -> tuple[str, ...]:
    names = [f"r{at}" for at in range(len(retrievers))]
    return other_settings(
        names,
        [
            replace(run(name, [1.0]), manifest={"retriever": {"target": target, "params": params}})
            for name, (target, params) in zip(names, retrievers, strict=True)
        ],
    )


def test_the_settings_that_differ_are_named() -> None:
    a = ("bm25", {"k1": 1.2, "b": 0.4})
    b = ("bm25", {"k1": 0.9, "b": 0.4, "tokenizer": {"name": "kiwi"}})
    other = ("dense", {"k1": 7})
    assert told(a, other, b) == (
        "Settings that differ: r0 with k1 1.2; r2 with k1 0.9, tokenizer.name kiwi.",
    )


def test_another_language_of_the_same_data_is_a_setting() -> None:
    manifest = {"retriever": {"target": "bm25", "params": {"k1": 1}}}
    runs = [
        replace(one, manifest=manifest, summary=one.summary.replace(dataset=data))
        for one in (run("a", [1.0]), run("b", [1.0]))
        for data in [one.summary.dataset.replace(language="fr" if one.name == "b" else None)]
    ]
    assert other_settings(["a", "b"], runs) == (
        "Settings that differ: a with none; b with language fr.",
    )


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([("bm25", {"k1": 1}), ("bm25", {"k1": 1})], id="alike"),
        pytest.param([("bm25", {"k1": 1}), ("dense", {"k1": 2})], id="of other kinds"),
    ],
)
def test_nothing_is_told_where_nothing_differs(given: Any) -> None:
    assert told(*given) == ()


def test_what_one_does_not_set_is_told_but_without_a_record_nothing() -> None:
    assert told(("x", {}), ("x", {"n": 2})) == ("Settings that differ: r0 with none; r1 with n 2.",)
    assert other_settings(["a", "b"], [run("a", [1.0]), run("b", [1.0])]) == ()
