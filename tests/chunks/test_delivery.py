"""Delivery: figures by hand, and against a reader who goes from character to character."""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.metrics import Judgements, default_metrics, judge_lists, parse_metric
from retrieval_bench_chunks.counting import Counter
from retrieval_bench_chunks.delivery import Delivery, Hit
from retrieval_bench_chunks.ranges import (
    DocumentOf,
    KnownRanges,
    Place,
    as_range,
    common,
    covered,
    length,
    union,
)

TEXT = "0123456789" * 6


def dataset(*spans: tuple[int, int], text: str = TEXT) -> Dataset:
    truth = [{"document": "d", "start": start, "end": end} for start, end in spans]
    query = Query("q", "which?", metadata={"spans": truth})
    documents: Any = [Document("d", text), Document("other", "another text, of no use")]
    return build_dataset("made", documents, [query], None)


def value(data: Dataset, hits: list[str], metric: str) -> float:
    run = judge_lists({"q": hits}, ["q"], Judgements(data.qrels))
    return float(parse_metric(metric).compute(run)[0])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("SpanR@1", 10 / 20),
        ("SpanP@1", 10 / 20),
        ("SpanIoU@1", 10 / 30),
        ("AllSpans@1", 0),
        ("SpanR@2", 1),
        ("SpanP@2", 20 / 45),
        ("SpanP(overlap=once)@2", 20 / 40),
        ("SpanIoU@2", 20 / 45),
        ("SpanIoU(overlap=once)@2", 20 / 40),
        ("AllSpans@2", 1),
        ("R@2", 1),
        ("RR", 1 / 2),
        ("Success@1", 0),
        ("SpanR(characters=30)", 15 / 20),
        ("SpanP(characters=30)", 15 / 30),
        ("SpanR(characters=45)", 1),
        ("SpanR(characters=30)@1", 10 / 20),
        ("AllSpans(characters=30)", 0),
    ],
)
def test_the_example_of_the_guide(metric: str, expected: float) -> None:
    assert value(dataset((10, 30)), ["d#0-20", "d#15-40"], metric) == pytest.approx(expected)


def test_other_documents_are_paid_for_and_overlapping_spans_count_once() -> None:
    data = dataset((10, 30), (20, 40))
    assert value(data, ["other", "d#0-40"], "SpanP") == pytest.approx(30 / (23 + 40))
    assert value(data, ["d#0-40"], "SpanIoU") == pytest.approx(30 / 40)
    assert value(data, ["d#0-30"], "R") == 1 / 2
    assert value(data, [], "SpanP") == value(data, [], "SpanR") == 0


def test_a_whole_document_is_cut_where_the_budget_ends() -> None:
    data = dataset((50, 60))
    assert value(data, ["d"], "SpanR(characters=50)") == 0
    assert value(data, ["d"], "SpanR(characters=55)") == 1 / 2
    assert value(data, ["d#50-60", "d"], "SpanR(characters=10)") == 1


