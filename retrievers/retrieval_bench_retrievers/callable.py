"""A plain Python function as a retriever."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from time import perf_counter_ns
from typing import Any

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.user_code import check_call, declared_index, name_of

_ACCEPTED = "a list of document ids, or of (id, score) pairs, best first; ids as text"


class CallableRetriever(Retriever):
    """Calls ``function(text, k)`` for each query; the function holds its own index.

    It returns at most ``k`` document ids, best first, or (id, score) pairs with falling scores.
    What it raises is passed through.

    Args:
        function: ``module:function``, ``path/to/file.py:function``, or a function itself.
        pass_query: hand over the whole :class:`.Query` in place of its text.
        external: ``{index, version, count}`` declares the fingerprint of what it searches.

    Raises:
        PluginError: ``function`` does not resolve.
        ConfigError: it is no function, is async, or cannot be called with two arguments.
    """

    def __init__(
        self, function: Any, pass_query: bool = False, external: bool | Mapping[str, Any] = True
    ) -> None:
        self._declared = declared_index(external)
        self._name = function if isinstance(function, str) else name_of(function)
        self._function: Callable[[Any, int], Any] = (
            plugins.load(function) if isinstance(function, str) else function
        )
        self._pass_query = pass_query
        _check_callable(self._function, self._name)

    @property
    def capabilities(self) -> Capabilities:
        """External: the harness does not index anything for a function."""
        return Capabilities(external=True)

    def search(self, query: Query, k: int) -> Ranking:
        """What the function returns, as a ranking.

        Its stages are ``function`` and ``wrapper`` (what the adapter adds); those of a
        :class:`.Ranking` that the function returns are parts of ``function``.

        Raises:
            ContractError: ``k`` below 1, or the function returned something else.
        """
        start = perf_counter_ns()
        require_k(k)
        asked = query if self._pass_query else query.text
        stages: dict[str, int] = {}
        begin = perf_counter_ns()
        answer = self._function(asked, k)
        if isinstance(answer, Ranking):
            end = perf_counter_ns()
            stages.update(answer.stages)
            found = replace(answer, stages=stages)
        else:
            unordered = isinstance(answer, Mapping | Set)
            if unordered or isinstance(answer, str | bytes) or not isinstance(answer, Iterable):
                raise self._wrong(type(answer).__name__, answer)
            hits = list(answer)  # a generator searches only now
            end = perf_counter_ns()
            if all(isinstance(hit, str) for hit in hits):
                found = Ranking([str(hit) for hit in hits], stages=stages)
            else:
                found = self._from_pairs(hits, stages)
        # Filled in last, so that making the ranking is in the adapter's time.
        stages["function"] = end - begin
        stages["wrapper"] = perf_counter_ns() - start - (end - begin)
        return found

    def describe(self) -> Mapping[str, Any]:
        """The function's name and what was declared about its index."""
        return {"function": self._name, "external": self._declared}

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
            if not isinstance(doc_id, str):
                raise self._wrong(f"the id {doc_id!r} at rank {rank}", doc_id)
            ids.append(str(doc_id))
            scores.append(score)
        return Ranking(ids, scores, stages)

    def _wrong(self, what: str, value: Any) -> ContractError:
        if inspect.isawaitable(value):
            close = getattr(value, "close", None)
            if close:
                close()
            fix = "return the hits themselves: run the coroutine in the function"
        elif isinstance(value, Mapping):
            fix = "return pairs, best first: sorted(hits.items(), key=lambda hit: -hit[1])"
        elif isinstance(value, int):
            fix = "convert ids with str()"
        elif isinstance(value, str):
            fix = "return either ids alone or pairs alone, in a list"
        else:
            fix = "change what the function returns"
        return ContractError(
            f"the function {self._name} returned {what}", accepted=_ACCEPTED, fix=fix
        )


def _check_callable(function: Any, name: str) -> None:
    if not callable(function):
        raise ConfigError(
            f"{name} is {type(function).__name__}, not a function",
            accepted="module:function, file.py:function, or a Python function",
        )
    if inspect.iscoroutinefunction(function):
        raise ConfigError(
            f"the function {name} is async",
            accepted="a function that returns its hits",
            fix="call it from a function that is not async, or use `target: langchain` with an "
            "async Runnable",
        )
    check_call(function, name, ("query", "k"))
