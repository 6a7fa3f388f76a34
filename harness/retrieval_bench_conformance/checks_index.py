"""Checks of what is indexed: order, ties, size and oddity of the corpus, and life of the index."""

from __future__ import annotations

import inspect
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from unittest import SkipTest

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Document
from retrieval_bench_conformance.compare import fail, require
from retrieval_bench_conformance.subject import Subject, snapshot

_TWELVE = 12


class CorpusChecks(Subject):
    """Checks of what a retriever makes of documents, whatever their order and content."""

    def test_a_shuffled_corpus_gives_the_same_ranking(self) -> None:
        """The order of the documents changes no ranking, at k = n nor at a smaller k."""
        self._needs_an_index_of_its_own()
        shuffled = self._corpus
        random.Random(20).shuffle(shuffled)
        with self._fresh(shuffled) as other:
            got = self._ask_all(other, self._n)
            self._require_same(got, self._full_answers(), "shuffled corpus")
            for query, full in zip(self.queries(), got, strict=True):
                top = self._ask(other, query, 3)
                self._require_top(top, full, 3, f"shuffled corpus, k = 3, query {query.text!r}")

    def test_documents_may_come_from_a_stream(self) -> None:
        """A corpus that can be walked again, but is no list, gives the same rankings."""
        self._needs_an_index_of_its_own()
        with self._fresh(None) as other:
            other.index(_Stream(self._corpus))
            got = self._ask_all(other, self._n)
        self._require_same(got, self._full_answers(), "corpus from a stream")

    def test_equal_documents_are_ranked_by_id(self) -> None:
        """Twelve documents with one text come in ascending order of id (as text: 10 before 9).

        Without scores: in one order, whatever that of the corpus. Approximate: twelve of twelve.
        """
        self._require_twelve(cuts=(_TWELVE,))

    def test_ties_at_the_cut_go_to_the_lowest_ids(self) -> None:
        """Of twelve documents with one text, k = 1 .. 11 gives the k lowest ids.

        Without scores: the beginning of k = 12. Approximate: k of the twelve.
        """
        self._require_twelve(cuts=range(1, _TWELVE))

    def test_two_documents_may_share_one_text(self) -> None:
        """Both are found, neither hides the other; the lower id comes first."""
        self._needs_an_index_of_its_own()
        corpus = self._corpus[:4]
        twin = replace(corpus[0], id=f"{corpus[0].id} again")
        with self._fresh([twin, *corpus]) as retriever:
            ids = list(self._ask(retriever, self._query(twin.contents), 5).doc_ids)
        twins = [doc_id for doc_id in ids if doc_id in (twin.id, corpus[0].id)]
        require(len(set(twins)) == 2, f"of two documents with one text only {twins!r} is found")
        if self._capabilities.exact and self._capabilities.has_scores:
            require(twins == [corpus[0].id, twin.id], f"order {twins!r}; accepted: lower id first")

    def test_a_documents_own_text_finds_it(self) -> None:
        """Each of up to twenty documents is the first hit for its own title and text, or ties
        with the first within the tolerance. Approximate: it is among the first five."""
        self._needs_a_known_corpus()
        declared = self._capabilities
        for document in self._corpus[:20]:
            ranking = self._ask(self._searcher, self._query(document.contents), self._n)
            ids = list(ranking.doc_ids)
            require(document.id in ids, f"{document.id!r} is not found by its own text")
            rank = ids.index(document.id)
            if declared.exact and ranking.scores is not None:
                first, own = float(ranking.scores[0]), float(ranking.scores[rank])
                fit = rank == 0 or first - own <= declared.score_tolerance * abs(first)
            else:
                fit = rank < (1 if declared.exact else 5)
            require(fit, f"{document.id!r} comes at rank {rank + 1} for its own text: {ids[:3]}")

    def test_documents_may_be_empty(self) -> None:
        """Documents of no text, or of blanks, harm neither the index nor the others."""
        self._needs_an_index_of_its_own()
        first, *others = self._corpus[:4]
        empty = replace(first, id="empty", title="", text="")
        blank = replace(first, id="blank", title="", text=" \t\n ")
        with self._fresh([empty, first, blank, *others]) as retriever:
            self._require_found(retriever, first, 6)
            query = self._query("")
            corpus = [empty, first, blank, *others]
            self._require_accepted(retriever.search(query, 7), query, 7, corpus)
        with self._fresh([empty, blank]) as retriever:
            for query in (self._query(first.text), self._query("")):
                self._require_accepted(retriever.search(query, 3), query, 3, [empty, blank])

    def test_the_corpus_may_be_empty(self) -> None:
        """No document gives no hits, and raises nothing."""
        self._needs_an_index_of_its_own()
        with self._fresh([]) as retriever:
            for query in self.queries():
                ids = self._ask(retriever, query, 3).doc_ids
                require(len(ids) == 0, f"hits {ids!r} from an empty corpus")

    def test_the_corpus_may_hold_one_document(self) -> None:
        """One document is found by its own text, though each of its words is in every document."""
        self._require_small_corpus(1)

    def test_the_corpus_may_hold_two_documents(self) -> None:
        """Two documents are found by their own texts, though no word is rare."""
        self._require_small_corpus(2)

    def test_index_leaves_the_documents_unchanged(self) -> None:
        """The corpus that was given can be indexed again, and by another retriever."""
        self._needs_an_index_of_its_own()
        corpus = self._corpus
        given = list(corpus)
        before = [snapshot(document) for document in given]
        with self._fresh(corpus) as retriever:
            self._ask_all(retriever, 3)
        require([d.id for d in corpus] == [said[0] for said in before], "the list was changed")
        for document, said in zip(given, before, strict=True):
            require(snapshot(document) == said, f"{said!r} became {snapshot(document)!r}")

    def _require_twelve(self, cuts: Sequence[int]) -> None:
        self._needs_an_index_of_its_own()
        model = self._corpus[0]
        twelve = [replace(model, id=f"same {i}") for i in (7, 12, 1, 9, 10, 4, 2, 11, 5, 3, 8, 6)]
        expected = sorted(document.id for document in twelve)
        query = self._query(model.contents)
        as_given = self._shared("twelve", twelve)
        if not self._capabilities.has_scores:
            listed = list(self._ask(as_given, query, _TWELVE).doc_ids)
            require(
                sorted(listed) == expected, f"of twelve equal documents only {listed} are found"
            )
            expected = listed
        for retriever in (as_given, self._shared("twelve, reversed", twelve[::-1])):
            for k in cuts:
                ids = list(self._ask(retriever, query, k).doc_ids)
                if not self._capabilities.exact:
                    fit = len(set(ids) & set(expected)) == k
                else:
                    fit = ids == expected[:k]
                require(fit, f"k = {k} of twelve equal documents: {ids}, not {expected[:k]}")

    def _require_small_corpus(self, size: int) -> None:
        self._needs_an_index_of_its_own()
        corpus = self._corpus[:size]
        with self._fresh(corpus) as retriever:
            for document in corpus:
                for k in (size, size + 3):
                    self._require_found(retriever, document, k)
            for query in self.queries():
                raw = retriever.search(query, size + 1)
                self._require_accepted(raw, query, size + 1, corpus)