def test_where_chunks_are_documents_figures_are_those_of_document_judgements() -> None:
    documents = [Document(f"d{at}", f"text number {at:03} of some") for at in range(20)]
    chance = random.Random(4)
    queries, qrels, lists = [], {}, {}
    for at in range(30):
        relevant = chance.sample(documents, chance.randint(1, 4))
        spans = [{"document": d.id, "start": 0, "end": len(d.text)} for d in relevant]
        queries.append(Query(f"q{at}", "?", metadata={"spans": spans}))
        qrels[f"q{at}"] = {d.id: 1 for d in relevant}
        lists[f"q{at}"] = [d.id for d in chance.sample(documents, 10)]
    held: Any = documents
    data = build_dataset("made", held, queries, None)
    judged = judge_lists(lists, list(qrels), Judgements(qrels))
    spans_run = judge_lists(lists, list(qrels), Judgements(data.qrels))
    for ours, theirs in (
        *(("SpanR@5", "R@5"), ("SpanP@5", "P@5"), ("R@5", "R@5"), ("RR", "RR")),
        ("Success@3", "Success@3"),
    ):
        a, b = parse_metric(ours).compute(spans_run), parse_metric(theirs).compute(judged)
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_a_reader_of_single_characters_finds_and_pays_the_same() -> None:
    chance, counter = random.Random(7), Counter("estimate")
    for _ in range(300):
        truth = union(
            (at, at + chance.randint(1, 15))
            for at in chance.sample(range(60), chance.randint(1, 4))
        )
        ranges = [
            (start, start + chance.randint(0, 20))
            for start in (chance.randrange(60) for _ in range(chance.randint(0, 6)))
        ]
        hits = [Hit((Place("d", s, e),), "x" * (e - s)) for s, e in ranges]
        budget = chance.choice([None, chance.randint(1, 60)])
        read = [at for s, e in ranges for at in range(s, e)][:budget]
        wanted = {at for s, e in truth for at in range(s, e)}
        delivery = Delivery(hits, {"d": truth}, counter)
        got, once = (delivery.within(characters=budget, once=once) for once in (False, True))
        assert (got.covered, got.paid, got.truth) == (len(wanted & {*read}), len(read), len(wanted))
        assert (once.covered, once.paid) == (got.covered, len({*read}))
        assert got.iou == (got.covered / len(read + [at for at in wanted if at not in read]))


def test_no_hit_earns_more_than_its_text_and_nothing_is_paid_for_twice_by_once() -> None:
    counter, both = Counter("estimate"), (Place("d", 0, 11), Place("d", 19, 30))
    truth = {"d": [(0, 11), (19, 30)]}
    twice, other = Hit(both, "alpha beta."), Hit((), "another one")
    got = Delivery([twice, other], truth, counter).within(1)
    assert (got.recall, got.precision, got.iou) == (1, 1, 11 / 22)
    assert Delivery([other, twice, twice], truth, counter).within().precision == 11 / 33
    longer = Delivery([Hit((Place("d", 0, 30),), "alpha beta")], {"d": [(0, 30)]}, counter)
    assert longer.within().precision == 1
    assert longer.within(once=True).paid == longer.within().paid == 10
    a, b = Hit((Place("d", 0, 4), Place("d", 100, 104)), "abcd"), Place("d", 200, 205)
    apart = Delivery([a, Hit((Place("d", 0, 5), b), "abcde")], {"d": [(100, 104), b[1:]]}, counter)
    assert apart.within(once=True).precision == 1


def test_a_range_ends_where_its_document_does() -> None:
    spans: Any = dataset((50, 60)).qrels["q"]
    assert spans.hit("d#55-900") == Hit((Place("d", 55, 60),), "56789")
    assert spans.hit("d#100-900") == Hit((Place("d", 60, 60),), "")
    assert value(dataset((50, 60)), ["d#50-900"], "SpanP(overlap=once)") == 1


def test_hits_are_looked_up_once_whatever_holds_them() -> None:
    spans: Any = dataset((10, 30)).qrels["q"]
    hits = ("d", "other")
    assert spans.delivery(hits) is spans.delivery(hits) is spans.delivery([*hits])
    assert spans.delivery(("d",)) is not spans.delivery(("d", "other"))


def test_tokens_of_a_budget_are_those_of_the_texts_in_their_order() -> None:
    data = dataset((0, 300), text="word " * 100)
    delivery = data.qrels["q"].delivery(["d#0-100", "d#200-300"])  # type: ignore[attr-defined]
    n = delivery.tokens_of(0)
    assert delivery.within(tokens=n).paid == 100
    assert delivery.within(tokens=n + 1).paid in range(101, 107)
    assert delivery.within(tokens=2 * n) == delivery.within() == delivery.within(tokens=10 * n)
    assert delivery.tokens_to(0.4) == n
    assert delivery.tokens_to(0.9) == pytest.approx(2 * n)


