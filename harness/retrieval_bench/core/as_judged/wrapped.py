"""A retriever around another one, of which it changes the rankings alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrieval_bench.core.retriever import (
    Answers,
    Capabilities,
    DocumentEncoder,
    Part,
    Retriever,
    Rung,
)
from retrieval_bench.core.types import Document, Documents, Query


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

    def prepare(self) -> None:
        """Passed on."""
        self.inner.prepare()

    def use_language(self, language: str | None) -> None:
        """Passed on."""
        self.inner.use_language(language)

    def use_filters(self, fields: Sequence[str]) -> None:
        """Passed on."""
        self.inner.use_filters(fields)

    def use_k(self, k: int) -> None:
        """Passed on."""
        self.inner.use_k(k)

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Passed on."""
        self.inner.use_corpus(documents, unit_of)

    def server_pid(self) -> int | None:
        """Return the process id of the inner retriever's server."""
        return self.inner.server_pid()

    def describe(self) -> Mapping[str, Any]:
        """Describe the inner retriever."""
        return self.inner.describe()

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Return the facts on the health of the inner retriever."""
        return self.inner.health_facts(queries)

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Return the warnings on the health of the inner retriever."""
        return self.inner.health(queries)

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

    def disk_bytes(self) -> int | None:
        """Return the bytes of the inner retriever on disk."""
        return self.inner.disk_bytes()

    def index_identity(self) -> Mapping[str, Any] | None:
        """Return the identity of the inner retriever's index."""
        return self.inner.index_identity()

    def document_encoder(self) -> DocumentEncoder | None:
        """Return the document encoder of the inner retriever."""
        return self.inner.document_encoder()

    def save(self, folder: Path) -> None:
        """Passed on."""
        self.inner.save(folder)

    def load(self, folder: Path) -> None:
        """Passed on."""
        self.inner.load(folder)

    def close(self) -> None:
        """Passed on."""
        self.inner.close()