class LifeChecks(Subject):
    """Checks of a retriever's life, from the parameters to the index, and to the one that replaces
    it."""

    def test_search_before_index_is_an_error(self) -> None:
        """A retriever without an index raises ContractError rather than finding nothing."""
        self._needs_an_index_of_its_own()
        with self._fresh(None) as retriever:
            self._require_refused(retriever, 3, "require_index")

    def test_indexing_again_replaces_the_corpus(self) -> None:
        """After a second ``index`` no document and no statistic of the first is left."""
        self._needs_an_index_of_its_own()
        corpus = self._corpus
        old, new = corpus[: self._n // 2], corpus[self._n // 2 :]
        with self._fresh(old) as retriever, self._fresh(new) as reference:
            self._ask_all(retriever, self._n)
            retriever.index(new)
            old_ids = {document.id for document in old}
            for document in old:
                ids = self._ask(retriever, self._query(document.contents), self._n).doc_ids
                require(not old_ids & set(ids), f"{old_ids & set(ids)!r} of the first corpus left")
            got = self._ask_all(retriever, self._n)
            self._require_same(got, self._ask_all(reference, self._n), "indexed again")

    def test_any_language_may_be_told(self) -> None:
        """A language that the retriever knows nothing about, or none, is no error."""
        self._needs_an_index_of_its_own()
        corpus = self._corpus[:4]
        with self._fresh(None) as retriever:
            for language in (None, "en", "ko", "is"):
                retriever.use_language(language)
                retriever.index(corpus)
                self._require_found(retriever, corpus[0], 4)

    def test_a_loaded_index_gives_the_same_rankings(self) -> None:
        """A new instance that ``load`` reads from what ``save`` wrote ranks as before."""
        self._needs_an_index_of_its_own()
        with tempfile.TemporaryDirectory() as name, self._fresh(None) as other:
            try:
                self._searcher.save(Path(name))
                other.load(Path(name))
            except NotImplementedError as reason:
                raise SkipTest(str(reason)) from None
            got = self._ask_all(other, self._n)
        self._require_same(got, self._full_answers(), "loaded", strict=True)

    def test_an_unknown_parameter_is_an_error_that_names_the_accepted_ones(self) -> None:
        """A misspelt key in a config is told, with the list of the right ones."""
        if self.target is None:
            raise SkipTest("set `target` (and `params`) to have the parameters checked")
        try:
            plugins.construct(self.target, {**self.params, "no_such_parameter": 1}).close()
        except ConfigError as problem:
            factory = plugins.resolve("retriever", self.target)
            require("no_such_parameter" in problem.given, f"does not name the key: {problem}")
            unnamed = [
                name
                for name, parameter in inspect.signature(factory).parameters.items()
                if parameter.kind
                not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
                and not re.search(rf"\b{name}\b", problem.accepted)
            ]
            require(not unnamed, f"the error does not name {unnamed} as accepted: {problem}")
            return
        fail(f"{self.target!r} took no_such_parameter=1; accepted: a ConfigError")


class _Stream:
    """A corpus as the datasets give it: it can be walked again and counted, and nothing else."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    def __len__(self) -> int:
        return len(self._documents)
