"""Checks of single results, of the cut, and of equal questions that must get equal answers.

None of them builds a corpus of its own, so all hold for external retrievers too.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np

from retrieval_bench.core.types import LegTrace, Ranking
from retrieval_bench_conformance.compare import fail, require
from retrieval_bench_conformance.samples import EMOJI, RIGHT_TO_LEFT, UNKNOWN_WORDS, long_texts
from retrieval_bench_conformance.subject import Subject, snapshot


class ResultChecks(Subject):
    """Checks of every single result."""

    def test_the_core_accepts_every_result(self) -> None:
        """A result is a Ranking or (doc_id, score) pairs, and breaks no rule of the core."""
        for query in self.queries():
            for k in (1, 3, self._n):
                self._require_accepted(self._raw_answer(query, k), query, k, self._corpus)

    def test_at_most_k_hits_are_returned(self) -> None:
        """There are never more than k hits; there may be fewer."""
        for asked, k, ids, _ in self._raw_answers():
            require(len(ids) <= k, f"{asked}: {len(ids)} hits")

    def test_no_document_is_returned_twice(self) -> None:
        """One ranking holds each id at most once."""
        for asked, _, ids, _ in self._raw_answers():
            repeated = [doc_id for rank, doc_id in enumerate(ids) if doc_id in ids[:rank]]
            require(not repeated, f"{asked}: {repeated!r} returned again")

    def test_ids_are_text(self) -> None:
        """Ids are ``str``, as they were in the documents."""
        for asked, _, ids, _ in self._raw_answers():
            other = [doc_id for doc_id in ids if type(doc_id) is not str]
            require(not other, f"{asked}: ids that are no str: {other!r}")

    def test_ids_are_those_of_the_corpus(self) -> None:
        """No id is returned that no document has (such as the -1 of a padded result)."""
        self._needs_a_known_corpus()
        known = {document.id for document in self._corpus}
        for asked, _, ids, _ in self._raw_answers():
            foreign = [doc_id for doc_id in ids if doc_id not in known]
            require(not foreign, f"{asked}: ids that are not in the corpus: {foreign!r}")

    def test_scores_are_finite_numbers(self) -> None:
        """Each hit has a score, and none is NaN or infinite."""
        self._needs_scores()
        for asked, _, ids, scores in self._raw_answers():
            given = scores or []
            require(
                len(given) == len(ids),
                f"{asked}: {len(given)} scores for {len(ids)} hits (a retriever without scores "
                "declares has_scores = False)",
            )
            require(all(map(math.isfinite, given)), f"{asked}: scores {given}")

    def test_scores_never_rise(self) -> None:
        """The best hit comes first: along the list scores fall or stay."""
        self._needs_scores()
        for asked, _, _, scores in self._raw_answers():
            given = scores or []
            rises = [rank + 1 for rank in range(1, len(given)) if given[rank] > given[rank - 1]]
            require(not rises, f"{asked}: the score rises at rank {rises}")

    def test_legs_have_one_rank_and_one_score_per_hit(self) -> None:
        """Where a ranking names legs, each says something about every hit."""
        for query in self.queries():
            ranking = self._raw_answer(query, 3)
            if not isinstance(ranking, Ranking):
                continue
            for name, leg in ranking.legs.items():
                lengths = (len(leg.ranks), len(leg.scores))
                require(
                    lengths == (len(ranking), len(ranking)),
                    f"leg {name!r} has {lengths} ranks and scores for {len(ranking)} hits",
                )
                self._require_leg_list(name, leg, ranking)

    def _require_leg_list(self, name: str, leg: LegTrace, ranking: Ranking) -> None:
        """A leg's whole list, where it is told, has each hit at the rank that the leg gives it."""
        if leg.doc_ids is None:
            return
        place = {doc_id: rank for rank, doc_id in enumerate(leg.doc_ids, start=1)}
        require(len(place) == len(leg.doc_ids), f"leg {name!r} lists a document twice")
        ranks = [place.get(doc_id, 0) for doc_id in ranking.doc_ids]
        given = np.asarray(leg.ranks).tolist()
        require(ranks == given, f"leg {name!r} gives ranks {given}, its list says {ranks}")

    def test_describe_gives_what_json_can_hold(self) -> None:
        """The facts for the manifest are plain JSON types, not those of numpy."""
        try:
            json.dumps(dict(self._searcher.describe()), allow_nan=False)
        except (TypeError, ValueError) as problem:
            fail(f"describe() gave what JSON cannot hold: {problem}")

    def test_health_gives_sentences(self) -> None:
        """Warnings are a sequence of texts (a single text would be a sequence of letters)."""
        for ask in (self._searcher.health, self._searcher.health_facts):
            lines = ask(self.queries())
            fit = not isinstance(lines, str) and all(isinstance(line, str) for line in lines)
            require(fit, f"{ask.__name__}() gave {lines!r}; accepted: a list of texts")

    def test_search_leaves_the_query_unchanged(self) -> None:
        """A query can be asked again, and of another retriever."""
        queries = list(self.queries())
        before = [snapshot(query) for query in queries]
        for query in queries:
            self._searcher.search(query, 3)
        for query, said in zip(queries, before, strict=True):
            require(snapshot(query) == said, f"{said!r} became {snapshot(query)!r}")


