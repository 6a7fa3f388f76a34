"""A plain Python function as a retriever, sync or async."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from numbers import Integral
from time import perf_counter_ns
from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.functions.event_loop import EventLoop
from retrieval_bench_retrievers.functions.search_counts import SearchCounts, declared_size
from retrieval_bench_retrievers.functions.user_code import check_call, declared_index, name_of

_ACCEPTED = (
    "a list of document ids, or of (id, score) pairs, or of {id, score} mappings, best first; "
    "ids as text or whole numbers"
)


class CallableRetriever(Retriever):
    """Calls ``function(text, k, **params)`` for each query; the function holds its own index.

    It returns at most ``k`` document ids, best first, or (id, score) pairs with falling scores, or
    mappings with the keys ``id`` and, in all or none of them, ``score``; other keys are ignored.
    Ids that are whole numbers, also of numpy, become text, as they do in files. A
    function that is async, or returns an awaitable, runs on one event loop for all searches. What
    it raises is passed through.

    Args:
        function: ``module:function``, ``path/to/file.py:function``, or a function itself.
        pass_query: hand over the whole :class:`.Query`, its filter included, in place of its text.
        external: ``{index, version, count}`` declares the fingerprint of what it searches.
        pass_filter: hand over the query's filter as written, or None, as the keyword ``filter``.
        **params: handed on to the function by keyword.

    Raises:
        PluginError: ``function`` does not resolve.
        ConfigError: it is no function, or cannot be called like that.
    """

    def __init__(
        self,
        function: Any,
        pass_query: bool = False,
        external: bool | Mapping[str, Any] = True,
        pass_filter: bool = False,
        **params: Any,
    ) -> None:
        self._declared = declared_index(external)
        self._name = function if isinstance(function, str) else name_of(function)
        self._function: Callable[..., Any] = (
            plugins.load(function) if isinstance(function, str) else function
        )
        self._pass_query = pass_query
        self._pass_filter = pass_filter
        self._params = params
        _check_callable(self._function, self._name, params, pass_filter)
        self._is_async = inspect.iscoroutinefunction(self._function)
        self._loop = EventLoop()
        self._counts = SearchCounts.of(self._name, "its second argument")

    @property
    def capabilities(self) -> Capabilities:
        """External: the harness does not index anything for a function. It filters when it is
        handed the filter."""
        return Capabilities(external=True, filters=self._pass_query or self._pass_filter)

    def search(self, query: Query, k: int) -> Ranking:
        """Call the function, and return its answer as a ranking.

        Its stages are ``function`` and ``wrapper`` (what the adapter adds, for an async function
        also handing over to its event loop); those of a :class:`.Ranking` that the function returns
        are parts of ``function``.

        Raises:
            ContractError: ``k`` below 1, or the function returned something else.
        """
        start = perf_counter_ns()
        require_k(k)
        asked = query if self._pass_query else query.text
        params = self._params
        if self._pass_filter:
            written = None if query.filter is None else dict(query.filter.source)
            params = {**params, "filter": written}
        stages: dict[str, int] = {}
        answer, inside = self._call(asked, k, params)
        if isinstance(answer, Ranking):
            stages.update(answer.stages)
            ranking = replace(answer, stages=stages)
        else:
            unordered = isinstance(answer, Mapping | Set)
            if unordered or isinstance(answer, str | bytes) or not isinstance(answer, Iterable):
                raise self._wrong(type(answer).__name__, answer)
            begin = perf_counter_ns()
            hits = list(answer)  # a generator searches only now
            inside += perf_counter_ns() - begin
            ranking = self._from_hits(hits, stages)
        self._counts.add(query, k, len(ranking), size=declared_size(self._declared))
        # Filled in last, so that making the ranking is in the adapter's time.
        stages["function"] = inside
        stages["wrapper"] = perf_counter_ns() - start - inside
        return ranking

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says when every search so far found nothing, or got fewer hits than asked for."""
        return self._counts.warnings()

    def close(self) -> None:
        """Close the event loop of an async function."""
        self._loop.close()

    def describe(self) -> Mapping[str, Any]:
        """The function's name and what was declared about its index."""
        return {"function": self._name, "external": self._declared}

    def _call(self, asked: Any, k: int, params: Mapping[str, Any]) -> tuple[Any, int]:
        """The function's answer, and the nanoseconds inside of it."""
        if self._is_async:
            return self._loop.run(lambda: _timed(lambda: self._function(asked, k, **params)))
        begin = perf_counter_ns()
        answer = self._function(asked, k, **params)
        inside = perf_counter_ns() - begin
        if not inspect.isawaitable(answer):
            return answer, inside
        awaitable = answer
        answer, waited = self._loop.run(lambda: _timed(lambda: awaitable))
        self._is_async = True  # from now on called where its loop runs
        return answer, inside + waited

    def _from_hits(self, hits: list[Any], stages: Mapping[str, int]) -> Ranking:
        if all(map(_is_id, hits)):
            return Ranking([str(hit) for hit in hits], stages=stages)
        mappings = [hit for hit in hits if isinstance(hit, Mapping)]
        if not mappings:
            return self._from_pairs(hits, stages)
        keys = {"id", *(["score"] if "score" in mappings[0] else [])}
        for rank, hit in enumerate(hits, start=1):
            if not isinstance(hit, Mapping):
                raise self._wrong(f"{hit!r} at rank {rank}", "")
            if not keys <= hit.keys() or ("score" in hit) != ("score" in keys):
                what = f"a mapping with the keys {', '.join(map(str, hit)) or 'none'}"
                raise ContractError(
                    f"the function {self._name} returned {what} at rank {rank}",
                    accepted="the key id, and score in all mappings or in none",
                    fix="return {'id': ..., 'score': ...} for each hit",
                )
        if "score" in keys:
            return self._from_pairs([(hit["id"], hit["score"]) for hit in hits], stages)
        other = [rank for rank, hit in enumerate(hits) if not _is_id(hit["id"])]
        if other:
            wrong = hits[other[0]]["id"]
            raise self._wrong(f"the id {wrong!r} at rank {other[0] + 1}", wrong)
        return Ranking([str(hit["id"]) for hit in hits], stages=stages)

    def _from_pairs(self, hits: list[Any], stages: Mapping[str, int]) -> Ranking:
        ids, scores = [], []
        for rank, hit in enumerate(hits, start=1):
            try:
                if isinstance(hit, str):
                    raise TypeError
                doc_id, score = hit
                score = float(score)
            except (TypeError, ValueError):
                raise self._wrong(f"{hit!r} at rank {rank}", hit) from None
            if not _is_id(doc_id):
                raise self._wrong(f"the id {doc_id!r} at rank {rank}", doc_id)
            ids.append(str(doc_id))
            scores.append(score)
        return Ranking(ids, scores, stages)

    def _wrong(self, what: str, value: Any) -> ContractError:
        if isinstance(value, Mapping):
            fix = "return pairs, best first: sorted(hits.items(), key=lambda hit: -hit[1])"
        elif isinstance(value, float):
            fix = (
                "convert ids with int(): pandas makes floats of whole numbers where one is missing"
            )
        elif isinstance(value, str):
            fix = "return either ids alone or pairs alone or mappings alone, in a list"
        else:
            fix = "change what the function returns"
        return ContractError(
            f"the function {self._name} returned {what}", accepted=_ACCEPTED, fix=fix
        )


def _is_id(given: object) -> bool:
    return isinstance(given, str | Integral) and not isinstance(given, bool)


async def _timed(call: Callable[[], Any]) -> tuple[Any, int]:
    begin = perf_counter_ns()
    answer = call()
    if inspect.isawaitable(answer):  # not where it remembers some answers
        answer = await answer
    return answer, perf_counter_ns() - begin


def _check_callable(function: Any, name: str, params: Mapping[str, Any], pass_filter: bool) -> None:
    if not callable(function):
        raise ConfigError(
            f"{name} is {type(function).__name__}, not a function",
            accepted="module:function, file.py:function, or a Python function",
        )
    if pass_filter and "filter" in params:
        raise ConfigError(
            "parameter 'filter' beside pass_filter, which hands that over itself",
            where=name,
            fix="leave one of the two out",
        )
    handed = {**params, "filter": None} if pass_filter else params
    own = set(inspect.signature(CallableRetriever).parameters) - {"params"}
    check_call(function, name, ("query", "k"), handed, own)
