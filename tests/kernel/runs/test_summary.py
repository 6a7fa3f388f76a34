"""The account of a run as types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from retrieval_bench.core.notices import Code, Notice, to_document
from retrieval_bench.runs.records import to_json
from retrieval_bench.runs.summary import Summary
from retrieval_bench.runs.timing_facts import LatencyFacts

RUNS = sorted(Path(__file__).parents[2].glob("golden/frozen/runs/*/summary.json"))
LEAST: dict[str, Any] = {"retriever": "bm25", "dataset": {"name": "tiny"}, "k": 10}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_a_saved_summary_is_read_and_written_back_to_the_byte(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    read = Summary.model_validate(json.loads(text))
    assert to_json(read.as_dict()) + "\n" == text
    assert read.replace(run_id=read.run_id) == read


def test_there_are_runs_to_read() -> None:
    assert len(RUNS) == 6


def test_what_was_not_said_is_not_written_and_what_another_version_has_is_kept() -> None:
    summary = Summary.model_validate(LEAST)
    assert summary.as_dict() == LEAST
    assert summary.latency_ms.at("p50").value is None
    assert summary.legs is None
    assert summary.replace(n_failed=0).as_dict() == LEAST | {"n_failed": 0}
    given = LEAST | {"weather": {"rain": True}, "dataset": {"name": "tiny", "colour": "red"}}
    read = Summary.model_validate(given)
    assert read.as_dict() == given
    assert read.replace(k=5).as_dict() == given | {"k": 5}


def test_percentiles_stand_under_their_names() -> None:
    given = {"n": 3, "p50": {"value": 1.0}, "p99.9": {"value": None, "reason": "few"}, "mix": {}}
    latency = LatencyFacts.model_validate(given)
    assert list(latency.levels) == ["p50", "p99.9"]
    assert latency.at("p50").value == 1.0
    assert latency.as_dict() == given
    changed = latency.replace(levels={"p50": {"value": 2.0}})
    assert changed.as_dict() == {"n": 3, "p50": {"value": 2.0}, "mix": {}}


def test_warnings_keep_their_codes_through_a_change_and_a_file() -> None:
    told = [Notice("equal scores", Code.TIES), "an old one"]
    summary = Summary.model_validate(LEAST | {"warnings": told}).with_texts(str.upper)
    assert summary.warnings == ["EQUAL SCORES", "AN OLD ONE"]
    again = Summary.model_validate(json.loads(to_json(to_document(summary.as_dict()))))
    assert [getattr(text, "code", None) for text in again.warnings] == [Code.TIES, Code.OTHER]


@pytest.mark.parametrize(
    "damage",
    [
        {"k": "ten"},
        {"k": None},
        {"dataset": ["tiny"]},
        {"dataset": {"n_queries": "many"}},
        {"retriever": 5},
        {"judged": {"Judged@10": "half"}},
        {"metrics": {"nDCG@10": {"mean": "high"}}},
        {"latency_ms": {"p50": {"value": "slow"}}},
        {"latency_ms": {"p50": 3.0}},
        {"warnings": "one"},
        {"legs": {"n": 1}},
    ],
    ids=str,
)
def test_facts_of_another_kind_are_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Summary.model_validate(LEAST | damage)
