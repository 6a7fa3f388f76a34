"""What the authors of arXiv 2504.05324 published, against what this project makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench_answers.outcomes import OutcomeGroup, outcome_report, read_outcomes
from retrieval_bench_answers.reproduction import Published, load_published, reproduce
from retrieval_bench_answers.reproduction.answered import Answered
from retrieval_bench_answers.reproduction.check import Status
from tests.builders import some

pytestmark = pytest.mark.realdata

SOURCES = {
    "halueval": "halueval",
    "drop": "DROP",
    "covid": "covidQA",
    "financebench": "FinanceBench",
    "ragtruth": "RAGTruth",
    "pubmed": "pubmedQA",
}
RATES = ("accuracy", "hallucination_rate", "rejection_rate")


@pytest.fixture(scope="module")
def expected(bench_data: Path) -> Any:
    path = bench_data / "halubench" / "expected_human_scores.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _percent(value: float | None) -> float:
    return round(100 * (value or 0.0), 2)


def _figures(group: OutcomeGroup) -> dict[str, Mapping[str, Any]]:
    return {
        system.name: {
            "n": system.n,
            **{str(label): count for label, count in system.counts.items()},
            **{name: _percent(rate.value) for name, rate in system.rates.items()},
        }
        for system in group.systems
    }


def test_the_human_scores_are_exactly_those_of_the_authors(bench_data: Path, expected: Any) -> None:
    records = read_outcomes(bench_data / "halubench" / "records.jsonl")
    report = outcome_report(records, ["source", "label"])
    by_source, by_label = report.by
    groups = {group.label: group for group in by_source.groups}
    for key, source in SOURCES.items():
        assert _figures(groups[source]) == expected["per_source"][key]
    means = {
        system: {rate: _percent(rates[rate]) for rate in RATES}
        for system, rates in by_source.means().items()
    }
    assert means == expected["macro"]
    fails = _figures(next(group for group in by_label.groups if group.label == "FAIL"))
    for system, figures in expected["fails_n_acc_hall_rej"].items():
        assert [fails[system][name] for name in ("n", *RATES)] == figures


def _answered(bench_data: Path, monkeypatch: pytest.MonkeyPatch) -> Answered:
    monkeypatch.setenv("BENCH_DATA", str(bench_data))
    return Answered(load_published("mala2025"), bench_data)


def test_the_published_hybrid_lists_are_plain_rrf_of_the_other_two(
    bench_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = _answered(bench_data, monkeypatch)
    names = ("authors' sparse", "authors' dense", "authors' hybrid", "rrf of authors' lists")
    sparse, dense, hybrid, fused = (
        answered.lists(name, "items299", 3).ordered("list") for name in names
    )
    judged = answered.data("items299").truth.judgements.qrels
    shared = [query for query in judged if query in sparse and query in dense and query in hybrid]
    assert len(shared) == 254  # of 277 items, those with a passage
    assert all(list(fused[query]) == list(hybrid[query]) for query in shared)
    found = [
        bool(set(judged[query]) & {*sparse.get(query, ()), *dense.get(query, ())})
        for query in judged
    ]
    assert round(sum(found) / len(found), 3) == 0.743


def test_the_published_lists_do_not_explain_the_labels_of_the_hybrid(
    bench_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = _answered(bench_data, monkeypatch)
    judged = answered.data("items299").truth.judgements.qrels
    records = read_outcomes(bench_data / "halubench" / "records.jsonl")
    labels = {item.id: item.outcomes for item in records.items}
    correct = {}
    for name, system in (("sparse", "bm25"), ("dense", "semantic"), ("hybrid", "hybrid")):
        lists = answered.lists(f"authors' {name}", "items299", 3).ordered("list")
        without = [q for q in judged if q in lists and not set(judged[q]) & set(lists[q])]
        correct[name] = (sum(labels[q][system] == "correct" for q in without), len(without))
    assert correct == {"sparse": (6, 112), "dense": (5, 67), "hybrid": (39, 75)}


def test_the_authors_own_lists_do_not_have_the_order_of_the_paper(
    bench_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(bench_data))
    paper = load_published("mala2025")
    names = ["authors' sparse", "authors' dense", "authors' hybrid", "rrf of authors' lists"]
    small = Published.model_validate(
        paper.model_dump()
        | {"figures": [], "table": some(paper.table).model_dump() | {"systems": names}}
    )
    found = reproduce(small, bench_data)
    assert {one.status for one in found.outcomes} == {Status.OK}
    rows = {(row.system, row.convention): row for row in some(found.table).rows}
    means = {
        key: round(row.means["AP(norm=hits)@3" if key[1] == "mala2025" else "AP@3"]["all"], 4)
        for key, row in rows.items()
    }
    assert [means[name, "mala2025"] for name in names] == [0.5551, 0.6970, 0.6338, 0.6190]
    assert [means[name, "trec"] for name in names] == [0.5471, 0.6516, 0.6178, 0.6190]
    assert [rows[name, "mala2025"].n["all"] for name in names] == [272, 258, 269, 276]
