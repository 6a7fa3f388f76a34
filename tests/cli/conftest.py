"""What any test of the command line prints as JSON is a document of the guide."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from retrieval_bench.cli import console
from retrieval_bench.core.notices import to_document
from retrieval_bench.runs.records import to_json
from tests.builders.reference_pages import SCHEMAS


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    return {file.stem: json.loads(file.read_text("utf-8")) for file in SCHEMAS.glob("*.json")}


@pytest.fixture(autouse=True)
def _documents_have_a_schema(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    put, unlike = console.put_document, []

    def kept(document: Mapping[str, Any]) -> None:
        put(document)
        unlike.extend(_faults(json.loads(to_json(to_document(document)))))

    monkeypatch.setattr(console, "put_document", kept)
    yield
    if request.path.stem != "test_console":  # it shows what it makes up
        assert not unlike, "see tests/builders/frozen.py"


def _faults(document: Mapping[str, Any]) -> list[str]:
    """None where the document is as one of the schemas that have all of its keys says."""
    from jsonschema import Draft202012Validator

    found = [f"no schema has all of {', '.join(document)}"]
    for name, schema in _schemas().items():
        if set(document) <= set(schema["properties"]):
            found = [
                f"{name}: {fault.json_path}: {fault.message}"
                for fault in Draft202012Validator(schema).iter_errors(document)
            ]
            if not found:
                break
    return found
