"""What is said of judgements: a fact or a warning with what to do, and when neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench_doctor.copies import Copies, Place, Twin, Twins
from retrieval_bench_doctor.judgements import Grade, Judgements, counts, nothing_relevant
from retrieval_bench_doctor.pools import Held, JudgedAt, Pool

POOL = "`retrieval-bench label pool @last`"


def data(qrels: Mapping[str, Mapping[str, int]], **metadata: Any) -> Dataset:
    """Queries that are judged, and one that is not."""
    queries = tuple(Query(key, f"about {key}", metadata=metadata) for key in (*qrels, "spare"))
    return Dataset("own", None, queries, qrels, "test", None, "")


def judged(mean: float, ci95: tuple[float, float] | None) -> JudgedAt:
    return JudgedAt("own", 10, 40, mean, ci95)


def one_warning(found: Judgements) -> str:
    (warning,) = found.warnings
    return warning


GRADED = counts(data({f"q{i}": {"a": 2, "b": 1, "c": 0, "d": 0} for i in range(40)}))
SPARSE = counts(data({f"q{i}": {"a": 1} for i in range(40)}))
WELL = Judgements(GRADED, judged(0.95, (0.9, 1.0)))


class TestCounts:
    def test_judgements_of_evaluated_queries_are_counted(self) -> None:
        found = counts(data({"q1": {"a": 2, "b": 0, "c": -1}, "q2": {"a": 0}, "q3": {"a": 1}}))
        assert (found.queries, found.judgements, found.median, found.relevant) == (3, 5, 1.0, 2)
        assert found.grades == (Grade(-1, 1), Grade(0, 2), Grade(1, 1), Grade(2, 1))
        assert found.nothing_relevant == 1
        assert found.not_relevant == 2

    def test_facts_have_each_grade(self) -> None:
        (fact,) = Judgements(counts(data({"q": {"a": 2, "b": 0, "c": -1}}))).facts
        assert fact.startswith("3 judgements (1 of grade -1, 1 of grade 0, 1 of grade 2): 1.0 rel")


class TestNone:
    def test_it_says_that_nothing_is_judged_and_what_to_do(self) -> None:
        found = Judgements(counts(data({})))
        assert found.facts == ("No query has a judgement.",)
        assert one_warning(found).startswith("Quality can't be measured. Compare your systems")
        assert POOL in one_warning(found)


class TestDepth:
    def test_well_judged_data_have_no_warning(self) -> None:
        assert WELL.warnings == ()
        assert WELL.facts[1] == "Judged@10 of own is 0.95 [0.90, 1.00] over 40 queries with hits."

    def test_a_low_share_of_judged_hits_is_a_warning(self) -> None:
        found = Judgements(GRADED, judged(0.305, (0.2, 0.4)))
        assert one_warning(found).startswith("Only 30 % of the top 10 of own is judged.")
        assert POOL in one_warning(found)
        assert "lower bounds" in one_warning(found)

    @pytest.mark.parametrize("ci95", [(0.5, 0.85), None])
    def test_one_that_may_be_high_is_none(self, ci95: tuple[float, float] | None) -> None:
        assert Judgements(GRADED, judged(0.7, ci95)).warnings == ()

    def test_sparse_judgements_are_a_warning(self) -> None:
        text = one_warning(Judgements(SPARSE))
        assert text.startswith("Judgements are sparse: the median query has 1, and no document")
        assert "too; bpref and infAP, should you use them, say nothing. Compare" in text

    def test_many_relevant_documents_without_another_one_are_a_warning(self) -> None:
        many = counts(data({"q": {"a": 1, "b": 1, "c": 1}}))
        assert one_warning(Judgements(many)).startswith("All judgements are of relevant documents")

    def test_one_thing_is_said_once(self) -> None:
        text = one_warning(Judgements(SPARSE, judged(0.1, (0.05, 0.2))))
        assert "sparse" in text
        assert "Only 10 % of the top 10" in text
        assert text.count(POOL) == 1

    def test_a_grade_below_zero_is_no_judgement_that_is_not_relevant(self) -> None:
        spam = counts(data({"q": {"a": 1, "b": -2, "c": -2}}))
        assert spam.not_relevant == 0
        assert one_warning(Judgements(spam)).startswith("All judgements are of relevant documents")


def pooled(favours: str, *, alone: bool) -> Pool:
    shares = JudgedAt("own", 10, 40, 1.0, (0.9, 1.0)), JudgedAt("bm25", 10, 40, 0.4, (0.3, 0.5))
    held = Held("own", 1.0, 1.0), Held("bm25", 0.4, 0.6)
    return Pool(40, 400, shares, held, 0.6, (0.5, 0.7), favours, alone)


class TestPool:
    def test_a_pool_of_one_system_is_a_warning(self) -> None:
        found = Judgements(GRADED, judged(1.0, (0.9, 1.0)), pooled("own", alone=True))
        text = one_warning(found)
        assert text.startswith(
            "The judgements look pooled from own alone: 100 % of the 400 judged documents are "
            "among its hits; 100 % of the top 10 of own is judged, and 40 % of that of bm25."
        )
        assert "favours own" in text
        assert POOL in text

    def test_the_other_system_may_be_favoured(self) -> None:
        low = judged(0.4, (0.3, 0.5))  # its share is told there, and once
        text = one_warning(Judgements(GRADED, low, pooled("bm25", alone=False)))
        assert text.startswith("The judgements cover bm25 better: 40 % of the top 10 of bm25")
        assert "favours bm25" in text

    def test_where_none_is_the_shares_are_a_fact(self) -> None:
        found = Judgements(GRADED, None, pooled("", alone=False))
        assert found.warnings == ()
        assert "40 % (60 %); Judged@10 is 1.00 and 0.40: no sign of a pool" in found.facts[-1]

    def test_why_nobody_can_tell_is_a_fact(self) -> None:
        found = Judgements(GRADED, no_pool="the dataset has no corpus")
        assert found.facts[-1] == (
            "Pooling bias was not checked: the dataset has no corpus. There is nothing to do, "
            "unless the judged documents were taken from the results of one system."
        )


def copied(relevant: int, elsewhere: int) -> Judgements:
    some = Copies(40, relevant, elsewhere, 99, Place("q1", "d1"), Place("q2", "d2"))
    return Judgements(GRADED, copies=some)


class TestCopies:
    def test_many_in_relevant_documents_are_a_warning(self) -> None:
        text = one_warning(copied(8, 0))
        assert text.startswith(
            "8 of 40 longer queries stand word for word in a relevant document, for example q1 in "
            "d1: this favours lexical search."
        )

    def test_many_in_other_documents_are_a_warning(self) -> None:
        text = one_warning(copied(0, 8))
        assert "not judged relevant, for example q2 in d2" in text
        assert "Judge these documents" in text
        assert "out of the corpus" not in text  # it would change the task

    def test_few_are_a_fact(self) -> None:
        found = copied(1, 2)
        assert found.warnings == ()
        assert found.facts[-2:] == (
            "1 of 40 longer queries stands word for word in a relevant document.",
            "2 of 40 longer queries stand word for word in another one.",
        )

    def test_none_are_not_worth_a_word(self) -> None:
        assert copied(0, 0).facts == Judgements(GRADED).facts


class TestTwins:
    @pytest.mark.parametrize(
        ("pairs", "told"),
        [
            (1, "1 pair of documents with the same text is judged differently"),
            (3, "in 2 queries: for q1, d1 is relevant and d2 is not."),
        ],
    )
    def test_they_are_a_warning_with_an_example(self, pairs: int, told: str) -> None:
        twins = Twins(pairs, 2, 9, Twin("q1", "d1", "d2"))
        assert told in one_warning(Judgements(GRADED, twins=twins))

    def test_without_any_nothing_is_said(self) -> None:
        assert Judgements(GRADED, twins=Twins(0, 0, 9)).warnings == ()


class TestUnjudgedCopies:
    def copies(self, queries: int) -> Judgements:
        found = Twins(3 * queries, queries, 9, Twin("q1", "d1", "d2") if queries else None)
        return Judgements(GRADED, unjudged_copies=found)

    def test_of_many_queries_they_are_a_warning_with_an_example(self) -> None:
        text = one_warning(self.copies(GRADED.queries))
        assert text.startswith(f"{GRADED.queries} of {GRADED.queries} queries have a relevant doc")
        assert "for q1, d1 is relevant, and d2, with the same text, is not judged" in text
        assert text.endswith("judge copies alike, or take them out of the corpus.")

    def test_of_few_they_are_a_fact_and_of_none_not_worth_a_word(self) -> None:
        few = self.copies(1)
        assert few.warnings == ()
        assert few.facts[-1].startswith(f"1 of {GRADED.queries} queries has a relevant document")
        assert self.copies(0).facts == Judgements(GRADED).facts


class TestKnownItems:
    QRELS: Mapping[str, Mapping[str, int]] = {f"q{i}": {"a": 1, "b": 0} for i in range(4)}

    def test_most_queries_made_from_documents_are_a_warning(self) -> None:
        text = one_warning(Judgements(counts(data(self.QRELS, origin="known-item"))))
        assert text.startswith("4 of 4 evaluated queries were made from a document that answers")
        assert "questions that people asked" in text

    def test_the_share_of_copied_words_is_told(self) -> None:
        found = counts(data(self.QRELS, origin="known-item", copied=0.625))
        assert found.copied == 0.625
        assert "(62 % of them on average)" in one_warning(Judgements(found))

    @pytest.mark.parametrize("copied", ["much", None])
    def test_what_is_no_number_is_no_share(self, copied: Any) -> None:
        assert counts(data(self.QRELS, origin="known-item", copied=copied)).copied is None

    def test_half_of_them_are_none(self) -> None:
        queries = [
            Query(key, key, metadata={"origin": "known-item"} if at < 2 else {})
            for at, key in enumerate(self.QRELS)
        ]
        half = Dataset("own", None, tuple(queries), self.QRELS, "test", None, "")
        assert counts(half).known_items == 2
        assert Judgements(counts(half)).warnings == ()

    def test_another_origin_is_none(self) -> None:
        assert Judgements(counts(data(self.QRELS, origin="log"))).warnings == ()


def test_queries_without_a_relevant_document_are_a_warning_with_what_to_do() -> None:
    (text,) = nothing_relevant(data({"q1": {"a": 0}, "q2": {"a": 1}}))
    assert text == (
        "1 evaluated query has no relevant document: it scores 0 in any case. Judge more of what "
        "is found, or set `answerable: false` if there is no answer."
    )
    assert isinstance(text, Notice)
    assert text.code is Code.NOTHING_RELEVANT


def test_json_has_every_figure() -> None:
    found = copied(8, 0).as_dict()
    assert list(found) == [
        "counts",
        "judged",
        "pool",
        "no_pool",
        "copies",
        "twins",
        "unjudged_copies",
    ]
    assert found["counts"]["grades"] == [
        {"grade": 0, "n": 80}, {"grade": 1, "n": 40}, {"grade": 2, "n": 40},
    ]  # fmt: skip
    assert found["copies"]["in_relevant"] == {"query": "q1", "document": "d1"}
    assert found["judged"] is None


@pytest.mark.parametrize(
    ("share", "text"), [(0.999, "over 99 %"), (0.001, "under 1 %"), (0.0, "0 %"), (1.0, "100 %")]
)
def test_a_share_that_is_not_all_is_not_shown_as_all(share: float, text: str) -> None:
    ci95 = (0.0, 0.1)
    if share < 0.1:
        found = Judgements(GRADED, judged(share, ci95))
        assert one_warning(found).startswith(f"Only {text} of the top 10")
    else:
        known = counts(data(TestKnownItems.QRELS, origin="known-item", copied=share))
        assert f"({text} of them on average)" in one_warning(Judgements(known))
