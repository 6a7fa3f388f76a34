"""Which order the conventions give, and why: hand-made runs in which one rule decides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Qrels
from retrieval_bench.metrics import Judgements, parse_metrics
from retrieval_bench.reports.render.cells import cell_of
from retrieval_bench.reports.render.table import NoteKind, kind_of, text_of
from retrieval_bench.reports.render.terminal import PLAIN_WIDTH, plain
from retrieval_bench_score.audit import Audit, Turn, audit
from retrieval_bench_score.conventions import CONVENTIONS, Convention, convention
from retrieval_bench_score.runs.imported import RunFile, read_rankings
from retrieval_bench_score.scoring import Answers, score
from retrieval_bench_score.tables import audit as audit_tables_module
from retrieval_bench_score.tables.audit import audit_tables

Run = Mapping[str, Sequence[str]] | Mapping[str, Mapping[str, float]]

TREC = convention("trec")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read(folder: Path, name: str, run: Run) -> RunFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run), encoding="utf-8")
    return read_rankings(path)


def audited(
    folder: Path, runs: Mapping[str, Run], qrels: Qrels, *names: str, cut: int = 10
) -> Audit:
    """``runs`` under the conventions ``names``, the first of them the base."""
    files = [read(folder, f"{name}.json", run) for name, run in runs.items()]
    return audit(files, Judgements(qrels), [convention(name) for name in names], cut)


def only_turn(result: Audit, concept: str) -> Turn:
    (turn,) = [turn for turn in result.turns if turn.concept == concept]
    return turn


def told(turn: Turn) -> list[tuple[list[str], int, Any]]:
    """Of each cause its rules, the number of queries, and the weights."""
    causes = turn.causes
    return [([rule["name"] for rule in c.rules], c.n_queries, c.queries) for c in causes]


def sentences(result: Audit) -> list[str]:
    """Whether the order depends on the convention, each change, and how many more there are."""
    (table,) = audit_tables(result)
    answer = (NoteKind.RESULT, NoteKind.MORE)
    shown = [*table.lead, *(note for note in table.notes if kind_of(note) in answer)]
    return list(map(text_of, shown))


class TestOneRuleTurnsTheOrder:
    def test_average_precision_divided_by_hits(self, folder: Path) -> None:
        runs = {"once": {"q": ["r1", "x", "y"]}, "twice": {"q": ["x", "r1", "r2"]}}
        result = audited(folder, runs, {"q": {"r1": 1, "r2": 1}}, "trec", "scienceqa")
        turn = only_turn(result, "AP")
        assert (turn.a, turn.b) == ("twice", "once")
        assert turn.base_difference == pytest.approx(7 / 12 - 1 / 2)
        assert turn.difference == pytest.approx(7 / 12 - 1)
        assert told(turn) == [(["definition"], 1, {"q": pytest.approx(-0.5)})]
        (rule,) = turn.causes[0].rules
        assert (rule["trec"], rule["scienceqa"]) == ("AP", "AP(norm=hits)")
        assert sentences(result)[-1] == (
            "AP: twice is 0.0833 ahead of once under trec but 0.4167 behind under scienceqa, "
            "because AP is divided by the hits found, not by all relevant ones (only query q "
            "matters)."
        )

    def test_the_ideal_of_ndcg_taken_from_the_returned_list(self, folder: Path) -> None:
        runs = {"once": {"q": ["r1", "x", "y"]}, "twice": {"q": ["x", "r1", "r2"]}}
        result = audited(folder, runs, {"q": {"r1": 1, "r2": 1}}, "trec", "mala2025")
        turn = only_turn(result, "nDCG")
        ideal, first = 1 + 1 / np.log2(3), 1 / np.log2(3) + 1 / 2
        assert turn.base_difference == pytest.approx((first - 1) / ideal)
        assert turn.difference == pytest.approx(first / ideal - 1)
        assert told(turn) == [(["definition"], 1, {"q": pytest.approx(1 / ideal - 1)})]

    def test_recall_as_hit_rate(self, folder: Path) -> None:
        qrels = {q: {f"{q}{i}": 1 for i in range(4)} for q in ("a", "b")}
        runs = {
            "deep": {"a": ["a0", "a1", "a2", "a3"], "b": ["x"]},
            "wide": {"a": ["a0", "x"], "b": ["x", "b0"]},
        }
        turn = only_turn(audited(folder, runs, qrels, "trec", "piaf"), "R")
        assert (turn.a, turn.base_difference, turn.difference) == ("deep", 0.25, -0.5)
        assert told(turn) == [(["definition"], 2, {"a": -0.375, "b": -0.375})]

    def test_the_cut(self, folder: Path) -> None:
        qrels = {q: {"r": 1} for q in ("a", "b", "c")}
        runs = {
            "late": {q: ["x", "y", "z", "r"] for q in qrels},
            "early": {"a": ["x", "r"], "b": ["x"], "c": ["x"]},
        }
        result = audited(folder, runs, qrels, "trec", "scienceqa")
        turn = only_turn(result, "AP")
        assert turn.base_difference == pytest.approx(1 / 4 - 1 / 6)
        assert turn.difference == pytest.approx(-1 / 6)
        ((rules, n, weights),) = told(turn)
        assert (rules, n) == (["cut"], 3)
        assert weights == pytest.approx(dict.fromkeys("abc", -1 / 12))
        assert (
            "because only the top 3 count, not the top 10 (3 queries matter: a, b, c)"
            in (sentences(result)[-1])
        )

    def test_the_three_heaviest_queries_are_named_heaviest_first(self, folder: Path) -> None:
        ranks = {"e": 4, "d": 5, "c": 6, "b": 7, "a": 8}
        runs = {
            "late": {q: [*(f"x{i}" for i in range(rank - 1)), "r"] for q, rank in ranks.items()},
            "early": {"e": ["x", "r"], **{q: ["x"] for q in "abcd"}},
        }
        result = audited(folder, runs, {q: {"r": 1} for q in "abcde"}, "trec", "scienceqa")
        ((rules, n, weights),) = told(only_turn(result, "AP"))
        assert (rules, n) == (["cut"], 5)
        assert list(weights.items()) == [
            ("e", pytest.approx(-1 / 4 / 5)),
            ("d", pytest.approx(-1 / 5 / 5)),
            ("c", pytest.approx(-1 / 6 / 5)),
        ]

    def test_no_cut_is_named_where_both_have_the_same(self, folder: Path) -> None:
        runs = {"late": {"a": ["x", "y", "z", "r"]}, "never": {"a": ["x"]}}
        result = audited(folder, runs, {"a": {"r": 1}}, "trec", "scienceqa", cut=3)
        assert not result.turns
        assert {str(row.metric) for row in result.rows if row.concept == "AP"} == {
            "AP@3",
            "AP(norm=hits)@3",
        }

    def test_equal_scores(self, folder: Path) -> None:
        tied = {"r": 1.0, "z": 1.0}
        runs = {
            "tied": {"a": tied, "b": tied},
            "plain": {"a": {"r": 2.0, "z": 1.0}, "b": {"z": 2.0, "r": 1.0}},
        }
        qrels = {"a": {"r": 1}, "b": {"r": 1}}
        result = audited(folder, runs, qrels, "trec", "piaf")
        turn = only_turn(result, "RR")
        assert (turn.a, turn.base_difference, turn.difference) == ("plain", 0.25, -0.25)
        assert told(turn) == [(["ties"], 2, {"a": -0.25, "b": -0.25})]
        back = only_turn(audited(folder, runs, qrels, "piaf", "trec"), "RR")
        assert (back.a, told(back)) == ("tied", [(["ties"], 2, {"a": -0.25, "b": -0.25})])

    @pytest.mark.parametrize("judged", [{}, {"x": 0}], ids=["no answer", "none relevant"])
    def test_queries_without_a_relevant_document(self, folder: Path, judged: Any) -> None:
        runs = {"silent": {"q": ["x", "r"], "n": []}, "eager": {"q": ["r", "x"], "n": ["x"]}}
        result = audited(folder, runs, {"q": {"r": 1}, "n": judged}, "trec", "scienceqa")
        turn = only_turn(result, "AP")
        # With judgements n counts under trec, too; without, 1 and 0 come into means of .5 and 1,
        # and a mean is now one of two.
        before, change = (0.25, -0.5) if judged else (0.5, (0 - 1) / 2 - (1 - 0.5) / 2)
        assert (turn.a, turn.base_difference, turn.difference) == ("eager", before, -0.25)
        assert told(turn) == [(["queries without relevant documents"], 1, {"n": change})]
        assert "counts as 1 if nothing was returned, else as 0" in sentences(result)[-1]

    def test_queries_that_a_run_does_not_have(self, folder: Path) -> None:
        runs = {"half": {"a": ["r"]}, "whole": {"a": ["r"], "b": ["x", "r"]}}
        result = audited(folder, runs, {q: {"r": 1} for q in "ab"}, "trec", "scienceqa")
        turn = only_turn(result, "AP")
        assert (turn.a, turn.base_difference, turn.difference) == ("whole", 0.25, -0.25)
        # b goes out of the mean of half, which it had held down from 1 to .5.
        assert told(turn) == [(["missing queries"], 1, {"b": -0.5})]
        assert "half: 1 of 2 judged queries not in the run" in result.warnings


def test_rules_that_turn_the_order_only_together_are_one_cause(folder: Path) -> None:
    runs = {"third": {"q": ["r1", "x", "r2"]}, "fourth": {"q": ["r1", "x", "y", "r2"]}}
    result = audited(folder, runs, {"q": {"r1": 1, "r2": 1}}, "trec", "scienceqa")
    turn = only_turn(result, "AP")
    assert (turn.a, turn.b) == ("third", "fourth")
    assert turn.base_difference == pytest.approx(5 / 6 - 3 / 4)
    assert turn.difference == pytest.approx(5 / 6 - 1)
    assert told(turn) == [(["definition", "cut"], 1, {"q": pytest.approx(-1 / 4)})]
    assert sentences(result)[-1].endswith(
        "because AP is divided by the hits found, not by all relevant ones, and because only the "
        "top 3 count, not the top 10, both together (only query q matters)."
    )


def test_each_rule_that_turns_the_order_alone_is_a_cause(folder: Path) -> None:
    qrels = {"a": {"r": 1, "s": 1}, "b": {"r": 1, "s": 1}}
    runs = {
        "late": {q: ["x", "r", "y", "s"] for q in qrels},
        "once": {"a": ["r"], "b": ["x", "y", "r"]},
    }
    result = audited(folder, runs, qrels, "trec", "scienceqa")
    turn = only_turn(result, "AP")
    assert turn.a == "late"
    assert turn.base_difference == pytest.approx(1 / 2 - 1 / 3)
    assert [rules for rules, _, _ in told(turn)] == [["definition"], ["cut"]]
    assert ", or because only the top 3 count" in sentences(result)[-1]
    assert sentences(result)[-1].endswith(": each is enough alone.")


def test_a_rule_that_only_makes_systems_equal_does_not_explain_that_they_change_places(
    folder: Path,
) -> None:
    """Cut at 3 both find nothing; only with the unanswerable query the second is better."""
    runs = {"late": {"q": ["x", "y", "z", "r"], "hello": ["x"]}, "never": {"q": ["x"], "hello": []}}
    qrels: Qrels = {"q": {"r": 1}, "hello": {}}
    turn = only_turn(audited(folder, runs, qrels, "trec", "scienceqa"), "AP")
    assert (turn.a, turn.base_difference, turn.difference) == ("late", 0.25, -0.5)
    assert [rules for rules, _, _ in told(turn)] == [["queries without relevant documents"]]


def test_systems_that_become_equal_or_stop_being_equal_have_changed_places(folder: Path) -> None:
    runs = {"one": {"q": ["r1"]}, "two": {"q": ["r1", "r2"]}}
    qrels = {"q": {"r1": 1, "r2": 1}}
    turn = only_turn(audited(folder, runs, qrels, "trec", "scienceqa"), "AP")
    assert (turn.a, turn.base_difference, turn.difference) == ("two", 0.5, 0.0)
    result = audited(folder, runs, qrels, "scienceqa", "trec")
    turn = only_turn(result, "AP")
    assert (turn.a, turn.b, turn.base_difference, turn.difference) == ("one", "two", 0.0, -0.5)
    assert (
        "AP: one and two are equal under scienceqa but two is 0.5000 ahead under trec"
        in (sentences(result)[-1])
    )


def test_equal_systems_never_change_places_and_one_system_has_no_order(folder: Path) -> None:
    run = {"q": ["x", "r"], "p": ["r"]}
    qrels: Qrels = {"q": {"r": 1, "s": 1}, "p": {"r": 2}, "hello": {}, "gone": {"r": 1}}
    result = audited(folder, {"a": run, "b": run}, qrels, *CONVENTIONS)
    assert not result.turns
    assert sentences(result) == [
        "No convention changes the order of the systems in any metric that it shares with trec."
    ]
    runs = {"a": {"q": ["r"]}, "b": {"q": ["x"]}}
    assert sentences(audited(folder, {"a": runs["a"]}, {"q": {"r": 1}}, *CONVENTIONS)) == []
    result = audited(folder, runs, {"q": {"r": 1}}, "trec")
    assert sentences(result) == []
    assert [text_of(note)[:1] for table in audit_tables(result) for note in table.notes] == ["*"]


def generated(seed: int, n_queries: int = 12) -> tuple[dict[str, Run], Qrels]:
    """Four systems with ties and missing queries, and judgements of every kind."""
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    for i in range(n_queries):
        judged = rng.choice(12, size=int(rng.integers(0, 5)), replace=False)
        qrels[f"q{i}"] = {f"d{d}": int(rng.integers(0, 3)) for d in judged}
    runs: dict[str, Run] = {}
    for name in ("a", "b", "c", "d"):
        runs[name] = {
            query_id: {
                f"d{d}": float(rng.integers(0, 6))
                for d in rng.choice(12, size=int(rng.integers(0, 9)), replace=False)
            }
            for query_id in qrels
            if rng.random() > 0.2
        }
    return runs, qrels


LEFT_OUT = {"missing": "left out"}

SWITCHED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("ties", {}, {"ties": "list"}),
    ("missing queries", {}, LEFT_OUT),
    # Queries that count 0 in every system cannot turn an order; in means of different queries they
    # can.
    ("queries without relevant documents", LEFT_OUT, {"unanswerable": "counted"}),
    ("queries without relevant documents", {}, {"without_relevant": "one if nothing returned"}),
    ("cut", {}, {"cut": 3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "of_both", "change"), SWITCHED)
def test_the_only_rule_that_differs_is_the_only_cause_and_its_weights_are_the_change(
    rule: str,
    of_both: dict[str, Any],
    change: dict[str, Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retrieval_bench_score.audit.QUERIES_NAMED", 1000)
    base = replace(TREC, **of_both)
    other = replace(base, name="other", **change)
    n_turns = 0
    for seed in range(12):
        runs, qrels = generated(seed)
        files = [read(folder, f"{name}.json", run) for name, run in runs.items()]
        for turn in audit(files, Judgements(qrels), [base, other], 8).turns:
            ((rules, n, weights),) = told(turn)
            assert rules == [rule]
            assert n >= len(weights) >= 1
            total = turn.difference - turn.base_difference
            assert all(change * total > 0 for change in weights.values())
            assert abs(sum(weights.values())) >= abs(total) - 1e-12
            if n == len(weights):
                assert sum(weights.values()) == pytest.approx(total)
            n_turns += 1
    assert n_turns >= 5


def scored_mean(file: RunFile, qrels: Qrels, rules: Convention, name: str) -> float | None:
    lists = {q: ranking.doc_ids for q, ranking in file.ordered(rules.ties).items()}
    means = score(Answers(lists=lists), Judgements(qrels), rules, parse_metrics([name]))
    mean = means.evaluation.means[0]
    return mean.mean if mean.n else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_mean_is_what_evaluate_gives_and_every_turn_follows_from_the_means(
    seed: int, folder: Path
) -> None:
    runs, qrels = generated(seed)
    qrels = {q: grades for q, grades in qrels.items() if not grades or max(grades.values())}
    files = [read(folder, f"{name}.json", run) for name, run in runs.items()]
    result = audit(files, Judgements(qrels), list(CONVENTIONS.values()), 7)
    means: dict[tuple[str, str], list[float]] = {}
    for row in result.rows:
        if row.metric is None:
            assert {cell.reason for cell in row.cells} == {"not defined"}
            continue
        rules = CONVENTIONS[row.convention]
        expected = [scored_mean(file, qrels, rules, str(row.metric)) for file in files]
        found = [cell.mean for cell in row.cells]
        assert found == pytest.approx(expected, abs=1e-12)
        means[row.concept, row.convention] = [mean or 0.0 for mean in found]
    turned = {
        (concept, name, frozenset((result.systems[i], result.systems[j])))
        for (concept, name), of in means.items()
        for i in range(4)
        for j in range(i)
        if (concept, "trec") in means
        and np.sign(round(of[i] - of[j], 12))
        != np.sign(round(means[concept, "trec"][i] - means[concept, "trec"][j], 12))
    }
    assert {(t.concept, t.convention, frozenset((t.a, t.b))) for t in result.turns} == turned
    for turn in result.turns:
        assert turn.base_difference >= -1e-12
        assert turn.causes
        assert all(cause.rules and cause.n_queries for cause in turn.causes)


def test_the_order_of_runs_and_queries_does_not_matter(folder: Path) -> None:
    runs, qrels = generated(3)
    one = audited(folder, runs, qrels, "trec", "scienceqa", "mala2025")
    turned: dict[str, Any] = {
        name: dict(reversed(list(of.items()))) for name, of in reversed(list(runs.items()))
    }
    two = audited(
        folder, turned, dict(reversed(list(qrels.items()))), "trec", "scienceqa", "mala2025"
    )
    assert one.turns

    def facts(result: Audit) -> list[tuple[Any, ...]]:
        return sorted(
            (
                *(turn.concept, turn.convention, *sorted((turn.a, turn.b))),
                round(abs(turn.difference), 9),
                [(rules, n, sorted(weights)) for rules, n, weights in told(turn)],
            )
            for turn in result.turns
        )

    assert facts(one) == facts(two)


class TestWhatCannotBeScored:
    def test_repeated_documents_are_refused_but_the_order_is_compared(self, folder: Path) -> None:
        runs: dict[str, Run] = {
            "again": {"q": ["x", "r", "r"]},
            "twice": {"q": ["x", "r", "s"]},
            "once": {"q": ["r"]},
        }
        qrels = {"q": {"r": 1, "s": 1}}
        result = audited(folder, runs, qrels, "trec", "piaf", "scienceqa", "blog")
        cells = {(row.concept, row.convention): row.cells for row in result.rows}
        for refused in ("trec", "blog"):
            first, *others = cells["AP", refused]
            assert first.mean is None
            assert "more than once" in first.reason
            assert all(cell.mean is not None for cell in others)
        assert all(cell.mean is not None for cell in cells["AP", "piaf"])
        turned = [
            (turn.concept, turn.convention, {turn.a, turn.b}, told(turn)[0][0])
            for turn in result.turns
            if "again" in (turn.a, turn.b) and turn.concept == "AP"
        ]
        assert turned == [("AP", "scienceqa", {"again", "once"}, ["definition"])]
        refused = "a document stands more than once in the ranking of 1 query"
        assert result.warnings[0].startswith(
            "trec refuses repeated documents: its order is compared"
        )
        assert result.warnings[1:] == (
            f"again: not scored under trec: {refused}",
            f"again: not scored under blog: {refused}",
        )

    def test_queries_without_relevant_documents_under_piaf(self, folder: Path) -> None:
        runs = {name: {"q": ["r"], "n": ["x"]} for name in "abcdefg"}
        result = audited(folder, runs, {"q": {"r": 1}, "n": {"x": 0}}, "trec", "piaf")
        shown = [row[2:] for table in audit_tables(result) for row in table.rows if "piaf" in row]
        assert {cell_of(cell).text for row in shown for cell in row} == {"-"}
        assert not result.turns
        (note,) = result.warnings
        assert note.startswith("a, b, c, d, e and 2 more: not scored under piaf: 1 query without")

    def test_a_mean_over_no_query_is_none(self, folder: Path) -> None:
        runs = {"a": {"other": ["r"]}, "b": {"q": ["r"]}}
        result = audited(folder, runs, {"q": {"r": 1}}, "trec", "mala2025")
        means = {
            (row.convention, name): (cell.mean, cell.n)
            for row in result.rows
            for name, cell in zip(result.systems, row.cells, strict=True)
            if row.concept == "AP"
        }
        assert means["mala2025", "a"] == (None, 0)
        assert means["trec", "a"] == (0.0, 1)
        assert not result.turns
        assert json.loads(json.dumps(result.as_dict()))["rows"][1]["n"] == {"a": 0, "b": 1}

    def test_warnings_of_the_files_are_passed_on(self, folder: Path) -> None:
        lines = "q Q0 x 1 1.0 t\nq Q0 r 2 3.0 t\n"
        for name in ("a.trec", "b.trec"):
            (folder / name).write_text(lines, encoding="utf-8")
        files = [read_rankings(folder / name) for name in ("a.trec", "b.trec")]
        (note,) = audit(files, Judgements({"q": {"r": 1}}), [TREC], 10).warnings
        assert note.startswith("a, b: for 1 of 1 queries the lines do not follow the scores")

    @pytest.mark.parametrize(("n_runs", "n_conventions"), [(0, 1), (1, 0)])
    def test_nothing_to_audit(self, folder: Path, n_runs: int, n_conventions: int) -> None:
        file = read(folder, "a.json", {"q": ["r"]})
        with pytest.raises(ConfigError, match=f"{n_runs} runs and {n_conventions} conventions"):
            audit([file] * n_runs, Judgements({"q": {"r": 1}}), [TREC] * n_conventions, 10)


def test_unanswerable_queries_count_under_some_conventions_and_are_never_missing(
    folder: Path,
) -> None:
    file = read(folder, "a.json", {"q": ["r"], "hello": ["x"]})
    rules = [TREC, convention("tutorial")]
    judgements = Judgements({"q": {"r": 1}})
    result = audit([file], judgements, rules, 10, unanswerable=["hello"])
    found = {row.convention: row.cells[0] for row in result.rows if row.concept == "nDCG"}
    assert (found["trec"].mean, found["trec"].n) == (1.0, 1)
    assert (found["tutorial"].mean, found["tutorial"].n) == (0.5, 2)
    file = read(folder, "a.json", {"q": ["r"]})
    qrels = {"q": {"r": 1}, "hello": {}, "said": {"r": 1}, "gone": {"r": 1}}
    (note,) = audit([file], Judgements(qrels), [TREC], 10, unanswerable=["said"]).warnings
    assert note == "a: 1 of 2 judged queries not in the run"


def test_a_convention_given_twice_is_shown_and_told_once(folder: Path) -> None:
    runs = {"once": {"q": ["r1", "x", "y"]}, "twice": {"q": ["x", "r1", "r2"]}}
    qrels = {"q": {"r1": 1, "r2": 1}}
    result = audited(folder, runs, qrels, "trec", "scienceqa", "trec", "scienceqa")
    assert len(result.turns) == 1
    assert [row.convention for row in result.rows if row.concept == "AP"] == ["trec", "scienceqa"]


@pytest.mark.slow
def test_a_difference_that_rounds_to_nothing_is_told_as_such(folder: Path) -> None:
    n = 6_000
    qrels: Qrels = {f"q{i}": {"r": 1, "s": 1} for i in range(n)}
    runs: dict[str, Run] = {
        "late": {q: ["x", "r", "s"] for q in qrels},
        "early": {q: ["r", "x", "y"] if i < 1 else ["x", "r", "s"] for i, q in enumerate(qrels)},
    }
    text = sentences(audited(folder, runs, qrels, "trec", "scienceqa"))[-1]
    assert text.startswith(
        "AP: late is less than 0.0001 ahead of early under trec but 0.0001 behind under scienceqa"
    )


def test_where_means_are_missing_the_order_is_told_as_far_as_there_are_any(folder: Path) -> None:
    run = {"q": ["r"], "n": ["x"]}
    qrels = {"q": {"r": 1}, "n": {"x": 0}}
    (whole,) = sentences(audited(folder, {"a": run, "b": run}, qrels, "trec", "blog"))
    assert whole.endswith("in any metric that it shares with trec.")
    (partial,) = sentences(audited(folder, {"a": run, "b": run}, qrels, "trec", "piaf"))
    assert partial.endswith("that it shares with trec, as far as there are means.")


@pytest.mark.slow
@pytest.mark.parametrize("n", [27, 50])
def test_many_systems_of_one_name_are_told_apart_in_one_table(n: int, folder: Path) -> None:
    file = read(folder, "run.json", {"q": ["r"]})
    result = audit([file] * n, Judgements({"q": {"r": 1}}), list(CONVENTIONS.values()), 10)
    assert len(set(result.systems)) == n
    (table,) = audit_tables(result)
    assert tuple(table.columns[2:]) == result.systems
    text = plain([table])
    assert max(map(len, text.splitlines())) <= PLAIN_WIDTH
    heads = [line.split()[2:] for line in text.splitlines() if line.startswith("  metric ")]
    assert tuple(name for block in heads for name in block) == result.systems


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["bm25.trec.gz", "답변.JSON", "v1.5.txt"], ("bm25", "답변", "v1.5")),
        (["a/run.trec", "b/run.trec"], ("a/run", "b/run")),
        (["bm25.trec", "bm25.json"], ("bm25.trec", "bm25.json")),
        (["run.trec", "run.trec"], ("run", "run#2")),
        (["a/run.trec", "b/run.trec", "a/run.trec"], ("a/run", "b/run", "a/run#2")),
        (["a/x/run.trec", "b/x/run.trec"], ("run.trec", "run.trec#2")),
        ([".gz", "folder.with.dots/"], (".gz", "folder.with.dots")),
    ],
)
def test_systems_have_the_shortest_names_that_tell_them_apart(
    paths: list[str], names: tuple[str, ...], folder: Path
) -> None:
    file = read(folder, "x.json", {"q": ["r"]})
    runs = [replace(file, path=folder / path) for path in paths]
    assert audit(runs, Judgements({"q": {"r": 1}}), [TREC], 10).systems == names


def test_only_the_largest_changes_are_told_but_the_document_has_all(folder: Path) -> None:
    qrels = {f"q{i}": {"r": 1, "s": 1} for i in range(8)}
    late, early = ["x", "r", "s"], ["r", "x", "y"]
    runs: dict[str, Run] = {
        f"s{n}": {q: early if i < n else late for i, q in enumerate(qrels)} for n in range(8)
    }
    result = audited(folder, runs, qrels, "trec", "scienceqa", "mala2025")
    found = [turn for turn in result.turns if turn.concept == "AP"]
    assert len(found) == 2 * 28  # every pair, under two conventions that agree
    assert len(result.as_dict()["turns"]) == len(result.turns)
    _, *said, more = sentences(result)
    assert len(said) == 12
    assert more == "44 smaller changes of order: --format json has all."
    assert any("ahead of s7" in text and "s0 is" in text for text in said)
    assert not any(text.startswith("AP: s6 is") for text in said)
    assert sum("under scienceqa and mala2025" in text for text in said) > 0


def test_a_change_is_as_large_as_the_smaller_of_its_two_differences(folder: Path) -> None:
    """Thirteen pairs become equal from .5 apart; one pair changes places by less."""
    qrels: Qrels = {q: {"r": 1, "s": 1} for q in ("a", "b", "c", "d")}
    runs: dict[str, Run] = {f"one{i}": {q: ["r"] for q in qrels} for i in range(13)}
    runs["both"] = {q: ["r", "s"] for q in qrels}
    nothing = {q: ["x"] for q in ("b", "c", "d")}
    runs["late"] = {"a": ["x", "r", "s"], **nothing}
    runs["first"] = {"a": ["r", "x", "y"], **nothing}
    said = sentences(audited(folder, runs, qrels, "trec", "scienceqa"))
    assert said[-1].startswith("2 smaller changes")
    assert any(text.startswith("AP: late is 0.0208 ahead of first under trec") for text in said)


@pytest.mark.slow
def test_every_pair_of_conventions_can_be_told_in_words(folder: Path) -> None:
    seen = set()
    for base in CONVENTIONS:
        for other in CONVENTIONS:
            for seed in range(3):
                runs, qrels = generated(seed)
                judged = {q: of for q, of in qrels.items() if not of or max(of.values())}
                result = audited(folder, runs, judged, base, other)
                assert sentences(result) or base == other
                rules = [rule for turn in result.turns for c in turn.causes for rule in c.rules]
                seen |= {(rule["name"], rule[other]) for rule in rules}
    worded = {(name, other) for name, other in seen if name != "cut"}
    assert worded == set(audit_tables_module._WORDS)
    assert {other for name, other in seen if name == "cut"} == {"3", "10"}
