"""LangChain in both directions: any retriever or Runnable that returns documents can be measured,
and any retriever of the harness can be used in a chain.

The user names a factory. It is called with the number of hits that a search asks for, so that
nothing depends on a default such as the four of ``as_retriever()``.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.retriever import Capabilities, Retriever, require_index, require_k
from retrieval_bench.core.types import EMPTY, Document, Query, Ranking
from retrieval_bench.core.units import collapse
from retrieval_bench_retrievers.event_loop import EventLoop
from retrieval_bench_retrievers.user_code import check_call, declared_index, name_of

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable

    from retrieval_bench_retrievers.langchain_bridge import AnswerReader

_USUAL_K = 10
"""What an index is built for when nobody said what will be asked."""

_RETURNS = (
    "a LangChain retriever (BaseRetriever), or any Runnable that takes the query's text and "
    "returns a list of documents"
)


class LangChainRetriever(Retriever):
    """Measures a LangChain retriever, sync or async, that a factory builds.

    The factory is called as ``factory(documents, k, **params)`` with LangChain documents in
    ascending id order (page content: title and text; metadata: the document's own, ``doc_id`` and
    ``title``), or with an external index as ``factory(k, **params)``. It may be async. It is called
    once for each number of hits asked for, at the first such search; for an index that it builds,
    already in :meth:`index`. A plain similarity search over a vector store is not built again, only
    asked for more. Hits beyond ``k`` are cut off. The order of the list is the ranking.

    Several hits with one id (chunks of one document) collapse to the first; while fewer than ``k``
    documents are left, twice as many hits are asked for.

    Args:
        factory: ``module:function``, ``file.py:function`` or a function; also a LangChain retriever
            or Runnable itself, which is external and decides on its own how many hits it gives.
        id_key: the metadata key that holds the document id; by default ``Document.id`` is it.
        score_key: a metadata key with scores that never rise; by default there are no scores.
        external: the index exists already. True, or ``{index, version, count}``, which declares its
            fingerprint.
        use_async: False calls ``invoke``, True ``ainvoke``. None, the default: ``ainvoke`` when
            the first ``invoke`` says that it is not implemented.
        pass_query: the Runnable gets the whole :class:`.Query`, not its text.
        min_k: the smallest ``k`` that the factory is called with; more than the hits wanted where
            chunks collapse.
        **params: handed on to the factory.

    Raises:
        PluginError: ``factory`` does not resolve.
        ConfigError: the factory does not take these parameters.
    """

    def __init__(
        self,
        factory: Any,
        *,
        id_key: str | None = None,
        score_key: str | None = None,
        external: bool | Mapping[str, Any] = False,
        use_async: bool | None = None,
        pass_query: bool = False,
        min_k: int = 1,
        **params: Any,
    ) -> None:
        if isinstance(min_k, bool) or not isinstance(min_k, int) or min_k < 1:
            raise ConfigError(f"min_k = {min_k!r}", accepted="a whole number of at least 1")
        self._name = factory if isinstance(factory, str) else name_of(factory)
        named = plugins.load(factory) if isinstance(factory, str) else factory
        self._fixed: Runnable[Any, Any] | None = None
        if not _is_function(named):
            self._fixed = self._checked_fixed(named, params)
        self._external = external is not False or self._fixed is not None
        self._declared = {} if external is False else declared_index(external)
        if self._fixed is None:
            handed = ("k",) if self._external else ("documents", "k")
            check_call(named, self._name, handed, params, _own_parameters())
        self._factory: Callable[..., Any] = named
        self._id_key = id_key
        self._score_key = score_key
        self._use_async = use_async
        self._pass_query = pass_query
        self._min_k = min_k
        self._params = params
        self._expected_k = _USUAL_K
        self._loop = EventLoop()
        self._reader: AnswerReader | None = None
        self._documents: Iterable[Document] | None = None
        self._known_ids: set[str] | None = None
        self._built: dict[int, Runnable[Any, Any]] = {}
        self._forget_counts()

    @property
    def capabilities(self) -> Capabilities:
        """External as declared; scores only with ``score_key``."""
        return Capabilities(external=self._external, has_scores=self._score_key is not None)

    def index(self, documents: Iterable[Document]) -> None:
        """Call the factory with ``documents``; not at all when there are none.

        Raises:
            ContractError: the index is external; the factory raises or returns something else.
        """
        if self._external:
            raise ContractError(
                f"index() of {self._name}, which is external",
                fix="leave `external` out when the factory shall index the documents",
            )
        # Walked again when another number of hits needs another build.
        self._documents = list(documents) if isinstance(documents, Iterator) else documents
        self._known_ids = set(self._ids_of(self._documents))
        self._reader = None
        self._built.clear()
        self._forget_counts()
        if self._known_ids:
            self._runnable(max(self._expected_k, self._min_k))

    def use_k(self, k: int) -> None:
        """Told before ``index``: the number of hits that searches will ask for, so that the factory
        is called with it at once."""
        self._expected_k = k

    def search(self, query: Query, k: int) -> Ranking:
        """At most ``k`` documents in the order of the list that LangChain returns.

        Stages: ``langchain``, all time inside of ``invoke`` or ``ainvoke``; ``factory``, only where
        this search is the first with its number of hits; ``wrapper``, what the adapter adds:
        checking and converting, and for an async engine handing over to its event loop.

        Raises:
            ContractError: ``k`` below 1, no index yet, an answer that is no list of documents, a
                document without id, or an id that is not in the corpus.
        """
        start = perf_counter_ns()
        require_k(k)
        if not self._external:
            require_index(self._documents is not None, self)
        if self._known_ids is not None and not self._known_ids:
            return Ranking([])
        if self._reader is None:
            self._reader = self._new_reader()
        asked = query if self._pass_query else query.text
        depth, seen = max(k, self._min_k), -1
        stages: dict[str, int] = {"langchain": 0}
        while True:
            runnable = self._built.get(depth) if self._fixed is None else self._fixed
            if runnable is None:
                begin = perf_counter_ns()
                runnable = self._runnable(depth)
                stages["factory"] = stages.get("factory", 0) + perf_counter_ns() - begin
            found, inside = self._ask(runnable, asked)
            stages["langchain"] += inside
            hits = self._reader.read(found, stages)
            ranking = collapse(hits, EMPTY, k)
            exhausted = len(hits) < depth or len(hits) <= seen or self._fixed is not None
            if len(ranking) == k or exhausted:
                break
            depth, seen = depth * 2, len(hits)
        self._count(len(ranking), k)
        spent = sum(stages.values())
        stages["wrapper"] = perf_counter_ns() - start - spent  # the ranking holds this mapping
        return ranking

    def describe(self) -> Mapping[str, Any]:
        """The factory, what it returned, how it is called, and the declared index."""
        facts: dict[str, Any] = {
            "factory": self._name,
            "external": self._declared if self._external else False,
            "langchain_core": version("langchain-core"),
            "async": self._use_async is True,
        }
        returned = next(iter(self._built.values()), self._fixed)
        if returned is not None:
            facts["returned"] = type(returned).__name__
        return facts

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says when every search so far got fewer hits than asked for, or when the factory had to
        build more than one index."""
        warnings = []
        if self._searches and not self._most_hits:
            warnings.append(f"every search found nothing: does {self._name} hold an index?")
        elif self._searches and self._short == self._searches:
            warnings.append(
                f"every search got fewer hits than asked for (at most {self._most_hits} of "
                f"{self._most_asked}): {self._name} must hand k on, as in "
                "as_retriever(search_kwargs={'k': k}), whose default is 4"
            )
        if not self._external and self._calls > 1:
            deepest = max(self._built, default=0)
            warnings.append(
                f"{self._name} built {self._calls} indexes, one for each number of hits up to "
                f"{deepest}; min_k: {deepest} makes it one, and keeps building out of the times"
            )
        return warnings

    def close(self) -> None:
        """Close the event loop of an async engine."""
        self._loop.close()

    def _checked_fixed(self, named: Any, params: Mapping[str, Any]) -> Runnable[Any, Any]:
        from retrieval_bench_retrievers.langchain_bridge import Runnable, advice, described

        if not isinstance(named, Runnable):
            raise ConfigError(
                f"the factory is {described(named)}",
                where=self._name,
                accepted=f"a factory, or {_RETURNS}",
                fix=advice(named),
            )
        if params:
            raise ConfigError(
                f"{self._name} is {type(named).__name__}, which takes no parameters here: "
                + ", ".join(sorted(params)),
                fix="remove them, or name a factory that takes them",
            )
        return named

    def _ids_of(self, documents: Iterable[Document]) -> Iterator[str]:
        for document in documents:
            yield document.id
            if self._id_key is not None and self._id_key in document.metadata:
                yield str(document.metadata[self._id_key])

    def _new_reader(self) -> AnswerReader:
        from retrieval_bench_retrievers.langchain_bridge import AnswerReader

        return AnswerReader(self._name, self._id_key, self._score_key, self._known_ids)

    def _forget_counts(self) -> None:
        self._calls = self._searches = self._short = self._most_hits = self._most_asked = 0

    def _count(self, hits: int, k: int) -> None:
        limit = k
        if self._known_ids is not None:
            limit = min(k, len(self._known_ids))
        elif "count" in self._declared:
            limit = min(k, int(self._declared["count"]))
        self._searches += 1
        self._short += hits < limit
        self._most_hits = max(self._most_hits, hits)
        self._most_asked = max(self._most_asked, k)

    def _runnable(self, depth: int) -> Runnable[Any, Any]:
        """The engine that returns ``depth`` hits, from the factory where it must be built."""
        if self._fixed is not None:
            return self._fixed
        made = self._built.get(depth)
        if made is None:
            from retrieval_bench_retrievers.langchain_bridge import ask_for

            # Not by what an earlier search left behind, so that a ranking depends on its k alone.
            other = next(iter(self._built.values()), None)
            made = None if other is None else ask_for(other, depth)
            made = self._built[depth] = made or self._call_factory(depth)
        return made

    def _call_factory(self, depth: int) -> Runnable[Any, Any]:
        from retrieval_bench_retrievers.langchain_bridge import (
            Runnable,
            advice,
            described,
            to_langchain,
        )

        arguments: list[Any] = [depth]
        if not self._external:
            # Always in one order: engines that break ties by insertion stay the same on any corpus
            # file, and the documents are fresh ones, which a factory may change.
            ordered = sorted(self._documents or (), key=lambda document: document.id)
            arguments.insert(0, [to_langchain(document) for document in ordered])
        self._calls += 1
        try:
            made = self._factory(*arguments, **self._params)
            if inspect.iscoroutine(made):
                coroutine = made
                made = self._loop.run(lambda: coroutine)
        except HarnessError:
            raise
        except Exception as problem:
            frame = traceback.extract_tb(problem.__traceback__)[-1]
            raise ContractError(
                f"the factory {self._name} raised {type(problem).__name__}: {problem}",
                where=f"{frame.filename}:{frame.lineno}",
                fix="correct the factory or its parameters",
            ) from problem
        if not isinstance(made, Runnable):
            raise ContractError(
                f"the factory {self._name} returned {described(made)}",
                accepted=_RETURNS,
                fix=advice(made),
            )
        return made

    def _ask(self, runnable: Runnable[Any, Any], asked: Any) -> tuple[Any, int]:
        """The engine's answer, and the nanoseconds inside of ``invoke`` or ``ainvoke``."""
        if self._use_async:
            return self._loop.run(lambda: _awaited(runnable, asked))
        begin = perf_counter_ns()
        try:
            found = runnable.invoke(asked)
        except (NotImplementedError, TypeError) as problem:
            # RunnableLambda over an async function raises a TypeError that names ainvoke.
            other = isinstance(problem, TypeError) and "ainvoke" not in str(problem)
            if other or self._use_async is False:
                raise
            tried = perf_counter_ns() - begin
            found, inside = self._loop.run(lambda: _awaited(runnable, asked))
            self._use_async = True
            return found, tried + inside
        inside = perf_counter_ns() - begin
        self._use_async = False
        return found, inside


