"""A chain of another library without its last step that orders documents.

What its steps gave is known from the call that was measured. Nobody can call the chain without one
of them, so that only the last one can be left out: its input was kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from retrieval_bench.core.remembered import NotKeptError, kept_list, question_of
from retrieval_bench.core.retriever import Answers, Capabilities, Part, Retriever
from retrieval_bench.core.types import Query, Ranking, StepTrace, Usage


class KeptChain(Retriever):
    """Answers with what was kept of a chain.

    Args:
        inner: the adapter of the chain.
        path: where it stands in what was measured; empty = it was measured itself.
    """

    def __init__(self, inner: Retriever, memory: Answers, path: str) -> None:
        self._inner = inner
        self._memory = memory
        self._before = f"{path}/" if path else ""
        self._path = path
        self._lists: dict[str, None] = {}
        self._texts: dict[str, None] = {}

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the chain."""
        return self._inner.capabilities

    def search(self, query: Query, k: int) -> Ranking:
        """The first ``k`` of what the chain gave.

        Raises:
            NotKeptError: it is not known, and nobody may be asked.
        """
        ranking: Ranking = self._memory.answer(
            self._path, question_of(query), self._whole, lambda: self._inner.search(query, k)
        )
        return ranking.first(k)

    def _whole(self, path: str, ranking: Ranking) -> Ranking | None:
        for name, step in ranking.steps.items():
            own = name.removeprefix(self._before)
            if name.startswith(self._before) and "/" not in own:
                (self._texts if step.doc_ids is None else self._lists)[own] = None
        whole = ranking if not path else kept_list(path, ranking)
        return None if whole is None else replace(whole, steps=ranking.steps)

    def parts(self, k: int) -> Sequence[Part]:
        """Each step that rewrites the query or orders documents; but of the last one nothing is
        known without it."""
        listed = list(self._lists)
        parts = [
            Part(name, "rewriting", _Unknown(), stages=(f"step:{name}",)) for name in self._texts
        ]
        for before, name in pairwise(listed):
            without: Retriever = _Unknown()
            if name == listed[-1]:
                without = _Step(self, before)
            stages = (f"step:{name}",)
            part = Part(name, "reranker", without, stages=stages, gets=before, gives=name)
            parts.append(part)
        return parts

    def step(self, name: str, query: Query, k: int) -> Ranking:
        """The first ``k`` of what a step gave to ``query``."""
        answer = self._memory.known(self._path, question_of(query))
        made = None if answer is None else answer.steps.get(f"{self._before}{name}")
        if made is None:
            if answer is not None and not answer.doc_ids:  # no list: it found nothing
                return Ranking(())
            raise NotKeptError(name)
        return Ranking(made.doc_ids, made.doc_scores).first(k)


class _Step(Retriever):
    """Answer of a step of a chain."""

    def __init__(self, chain: KeptChain, name: str) -> None:
        self._chain = chain
        self._name = name

    @property
    def capabilities(self) -> Capabilities:
        return self._chain.capabilities

    def search(self, query: Query, k: int) -> Ranking:
        return self._chain.step(self._name, query, k)


class _Unknown(Retriever):
    """Step that nobody can ask."""

    def search(self, query: Query, k: int) -> Ranking:
        raise NotKeptError


class Inside:
    """Steps of a call of a chain.

    Attributes:
        stages: nanoseconds by step.
        steps: what each step made.
        usage: by step.
        unnamed: steps without a name of their own.
    """

    def __init__(self) -> None:
        self.stages: dict[str, int] = {}
        self.steps: dict[str, StepTrace] = {}
        self.usage: dict[str, Usage] = {}
        self.unnamed = 0
