"""Answers that are asked for once: of legs while parameters are tuned, and of everything that a
measured retriever is made of while its parts are left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Documents, Query, Ranking


class NotKeptError(Exception):
    """Memory has no answer, and nobody may be asked."""


@dataclass(slots=True)
class Memory:
    """Answers of the retrievers and steps that a measured retriever is made of.

    First each measured query is searched once more while its measured ranking is open: whoever asks
    then gets what that ranking kept. Later the same question has the same answer.

    Attributes:
        asks: whether what is not known may be asked.
        asked: how often somebody was.
    """

    asks: bool = True
    asked: int = 0
    _open: Ranking | None = None
    _used: dict[str, int] = field(default_factory=dict)
    _answers: dict[Hashable, Any] = field(default_factory=dict)

    def open(self, ranking: Ranking | None) -> None:
        """Take answers from what ``ranking`` kept, or what it collapsed from; None = from memory
        alone."""
        collapsed_from = None if ranking is None else ranking.collapsed_from
        self._open = ranking if collapsed_from is None else collapsed_from
        self._used.clear()

    def answer(
        self,
        path: str,
        question: Hashable,
        kept: Callable[[str, Ranking], Any],
        ask: Callable[[], Any],
    ) -> Any:
        """The answer of what stands at ``path`` to ``question``.

        Args:
            kept: what a ranking kept there, or None.
            ask: makes the answer anew.

        Raises:
            NotKeptError: it is not known, and nobody may be asked.
        """
        key = (path, question)
        if key not in self._answers:
            answer = self.kept(path, kept)
            self._answers[key] = self.anew(path, ask) if answer is None else answer
        return self._answers[key]

    def known(self, path: str, question: Hashable) -> Any:
        """The answer that was given before; None where there is none."""
        return self._answers.get((path, question))

    def kept(self, path: str, kept: Callable[[str, Ranking], Any]) -> Any:
        """Read from the open ranking what it kept of ``path``, of its second answer when it is
        asked for the second time; None where it kept nothing, or none is open."""
        if self._open is None:
            return None
        at = self._used[path] = self._used.get(path, 0) + 1
        return kept(numbered(path, at), self._open)

    def leaf(self, path: str, retriever: Retriever) -> Retriever:
        """A retriever that is made of no others, with answers from here."""
        return Remembered(path, retriever, self)

    def anew(self, path: str, ask: Callable[[], Any]) -> Any:
        """A new answer.

        Raises:
            NotKeptError: nobody may be asked.
        """
        if not self.asks:
            raise NotKeptError(path)
        self.asked += 1
        return ask()


def numbered(path: str, at: int) -> str:
    """The name of the ``at``-th of several lists of one path, from 1."""
    return path if at == 1 else f"{path}[{at}]"


def kept_list(path: str, ranking: Ranking) -> Ranking | None:
    """The list that ``ranking`` keeps under ``path``; None where it keeps none."""
    for traces in (ranking.legs, ranking.steps):
        trace = traces.get(path)
        if trace is not None and trace.doc_ids is not None:
            return Ranking(trace.doc_ids, trace.doc_scores)
    return None


def question_of(query: Query) -> Hashable:
    """Return the key that tells one question from another."""
    return (query.id, query.text, query.filter)


class Remembered(Retriever):
    """A retriever that was indexed by others: it is asked once for each query, and then answers
    from memory.

    A list is asked for at the largest depth and cut to what is wanted, unless its list at a smaller
    depth need not be the start of that one: an approximate index, or a retriever that combines
    others. Such a one is asked once for each depth.

    Args:
        name: what a hybrid calls it, and where its lists are kept.
        inner: the retriever.
        memory: with lists that were kept before; None = there are none.

    Attributes:
        searches: how often it was asked.
    """

    def __init__(self, name: str, inner: Retriever, memory: Memory | None = None) -> None:
        self.name = name
        self.searches = 0
        self._inner = inner
        self._memory = memory or Memory()
        combines = bool(inner.named_legs()) or bool(inner.parts(1))
        self._cuts = inner.capabilities.exact and not combines
        self._deepest = 0
        self._answers: dict[Hashable, tuple[int, Ranking]] = {}

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the retriever, which is indexed already."""
        return replace(self._inner.capabilities, external=True)

    def use_k(self, k: int) -> None:
        """The largest of them is what it is asked for, and told before it is indexed."""
        if k > self._deepest:
            self._deepest = k
            self._inner.use_k(k)

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Passed on."""
        self._inner.use_corpus(documents, unit_of)

    def remember(self, query: Query) -> None:
        """Ask now, if one list will do for all depths."""
        if self._cuts:
            self.search(query, self._deepest)

    def search(self, query: Query, k: int) -> Ranking:
        """The first ``k`` hits, with their scores.

        Raises:
            NotKeptError: they are not known, and nobody may be asked.
        """
        key = (question_of(query), None if self._cuts else k)
        asked, known = self._answers.get(key, (0, None))
        if known is None or (asked < k and len(known) == asked):
            asked, known = self._ask(query, k)
            self._answers[key] = (asked, known)
        return known.first(k)

    def _ask(self, query: Query, k: int) -> tuple[int, Ranking]:
        """The depth that was asked for, and the list."""
        ranking: Ranking | None = self._memory.kept(self.name, kept_list)
        if ranking is not None:
            return k, ranking
        depth = max(k, self._deepest) if self._cuts else k
        raw = self._memory.anew(self.name, lambda: self._inner.search(query, depth))
        self.searches += 1
        has_scores = self._inner.capabilities.has_scores
        return depth, checked_ranking(raw, depth, has_scores=has_scores)
