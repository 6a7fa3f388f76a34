"""The JSON Schema of every document: frozen documents are valid, broken ones are not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from retrieval_bench.cli.commands import parsed
from retrieval_bench.core.notices import to_document
from retrieval_bench.runs.records import to_json
from retrieval_bench.runs.summary import Summary
from retrieval_bench_catalog.documents import DOCUMENTS, schema_of
from retrieval_bench_catalog.schemas import schema
from tests.builders.frozen import HERE, MEASURING, READING
from tests.builders.json_schemas import closed, faults, keys_of, unnoticed
from tests.builders.reference_pages import commands

FROZEN = sorted(HERE.glob("expected/*.json"))


def test_every_document_of_every_command_has_a_case() -> None:
    cases = {**READING, **MEASURING}
    assert {name.partition("-")[0] for name in cases} == set(DOCUMENTS)
    of_commands = {one.get_default("run"): name for name, one in commands()}
    lacking = set(of_commands) - {parsed(words).run for words in cases.values()}
    assert not {of_commands[run] for run in lacking}, "see tests/builders/frozen.py"


@pytest.mark.parametrize("file", FROZEN, ids=lambda file: file.stem)
def test_frozen_documents_are_valid_and_broken_ones_are_not(file: Path) -> None:
    document, name = json.loads(file.read_text("utf-8")), file.stem.partition("-")[0]
    assert not faults(document, name)
    assert not unnoticed(document, name)
    assert faults({**document, "no_such_key": 1}, name)


@pytest.mark.parametrize("run", sorted(HERE.glob("runs/*")), ids=lambda run: run.name)
def test_a_saved_summary_is_as_its_type_says(run: Path) -> None:
    """Once it is read: warnings of version 1 had no code."""
    saved = Summary.model_validate_json((run / "summary.json").read_text("utf-8"))
    document = json.loads(to_json(to_document(saved.as_dict())))
    of_summary = schema([Summary], "summary.json", document["schema_version"])
    Draft202012Validator(of_summary).validate(document)
    del document["dataset"]["fingerprint"]
    assert not Draft202012Validator(of_summary).is_valid(document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_one_and_says_what_its_document_is(name: str) -> None:
    made = schema_of(name)
    Draft202012Validator.check_schema(made)
    assert DOCUMENTS[name].command in made["title"]
    for one in made.get("anyOf", [made]):
        assert one["properties"]["schema_version"]["const"] == DOCUMENTS[name].version
        assert "schema_version" in one["required"]
        assert not [key for key, field in one["properties"].items() if not _told(field)]
    assert all(one.get("description") for one in made.get("$defs", {}).values())


def _told(field: dict[str, Any]) -> bool:
    return bool(field.get("description"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_name_from_data_is_a_property(name: str) -> None:
    assert not [key for key in keys_of(closed(name)) if not re.fullmatch("[a-z][a-z0-9_]*", key)]
