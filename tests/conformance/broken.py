"""Deliberately broken retrievers, each with one fault, for the tests of the conformance suite.

Every class says which checks it fails; these and no others may fail. Together they fail every check
of the suite, so that no check can be removed or go blind without being missed.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever, require_k
from retrieval_bench.core.types import Document, Hit, LegTrace, Query, Ranking
from tests.builders.reference import Filtering, TermOverlap, Writable, order_hits, words

BROKEN: dict[type[Retriever], frozenset[str]] = {}
SPREADS: set[type[Retriever]] = set()
Class = TypeVar("Class", bound=type[Retriever])

ODD_QUERIES = (
    "an_empty_query_is_answered",
    "a_blank_query_is_answered",
    "a_query_of_unknown_words_is_answered",
    "a_query_of_emoji_is_answered",
    "a_query_from_right_to_left_is_answered",
    "a_very_long_query_is_answered",
)
SMALL_CORPORA = ("the_corpus_may_hold_one_document", "the_corpus_may_hold_two_documents")
TIES_AT_THE_CUT = (
    "ties_at_the_cut_go_to_the_lowest_ids",
    "k_of_one_gives_the_best_hit",
    "a_smaller_k_gives_the_top_of_a_larger_one",
    "a_shuffled_corpus_gives_the_same_ranking",
)
OTHER_INSTANCES = (
    "two_fresh_instances_are_equal",
    "a_shuffled_corpus_gives_the_same_ranking",
    "documents_may_come_from_a_stream",
    "indexing_again_replaces_the_corpus",
    "a_loaded_index_gives_the_same_rankings",
)


def fails(*checks: str, and_others: bool = False) -> Callable[[Class], Class]:
    """Register a broken retriever with the checks, without ``test_``, that it fails.

    Args:
        and_others: the fault spreads so far that listing the rest would say nothing.
    """

    def register(broken: Class) -> Class:
        BROKEN[broken] = frozenset(f"test_{check}" for check in checks)
        if and_others:
            SPREADS.add(broken)
        return broken

    return register


class Pairs(TermOverlap):
    """The honest retriever with a place to break its result in."""

    def search(self, query: Query, k: int) -> RankingLike:
        require_k(k)
        raw: RankingLike = self.broken(self.candidates(query), query, k)
        return raw

    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        raise NotImplementedError


# -- results -----------------------------------------------------------------------------------


@fails(
    "at_most_k_hits_are_returned", "the_core_accepts_every_result", "a_very_long_query_is_answered"
)
class OneTooMany(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return hits[: k + 1]


@fails(
    "no_document_is_returned_twice",
    "the_core_accepts_every_result",
    "a_query_from_right_to_left_is_answered",
    "a_very_long_query_is_answered",
    "equal_documents_are_ranked_by_id",
    "ties_at_the_cut_go_to_the_lowest_ids",
    "two_documents_may_share_one_text",
    *SMALL_CORPORA,
)
class TheFirstTwice(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return (hits[:1] + hits)[:k]


@fails(
    "scores_are_finite_numbers", "the_core_accepts_every_result", "a_very_long_query_is_answered"
)
class OneNaN(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return [(h.doc_id, float("nan") if i == 1 else h.score) for i, h in enumerate(hits[:k])]


@fails("scores_are_finite_numbers", "the_core_accepts_every_result", and_others=True)
class NaNThroughout(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return [(hit.doc_id, float("nan")) for hit in hits[:k]]


@fails("scores_are_finite_numbers")
class NoScoresYetDeclared(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return Ranking([hit.doc_id for hit in hits[:k]])


@fails(
    "scores_are_finite_numbers",
    "the_core_accepts_every_result",
    "a_query_from_right_to_left_is_answered",
    "a_very_long_query_is_answered",
    *SMALL_CORPORA,
)
class FewerScoresThanHits(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return Ranking([h.doc_id for h in hits[:k]], [h.score for h in hits[:k]][:-1])


@fails("scores_never_rise", "the_core_accepts_every_result")
class DistancesInsteadOfScores(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return [(hit.doc_id, 100.0 - hit.score) for hit in hits[:k]]


@fails(
    "ids_are_those_of_the_corpus",
    "the_core_accepts_every_result",
    "the_corpus_may_be_empty",
    "documents_may_be_empty",
    *SMALL_CORPORA,
    *ODD_QUERIES,
)
class PaddedWithMinusOne(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return [*hits, ("-1", 0.0)][:k]


@fails("ids_are_text", and_others=True)
class NumbersAsIds(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return [(7, hit.score) if hit.doc_id == "note 10" else hit for hit in hits[:k]]


@fails("the_core_accepts_every_result", and_others=True)
class AnIterator(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return iter(hits[:k])


@fails("legs_have_one_rank_and_one_score_per_hit", "the_core_accepts_every_result", and_others=True)
class LegsOfAnotherLength(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        kept = hits[:k]
        leg = LegTrace([1] * (len(kept) + 1), [1.0] * (len(kept) + 1))
        return Ranking([h.doc_id for h in kept], [h.score for h in kept], legs={"sparse": leg})


@fails("legs_have_one_rank_and_one_score_per_hit", and_others=True)
class AnotherListThanTheLegRanked(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        ids = [h.doc_id for h in hits[:k]]
        leg = LegTrace(range(1, len(ids) + 1), [1.0] * len(ids), ["another", *ids])
        return Ranking(ids, [h.score for h in hits[:k]], legs={"sparse": leg})


@fails("describe_gives_what_json_can_hold")
class NumpyInTheManifest(TermOverlap):
    def describe(self) -> Mapping[str, Any]:
        return {"documents": np.int64(3)}


@fails("health_gives_sentences")
class OneWarningAsText(TermOverlap):
    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        return "the encoder does not know this language"


@fails("search_leaves_the_query_unchanged")
class WritesToTheQuery(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        cast("dict[str, Any]", query.metadata)["seen"] = True
        return hits[:k]


# -- the cut -----------------------------------------------------------------------------------


@fails("k_below_one_is_an_error")
class KBelowOneGivesNothing(TermOverlap):
    def search(self, query: Query, k: int) -> RankingLike:
        return self.candidates(query)[: max(k, 0)]


@fails("k_below_one_is_an_error")
class KBelowOneIsAnotherError(TermOverlap):
    def search(self, query: Query, k: int) -> RankingLike:
        if k < 1:
            raise ValueError("k")
        return self.candidates(query)[:k]


@fails(
    "k_of_one_gives_the_best_hit",
    "ties_at_the_cut_go_to_the_lowest_ids",
    "the_corpus_may_hold_one_document",
)
class TheFirstIsOnlyFoundLater(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return hits[1:2] if k == 1 else hits[:k]


@fails(
    "k_of_one_gives_the_best_hit",
    "a_smaller_k_gives_the_top_of_a_larger_one",
    "ties_at_the_cut_go_to_the_lowest_ids",
)
class DepthFollowsK(Pairs):
    """As a hybrid whose legs look only k deep: what is fused changes with k."""

    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        seen = hits[: k + 1]
        last = {hit.doc_id: rank for rank, hit in enumerate(reversed(seen))}
        return order_hits([Hit(h.doc_id, h.score + len(seen) * last[h.doc_id] % 3) for h in seen])[
            :k
        ]


@fails("k_may_be_the_size_of_the_corpus", and_others=True)
class CrashesWhenAllAreAsked(Pairs):
    """As ``numpy.argpartition(scores, k)`` does where k is the number of scores."""

    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        if self.terms and k == len(self.terms):
            raise ValueError(f"kth (={k}) out of bounds ({k})")
        return hits[:k]


@fails(
    "k_may_exceed_the_size_of_the_corpus",
    "documents_may_be_empty",
    "indexing_again_replaces_the_corpus",
    *SMALL_CORPORA,
)
class CrashesWhenMoreIsAsked(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        if self.terms and k > len(self.terms):
            raise ValueError(f"kth (={k}) out of bounds ({len(self.terms)})")
        return hits[:k]


@fails(*TIES_AT_THE_CUT)
class TiesInTheOrderOfTheCorpus(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        position = {doc_id: i for i, doc_id in enumerate(self.terms or {})}
        return sorted(hits, key=lambda hit: (-hit.score, position[hit.doc_id]))[:k]


@fails(*TIES_AT_THE_CUT)
class TiesByTheHighestId(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        return sorted(hits, key=lambda hit: (hit.score, hit.doc_id), reverse=True)[:k]


@fails(*TIES_AT_THE_CUT)
class TiesByTheNumberInTheId(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        def number(doc_id: str) -> int:
            return int("".join(re.findall(r"[0-9]", doc_id)) or 0)

        return sorted(hits, key=lambda hit: (-hit.score, number(hit.doc_id)))[:k]


@fails(
    "a_shuffled_corpus_gives_the_same_ranking",
    "equal_documents_are_ranked_by_id",
    "ties_at_the_cut_go_to_the_lowest_ids",
    "two_documents_may_share_one_text",
)
class EqualDocumentsScoreByPosition(TermOverlap):
    """The order of the corpus leaks into the score itself."""

    def candidates(self, query: Query) -> list[Hit]:
        bonus = {doc_id: 1e-3 / (i + 1) for i, doc_id in enumerate(self.terms or {})}
        hits = super().candidates(query)
        return order_hits([Hit(h.doc_id, h.score + bonus[h.doc_id]) for h in hits])


# -- filters -----------------------------------------------------------------------------------

FILTERED = "a_filter_leaves_the_ranking_without_the_other_documents"


@fails(FILTERED)
class IgnoresTheFilter(Filtering):
    def search(self, query: Query, k: int) -> RankingLike:
        return super().search(replace(query, filter=None), k)


@fails(FILTERED)
class FiltersBehindTheCut(Filtering):
    """As a service that drops what does not fit from the k hits that it found."""

    def search(self, query: Query, k: int) -> RankingLike:
        found = super().search(replace(query, filter=None), k)
        return [hit for hit in found if self.fits(hit[0], query)]


# -- repetition --------------------------------------------------------------------------------


@fails("the_same_call_twice_is_equal", and_others=True)
class RemembersWhatItReturned(TermOverlap):
    def __init__(self) -> None:
        super().__init__()
        self.tired: dict[str, int] = {}

    def candidates(self, query: Query) -> list[Hit]:
        hits = super().candidates(query)
        for hit in hits:
            self.tired[hit.doc_id] = self.tired.get(hit.doc_id, 0) + 1
        return order_hits([Hit(h.doc_id, h.score - 0.01 * self.tired[h.doc_id]) for h in hits])


class Seeded(TermOverlap):
    serial = itertools.count()


@fails(*OTHER_INSTANCES)
class EachInstanceHasItsSeed(Seeded):
    def __init__(self) -> None:
        super().__init__()
        self.seed = next(self.serial)

    def candidates(self, query: Query) -> list[Hit]:
        hits = super().candidates(query)
        noise = random.Random(self.seed).random() / 10
        return [Hit(hit.doc_id, hit.score + noise) for hit in hits]


# -- odd queries -------------------------------------------------------------------------------


class Fragile(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        if self.breaks_on(query.text):
            raise ZeroDivisionError("division by zero")
        return hits[:k]

    def breaks_on(self, text: str) -> bool:
        raise NotImplementedError


@fails("an_empty_query_is_answered", "documents_may_be_empty")
class CrashesOnAnEmptyQuery(Fragile):
    def breaks_on(self, text: str) -> bool:
        return text == ""


@fails("a_blank_query_is_answered")
class CrashesOnABlankQuery(Fragile):
    def breaks_on(self, text: str) -> bool:
        return text != "" and not text.strip()


@fails("a_query_of_unknown_words_is_answered", and_others=True)
class CrashesOnUnknownWords(Fragile):
    def breaks_on(self, text: str) -> bool:
        vocabulary = frozenset().union(*(self.terms or {}).values())
        return bool(self.terms) and bool(words(text)) and not words(text) & vocabulary


@fails("a_query_of_emoji_is_answered")
class CrashesOnEmoji(Fragile):
    def breaks_on(self, text: str) -> bool:
        return any(ord(letter) > 0xFFFF for letter in text)


@fails("a_query_from_right_to_left_is_answered")
class CrashesOnHebrew(Fragile):
    def breaks_on(self, text: str) -> bool:
        return any("\u0590" <= letter <= "\u05ff" for letter in text)


@fails("a_very_long_query_is_answered")
class CrashesOnLongQueries(Fragile):
    def breaks_on(self, text: str) -> bool:
        return len(text.split()) > 5_000


@fails("a_very_long_query_is_answered")
class CrashesOnLongWords(Fragile):
    def breaks_on(self, text: str) -> bool:
        return any(len(word) > 5_000 for word in text.split())


# -- the corpus --------------------------------------------------------------------------------


@fails("documents_may_come_from_a_stream")
class NeedsAList(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        super().index(documents[:])  # type: ignore[index]


@fails(
    "two_documents_may_share_one_text",
    "equal_documents_are_ranked_by_id",
    "ties_at_the_cut_go_to_the_lowest_ids",
)
class OneDocumentPerText(TermOverlap):
    """The later of two documents with one text replaces the earlier one."""

    def index(self, documents: Iterable[Document]) -> None:
        super().index({document.contents: document for document in documents}.values())


@fails("equal_documents_are_ranked_by_id", "ties_at_the_cut_go_to_the_lowest_ids", *SMALL_CORPORA)
class CommonWordsDoNotCount(Pairs):
    """As an Okapi that drops documents whose inverse document frequency is not positive."""

    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        held = list((self.terms or {}).values())
        rare = {
            word for word in words(query.text) if 2 * sum(word in each for each in held) < len(held)
        }
        return [hit for hit in hits if rare & (self.terms or {})[hit.doc_id]][:k]


@fails("a_documents_own_text_finds_it", "the_corpus_may_hold_two_documents")
class IgnoresOtherScripts(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        super().index(documents)
        self.terms = {
            doc_id: frozenset(word for word in held if word.isascii())
            for doc_id, held in (self.terms or {}).items()
        }


@fails("a_documents_own_text_finds_it")
class OneDocumentIsAlwaysFirst(Pairs):
    def broken(self, hits: list[Hit], query: Query, k: int) -> Any:
        boost = {"note 10": 100.0}
        return order_hits([Hit(h.doc_id, h.score + boost.get(h.doc_id, 0)) for h in hits])[:k]


@fails("the_corpus_may_be_empty")
class CrashesOnAnEmptyCorpus(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        super().index(documents)
        held = (self.terms or {}).values()
        self.average_length = sum(map(len, held)) / len(held)


@fails("documents_may_be_empty")
class CrashesOnEmptyDocuments(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        super().index(documents)
        self.weight = {doc_id: 1 / len(held) for doc_id, held in (self.terms or {}).items()}


@fails("documents_may_be_empty")
class CrashesWhenAllDocumentsAreEmpty(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        super().index(documents)
        held = (self.terms or {}).values()
        self.scale = 1 / sum(map(len, held)) if held else 0


@fails("index_leaves_the_documents_unchanged")
class WritesToTheDocuments(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        documents = list(documents)
        super().index(documents)
        for document in documents:
            cast("dict[str, Any]", document.metadata)["position"] = 0


@fails("index_leaves_the_documents_unchanged")
class SortsTheListItWasGiven(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        if isinstance(documents, list):
            documents.sort(key=lambda document: document.id)
        super().index(documents)


# -- life --------------------------------------------------------------------------------------


@fails("search_before_index_is_an_error")
class FindsNothingBeforeIndex(TermOverlap):
    def candidates(self, query: Query) -> list[Hit]:
        return [] if self.terms is None else super().candidates(query)


@fails("indexing_again_replaces_the_corpus")
class IndexAppends(TermOverlap):
    def index(self, documents: Iterable[Document]) -> None:
        held = self.terms or {}
        super().index(documents)
        self.terms = {**held, **(self.terms or {})}


@fails("indexing_again_replaces_the_corpus")
class KeepsOldStatistics(TermOverlap):
    """Only the new documents are found, with weights from the words of all."""

    def __init__(self) -> None:
        super().__init__()
        self.frequency: dict[str, int] = {}

    def index(self, documents: Iterable[Document]) -> None:
        super().index(documents)
        for word in itertools.chain(*(self.terms or {}).values()):
            self.frequency[word] = self.frequency.get(word, 0) + 1

    def candidates(self, query: Query) -> list[Hit]:
        def weight(doc_id: str) -> float:
            shared = words(query.text) & (self.terms or {})[doc_id]
            return sum(1 / self.frequency[word] for word in sorted(shared))

        return order_hits([Hit(h.doc_id, weight(h.doc_id)) for h in super().candidates(query)])

    def load(self, folder: Path) -> None:
        raise NotImplementedError


@fails("indexing_again_replaces_the_corpus")
class KeepsOldAnswers(TermOverlap):
    """Answers are remembered, also after another corpus was indexed."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, list[Hit]] = {}

    def candidates(self, query: Query) -> list[Hit]:
        if query.text not in self.answers:
            self.answers[query.text] = super().candidates(query)
        return self.answers[query.text]


