"""What the adapters of retrieval libraries share: a factory that is called with the number of hits
that a search asks for, so that nothing depends on a library's default, and chunks that collapse.

:mod:`.langchain`, :mod:`.llamaindex` and :mod:`.haystack` are this adapter over one library each.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, ClassVar

from retrieval_bench.core import plugins
from retrieval_bench.core.calls.foreign import innermost
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.retriever import (
    Answers,
    Capabilities,
    Retriever,
    require_index,
    require_k,
)
from retrieval_bench.core.types import EMPTY, Document, Query, Ranking
from retrieval_bench.core.units.collapsing import collapse
from retrieval_bench_retrievers.functions.event_loop import EventLoop
from retrieval_bench_retrievers.functions.search_counts import SearchCounts, declared_size
from retrieval_bench_retrievers.functions.user_code import (
    check_call,
    declared_index,
    filter_function,
    name_of,
)
from retrieval_bench_retrievers.libraries.kept_chain import KeptChain

if TYPE_CHECKING:
    from retrieval_bench_retrievers.libraries.library import Engine, Library

_USUAL_K = 10
"""What an index is built for when nobody said what will be asked."""


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters that every such adapter has; those that differ are explained at the adapters.

    Attributes:
        external: the index exists already. True, or ``{index, version, count}``, which declares its
            fingerprint.
        use_async: False asks the engine's sync method, True the async one. None: the async one when
            the first sync call says that it is not implemented.
        min_k: the smallest ``k`` that the factory is called with; more than the hits wanted where
            chunks collapse.
        deepen: False never asks for more than ``max(k, min_k)`` hits, as production does; where
            chunks collapse the list stays shorter.
        exact: False for an approximate index: equal searches may differ from build to build.
    """

    id_key: str | None = None
    external: bool | Mapping[str, Any] = False
    use_async: bool | None = None
    min_k: int = 1
    deepen: bool = True
    exact: bool = True
    filter: Any = None
    has_scores: bool = True
    pass_query: bool = False