async def _awaited(runnable: Runnable[Any, Any], asked: Any) -> tuple[Any, int]:
    begin = perf_counter_ns()
    found = await runnable.ainvoke(asked)
    return found, perf_counter_ns() - begin


def as_langchain(
    retriever: Retriever, k: int, documents: Iterable[Document] | None = None
) -> BaseRetriever:
    """A LangChain retriever over ``retriever``, for use in a chain.

    Args:
        retriever: ready to search: indexed, or external.
        k: hits per query.
        documents: where page content and metadata come from. Without them the page content is the
            id.

    Returns:
        A ``BaseRetriever`` whose documents carry the id, title and text as page content, and in the
        metadata the document's own, ``doc_id``, ``title`` and, where there are scores, ``score``.
        In an ``EnsembleRetriever`` use ``id_key="doc_id"``: without it, documents of equal text
        count as one.
    """
    require_k(k)
    from retrieval_bench_retrievers.langchain_bridge import HarnessRetriever

    by_id = {} if documents is None else {document.id: document for document in documents}
    return HarnessRetriever(retriever=retriever, k=k, documents=by_id)


def _is_function(made: Any) -> bool:
    if inspect.isroutine(made) or inspect.isclass(made):
        return True
    # A Runnable is no factory, though some are callable.
    return callable(made) and not hasattr(made, "invoke")


def _own_parameters() -> set[str]:
    return set(inspect.signature(LangChainRetriever).parameters) - {"params"}