class CutChecks(Subject):
    """Checks of what k does, and what it must not do."""

    def test_k_of_one_gives_the_best_hit(self) -> None:
        """k = 1 gives the first hit of a longer ranking."""
        for query in self.queries():
            full = self._answer(query, self._n)
            top = self._answer(query, 1)
            self._require_top(top, full, 1, f"k = 1, query {query.text!r}")

    def test_a_smaller_k_gives_the_top_of_a_larger_one(self) -> None:
        """Top k is the beginning of top n, also where scores tie at the cut."""
        for query in self.queries():
            full = self._answer(query, self._n)
            for k in (2, 3, 5, 8):
                top = self._answer(query, k)
                self._require_top(top, full, k, f"k = {k}, query {query.text!r}")

    def test_k_may_be_the_size_of_the_corpus(self) -> None:
        """k = n gives all that k = n - 1 gave, and at most one hit more."""
        for query in self.queries():
            full = self._answer(query, self._n)
            top = self._answer(query, self._n - 1)
            self._require_top(top, full, self._n - 1, f"k = n - 1, query {query.text!r}")

    def test_k_may_exceed_the_size_of_the_corpus(self) -> None:
        """k > n gives the same as k = n: nothing is padded."""
        self._needs_a_known_corpus()
        for k in (self._n + 1, 10 * self._n):
            self._require_same(self._ask_all(self._searcher, k), self._full_answers(), f"k = {k}")

    def test_k_below_one_is_an_error(self) -> None:
        """k = 0 and k = -1 raise ContractError."""
        for k in (0, -1):
            self._require_refused(self._searcher, k, "require_k")


class FilterChecks(Subject):
    """Checks of what a filter of a query does, where ``capabilities.filters`` says that it does
    something."""

    def test_a_filter_leaves_the_ranking_without_the_other_documents(self) -> None:
        """The list is the full ranking with the documents removed that do not fit, at k = n, 3
        and 1: filtered before the cut, and no other document moves. Approximate: half of it. Of a
        fusion only who is there: with other documents gone, ranks of its legs are others."""
        self._needs_filters()
        fused = bool(self._searcher.named_legs())
        metadata = {document.id: document.metadata for document in self._corpus}
        for query in self.queries():
            full = self._ask(self._searcher, replace(query, filter=None), self._n)
            for filter in self.filters():
                asked = replace(query, filter=filter)
                kept = [at for at, i in enumerate(full.doc_ids) if filter.matches(metadata[i])]
                expected = Ranking(
                    [full.doc_ids[at] for at in kept],
                    None if full.scores is None else [float(full.scores[at]) for at in kept],
                )
                for k in (self._n, 3, 1):
                    got = self._ask(self._searcher, asked, k)
                    what = f"filter {dict(filter.source)}, k = {k}, query {query.text!r}"
                    other = [i for i in got.doc_ids if not filter.matches(metadata[i])]
                    require(not other, f"{what}: {other!r} do not fit")
                    if not fused:
                        self._require_top(got, expected, k, what)
                    elif k == self._n:
                        missing = {*expected.doc_ids} ^ {*got.doc_ids}
                        require(not missing, f"{what}: {sorted(missing)!r} differ")


class RepeatChecks(Subject):
    """Equal questions get equal answers."""

    def test_the_same_call_twice_is_equal(self) -> None:
        """No call leaves a trace in a later one, whatever was asked in between.

        Holds for approximate retrievers too: one index, one answer.
        """
        queries = list(self.queries())
        with self._fresh(self._corpus) as retriever:
            first = [self._ask(retriever, query, self._n) for query in queries]
            again = [self._ask(retriever, query, self._n) for query in reversed(queries)]
            self._require_same(again[::-1], first, "asked twice", strict=True)

    def test_two_fresh_instances_are_equal(self) -> None:
        """Building again gives the same rankings: nothing depends on a seed or on the clock. And
        to close one instance does no harm to the other."""
        with self._fresh(self._corpus) as other:
            got = self._ask_all(other, self._n)
        self._require_same(got, self._ask_all(self._searcher, self._n), "a second instance")


class OddQueryChecks(Subject):
    """Questions that users do ask: each gets a result that the core accepts, perhaps no hit."""

    def test_an_empty_query_is_answered(self) -> None:
        """A query of no characters does not raise."""
        self._require_answer("")

    def test_a_blank_query_is_answered(self) -> None:
        """A query of blanks, tabs and line ends does not raise."""
        self._require_answer("  \t\n\u3000 ")

    def test_a_query_of_unknown_words_is_answered(self) -> None:
        """A query that shares no word with the corpus does not raise."""
        self._require_answer(UNKNOWN_WORDS)

    def test_a_query_of_emoji_is_answered(self) -> None:
        """A query of emoji, some of several code points, does not raise."""
        self._require_answer(EMOJI)

    def test_a_query_from_right_to_left_is_answered(self) -> None:
        """A query in Arabic and Hebrew with a direction mark does not raise."""
        self._require_answer(RIGHT_TO_LEFT)

    def test_a_very_long_query_is_answered(self) -> None:
        """Ten thousand words, or one word of ten thousand letters, do not raise."""
        for text in long_texts():
            self._require_answer(text)

    def _require_answer(self, text: str) -> None:
        query = self._query(text)
        self._require_accepted(self._searcher.search(query, 3), query, 3, self._corpus)
