"""Metric code on inputs that must not win: each fault is found in code that has it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, PluginError
from retrieval_bench_score.cheats import ScorerAudit, audit_scorer, try_scorer
from retrieval_bench_score.tables.audit import cheat_tables

Grades = Mapping[str, Mapping[str, int]]


def ap(ranked: list[str], grades: Mapping[str, int]) -> float:
    """Average precision, as the guide defines it."""
    found, total = 0, 0.0
    for rank, doc in enumerate(ranked, 1):
        if grades.get(doc, 0) > 0:
            found += 1
            total += found / rank
    relevant = sum(grade > 0 for grade in grades.values())
    return total / relevant if relevant else 0.0


def by_chance(scores: Mapping[str, float], grades: Mapping[str, int]) -> list[str]:
    """Best first; equal scores in an order that neither ids nor the dictionary tell: the mean over
    the two extremes is what a caller gets."""
    return sorted(scores, key=lambda d: -scores[d])


def checked(scores: Mapping[str, float]) -> None:
    if any(math.isnan(score) for score in scores.values()):
        raise ValueError("a score is not a number")


def honest(run: Mapping[str, Any], qrels: Grades) -> dict[str, float]:
    """Ties are worth the mean of the best and the worst order."""
    values = {}
    for q, grades in qrels.items():
        scores = run.get(q, {})
        checked(scores)
        orders = [
            sorted(scores, key=lambda d: (-scores[d], sign * (grades.get(d, 0) > 0)))
            for sign in (-1, 1)
        ]
        values[q] = sum(ap(order, grades) for order in orders) / 2
    return values


def verdicts(audit: ScorerAudit) -> dict[str, str]:
    return {one.cheat: one.verdict for one in audit.outcomes}


def wrong(scorer: Callable[[Any, Any], Any]) -> set[str]:
    found = verdicts(try_scorer(scorer, "s"))
    return {cheat for cheat, verdict in found.items() if verdict == "wrong"}


def test_an_honest_scorer_is_cheated_by_nothing() -> None:
    audit = try_scorer(honest, "s")
    assert audit.wrong == 0
    assert len(audit.outcomes) == 16
    assert verdicts(audit)["NaN scores"] == "refuses"
    assert verdicts(audit)["constant score"] == "right"
    assert 0 < audit.honest < 1


def _by_dictionary(run: Any, qrels: Any) -> dict[str, float]:
    for scores in run.values():
        checked(scores)
    return {
        q: ap(sorted(run.get(q, {}), key=lambda d: -run[q][d]), grades)
        for q, grades in qrels.items()
    }


def test_ties_in_the_order_of_the_dictionary_are_told_with_what_chance_gives() -> None:
    audit = try_scorer(_by_dictionary, "s")
    (tie,) = [one for one in audit.outcomes if one.verdict == "wrong"]
    assert tie.cheat == "constant score"
    assert tie.got == pytest.approx(3 / 4)
    assert tie.fair == pytest.approx((1 / 18 + 2 / 19 + 3 / 20) / 4)
    assert tie.chance is not None
    assert tie.fair is not None
    assert 0.05 < tie.fair < tie.chance < 0.3
    assert f"it gives 0.7500 or {tie.fair:.4f}" in tie.says
    assert f"the mean over orders is {tie.chance:.4f}" in tie.says


def test_ties_by_id_are_a_rule_and_named() -> None:
    def by_id(run: Any, qrels: Any) -> dict[str, float]:
        return {
            q: ap(sorted(run.get(q, {}), key=lambda d: (-run[q][d], d)), grades)
            for q, grades in qrels.items()
        }

    assert verdicts(try_scorer(by_id, "s"))["constant score"] == "by id"


def _honest_where(keep: Callable[[Any, Any, str, str], bool]) -> Callable[[Any, Any], Any]:
    """Honest on the hits that ``keep(run, qrels, query, document)`` leaves."""

    def scorer(run: Any, qrels: Any) -> dict[str, float]:
        kept = {q: {d: s for d, s in of.items() if keep(run, qrels, q, d)} for q, of in run.items()}
        return honest(kept, qrels)

    return scorer


def _mean_over(counts: Callable[[Any, str], bool]) -> Callable[[Any, Any], Any]:
    """Honest, over the queries that ``counts(run, query)`` leaves."""
    return lambda run, qrels: {q: v for q, v in honest(run, qrels).items() if counts(run, q)}


def _one_where_nothing_is_relevant(run: Any, qrels: Any) -> dict[str, float]:
    values = honest(run, qrels)
    return {q: value if any(qrels[q].values()) else 1.0 for q, value in values.items()}


def _over_all_queries(run: Any, qrels: Any) -> float:
    return sum(honest(run, qrels).values()) / max(len(run), len(qrels))


def _absolute_grades(run: Any, qrels: Any) -> dict[str, float]:
    return honest(run, {q: {d: abs(g) for d, g in of.items()} for q, of in qrels.items()})


def _upside_down(run: Any, qrels: Any) -> dict[str, float]:
    return honest({q: {d: -s for d, s in of.items()} for q, of in run.items()}, qrels)


def _by_length(run: Any, qrels: Any) -> dict[str, float]:
    return {q: v + 1e-4 * len(run.get(q, {})) for q, v in honest(run, qrels).items()}


def _forgiving(run: Any, qrels: Any) -> dict[str, float]:
    """AP divided by the hits."""
    values = {}
    for q, value in honest(run, qrels).items():
        relevant = {d for d, g in qrels[q].items() if g > 0}
        values[q] = value * len(relevant) / max(1, len(relevant & set(run.get(q, {}))))
    return values


@pytest.mark.parametrize(
    ("cheat", "fault"),
    [
        ("missing queries", _mean_over(lambda run, q: q in run)),
        ("empty results", _mean_over(lambda run, q: bool(run.get(q)))),
        ("nothing relevant", _one_where_nothing_is_relevant),
        ("unknown queries", _over_all_queries),
        ("constant shift", _honest_where(lambda run, qrels, q, d: run[q][d] > 0)),
        ("unjudged first", _honest_where(lambda run, qrels, q, d: d in qrels.get(q, {}))),
        ("id of the query", _honest_where(lambda run, qrels, q, d: d != q)),
        ("negative grades", _absolute_grades),
        ("reversed", _upside_down),
        ("padding", _by_length),
        ("short lists", _forgiving),
    ],
)
def test_each_fault_is_found(cheat: str, fault: Callable[[Any, Any], Any]) -> None:
    assert cheat in wrong(fault)


def test_not_a_number_is_no_score_and_no_value_and_changes_of_the_data_are_found() -> None:
    def nan(run: Any, qrels: Any) -> float:
        some = any(math.isnan(s) for of in run.values() for s in of.values())
        return math.nan if some else 0.5

    assert "NaN scores" in wrong(nan)

    def emptying(run: Any, qrels: Any) -> dict[str, float]:
        values = honest(run, qrels)
        run.clear()
        return values

    assert wrong(emptying) == {"the caller's data"}


@pytest.mark.slow
def test_repeated_documents_are_tried_where_lists_are_taken() -> None:
    def of_lists(run: Any, qrels: Any) -> dict[str, float]:
        return {
            q: ap(of if isinstance(of, list) else by_chance(of, qrels[q]), qrels[q])
            for q, of in run.items()
            if q in qrels
        }

    assert "repeated documents" in wrong(of_lists)
    taken = [o for o in try_scorer(honest, "s").outcomes if o.cheat == "repeated documents"]
    assert taken[0].says == "takes no lists"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def score(run, qrels):\n    raise SystemExit(3)\n", "raised SystemExit: 3"),
        ("def score(run, qrels):\n    return '0.5'\n", "gave str"),
        ("def score(run, qrels):\n    return [1, 2]\n", "gave list"),
        ("def score(run, qrels):\n    pass\n", "gave NoneType"),
        ("def score(run):\n    return 1.0\n", "raised TypeError"),
        ("score = 5\n", "cannot be called"),
    ],
)
def test_what_is_no_scorer_is_told(here: Path, text: str, says: str) -> None:
    (here / "own.py").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        audit_scorer("own.py:score")
    assert says in caught.value.given
    assert caught.value.accepted
    assert caught.value.fix


def test_a_scorer_that_is_not_there_is_told(here: Path) -> None:
    (here / "own.py").write_text("", encoding="utf-8")
    with pytest.raises(PluginError, match="no 'score'"):
        audit_scorer("own.py:score")


@pytest.mark.slow
def test_the_table_has_a_row_for_each_cheat_and_says_why() -> None:
    audit = try_scorer(_by_dictionary, "mine")
    (table,) = cheat_tables(audit)
    assert len(table.rows) == 16
    assert "mine gets 1 cheat of 16 wrong." in str(table.lead)
    assert any("rewards ties" in str(note) for note in table.notes)
    (clean,) = cheat_tables(try_scorer(honest, "mine"))
    assert "None of 16 cheats wins with mine." in str(clean.lead)
