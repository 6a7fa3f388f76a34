"""The suite catches every broken retriever and names its fault, and its class keeps its word."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever, require_k
from retrieval_bench.core.types import Document, Hit, Query, Ranking
from retrieval_bench.testing import (
    CHECKS,
    CheckResult,
    RetrieverConformance,
    run_checks,
    sample_documents,
    sample_queries,
)
from retrieval_bench_conformance.compare import difference
from tests.builders.processes import completed
from tests.builders.reference import Filtering, Service, TermOverlap, Writable, order_hits
from tests.conformance.broken import (
    BROKEN,
    OTHER_INSTANCES,
    SPREADS,
    CrashesOnABlankQuery,
    EqualDocumentsScoreByPosition,
    KBelowOneIsAnotherError,
    NumbersAsIds,
    OneDocumentPerText,
    OneNaN,
    OneTooMany,
    RemembersWhatItReturned,
    Seeded,
    TiesByTheHighestId,
    TiesInTheOrderOfTheCorpus,
)


def suite_of(make: Callable[[], Retriever], **attributes: Any) -> type[RetrieverConformance]:
    return type("Suite", (RetrieverConformance,), {"make": lambda self: make(), **attributes})


def failing(suite: type[RetrieverConformance]) -> dict[str, CheckResult]:
    return {name: r for name, r in run_checks(suite).items() if r.status == "failed"}


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_each_broken_retriever_fails_the_checks_of_its_fault(broken: type[Retriever]) -> None:
    target = f"{broken.__module__}:{broken.__name__}"
    found = failing(suite_of(broken, target=target, patience_s=0.0))
    if broken in SPREADS:
        assert BROKEN[broken] <= found.keys()
    else:
        assert found.keys() == BROKEN[broken], found


def test_each_check_catches_something() -> None:
    caught = frozenset().union(*BROKEN.values())
    assert caught == CHECKS.keys()


def test_a_fault_is_told_with_what_was_asked_and_what_came() -> None:
    found = failing(suite_of(OneTooMany))
    assert found["test_at_most_k_hits_are_returned"].reason == (
        "query 'how does the moon raise the tides of the ocean', k = 1: 2 hits"
    )


def test_another_error_than_the_one_of_the_contract_is_named() -> None:
    found = failing(suite_of(KBelowOneIsAnotherError))
    assert found["test_k_below_one_is_an_error"].reason == (
        "k = 0 raised ValueError: k; accepted: a ContractError, see "
        "retrieval_bench.core.retriever.require_k"
    )


# -- what capabilities change ------------------------------------------------------------------


class ServiceOneTooMany(Service):
    def search(self, query: Query, k: int) -> RankingLike:
        require_k(k)
        return self.candidates(query)[: k + 1]


NEED_AN_INDEX = {
    "test_a_loaded_index_gives_the_same_rankings",
    "test_a_shuffled_corpus_gives_the_same_ranking",
    "test_any_language_may_be_told",
    "test_documents_may_be_empty",
    "test_documents_may_come_from_a_stream",
    "test_equal_documents_are_ranked_by_id",
    "test_index_leaves_the_documents_unchanged",
    "test_indexing_again_replaces_the_corpus",
    "test_search_before_index_is_an_error",
    "test_the_corpus_may_be_empty",
    "test_the_corpus_may_hold_one_document",
    "test_the_corpus_may_hold_two_documents",
    "test_ties_at_the_cut_go_to_the_lowest_ids",
    "test_two_documents_may_share_one_text",
}
NEED_A_KNOWN_CORPUS = {
    "test_a_documents_own_text_finds_it",
    "test_ids_are_those_of_the_corpus",
    "test_k_may_exceed_the_size_of_the_corpus",
}
BY_THE_CORPUS = {
    "test_a_shuffled_corpus_gives_the_same_ranking",
    "test_equal_documents_are_ranked_by_id",
    "test_ties_at_the_cut_go_to_the_lowest_ids",
}
FILTERS = "test_a_filter_leaves_the_ranking_without_the_other_documents"
WRITES = {
    "test_a_deleted_document_is_not_found",
    "test_an_added_document_is_found",
    "test_an_added_document_replaces_the_one_of_its_id",
}
PARAMETERS = "test_an_unknown_parameter_is_an_error_that_names_the_accepted_ones"


def with_status(suite: type[RetrieverConformance], status: str) -> set[str]:
    return {name for name, result in run_checks(suite).items() if result.status == status}


def test_an_external_retriever_gets_the_checks_that_only_read() -> None:
    suite = suite_of(Service)
    assert with_status(suite, "failed") == set()
    assert with_status(suite, "skipped") == NEED_AN_INDEX | NEED_A_KNOWN_CORPUS | WRITES | {
        PARAMETERS,
        FILTERS,
    }
    assert "index() is never called" in run_checks(suite)["test_documents_may_be_empty"].reason


def test_an_external_retriever_that_tells_its_documents_gets_the_checks_on_them_too() -> None:
    suite = suite_of(Service, documents=lambda self: sample_documents())
    assert with_status(suite, "failed") == set()
    assert with_status(suite, "skipped") == NEED_AN_INDEX | WRITES | {PARAMETERS, FILTERS}


def test_an_external_retriever_is_never_written_to() -> None:
    class Shared(Service):
        @property
        def capabilities(self) -> Capabilities:
            return Capabilities(external=True, writes=True)

        def add(self, documents: Sequence[Document]) -> None:
            raise AssertionError("written to")

        def delete(self, ids: Sequence[str]) -> None:
            raise AssertionError("written to")

    suite = suite_of(Shared, documents=lambda self: sample_documents())
    assert with_status(suite, "skipped") >= WRITES


class Late(Writable):
    """Shows what is written from the third search on."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[Callable[[], None]] = []
        self.searches = 0

    def add(self, documents: Sequence[Document]) -> None:
        self.pending.append(lambda: Writable.add(self, documents))
        self.searches = 0

    def delete(self, ids: Sequence[str]) -> None:
        self.pending.append(lambda: Writable.delete(self, ids))
        self.searches = 0

    def candidates(self, query: Query) -> list[Hit]:
        self.searches += 1
        while self.pending and self.searches > 2:
            self.pending.pop(0)()
        return super().candidates(query)


