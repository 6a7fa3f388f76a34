"""A retriever around another one, of which it changes the rankings alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from retrieval_bench.core.retriever import Answers, Capabilities, Part, Retriever, Rung
from retrieval_bench.core.types import Document


def _passed_on(name: str) -> Callable[..., Any]:
    def passed_on(self: Wrapped, *given: Any, **named: Any) -> Any:
        return getattr(self.inner, name)(*given, **named)

    return passed_on


class Wrapped(Retriever):
    """Passes everything on but :meth:`search`.

    Args:
        inner: the retriever; closed together with this one.
    """

    def __init__(self, inner: Retriever) -> None:
        self.inner = inner

    @abstractmethod
    def around(self, inner: Retriever) -> Retriever:
        """The same around another retriever."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the inner retriever."""
        return self.inner.capabilities

    def index(self, documents: Iterable[Document]) -> None:
        """Index the documents with the inner retriever."""
        self.inner.progress = self.progress
        self.inner.index(documents)

    def parts(self, k: int) -> Sequence[Part]:
        """Return the parts of the inner retriever, each left out of the whole."""
        return [replace(part, without=self.around(part.without)) for part in self.inner.parts(k)]

    def rungs(self) -> Sequence[Rung]:
        """Return the rungs of the inner retriever, wrapped."""
        return [
            replace(rung, retriever=rung.retriever and self.around(rung.retriever))
            for rung in self.inner.rungs()
        ]

    def searching(self, changed: Mapping[str, Any]) -> Retriever | None:
        """The inner retriever searched in another way."""
        searching = self.inner.searching(changed)
        return searching and self.around(searching)

    def over(self, memory: Answers, path: str = "") -> Retriever:
        """The inner retriever over ``memory``."""
        return self.around(self.inner.over(memory, path))


for _name in (
    *("prepare", "use_language", "use_filters", "use_k", "use_corpus", "index_identity"),
    *("save", "load", "document_encoder", "describe", "health", "health_facts"),
    *("server_pid", "disk_bytes", "close", "add", "delete", "collection", "units", "search_space"),
):
    setattr(Wrapped, _name, _passed_on(_name))