@fails("a_loaded_index_gives_the_same_rankings")
class LoadsHalfOfTheIndex(TermOverlap):
    def load(self, folder: Path) -> None:
        super().load(folder)
        self.terms = dict(list((self.terms or {}).items())[::2])


@fails("any_language_may_be_told")
class KnowsEnglishOnly(TermOverlap):
    def use_language(self, language: str | None) -> None:
        {None: "english", "en": "english"}[language]


@fails("an_unknown_parameter_is_an_error_that_names_the_accepted_ones")
class TakesAnyParameter(TermOverlap):
    def __init__(self, at_least: int = 1, **others: object) -> None:
        super().__init__(at_least)


@fails("an_unknown_parameter_is_an_error_that_names_the_accepted_ones")
class SaysOnlyThatItDoesNot(TermOverlap):
    """Checks its parameters itself, and does not tell which it knows."""

    def __init__(self, at_least: int = 1, **others: object) -> None:
        super().__init__(at_least)
        if others:
            raise ConfigError(f"bad parameters: {sorted(others)}")


@fails("two_fresh_instances_are_equal", and_others=True)
class ClosingOneClosesAll(TermOverlap):
    """A resource of the class, not of the instance."""

    open = True

    def index(self, documents: Iterable[Document]) -> None:
        type(self).open = True
        super().index(documents)

    def candidates(self, query: Query) -> list[Hit]:
        if not self.open:
            raise OSError("the connection is closed")
        return super().candidates(query)

    def close(self) -> None:
        type(self).open = False


@fails(
    "an_added_document_is_found",
    "an_added_document_replaces_the_one_of_its_id",
)
class AcknowledgesAndForgets(Writable):
    def add(self, documents: Sequence[Document]) -> None:
        return


@fails("an_added_document_is_found")
class AddingForgetsTheOthers(Writable):
    def add(self, documents: Sequence[Document]) -> None:
        self.index(documents)


@fails("an_added_document_replaces_the_one_of_its_id")
class KeepsTheOldVersion(Writable):
    def add(self, documents: Sequence[Document]) -> None:
        super().add([document for document in documents if document.id not in (self.terms or {})])


@fails("a_deleted_document_is_not_found")
class ZombiesAnswer(Writable):
    def delete(self, ids: Sequence[str]) -> None:
        return


@fails("a_deleted_document_is_not_found")
class RefusesToDeleteWhatIsNotThere(Writable):
    def delete(self, ids: Sequence[str]) -> None:
        self.terms = {**(self.terms or {})}
        for name in ids:
            del self.terms[name]


@fails(
    "an_added_document_is_found",
    "an_added_document_replaces_the_one_of_its_id",
    "a_deleted_document_is_not_found",
)
class DeclaresWritesAndHasNone(TermOverlap):
    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(writes=True)