def test_a_write_may_take_its_time_to_show() -> None:
    assert with_status(suite_of(Late), "passed") >= WRITES


def test_filters_are_checked_where_they_are_declared() -> None:
    suite = suite_of(Filtering)
    assert failing(suite) == {}
    assert run_checks(suite)[FILTERS].status == "passed"
    assert "filters is False" in run_checks(suite_of(TermOverlap))[FILTERS].reason
    own = [parse_filter({"language": "zh"})]
    assert failing(suite_of(Filtering, filters=lambda self: own)) == {}


def test_the_fields_of_the_filters_are_told_before_indexing() -> None:
    told: list[list[str]] = []

    class Told(Filtering):
        def use_filters(self, fields: Sequence[str]) -> None:
            assert self.terms is None
            told.append(list(fields))

    assert failing(suite_of(Told)) == {}
    assert told[0] == ["language", "shelf"]


def test_a_broken_external_retriever_is_caught() -> None:
    assert "test_at_most_k_hits_are_returned" in failing(suite_of(ServiceOneTooMany))


def declaring(broken: type[Retriever], **declared: Any) -> Callable[[], Retriever]:
    declares = property(lambda self: Capabilities(**declared))
    return type(broken.__name__, (broken,), {"capabilities": declares})


class RandomHalf(Seeded):
    """Returns another part of what matches in each instance."""

    def __init__(self) -> None:
        super().__init__()
        self.seed = next(self.serial)

    def candidates(self, query: Query) -> list[Hit]:
        return [
            h for h in super().candidates(query) if random.Random(f"{h}{self.seed}").random() < 0.3
        ]


