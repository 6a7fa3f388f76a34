"""Rewriting: other texts in place of that of a query, by a function or a Runnable of LangChain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.calls.usage import report
from retrieval_bench.core.errors import ContractError
from retrieval_bench.core.remembered import question_of
from retrieval_bench.core.retriever import Answers
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.functions.components import FunctionStep, component


class Rewriter(ABC):
    """Makes other texts of that of a query; what it uses up it reports (:func:`.report_usage`)."""

    @abstractmethod
    def rewrite(self, query: Query) -> Sequence[str]:
        """Rewrite ``query`` into texts to search for, distinct and not blank, none where the
        rewriter gave nothing; what foreign code raises is passed through.

        Raises:
            ContractError: it gave neither a text nor a list of texts.
        """

    def describe(self) -> Mapping[str, Any]:
        """Facts for the manifest."""
        return {}

    def close(self) -> None:
        """Let go of connections."""
        return


def rewriter_of(given: Any, params: Mapping[str, Any], *, pass_query: bool) -> Rewriter:
    """The rewriter that ``given`` names: ``module:name`` or ``file.py:name`` of a function (text)
    -> texts, of a Runnable of LangChain, or of what makes one; or such an object.

    Args:
        pass_query: it gets the whole :class:`.Query`.

    Raises:
        HarnessError: there is none.
    """
    if isinstance(given, Rewriter):
        return given
    function, name, left = component(given, ("text",), params, ("invoke",))
    if hasattr(function, "invoke"):
        return RunnableRewriter(function, name, pass_query)
    return FunctionRewriter(function, name, left, pass_query)


class FunctionRewriter(FunctionStep, Rewriter):
    """``function(text, **params)`` gives a text, several, or a message of a language model; with
    ``pass_query`` it gets the whole query."""

    def __init__(
        self, function: Any, name: str, params: Mapping[str, Any], pass_query: bool
    ) -> None:
        super().__init__(function, name, params)
        self._pass_query = pass_query

    def rewrite(self, query: Query) -> Sequence[str]:
        """See :meth:`Rewriter.rewrite`."""
        answer = self._call(query if self._pass_query else query.text)
        return texts_of(answer, self._name)


class RunnableRewriter(Rewriter):
    """A Runnable from a text to a text, several, or a message; what its models used up is read."""

    def __init__(self, made: Any, name: str, pass_query: bool) -> None:
        self._made = made
        self._name = name
        self._pass_query = pass_query

    def rewrite(self, query: Query) -> Sequence[str]:
        """See :meth:`Rewriter.rewrite`."""
        from retrieval_bench_retrievers.libraries.langchain_trace import Trace

        trace = Trace()
        asked = query if self._pass_query else query.text
        try:
            answer = self._made.invoke(asked, config={"callbacks": [trace]})
        finally:
            report(trace.usage)
        return texts_of(answer, self._name)

    def describe(self) -> Mapping[str, Any]:
        """Its name and type."""
        return {"runnable": self._name, "type": type(self._made).__name__}


class RememberedRewriter(Rewriter):
    """Gives what ``inner`` gave before, or what a measured ranking kept of it.

    Args:
        path: of the step that ``inner`` stands in, as kept lists are named.
    """

    def __init__(self, inner: Rewriter, memory: Answers, path: str) -> None:
        self._inner = inner
        self._memory = memory
        self._path = path

    def rewrite(self, query: Query) -> Sequence[str]:
        """See :meth:`Rewriter.rewrite`."""

        def kept(at: str, ranking: Ranking) -> Sequence[str] | None:
            step = ranking.steps.get(at)
            return None if step is None else step.texts

        rewritten: Sequence[str] = self._memory.answer(
            self._path, question_of(query), kept, lambda: self._inner.rewrite(query)
        )
        return rewritten


def texts_of(answer: Any, name: str) -> list[str]:
    """The texts in what a rewriter gave, each once and without blank ones.

    Raises:
        ContractError: there is something else in it.
    """
    given = [answer] if isinstance(answer, str) or hasattr(answer, "content") else answer
    if given is None:
        return []
    if isinstance(given, Mapping) or not isinstance(given, Sequence):
        raise _wrong(name, given)
    texts = []
    for item in given:
        text = getattr(item, "content", item)
        if text is not item and isinstance(text, list):  # blocks, of which the message makes a text
            made = getattr(item, "text", None)
            text = made() if callable(made) and not isinstance(made, str) else made
        if text is None:
            continue
        if not isinstance(text, str):
            raise _wrong(name, text)
        texts.append(text)
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _wrong(name: str, given: Any) -> ContractError:
    fix = "change what it returns"
    if hasattr(given, "invoke"):
        fix = "name the Runnable itself, or a function without parameters that returns it"
    return ContractError(
        f"the rewriter {name} gave {type(given).__name__}",
        accepted="a text, a list of texts, or a message of a language model",
        fix=fix,
    )