def test_ranges_are_read_from_ids_and_documents_may_be_called_like_ranges() -> None:
    assert as_range("a#b#3-7") == Place("a#b", 3, 7)
    assert as_range("a#7-3") is None
    assert as_range("a#x-3") is None
    assert as_range("a") is None
    assert Place("문서", 1, 2).id == "문서#1-2"
    known = KnownRanges({"a", "a#1-2"})
    assert "a#0-9" in known
    assert "a#1-2" in known
    assert "b#0-9" not in known
    units = DocumentOf({"a": "page"})
    assert units["a#0-3"] == "page"
    assert units["b#0-3"] == "b"
    assert units.get("c", "c") == "c"


def test_unions_are_joined_and_held_against_each_other() -> None:
    assert union([(5, 9), (0, 3), (3, 5), (20, 20), (12, 15)]) == [(0, 9), (12, 15)]
    assert length([(0, 9), (12, 15)]) == 12
    assert common([(0, 9), (12, 15)], [(8, 13), (14, 30)]) == 3
    assert covered([(0, 9)], 2, 9)
    assert not covered([(0, 9)], 2, 10)
    assert not covered([], 0, 1)


def test_metrics_of_documents_are_refused_and_those_of_spans_where_documents_are_judged() -> None:
    data = dataset((10, 30))
    with pytest.raises(ConfigError, match="nDCG@3 where truth is by spans"):
        value(data, ["d"], "nDCG@3")
    run = judge_lists({"q": ["d"]}, ["q"], Judgements({"q": {"d": 1}}))
    with pytest.raises(ConfigError, match="SpanR@3 where documents are judged"):
        parse_metric("SpanR@3").compute(run)
    assert str(default_metrics(10, data.qrels)[0]) == "SpanR(tokens=1000)"
    assert parse_metric("SpanP(tokens=500, overlap=each)") == parse_metric("SpanP(tokens=500)")


@pytest.mark.needs("bpe_openai")
def test_tokens_end_where_the_encoding_ends_them() -> None:
    exact = import_module("bpe_openai").get_encoding("o200k_base").encode_ordinary
    chance, counter = random.Random(5), Counter("o200k_base")
    letters = (
        "ab cd  .!?\n\r\t\0#\u3002\uac00 \u4f60\u597d \U0001f469\u200d\u0301\ud83c S1'\u2019\u00a0 "
    )
    for _ in range(300):
        text = "".join(chance.choices(letters, k=chance.randint(0, 40)))
        if text.isprintable() or text.isascii():
            assert counter.count(text) == len(exact(text))
        for budget in (0, 1, 3, 7):
            n = counter.within(text, budget)
            assert counter.count(text[:n]) <= budget + 1
            assert n == len(text) or budget < counter.count(text)


@pytest.mark.parametrize(
    "way", [pytest.param("o200k_base", marks=pytest.mark.needs("bpe_openai")), "estimate"]
)
@pytest.mark.parametrize(
    "text", ["one two three. " * 90_000, "x" * 1_300_000, "\uac00" * 1_200_000]
)
def test_a_text_of_more_than_a_million_characters_is_counted(way: str, text: str) -> None:
    counter = Counter(way)
    assert counter.count(text) > 90_000
    assert counter.within(text, 1_000) < 20_000


def test_quotes_that_stand_twice_and_spans_that_overlap_have_a_figure() -> None:
    overlapping = dataset((0, 20), (10, 30))
    assert value(overlapping, ["d#0-30"], "SpanR@1") == 1
    assert value(overlapping, ["d#0-15"], "SpanR@1") == 0.5
    over_two = dataset((10, 30))
    assert value(over_two, ["d#0-20", "d#20-40"], "AllSpans@2") == 1
    assert value(over_two, ["d#0-20", "d#20-40"], "AllSpans@1") == 0