class Encoder(Seeded):
    """Equal texts score the same, yet each build differs in the seventh digit, so that documents
    which would tie trade places."""

    def __init__(self) -> None:
        super().__init__()
        self.seed = next(self.serial)

    def candidates(self, query: Query) -> list[Hit]:
        def noise(doc_id: str) -> float:
            held = sorted((self.terms or {})[doc_id])
            return 1 + 1e-7 * random.Random(f"{held}{self.seed}").random()

        return order_hits(
            [Hit(h.doc_id, h.score * noise(h.doc_id)) for h in super().candidates(query)]
        )


@pytest.mark.parametrize(
    ("broken", "declared", "faults"),
    [
        # of another order of the corpus
        (EqualDocumentsScoreByPosition, {"exact": False}, set()),
        (TiesInTheOrderOfTheCorpus, {"exact": False}, set()),
        # no score is looked at; ties may go any way, but not by the order of the corpus
        (OneNaN, {"has_scores": False}, set()),
        (TiesByTheHighestId, {"has_scores": False}, set()),
        (TiesInTheOrderOfTheCorpus, {"has_scores": False}, BY_THE_CORPUS),
        (Encoder, {"score_tolerance": 1e-5}, set()),
        (Encoder, {"score_tolerance": 1e-9}, {f"test_{check}" for check in OTHER_INSTANCES}),
    ],
)
def test_what_is_declared_decides_what_is_a_fault(
    broken: type[Retriever], declared: dict[str, Any], faults: set[str]
) -> None:
    assert failing(suite_of(declaring(broken, **declared))).keys() == faults


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (RandomHalf, "test_two_fresh_instances_are_equal"),
        (OneDocumentPerText, "test_two_documents_may_share_one_text"),
        (RemembersWhatItReturned, "test_the_same_call_twice_is_equal"),
    ],
)
def test_what_an_approximate_retriever_may_not_do_either(
    broken: type[Retriever], check: str
) -> None:
    found = failing(suite_of(declaring(broken, exact=False)))
    assert check in found
    assert broken is not RandomHalf or "approximate: at least half" in found[check].reason


def test_without_scores_no_score_is_looked_at() -> None:
    skipped = with_status(suite_of(declaring(OneNaN, has_scores=False)), "skipped")
    assert skipped >= {"test_scores_are_finite_numbers", "test_scores_never_rise"}


# -- the rule for equal rankings ---------------------------------------------------------------

FULL = Ranking(["a", "b", "c", "d"], [0.9, 0.5, 0.5 - 1e-8, 0.1])


@pytest.mark.parametrize(
    ("ids", "scores", "k", "reason"),
    [
        (["a", "b"], [0.9, 0.5], 2, None),
        (["a", "c"], [0.9, 0.5], 2, None),
        (["a", "c", "b"], [0.9, 0.5, 0.5 - 1e-8], 3, None),
        (["b", "a"], [0.9, 0.5], 2, "'b' instead of 'a' at rank 1"),
        (["a", "x"], [0.9, 0.5], 2, "'x' instead of 'b' at rank 2"),
        (["a", "b"], [0.9, 0.51], 2, "score 0.51 instead of 0.5 at rank 2"),
        (["a"], [0.9], 2, "1 hits instead of 2: ['a'] and ['a', 'b']"),
        (["a", "b"], None, 2, None),
        (["a", "c"], None, 2, "['a', 'c'] instead of ['a', 'b']"),
    ],
)
def test_rankings_are_the_same_up_to_near_ties(
    ids: list[str], scores: list[float] | None, k: int, reason: str | None
) -> None:
    assert difference(Ranking(ids, scores), FULL, k, 1e-5) == reason


def test_equal_scores_at_the_cut_are_no_near_tie() -> None:
    full = Ranking(["a", "b", "c"], [0.5, 0.5, 0.1])
    reason = difference(Ranking(["b"], [0.5]), full, 1, 1e-5)
    assert reason == "'b' instead of 'a' at rank 1: both score 0.5, and ties go by id"


