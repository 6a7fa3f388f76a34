"""Slots: metrics of hits that fill them, by hand and by brute force."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, DataError, NothingMeasuredError
from retrieval_bench.core.types import Dataset, Document, Query, Ranking, by_rule
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.metrics import Judgements, default_metrics, judge, judge_lists, parse_metric
from retrieval_bench.metrics.names import check_defined
from retrieval_bench.runs.records import read_run, write_run
from retrieval_bench_rules.metrics import DEFINED, METRICS
from retrieval_bench_rules.slots import as_kept, decide

TEXTS = {
    "a": "annual leave is 25 days",
    "b": "sick leave: tell your team",
    "c": "DEPRECATED leave days of 2019",
    "d": "train tickets",
}
ONE: list[Any] = ["annual leave"]
TWO: list[Any] = ["annual leave", {"id": "d"}]
EARLY: list[Any] = [{"id": "b", "within": 2}]
BOTH: list[Any] = [{"any": ["annual leave", "tickets"]}]
BAN: list[Any] = ["deprecated"]

BY_HAND: Sequence[tuple[list[Any], list[Any], str, tuple[float, float, float, float, float, float]]]
BY_HAND = [
    # expect, forbid, hits -> SlotR@3, AllSlots@3, Success@3, RR@3, Clean@3, Within
    (ONE, [], "abc", (1, 1, 1, 1, 1, 1)),
    (ONE, [], "bac", (1, 1, 1, 1 / 2, 1, 1)),
    (ONE, [], "bca", (1, 1, 1, 1 / 3, 1, 1)),
    (ONE, [], "bcda", (0, 0, 0, 0, 1, 1)),
    (ONE, [], "", (0, 0, 0, 0, 1, 1)),
    (ONE, BAN, "ab", (1, 1, 1, 1, 1, 1)),
    (ONE, BAN, "ca", (1, 1, 1, 1 / 2, 0, 1)),
    (ONE, BAN, "abdc", (1, 1, 1, 1, 1, 1)),
    (TWO, [], "ad", (1, 1, 1, 1, 1, 1)),
    (TWO, [], "a", (1 / 2, 0, 1, 1, 1, 1)),
    (TWO, [], "bd", (1 / 2, 0, 1, 1 / 2, 1, 1)),
    (TWO, [], "bc", (0, 0, 0, 0, 1, 1)),
    (TWO, [], "bcad", (1 / 2, 0, 1, 1 / 3, 1, 1)),
    (TWO, BAN, "cda", (1, 1, 1, 1 / 2, 0, 1)),
    (EARLY, [], "bacd", (1, 1, 1, 1, 1, 1)),
    (EARLY, [], "abcd", (1, 1, 1, 1 / 2, 1, 1)),
    (EARLY, [], "acbd", (0, 0, 0, 0, 1, 0)),
    (EARLY, [], "acd", (0, 0, 0, 0, 1, 0)),
    ([*EARLY, *ONE], [], "acb", (1 / 2, 0, 1, 1, 1, 0)),
    ([*EARLY, *ONE], [], "ab", (1, 1, 1, 1, 1, 1)),
    (BOTH, [], "bcd", (1, 1, 1, 1 / 3, 1, 1)),
    (BOTH, [], "da", (1, 1, 1, 1, 1, 1)),
    ([{"all": ["leave", "days"]}], [], "bca", (1, 1, 1, 1 / 2, 1, 1)),
    ([{"all": ["leave", "team"]}], [], "ac", (0, 0, 0, 0, 1, 1)),
    ([{"any": ["leave"], "id": "b"}], [], "acb", (1, 1, 1, 1 / 3, 1, 1)),
    ([{"any": ["leave"], "source": "[ab]"}], [], "cb", (1, 1, 1, 1 / 2, 1, 1)),
    ([{"matches": r"\d{2} days"}], [], "cba", (1, 1, 1, 1 / 3, 1, 1)),
    (["leave", "annual leave"], [], "ba", (1, 1, 1, 1, 1, 1)),
    ([], BAN, "abc", (0, 0, 0, 0, 0, 1)),
    ([], [{"any": ["deprecated"], "within": 1}], "abc", (0, 0, 0, 0, 1, 1)),
]
NAMES = ("SlotR@3", "AllSlots@3", "Success@3", "RR@3", "Clean@3", "Within")


def dataset(rules: Sequence[tuple[list[Any], list[Any]]], documents: bool = True) -> Dataset:
    queries = [
        Query(f"q{n}", f"question {n}", metadata={"expect": expect, "forbid": forbid})
        for n, (expect, forbid) in enumerate(rules)
    ]
    corpus = [Document(doc_id, text) for doc_id, text in TEXTS.items()]
    return build_dataset("toy", corpus if documents else None, queries, None)


def test_figures_are_those_of_a_calculation_by_hand() -> None:
    data = dataset([(expect, forbid) for expect, forbid, _, _ in BY_HAND])
    ids = [query.id for query in data.queries]
    lists = {query_id: list(row[2]) for query_id, row in zip(ids, BY_HAND, strict=True)}
    run = judge_lists(lists, ids, Judgements(data.qrels))
    found = np.column_stack([parse_metric(name).compute(run) for name in NAMES])
    for query_id, row, values in zip(ids, BY_HAND, found.tolist(), strict=True):
        assert values == pytest.approx(list(row[3])), (query_id, row)
    assert len(BY_HAND) == 30


def by_brute_force(hits: list[str], words: list[list[str]], bans: list[str], k: int) -> list[float]:
    """Slots are lists of letters of which one must be in a hit, with a limit as the last entry."""
    filled = []
    for *letters, limit in words:
        filled.append(any(set(letters) & set(hit) for hit in hits[: min(k, int(limit))]))
    early = [done for done, (*_, limit) in zip(filled, words, strict=True) if int(limit) < 99]
    at = [
        rank
        for rank, hit in enumerate(hits[:k], start=1)
        if any(set(letters) & set(hit) and rank <= int(limit) for *letters, limit in words)
    ]
    clean = not any(set(bans) & set(hit) for hit in hits[:k])
    n = len(words)
    return [
        sum(filled) / n,
        float(all(filled)),
        float(bool(at)),
        1 / at[0] if at else 0.0,
        float(clean),
        float(all(early)),
    ]


def test_figures_are_those_of_a_brute_force_on_1000_queries() -> None:
    draw = random.Random(60)
    texts = {"".join(sorted(draw.sample("abcdefgh", 3))) for _ in range(60)}
    queries, lists, wanted = [], {}, []
    for n in range(1000):
        slots = {
            (*sorted(draw.sample("abcdefgh", draw.randint(1, 2))), draw.choice(["99", "99", "2"]))
            for _ in range(draw.randint(1, 3))
        }
        words, bans = (
            [list(slot) for slot in sorted(slots)],
            draw.sample("abcdefgh", draw.randint(0, 1)),
        )
        expect = [
            {"any": letters} | ({"within": int(limit)} if limit != "99" else {})
            for *letters, limit in words
        ]
        query_id = f"q{n}"
        metadata = {"expect": expect, "forbid": [{"any": [letter]} for letter in bans]}
        queries.append(Query(query_id, "?", metadata=metadata))
        lists[query_id] = draw.sample(sorted(texts), draw.randint(0, 6))
        # Where a limit of 2 is deeper than k it holds for the first k alone, but for Within.
        wanted.append(by_brute_force(lists[query_id], words, bans, 3))
    data = build_dataset("toy", [Document(t, t) for t in sorted(texts)], queries, None)
    ids = [query.id for query in queries]
    positions = {text: at for at, text in enumerate(sorted(texts))}
    ranking = np.full((1000, 6), -1, dtype=np.int32)
    for row, query_id in enumerate(ids):
        ranking[row, : len(lists[query_id])] = [positions[hit] for hit in lists[query_id]]
    run = judge(ranking, sorted(texts), ids, Judgements(data.qrels))
    found = np.column_stack([parse_metric(name).compute(run) for name in NAMES])
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("name", ["nDCG@10", "AP", "P@5", "R@10", "Bpref"])
def test_metrics_of_documents_are_refused(name: str) -> None:
    data = dataset([(ONE, BAN)])
    metric = parse_metric(name)
    with pytest.raises(ConfigError, match="where truth is by rule") as caught:
        check_defined([metric], data.qrels)
    assert ", ".join(DEFINED) in caught.value.accepted
    with pytest.raises(ConfigError, match="where truth is by rule"):
        metric.compute(judge_lists({}, ["q0"], Judgements(data.qrels)))


@pytest.mark.parametrize(
    "name", ["SlotR(judged_only=True)@3", "RR(rel=2)@3", "Within(judged_only=True)"]
)
def test_parameters_of_judged_documents_are_refused(name: str) -> None:
    qrels = dataset([(EARLY, BAN)]).qrels
    with pytest.raises(ConfigError, match="where truth is by rule") as caught:
        check_defined([parse_metric(name)], qrels)
    assert "no document is judged" in caught.value.accepted
    check_defined([parse_metric("SlotR(depth=2)@3")], qrels)


@pytest.mark.parametrize("name", METRICS)
def test_metrics_of_slots_are_refused_where_documents_are_judged(name: str) -> None:
    metric = parse_metric(name if name == "Within" else f"{name}@5")
    with pytest.raises(ConfigError, match="where documents are judged"):
        check_defined([metric], {"q": {"a": 1}})
    with pytest.raises(ConfigError, match="where documents are judged"):
        metric.compute(judge_lists({"q": ["a"]}, ["q"], Judgements({"q": {"a": 1}})))


def test_metrics_that_nobody_asked_for_follow_from_the_rules() -> None:
    def usual(*rules: tuple[list[Any], list[Any]]) -> list[str]:
        return [str(metric) for metric in default_metrics(5, dataset(rules).qrels)]

    assert usual((ONE, [])) == ["SlotR@5", "AllSlots@5", "RR@5", "Success@1"]
    assert usual((ONE, BAN))[-1] == "Clean@5"
    assert usual((EARLY, BAN))[-2:] == ["Clean@5", "Within"]
    assert usual(([], BAN)) == ["Clean@5"]


@pytest.mark.needs("retrieval_bench_score")
def test_a_run_of_scores_is_refused() -> None:
    from retrieval_bench_score.scored import judge_scores

    data = dataset([(ONE, [])])
    with pytest.raises(ConfigError, match="a run of scores against truth by rule"):
        judge_scores({"q0": {"a": 1.0}}, ["q0"], Judgements(data.qrels))


def values(data: Dataset, qrels: Any, names: Sequence[str] = NAMES) -> list[list[float]]:
    ids = [query.id for query in data.queries]
    run = judge_lists({query_id: ["a", "b"] for query_id in ids}, ids, Judgements(qrels))
    return [[float(value) for value in parse_metric(name).compute(run)] for name in names]


def test_a_text_that_came_with_a_hit_counts_and_not_that_of_its_document() -> None:
    data = dataset([(ONE, BAN)])
    own = Ranking(["a", "b"], texts=["nothing here", None])
    decided = decide(data.qrels, ["q0"], [own], [0], 3)
    assert values(data, decided.qrels, ["SlotR@2"]) == [[0.0]]
    assert values(data, data.qrels, ["SlotR@2"]) == [[1.0]]
    assert decided.kept["slots"] == {"q0": {'any "annual leave"': [], 'not any "deprecated"': []}}


def test_a_source_that_came_with_a_hit_counts_and_else_its_id() -> None:
    data = dataset([([{"source": "handbook/*"}], [{"source": "b"}])])
    hits = Ranking(["a", "b"], sources=["handbook/leave.md", None])
    decided = decide(data.qrels, ["q0"], [hits], [0], 3)
    assert values(data, decided.qrels, ["SlotR@2", "Clean@2"]) == [[1.0], [0.0]]
    assert decided.notices[0].startswith("1 of 1 query with `forbid` had a forbidden hit")


def test_without_a_corpus_texts_that_did_not_come_are_told() -> None:
    data = dataset([(ONE, [])], documents=False)
    decided = decide(
        data.qrels, ["q0"], [Ranking(["a", "b"], texts=["annual leave", None])], [0], 3
    )
    assert "1 hit came without a text, and there is no corpus" in decided.notices[0]
    assert values(data, decided.qrels, ["SlotR@2"]) == [[1.0]]
    with pytest.raises(NothingMeasuredError, match="no hit came with a text"):
        decide(data.qrels, ["q0"], [Ranking(["a", "b"])], [0], 3)
    only_ids = dataset([([{"id": "a"}], [])], documents=False)
    assert decide(only_ids.qrels, ["q0"], [Ranking(["a"])], [0], 3).notices == []


def searching(text: str) -> Any:
    from retrieval_bench import Capabilities, Retriever

    class Search(Retriever):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(external=True)

        def search(self, query: Query, k: int) -> Ranking:
            return Ranking(["1", "2"][:k], [2.0, 1.0][:k], texts=[text, "other"][:k])

    return Search()


def measured(text: str) -> Any:
    data = dataset([(ONE, BAN), (["other"], [])], documents=False)
    protocol = Protocol(rounds=1, warm_up_s=0.0)
    experiment = prepare([searching(text)], data, k=2, protocol=protocol, save=False)
    (run,) = experiment.run(save=False)
    return data, run


def test_a_run_keeps_what_was_decided(here: Path) -> None:
    data, run = measured("Annual leave: 25 days")
    assert run.evaluation.by_metric["SlotR@2"].mean == 1.0
    write_run(run, here / "run")
    saved = read_run(here / "run")
    assert saved.manifest["slots"]["q0"] == {'any "annual leave"': [1], 'not any "deprecated"': []}
    kept = as_kept(data.qrels, saved)
    ids, rows = saved.rankings.query_ids, saved.rankings.ranking
    again = judge(rows, saved.rankings.doc_ids, ids, Judgements(kept))
    assert parse_metric("SlotR@2").compute(again).tolist() == [1.0, 1.0]


def test_a_query_without_an_answer_counts_0_and_an_empty_answer_is_clean() -> None:
    data = dataset([(ONE, BAN), (EARLY, []), ([], BAN)])
    ids = [query.id for query in data.queries]
    for answer, wanted in ((None, [0.0, 0.0, 0.0]), (Ranking([]), [1.0, 1.0, 1.0])):
        decided = decide(data.qrels, ids, [answer] * 3, [0, 1, 2], 3)
        run = judge_lists({}, ids, Judgements(decided.qrels))
        assert parse_metric("Clean@3").compute(run).tolist() == wanted
        assert parse_metric("SlotR@3").compute(run).tolist() == [0.0, 0.0, 0.0]
    assert parse_metric("Within").compute(run).tolist() == [1.0, 0.0, 1.0]


def test_texts_that_are_gone_are_not_taken_for_empty_ones() -> None:
    data = dataset([(ONE, [])], documents=False)
    with pytest.raises(DataError, match="which is not known any more"):
        values(data, data.qrels)


def test_rules_that_are_rebuilt_by_hand_stay_rules() -> None:
    data = dataset([(ONE, [])])
    assert by_rule(dict(data.qrels))
    assert not by_rule(replace(data, qrels={}).qrels)


def test_a_rule_of_an_id_counts_for_each_hit_of_it() -> None:
    expect, forbid = {"id": "leave.md", "any": ["25 days"]}, {"id": "leave.md", "any": ["old"]}
    data = dataset([([expect], [forbid])], documents=False)
    ids, texts = ["leave.md", "leave.md#2", "b#2"], ["intro", "25 days, old", "25 days, old"]
    decided = decide(data.qrels, ["q0"], [Ranking(ids, texts=texts)], [0], 3)
    assert list(decided.kept["slots"]["q0"].values()) == [[2], [2]]


@pytest.mark.parametrize("texts", [None, ["x", "y", "z"]])
def test_a_document_with_a_number_in_its_id_keeps_it(texts: list[str] | None) -> None:
    expect: list[Any] = [{"id": "a#2"}, {"source": "a#2"}]
    query = Query("q0", "?", metadata={"expect": expect, "forbid": [{"id": "a"}]})
    corpus = [Document(name, "text") for name in ("a", "a#2", "b")]
    data = build_dataset("toy", corpus, [query], None)
    decided = decide(data.qrels, ["q0"], [Ranking(["a", "a#2", "b"], texts=texts)], [0], 3)
    assert list(decided.kept["slots"]["q0"].values()) == [[2], [2], [1]]
