"""A retriever that has trouble when it is told to."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Sequence

from retrieval_bench import Document, Query, Retriever
from retrieval_bench.core.retriever import Capabilities


class Troubled(Retriever):
    """Answers the first documents.

    Args:
        trouble: of each tenth call from the 200th on: ``fail``, ``empty`` or ``die``; of each tenth
            that is made beside another one: ``hang``; of every call: ``never``; once calls were
            made beside each other, of the disk: ``full``.
        external: it holds the corpus already, and refuses calls beside each other.
    """

    def __init__(self, trouble: str = "", external: bool = False, takes_s: float = 0.001) -> None:
        self.trouble = trouble
        self.external = external
        self.takes_s = takes_s
        self.calls = self.under_way = self.beside = 0
        self.ids: Sequence[str] = ("ast-001",)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=self.external, threads=True)

    def index(self, documents: Iterable[Document]) -> None:
        self.ids = sorted(document.id for document in documents)[:5]

    def search(self, query: Query, k: int) -> list[tuple[str, float]]:
        self.calls += 1
        self.under_way += 1
        self.beside += self.under_way > 1
        if self.external and self.under_way > 1:
            self.under_way -= 1
            raise ConnectionError("it is asked by somebody else")
        hangs = self.trouble == "hang" and self.under_way > 1 and self.beside % 10 == 0
        time.sleep(60 if hangs else self.takes_s)
        if self.trouble == "full" and self.beside > 100:
            os.posix_fallocate = _full
        self.under_way -= 1
        if self.trouble == "never":
            raise ConnectionError("the service is not there")
        if self.calls > 200 and self.calls % 10 == 0:
            if self.trouble == "fail":
                raise ConnectionError("the service went away")
            if self.trouble == "die":
                os._exit(9)
            if self.trouble == "empty":
                return []
        return [(one, 1.0) for one in self.ids[:k]]


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