def test_the_tolerance_is_relative_to_the_largest_score() -> None:
    full = Ranking(["a", "b"], [1000.0, 0.0])
    assert difference(Ranking(["a", "b"], [1000.0, -0.001]), full, 2, 1e-5) is None
    assert difference(Ranking(["a", "b"], [1000.0, -0.1]), full, 2, 1e-5) is not None


# -- the class itself --------------------------------------------------------------------------


def test_a_check_may_not_be_overridden() -> None:
    def nothing(self: object) -> None:
        return None

    for override in (nothing, None):
        with pytest.raises(ConfigError, match="'test_ids_are_text' is overridden") as caught:
            suite_of(TermOverlap, test_ids_are_text=override)
        assert caught.value.fix.endswith('xfails = {"test_ids_are_text": "the reason"}')


def test_a_check_may_not_be_overridden_by_a_second_base_class() -> None:
    class Mixin:
        def test_ids_are_text(self) -> None:
            return None

    with pytest.raises(ConfigError, match="overridden"):
        type("Suite", (Mixin, RetrieverConformance), {})


def test_hooks_may_be_overridden_and_tests_added() -> None:
    suite = suite_of(TermOverlap, queries=lambda self: sample_queries()[:1], test_more=lambda s: 0)
    assert failing(suite) == {}


