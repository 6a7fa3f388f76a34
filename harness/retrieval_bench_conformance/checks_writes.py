"""Checks of what is written to an index that answers, for retrievers that declare ``writes``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from unittest import SkipTest

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document
from retrieval_bench_conformance.compare import require
from retrieval_bench_conformance.subject import Subject

_AGAIN_S = 0.02


class WriteChecks(Subject):
    """Checks of ``add`` and ``delete``; a write may take ``patience_s`` to show."""

    def test_an_added_document_is_found(self) -> None:
        """It is found by its own text, and those that were there before still are."""
        self._needs_writes()
        *before, new = self._corpus[:4]
        with self._fresh(before) as retriever:
            retriever.add([new])
            self._wait_for(lambda: self._finds(retriever, new), f"{new.id!r}, added, is not found")
            for document in before:
                self._require_found(retriever, document, 4)

    def test_an_added_document_replaces_the_one_of_its_id(self) -> None:
        """It is found by its new text; there is one of it, and k = n gives no other id twice."""
        self._needs_writes()
        *before, model = self._corpus[:4]
        old = replace(before[0], title=model.title, text=model.text)
        with self._fresh([old, *before[1:]]) as retriever:
            new = before[0]
            retriever.add([new])

            def replaced() -> bool:
                ids = list(self._ask(retriever, self._query(new.contents), 1).doc_ids)
                return ids == [new.id]

            self._wait_for(replaced, f"{new.id!r}, added again, does not answer to its new text")
            ids = list(self._ask(retriever, self._query(new.contents), 6).doc_ids)
            require(ids.count(new.id) == 1, f"{new.id!r} came {ids.count(new.id)} times: {ids}")

    def test_a_deleted_document_is_not_found(self) -> None:
        """It is not found by its own text; an id that is not there may be deleted, too."""
        self._needs_writes()
        gone, *others = self._corpus[:4]
        with self._fresh([gone, *others]) as retriever:
            retriever.delete([gone.id, "no such document"])
            what = f"{gone.id!r}, deleted, is still found"
            self._wait_for(lambda: not self._finds(retriever, gone), what)
            for document in others:
                self._require_found(retriever, document, 4)

    def _needs_writes(self) -> None:
        if not self._capabilities.writes:
            raise SkipTest("writes is False: documents are neither added nor deleted")
        self._needs_an_index_of_its_own()

    def _finds(self, retriever: Retriever, document: Document) -> bool:
        query = self._query(document.contents)
        return document.id in self._ask(retriever, query, 4).doc_ids

    def _wait_for(self, happened: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + self.patience_s
        while not happened():
            late = time.monotonic() > until
            require(not late, f"{otherwise} within {self.patience_s:g} s")
            time.sleep(_AGAIN_S)
