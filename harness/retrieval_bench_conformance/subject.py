"""Base of the checks: the retriever under test, its corpus, and what is built only once.

Nothing here is a check. Public names are the hooks of a test class; what starts with an underscore
serves the checks.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar
from unittest import SkipTest

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import Filter
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Capabilities, RankingLike, Retriever
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_conformance.compare import (
    as_the_core_sees_it,
    difference,
    fail,
    require,
    shorten,
    too_little_in_common,
    unpack,
)
from retrieval_bench_conformance.samples import sample_documents, sample_filters, sample_queries

_SMALLEST_CORPUS = 4
_UNKNOWN_SIZE = 20


class Subject:
    """The retriever under test, its corpus, and how the checks ask it.

    Attributes:
        target: short name or ``module:Class`` as in a config; enough to build the retriever when
            ``make`` is not overridden, and needed for the check of unknown parameters.
        params: parameters for ``target``.
        xfails: name of a check -> why this retriever cannot keep that promise.
        patience_s: seconds that a write may take to show.
    """

    target: ClassVar[str | None] = None
    params: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    xfails: ClassVar[Mapping[str, str]] = MappingProxyType({})
    patience_s: ClassVar[float] = 10.0

    _instances: ClassVar[dict[str, Retriever]] = {}
    _answers: ClassVar[dict[tuple[str, int], RankingLike]] = {}

    def make(self) -> Retriever:
        """A new retriever on each call, not yet indexed (an external one: ready to search)."""
        if self.target is None:
            raise ConfigError(
                f"{type(self).__name__} does not say which retriever it tests",
                accepted="a method make() that returns a new retriever, or an attribute `target`",
                fix="add one of the two to the class",
            )
        return plugins.construct(self.target, self.params, where=type(self).__name__)

    def documents(self) -> Sequence[Document]:
        """The corpus of the checks: at least four documents, no two with the same contents.

        Override it for a retriever that needs documents of its own; for an external one, to say
        what it holds: without that, ids and corpus size are not checked.
        """
        return sample_documents()

    def queries(self) -> Sequence[Query]:
        """Return at least one query that the retriever should answer. The odd ones (empty, emoji,
        ...) are made from the first: they keep its metadata and have another id and text."""
        return sample_queries()

    def filters(self) -> Sequence[Filter]:
        """Filters on the metadata of ``documents()``, for retrievers whose ``capabilities.filters``
        is True: each fits some documents and not others."""
        return sample_filters()

    @classmethod
    def teardown_class(cls) -> None:
        """Close what was built once for all checks. pytest calls this after the last one; a
        ``teardown_class`` of your own must call it too."""
        instances = list(cls._instances.values())
        cls._instances.clear()
        cls._answers.clear()
        with ExitStack() as stack:  # closes all, also when one of them raises
            for retriever in instances:
                stack.callback(retriever.close)

    # -- the corpus ----------------------------------------------------------------------------

    @property
    def _corpus(self) -> list[Document]:
        """``documents()`` as a list, fit for the checks."""
        documents = list(self.documents())
        contents = {document.contents for document in documents}
        if len(documents) < _SMALLEST_CORPUS or len(contents) < len(documents):
            raise ConfigError(
                f"{len(documents)} documents with {len(contents)} distinct contents",
                where=f"{type(self).__name__}.documents()",
                accepted=f"at least {_SMALLEST_CORPUS}, no two with the same title and text",
                fix="return more documents, or leave documents() as it is",
            )
        return documents

    @property
    def _corpus_is_known(self) -> bool:
        external = self._capabilities.external
        return not external or type(self).documents is not Subject.documents

    @property
    def _n(self) -> int:
        """The size of the corpus, or a stand-in where nobody knows it."""
        return len(self._corpus) if self._corpus_is_known else _UNKNOWN_SIZE

    # -- instances -----------------------------------------------------------------------------

    def _shared(self, name: str, documents: Sequence[Document]) -> Retriever:
        """An instance over ``documents``, built once per class under ``name``; only to read."""
        if name not in self._instances:
            retriever = self._new()
            if not retriever.capabilities.external:
                self._index(retriever, documents)
            self._instances[name] = retriever
        return self._instances[name]

    @property
    def _searcher(self) -> Retriever:
        """The shared instance over the whole corpus."""
        return self._shared("corpus", self._corpus)

    @contextmanager
    def _fresh(self, documents: Sequence[Document] | None) -> Iterator[Retriever]:
        """A new instance, closed at the end; not indexed when ``documents`` is None or it is
        external."""
        retriever = self._new()
        try:
            if documents is not None and not retriever.capabilities.external:
                self._index(retriever, documents)
            yield retriever
        finally:
            retriever.close()

    def _index(self, retriever: Retriever, documents: Sequence[Document]) -> None:
        if retriever.capabilities.filters:
            retriever.use_filters(
                sorted({name for query_filter in self.filters() for name in query_filter.fields})
            )
        retriever.index(documents)

    def _new(self) -> Retriever:
        retriever = self.make()
        require(
            all(retriever is not other for other in self._instances.values()),
            "make() returned the same instance twice; accepted: a new one on each call",
        )
        return retriever

    @property
    def _capabilities(self) -> Capabilities:
        return self._searcher.capabilities

    # -- reasons to skip -----------------------------------------------------------------------

    def _needs_an_index_of_its_own(self) -> None:
        if self._capabilities.external:
            raise SkipTest("external: it already holds its corpus, index() is never called")

    def _needs_a_known_corpus(self) -> None:
        if not self._corpus_is_known:
            raise SkipTest("external: override documents() to say what it holds")

    def _needs_filters(self) -> None:
        if not self._capabilities.filters:
            raise SkipTest("filters is False: it does nothing with the filter of a query")
        self._needs_a_known_corpus()

    def _needs_scores(self) -> None:
        if not self._capabilities.has_scores:
            raise SkipTest("has_scores is False: the order of the list is all there is")

    # -- asking and comparing ------------------------------------------------------------------

    def _query(self, text: str) -> Query:
        """The first query with another text, and an id of its own for retrievers that cache."""
        return replace(self.queries()[0], id=f"check: {text[:80]}", text=text, messages=())

    def _seen(self, raw: Any, k: int) -> Ranking:
        """A raw result as the core sees it."""
        return as_the_core_sees_it(raw, k, has_scores=self._capabilities.has_scores)

    def _ask(self, retriever: Retriever, query: Query, k: int) -> Ranking:
        """One search, as the core sees it."""
        return self._seen(retriever.search(query, k), k)

    def _ask_all(self, retriever: Retriever, k: int) -> list[Ranking]:
        """The rankings of all queries."""
        return [self._ask(retriever, query, k) for query in self.queries()]

    def _raw_answer(self, query: Query, k: int) -> RankingLike:
        """Return the answer of the shared instance when it was first asked this; an encoder takes
        its time."""
        key = (query.id, k)
        if key not in self._answers:
            self._answers[key] = self._searcher.search(query, k)
        return self._answers[key]

    def _answer(self, query: Query, k: int) -> Ranking:
        """The answer of the shared instance, as the core sees it."""
        return self._seen(self._raw_answer(query, k), k)

    def _full_answers(self) -> list[Ranking]:
        """The answers of the shared instance to all queries at k = n."""
        return [self._answer(query, self._n) for query in self.queries()]

    def _raw_answers(self) -> Iterator[tuple[str, int, list[Any], list[float] | None]]:
        """For each query and some k: what was asked, k, and ids and scores as the retriever gave
        them."""
        for query in self.queries():
            for k in (1, 3, self._n):
                ids, scores = unpack(self._raw_answer(query, k))
                yield f"query {shorten(query.text)}, k = {k}", k, ids, scores

    def _require_accepted(
        self, raw: RankingLike, query: Query, k: int, corpus: Sequence[Document]
    ) -> None:
        """The core accepts ``raw`` as it is; ids must be of ``corpus`` where that is known."""
        known = {document.id for document in corpus} if self._corpus_is_known else None
        try:
            checked_ranking(raw, k, known, has_scores=self._capabilities.has_scores)
        except ContractError as problem:
            fail(f"query {shorten(query.text)}, k = {k}, {len(corpus)} documents: {problem}")

    def _require_refused(self, retriever: Retriever, k: int, helper: str) -> None:
        """The search raises ContractError; ``helper`` is what an author may call for that."""
        accepted = f"accepted: a ContractError, see retrieval_bench.core.retriever.{helper}"
        try:
            raw = retriever.search(self.queries()[0], k)
        except ContractError:
            return
        except Exception as problem:
            raise AssertionError(
                f"k = {k} raised {type(problem).__name__}: {problem}; {accepted}"
            ) from problem
        fail(f"k = {k} gave {shorten(raw)}; {accepted}")

    def _require_found(self, retriever: Retriever, document: Document, k: int) -> None:
        """The document is among the first ``k`` for its own title and text."""
        ids = self._ask(retriever, self._query(document.contents), k).doc_ids
        require(document.id in ids, f"k = {k}: {document.id!r} is not among {list(ids)!r}")

    def _require_top(
        self, got: Ranking, full: Ranking, k: int, what: str, *, strict: bool = False
    ) -> None:
        """``got`` is the first ``k`` hits of ``full``, by the rule of :func:`.difference`; where
        ``exact`` is False, and unless ``strict``, by that of :func:`.too_little_in_common`."""
        if strict or self._capabilities.exact:
            reason = difference(got, full, k, self._capabilities.score_tolerance)
        else:
            reason = too_little_in_common(got, full, k, self._capabilities.score_tolerance)
        require(reason is None, f"{what}: {reason}")

    def _require_same(
        self,
        got: Sequence[Ranking],
        expected: Sequence[Ranking],
        what: str,
        *,
        strict: bool = False,
    ) -> None:
        """The rankings of all queries are the same, query by query."""
        for query, mine, other in zip(self.queries(), got, expected, strict=True):
            k = max(len(mine), len(other))
            self._require_top(mine, other, k, f"{what}, query {shorten(query.text)}", strict=strict)


def snapshot(item: Document | Query) -> tuple[Any, ...]:
    """All that a document or query says, copied, so that a later change can be seen."""
    metadata = copy.deepcopy(dict(item.metadata))
    if isinstance(item, Document):
        return item.id, item.text, item.title, metadata
    return item.id, item.text, item.messages, metadata