@pytest.mark.parametrize(
    ("xfails", "message"),
    [
        ({"test_ids_are_texts": "why"}, "unknown check 'test_ids_are_texts'"),
        ({"test_ids_are_texts": "why"}, "accepted: did you mean test_ids_are_text"),
        ({"make": "why"}, "unknown check 'make'"),
        ({"test_ids_are_text": " "}, "no reason for 'test_ids_are_text'"),
    ],
)
def test_xfails_must_name_a_check_and_a_reason(xfails: Mapping[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        suite_of(TermOverlap, xfails=xfails)
    assert message in str(caught.value)


def test_an_expected_failure_is_no_failure_and_an_unexpected_success_is_one() -> None:
    name, kept = "test_a_blank_query_is_answered", "test_ids_are_text"
    suite = suite_of(CrashesOnABlankQuery, xfails={name: "no blanks", kept: "numbers as ids"})
    results = run_checks(suite)
    assert results[name] == CheckResult("xfailed", "no blanks")
    assert results[kept] == CheckResult("failed", "kept, though xfails says: numbers as ids")


def test_xfails_hold_for_subclasses_until_they_say_otherwise() -> None:
    name = "test_a_blank_query_is_answered"
    parent = suite_of(CrashesOnABlankQuery, xfails={name: "no blanks"})
    assert run_checks(type("Child", (parent,), {}))[name].status == "xfailed"
    strict = type("Strict", (parent,), {"xfails": {}})
    assert run_checks(strict)[name].status == "failed"
    assert not hasattr(getattr(strict, name), "pytestmark")


def test_every_instance_is_closed_once() -> None:
    made: list[Counted] = []

    class Counted(TermOverlap):
        closed = 0

        def __init__(self) -> None:
            super().__init__()
            made.append(self)

        def close(self) -> None:
            self.closed += 1

    assert failing(suite_of(Counted)) == {}
    assert {retriever.closed for retriever in made} == {1}
    assert len(made) < 25


def test_one_test_class_does_not_see_the_instances_of_another() -> None:
    honest, broken = suite_of(TermOverlap), suite_of(NumbersAsIds)
    honest().test_ids_are_text()
    with pytest.raises(AssertionError, match="ids that are no str"):
        broken().test_ids_are_text()


def test_a_close_that_raises_is_reported() -> None:
    class Leaking(TermOverlap):
        def close(self) -> None:
            raise OSError("still in use")

    assert failing(suite_of(Leaking))["teardown_class"].reason == "OSError: still in use"


def test_make_must_give_a_new_instance_each_time() -> None:
    only = TermOverlap()
    found = failing(suite_of(lambda: only))
    assert "same instance twice" in found["test_two_fresh_instances_are_equal"].reason


def test_a_suite_without_make_and_target_says_what_is_missing() -> None:
    empty = type("Suite", (RetrieverConformance,), {})
    assert "add one of the two" in failing(empty)["test_ids_are_text"].reason


def test_a_corpus_that_is_too_small_for_the_checks_is_refused() -> None:
    twice = [Document(str(i), "one text") for i in range(5)]
    for documents in (sample_documents()[:3], twice):
        suite = suite_of(TermOverlap, documents=lambda self, given=documents: given)
        assert "at least 4" in failing(suite)["test_ids_are_text"].reason


# -- under pytest, and without -----------------------------------------------------------------

IN_PYTEST = """
from retrieval_bench.testing import RetrieverConformance
from tests.builders.reference import TermOverlap

class TestHonest(RetrieverConformance):
    target = "tests.builders.reference:TermOverlap"
    xfails = {"test_ids_are_text": "kept in truth"}

class TestSilent(RetrieverConformance):
    xfails = {"test_k_below_one_is_an_error": "the engine takes it for 'no limit'"}

    def make(self):
        return Silent()

class Silent(TermOverlap):
    closed = []

    def search(self, query, k):
        return self.candidates(query)[: max(k, 0)]

    def close(self):
        self.closed.append(self)

def test_all_are_closed():
    assert len(set(map(id, Silent.closed))) == len(Silent.closed) > 3
"""


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return completed(
        *(sys.executable, *arguments),
        cwd=folder,
        check=False,
        PYTHONPATH=str(Path(__file__).resolve().parents[2]),
        PYTHONIOENCODING="utf-8",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        COLUMNS="200",
    )


@pytest.mark.slow
def test_pytest_runs_the_checks_of_each_subclass_and_not_those_of_the_base(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(IN_PYTEST, encoding="utf-8")
    shown = python("-m", "pytest", "-rsxf", "-p", "no:cacheprovider", folder=tmp_path).stdout
    n = len(CHECKS)
    # Of 2 n checks and one test: an xfail that passes fails, one holds, one skip for want of a
    # target, two for want of filters, six for want of writes; everything else passes.
    assert f"1 failed, {2 * n - 10} passed, 9 skipped, 1 xfailed" in shown
    assert "XPASS(strict)" in shown
    assert "kept in truth" in shown
    assert "the engine takes it for 'no limit'" in shown
    assert "set `target`" in shown


@pytest.mark.slow
def test_pytest_stops_at_a_subclass_that_overrides_a_check(tmp_path: Path) -> None:
    text = IN_PYTEST + "\nclass TestBad(TestHonest):\n    test_ids_are_text = None\n"
    (tmp_path / "test_mine.py").write_text(text, encoding="utf-8")
    done = python("-m", "pytest", "-p", "no:cacheprovider", folder=tmp_path)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "the check 'test_ids_are_text' is overridden" in done.stdout


@pytest.mark.slow
def test_the_checks_need_neither_pytest_nor_assert_statements(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['pytest'] = None\n"
        "from retrieval_bench.testing import RetrieverConformance, run_checks\n"
        "from tests.builders.reference import TermOverlap\n"
        "class Silent(TermOverlap):\n"
        "    def search(self, query, k): return self.candidates(query)[: max(k, 0)]\n"
        "class Suite(RetrieverConformance):\n"
        "    xfails = {'test_ids_are_text': 'kept in truth'}\n"
        "    def make(self): return Silent()\n"
        "print(sorted(n for n, r in run_checks(Suite).items() if r.status == 'failed'))\n"
    )
    done = python("-O", "-c", script, folder=tmp_path)
    assert done.stdout.strip() == "['test_ids_are_text', 'test_k_below_one_is_an_error']", (
        done.stderr
    )
