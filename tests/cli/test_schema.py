"""``data schema``: what the documents of ``--format json`` look like."""

from __future__ import annotations

import json

import jsonschema
import pytest

from retrieval_bench_catalog.documents import DOCUMENTS
from tests.cli.project import Command

pytestmark = pytest.mark.usefixtures("here")


def test_it_prints_the_schema_that_a_document_fits(run: Command) -> None:
    assert run("data schema plan --full") == 0
    made = json.loads(run.out)
    document = run.json("bench bm25 --dataset science-mini --dry-run")
    jsonschema.validate(document, made)
    del document["calls_at_most"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, made)


def test_without_a_name_it_lists_all(run: Command) -> None:
    assert run("data schema") == 0
    assert all(f"\n  {name} " in run.out for name in DOCUMENTS)
    listed = run.json("data schema")["documents"]
    assert {one["name"]: one["version"] for one in listed}["bench"] == 2


def test_an_unknown_name_is_answered_with_those_there_are(run: Command) -> None:
    assert "did you mean compare" in run.refused("data schema compair")
