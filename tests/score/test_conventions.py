"""Every rule of every convention shows on a tiny example, and on generated data written again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest

from retrieval_bench.core.errors import ConfigError, DataError
from retrieval_bench.metrics import Judgements, parse_metric
from retrieval_bench.metrics.measures import DEFAULT_CONVENTION
from retrieval_bench_score.conventions import CONVENTIONS, TIES, convention
from retrieval_bench_score.scoring import Answers, Scored, score
from tests.builders.generated import generated_lists

Lists = Mapping[str, Sequence[str]]
Grades = Mapping[str, Mapping[str, int]]

NAMES = ["trec", "scienceqa", "mala2025", "piaf", "tutorial", "blog"]


def scored(under: str, lists: Lists, qrels: Grades, *names: str) -> Scored:
    rules = convention(under)
    return score(Answers(lists=lists), Judgements(qrels), rules, rules.parse(names))


def mean(under: str, name: str, lists: Lists, qrels: Grades) -> float:
    return scored(under, lists, qrels, name).evaluation.means[0].mean


def test_the_conventions_are_those_of_the_reference_and_trec_is_the_default() -> None:
    assert list(CONVENTIONS) == NAMES
    assert NAMES[0] == DEFAULT_CONVENTION
    assert [convention(name).name for name in NAMES] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_convention_cites_its_source_and_its_data_is_consistent(name: str) -> None:
    rules = convention(name)
    assert len(rules.source) > 20
    assert rules.tie_rule in TIES.values()
    shown = rules.default_metrics(20)
    assert shown
    assert rules.parse([str(metric) for metric in shown]) == shown
    for text in (rules.metrics or {}).values():
        assert parse_metric(text).cut is None


@pytest.mark.parametrize(
    ("given", "says"), [("scienceaq", "did you mean scienceqa"), ("x", "trec")]
)
def test_an_unknown_convention_is_answered_with_the_known_ones(given: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convention(given)
    assert caught.value.given == f"convention {given!r}"
    assert caught.value.where == "--convention"
    assert says in caught.value.accepted
    assert all(name in caught.value.accepted for name in NAMES)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("under", "name", "means"),
    [
        ("trec", "AP", "AP"),
        ("trec", "MAP@3", "AP@3"),
        ("trec", "RBP(p=0.8)", "RBP(p=0.8)"),
        ("trec", "AP(norm=hits)@3", "AP(norm=hits)@3"),
        ("scienceqa", "AP", "AP(norm=hits)@3"),
        ("scienceqa", "MAP@3", "AP(norm=hits)@3"),
        ("scienceqa", "AP(norm=hits)@3", "AP(norm=hits)@3"),
        ("scienceqa", "AP(norm=hits)", "AP(norm=hits)@3"),
        ("mala2025", "AP", "AP(norm=hits)@3"),
        ("mala2025", "NDCG@3", "nDCG(ideal=returned)@3"),
        ("mala2025", "nDCG(ideal=returned)@3", "nDCG(ideal=returned)@3"),
        ("piaf", "recall", "Success"),
        ("piaf", "R@5", "Success@5"),
        ("piaf", "Success@5", "Success@5"),
        ("piaf", "map", "AP"),
        ("piaf", "MRR", "RR"),
        ("tutorial", "Recall@10", "R@10"),
        ("tutorial", "NDCG@10", "nDCG@10"),
        ("blog", "MAP@5", "AP@5"),
        ("blog", "HitRate@5", "Success@5"),
        ("blog", "MRR", "RR"),
        ("blog", "nDCG@5", "nDCG@5"),
    ],
)
def test_a_plain_name_stands_for_an_explicit_metric(under: str, name: str, means: str) -> None:
    (metric,) = convention(under).parse([name])
    assert str(metric) == means
    assert convention(under).parse([means]) == (metric,)


def test_a_convention_reads_each_metric_once_and_refuses_what_nobody_knows() -> None:
    names = ["AP", "map_cut_3", "AP(norm=hits)@3"]
    assert [str(m) for m in convention("scienceqa").parse(names)] == ["AP(norm=hits)@3"]
    for name in NAMES:
        with pytest.raises(ConfigError, match="did you mean nDCG"):
            convention(name).parse(["nDGC@3"])


@pytest.mark.parametrize(
    ("under", "name", "accepted"),
    [
        ("scienceqa", "nDCG@3", "AP@3"),
        ("scienceqa", "AP@10", "AP@3"),
        ("scienceqa", "AP(rel=2)@3", "AP@3"),
        ("scienceqa", "P@3", "AP@3"),
        ("mala2025", "nDCG@10", "AP@3, nDCG@3"),
        ("mala2025", "RR@3", "AP@3, nDCG@3"),
        ("mala2025", "nDCG(gain=exp)@3", "AP@3, nDCG@3"),
        ("piaf", "nDCG", "R, AP, RR"),
        ("piaf", "AP(norm=hits)", "R, AP, RR"),
        ("tutorial", "AP", "R, nDCG"),
        ("blog", "R@5", "RR, AP, nDCG, Success"),
        ("blog", "nDCG(gain=exp)@5", "RR, AP, nDCG, Success"),
    ],
)
def test_what_a_convention_does_not_define_is_refused(under: str, name: str, accepted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convention(under).parse(["AP"] * (under != "tutorial") + [name])
    assert caught.value.given == f"metric {name!r} under the convention {under}"
    assert caught.value.where == "--metrics"
    assert caught.value.accepted == accepted
    assert "--convention trec" in caught.value.fix


@pytest.mark.parametrize(
    ("under", "depth", "names"),
    [
        ("trec", 0, "nDCG@10 AP RR R@10 Success@1 Judged@10"),
        ("trec", 99, "nDCG@10 AP RR R@10 Success@1 Judged@10"),
        ("trec", 100, "nDCG@10 AP RR R@10 R@100 Success@1 Judged@10"),
        ("scienceqa", 10, "AP(norm=hits)@3"),
        ("mala2025", 2, "AP(norm=hits)@3 nDCG(ideal=returned)@3"),
        ("piaf", 10, "Success AP RR"),
        ("tutorial", 100, "R@10 nDCG@10"),
        ("tutorial", 4, "R@10 nDCG@10"),
        ("tutorial", 0, "R@10 nDCG@10"),
        ("blog", 5, "RR@10 AP@10 nDCG@10 Success@10"),
    ],
)
def test_what_is_shown_when_nothing_is_asked_for(under: str, depth: int, names: str) -> None:
    shown = convention(under).default_metrics(depth)
    assert " ".join(map(str, shown)) == names


@pytest.mark.parametrize(
    ("under", "name", "value"),
    [
        ("scienceqa", "AP", (1 + 1) / 2),
        ("mala2025", "nDCG", 1.0),
        ("piaf", "AP", 2.0),
        ("tutorial", "nDCG@3", 1 + 1 / math.log2(3)),
        ("tutorial", "R@3", 1.0),
    ],
)
def test_a_repeated_document_is_counted_again(under: str, name: str, value: float) -> None:
    assert mean(under, name, {"q": "aax"}, {"q": {"a": 1}}) == pytest.approx(value)


@pytest.mark.parametrize("under", ["trec", "blog"])
def test_a_repeated_document_is_an_error(under: str) -> None:
    with pytest.raises(DataError) as caught:
        scored(under, {"q": "axa"}, {"q": {"a": 1}}, "AP")
    assert caught.value.given == "a document stands more than once in the ranking of 1 query"
    assert caught.value.where == "the run"
    assert under in caught.value.accepted
    assert caught.value.fix
    assert caught.value.faults == ("query 'q': document 'a'",)


@pytest.mark.parametrize(
    ("under", "value"), [("trec", 0.5), ("scienceqa", 0.5), ("mala2025", 0.5), ("blog", 0.5)]
)
def test_a_query_judged_without_a_relevant_document_is_zero(under: str, value: float) -> None:
    qrels = {"q": {"a": 1}, "none": {"a": 0}}
    result = scored(under, {"q": "a", "none": "a"}, qrels, "AP")
    assert result.evaluation.means[0].mean == value
    assert result.counts.evaluated == 2
    assert "1 query judged without a relevant document" in result.warnings


@pytest.mark.parametrize(("answer", "value"), [("", 1.0), ("x", 0.0), ("a", 0.0)])
def test_the_competition_rewards_silence_where_nothing_is_relevant(
    answer: str, value: float
) -> None:
    for none in ({}, {"a": 0}, {"x": 0}):
        assert mean("scienceqa", "AP", {"none": answer}, {"none": none}) == value
        lists = {"q": "a", "none": answer}
        assert mean("scienceqa", "AP", lists, {"q": {"a": 1}, "none": none}) == (1 + value) / 2


def test_piaf_does_not_define_a_query_without_a_relevant_document() -> None:
    qrels = {"q": {"a": 1}, "none": {"a": 0}, "none too": {"b": 0}}
    with pytest.raises(DataError) as caught:
        scored("piaf", {"q": "a"}, qrels, "AP")
    assert caught.value.given == "2 queries without a relevant document, such as 'none'"
    assert caught.value.where == "the judgements"
    assert "piaf" in caught.value.accepted
    assert caught.value.fix
    # one whose judged set is empty is kept apart, and no fault
    assert mean("piaf", "AP", {"q": "a"}, {"q": {"a": 1}, "empty": {}}) == 1


@pytest.mark.parametrize(
    ("under", "name", "evaluated"),
    [
        ("trec", "AP", 1),
        ("scienceqa", "AP", 2),
        ("mala2025", "AP", 2),
        ("piaf", "AP", 1),
        ("tutorial", "nDCG@3", 2),
        ("blog", "AP", 2),
    ],
)
def test_an_unanswerable_query_counts_or_stays_apart(under: str, name: str, evaluated: int) -> None:
    result = scored(under, {"q": "a", "empty": "a"}, {"q": {"a": 1}, "empty": {}}, name)
    assert result.evaluation.means[0].n == result.counts.evaluated == evaluated
    assert result.evaluation.means[0].mean == 1 / evaluated
    assert result.counts.unanswerable == 1


@pytest.mark.parametrize(
    ("under", "name", "value"),
    [
        ("trec", "AP", 0.5),
        ("scienceqa", "AP", 1.0),
        ("mala2025", "AP", 1.0),
        ("piaf", "AP", 0.5),
        ("tutorial", "nDCG@3", 0.5),
        ("blog", "AP", 0.5),
    ],
)
def test_a_query_that_the_run_lacks_is_zero_or_left_out(
    under: str, name: str, value: float
) -> None:
    result = scored(under, {"q": "a"}, {"q": {"a": 1}, "lacking": {"a": 1}}, name)
    assert result.evaluation.means[0].mean == value
    assert result.evaluation.means[0].n == round(1 / value)
    assert result.counts.missing == 1


# Each source's function, from its formulas, over generated rankings with repetitions.


def _competition(lists: Lists, qrels: Grades) -> float:
    total = 0.0
    for query_id, answers in lists.items():
        gold = {doc_id for doc_id, grade in qrels[query_id].items() if grade >= 1}
        if not gold:
            total += not answers
            continue
        precisions: list[float] = []
        for rank, doc_id in enumerate(answers[:3], start=1):
            if doc_id in gold:
                precisions.append((len(precisions) + 1) / rank)
        total += sum(precisions) / len(precisions) if precisions else 0
    return total / len(lists)


def _paper_map(lists: Lists, qrels: Grades) -> float:
    values = []
    for query_id, answers in lists.items():
        marks = [qrels[query_id].get(doc_id, 0) >= 1 for doc_id in answers[:3]]
        found = [sum(marks[:i]) / i for i, mark in enumerate(marks, start=1) if mark]
        values.append(sum(found) / len(found) if found else 0.0)
    return sum(values) / len(values)


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _paper_ndcg(lists: Lists, qrels: Grades) -> float:
    values = []
    for query_id, answers in lists.items():
        gains = [qrels[query_id].get(doc_id, 0) for doc_id in answers]
        best = _dcg(sorted(gains, reverse=True)[:3])
        values.append(_dcg(gains[:3]) / best if best else 0.0)
    return sum(values) / len(values)


def _notebook_recall(lists: Lists, qrels: Grades) -> float:
    values = []
    for query_id, grades in qrels.items():
        relevant = {doc_id for doc_id, grade in grades.items() if grade >= 1}
        found = relevant & set(lists.get(query_id, ())[:5])
        values.append(len(found) / len(relevant) if relevant else 0.0)
    return sum(values) / len(values)


def _notebook_ndcg(lists: Lists, qrels: Grades) -> float:
    values = []
    for query_id, grades in qrels.items():
        best = _dcg(sorted(grades.values(), reverse=True)[:5])
        gained = _dcg([grades.get(doc_id, 0) for doc_id in lists.get(query_id, ())[:5]])
        values.append(gained / best if best else 0.0)
    return sum(values) / len(values)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("under", "name", "again"),
    [
        ("scienceqa", "AP", _competition),
        ("mala2025", "AP", _paper_map),
        ("mala2025", "nDCG", _paper_ndcg),
        ("tutorial", "R@5", _notebook_recall),
        ("tutorial", "nDCG@5", _notebook_ndcg),
    ],
)
def test_a_source_s_formula_written_again_gives_the_same(
    seed: int, under: str, name: str, again: Callable[[Lists, Grades], float]
) -> None:
    qrels, lists = generated_lists(900 + seed, 400)
    assert any(len(set(row)) < len(row) for row in lists.values())
    assert any(not row and not any(qrels[q].values()) for q, row in lists.items())
    assert mean(under, name, lists, qrels) == pytest.approx(again(lists, qrels), abs=1e-12)