class FactoryRetriever(Retriever):
    """Base of the adapters over a library whose retrievers a factory builds.

    The factory is called once for each number of hits asked for, at the first such search; for an
    index that it builds, already in :meth:`index`. Where the engine can be asked for another number
    over the same index, it is not built again. Hits beyond ``k`` are cut off. The order of the list
    is the ranking. Several hits with one id (chunks of one document) collapse to the first; while
    fewer than ``k`` documents are left, twice as many hits are asked for.

    Attributes:
        library: name of the stage of its calls.
        distribution: of the library, for the manifest.
        returns: what a factory must return, for messages.
        hand_on: how a factory hands k on, for the warning.
        methods: names that an object of the library has and a factory does not.
    """

    library: ClassVar[str]
    distribution: ClassVar[str]
    returns: ClassVar[str]
    hand_on: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]

    def __init__(self, factory: Any, options: Options, params: Mapping[str, Any]) -> None:
        min_k = options.min_k
        if isinstance(min_k, bool) or not isinstance(min_k, int) or min_k < 1:
            raise ConfigError(f"min_k = {min_k!r}", accepted="a whole number of at least 1")
        self._options = options
        self._name = factory if isinstance(factory, str) else name_of(factory)
        named = plugins.load(factory) if isinstance(factory, str) else factory
        self._filter = filter_function(options.filter)
        self._fixed: Engine | None = None
        if not self._is_function(named):
            self._fixed = self._checked_fixed(named, params)
        self._external = options.external is not False or self._fixed is not None
        self._declared = {} if options.external is False else declared_index(options.external)
        if self._fixed is None:
            handed = ("k",) if self._external else ("documents", "k")
            check_call(named, self._name, handed, params, self._own_parameters())
        self._factory: Callable[..., Any] = named
        self._use_async = options.use_async
        self._params = params
        self._expected_k = _USUAL_K
        self._loop = EventLoop()
        self._documents: Iterable[Document] | None = None
        self._known_ids: set[str] | None = None
        self._built: dict[int, Engine] = {}
        self._calls = 0
        self._counts = SearchCounts.of(self._name, self.hand_on)
        self._unnamed = (0, 0)

    @abstractmethod
    def _bridge(self) -> Library:
        """The library's side; imports the library."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities that the parameters say."""
        return Capabilities(
            external=self._external,
            exact=self._options.exact,
            has_scores=self._options.has_scores,
            filters=self._filter is not None,
            deepens=self._fixed is not None or self._external,
        )

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
        self._side.begin(self._known_ids)
        self._built.clear()
        self._calls = 0
        self._counts.reset()
        if self._known_ids:
            self._engine(max(self._expected_k, self._options.min_k))

    def use_k(self, k: int) -> None:
        """Told before ``index``: the number of hits that searches will ask for, so that the factory
        is called with it at once."""
        self._expected_k = k

    def search(self, query: Query, k: int) -> Ranking:
        """Return at most ``k`` documents in the order of the list that the library returns.

        Stages: one of the library's name, all time inside of its calls; ``factory``, only where
        this search is the first with its number of hits; ``wrapper``, what the adapter adds:
        translating a filter, checking and converting, and for an async engine handing over to its
        event loop.

        Raises:
            ContractError: ``k`` below 1, no index yet, an answer that is no list of documents, a
                document without id, or an id that is not in the corpus; a filter that was
                translated to None.
        """
        start = perf_counter_ns()
        require_k(k)
        if not self._external:
            require_index(self._documents is not None, self)
        if self._known_ids is not None and not self._known_ids:
            return Ranking([])
        asked = query if self._options.pass_query else query.text
        filters = self._translated(query)
        depth, seen = max(k, self._options.min_k), -1
        stages: dict[str, int] = {self.library: 0}
        while True:
            engine = self._built.get(depth) if self._fixed is None else self._fixed
            if engine is None:
                begin = perf_counter_ns()
                engine = self._engine(depth)
                stages["factory"] = stages.get("factory", 0) + perf_counter_ns() - begin
            answer, inside = self._ask(engine, asked, depth, filters)
            stages[self.library] += inside
            hits = self._side.read(answer, stages)
            ranking = collapse(hits, EMPTY, k)
            exhausted = len(hits) < depth or len(hits) <= seen
            deaf = self._fixed is not None and not engine.takes_k
            if len(ranking) == k or exhausted or deaf or not self._options.deepen:
                break
            depth, seen = depth * 2, len(hits)
        self._count(query, k, len(hits), len(ranking))
        spent = sum(stages.values())
        chain = engine.inside(self._side)
        if chain is not None:
            self._unnamed = (chain.unnamed, len(chain.stages))
            stages |= chain.stages
            ranking = replace(ranking, steps=chain.steps, usage=chain.usage)
        stages["wrapper"] = perf_counter_ns() - start - spent  # the ranking holds this mapping
        return ranking

    def describe(self) -> Mapping[str, Any]:
        """The factory, what it returned, how it is called, and the declared index."""
        facts: dict[str, Any] = {
            "factory": self._name,
            "external": self._declared if self._external else False,
            self.distribution.replace("-", "_"): version(self.distribution),
            "async": self._use_async is True,
        }
        returned = next(iter(self._built.values()), self._fixed)
        if returned is not None:
            facts["returned"] = type(returned.made).__name__
        return facts

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says when every search so far got fewer hits than asked for, or when the factory had to
        build more than one index."""
        warnings = self._counts.warnings()
        if not self._external and self._calls > 1:
            deepest = max(self._built, default=0)
            warnings.append(
                f"{self._name} built {self._calls} indexes, one for each number of hits up to "
                f"{deepest}; min_k: {deepest} makes it one, and keeps building out of the times"
            )
        return warnings

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says how many lists are shorter because chunks collapsed, and how many lost their
        scores."""
        read = self._side.facts()
        unnamed, steps = self._unnamed
        if unnamed:
            read.append(
                f"{unnamed} of {steps} steps of {self._name} have no name of their own: "
                ".with_config(run_name=...) gives them one"
            )
        return [*self._counts.facts(), *read]

    def over(self, memory: Answers, path: str = "") -> Retriever:
        """A chain that tells its steps is known without the last of them."""
        return KeptChain(self, memory, path) if self._unnamed[1] else super().over(memory, path)

    def close(self) -> None:
        """Close the event loop of an async engine."""
        self._loop.close()

    @cached_property
    def _side(self) -> Library:
        return self._bridge()

    def _is_function(self, made: Any) -> bool:
        if inspect.isroutine(made) or inspect.isclass(made):
            return True
        # An object of the library is no factory, though some are callable.
        return callable(made) and not any(hasattr(made, name) for name in self.methods)

    def _checked_fixed(self, named: Any, params: Mapping[str, Any]) -> Engine:
        from retrieval_bench_retrievers.libraries.library import described

        if not self._side.is_engine(named):
            raise ConfigError(
                f"the factory is {described(named)}",
                where=self._name,
                accepted=f"a factory, or {self.returns}",
                fix=self._side.advice(named),
            )
        if params:
            raise ConfigError(
                f"{self._name} is {type(named).__name__}, which takes no parameters here: "
                + ", ".join(sorted(params)),
                fix="remove them, or name a factory that takes them",
            )
        return self._side.engine(named, filtered=self._filter is not None)

    def _own_parameters(self) -> set[str]:
        return set(inspect.signature(type(self)).parameters) - {"params"}

    def _ids_of(self, documents: Iterable[Document]) -> Iterator[str]:
        key = self._options.id_key
        for document in documents:
            yield document.id
            if key is not None and key in document.metadata:
                yield str(document.metadata[key])

    def _translated(self, query: Query) -> Any:
        """The query's filter as the engine wants it; None where nothing is to be filtered."""
        if self._filter is None or query.filter is None:
            return None
        filters = self._filter(query.filter)
        if filters is None:
            raise ContractError(
                f"the filter {dict(query.filter.source)} was translated to None",
                where="filter",
                accepted="what the engine filters with",
                fix="end the function with `return`; raise an error for a filter that it cannot "
                "translate",
            )
        return filters

    def _count(self, query: Query, k: int, hits: int, documents: int) -> None:
        size = declared_size(self._declared)
        if self._known_ids is not None:
            size = len(self._known_ids)
        if self._options.deepen and self._fixed is None:  # it was asked for all that it has
            hits = documents
        self._counts.add(query, k, hits, documents=documents, size=size)

    def _engine(self, depth: int) -> Engine:
        """The engine that returns ``depth`` hits, from the factory where it must be built."""
        if self._fixed is not None:
            return self._fixed
        made = self._built.get(depth)
        if made is None:
            # Not by what an earlier search left behind, so that a ranking depends on its k alone.
            other = next(iter(self._built.values()), None)
            made = None if other is None else other.deeper(depth)
            made = self._built[depth] = made or self._call_factory(depth)
        return made

    def _call_factory(self, depth: int) -> Engine:
        from retrieval_bench_retrievers.libraries.library import described

        arguments: list[Any] = [depth]
        if not self._external:
            # Always in one order: engines that break ties by insertion stay the same on any corpus
            # file, and the documents are fresh ones, which a factory may change.
            ordered = sorted(self._documents or (), key=lambda document: document.id)
            arguments.insert(0, [self._side.document(document) for document in ordered])
        self._calls += 1
        try:
            made = self._factory(*arguments, **self._params)
            if inspect.iscoroutine(made):
                coroutine = made
                made = self._loop.run(lambda: coroutine)
        except HarnessError:
            raise
        except Exception as problem:
            raise ContractError(
                f"the factory {self._name} raised {type(problem).__name__}: {problem}",
                where=innermost(problem),
                fix="correct the factory or its parameters",
            ) from problem
        if not self._side.is_engine(made):
            raise ContractError(
                f"the factory {self._name} returned {described(made)}",
                accepted=self.returns,
                fix=self._side.advice(made),
            )
        return self._side.engine(made, filtered=self._filter is not None)

    def _ask(self, engine: Engine, asked: Any, k: int, filters: Any) -> tuple[Any, int]:
        """The engine's answer, and the nanoseconds inside of it."""
        if self._use_async:
            return self._loop.run(lambda: _timed(engine.ask_async(asked, k, filters)))
        begin = perf_counter_ns()
        try:
            answer = engine.ask(asked, k, filters)
        except Exception as problem:
            if self._use_async is False or not engine.only_async(problem):
                raise
            tried = perf_counter_ns() - begin
            answer, inside = self._loop.run(lambda: _timed(engine.ask_async(asked, k, filters)))
            self._use_async = True
            return answer, tried + inside
        inside = perf_counter_ns() - begin
        self._use_async = False
        return answer, inside


async def _timed(answer: Coroutine[Any, Any, Any]) -> tuple[Any, int]:
    begin = perf_counter_ns()
    result = await answer
    return result, perf_counter_ns() - begin
