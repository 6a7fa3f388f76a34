"""A retriever whose encoder makes vectors of hashes, in a known time, and has trouble when it is
told to."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench import Document, Query, Retriever
from retrieval_bench.core.retriever import DocumentEncoder

DIMENSION = 12


class Hashed(Retriever):
    """Its own encoder; finds nothing, and keeps what it is given in ``folder``.

    Args:
        folder: where what is kept goes, and a line for each call in ``calls``.
        takes_s: seconds for each text.
        revision: of the model.
        trouble: ``full`` = the disk is, from the second block of a process on; ``wrong`` = a
            number that is none; ``die`` = its process, at the text "poison".
    """

    dimension = DIMENSION
    compared: int | None = None

    def __init__(
        self,
        folder: str,
        takes_s: float = 0.0,
        revision: str = "1",
        trouble: str = "",
        normalized: bool = True,
    ) -> None:
        self.folder = Path(folder)
        self.takes_s, self.revision, self.trouble = takes_s, revision, trouble
        self.normalized = normalized
        self.calls = 0

    def document_encoder(self) -> DocumentEncoder:
        return self

    def load(self, folder: Path | None = None) -> None:
        return

    def identity(self) -> Mapping[str, Any]:
        return {"model": "hashed", "revision": self.revision}

    def documents(self, texts: Sequence[str]) -> Any:
        with (self.folder / "calls").open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        self.calls += 1
        if self.trouble == "full" and self.calls == 2:
            Path.write_bytes = _full  # type: ignore[method-assign, assignment]  # of this process
        if self.trouble == "die" and "poison" in texts:
            os._exit(9)
        for _ in texts:
            time.sleep(self.takes_s)
        made = np.stack([self.query(text) for text in texts])
        if self.trouble == "wrong":
            made[0, 0] = np.nan
        return made

    def query(self, text: str) -> Any:
        numbers = np.frombuffer(sha256(text.encode()).digest()[:DIMENSION], np.uint8)
        return numbers.astype(np.float32) / 128 - 1

    def keep(self, texts: Sequence[str], vectors: Any) -> None:
        with (self.folder / "kept").open("ab") as file:
            for text, vector in zip(texts, vectors, strict=True):
                file.write(text.encode() + b"\t" + vector.tobytes().hex().encode() + b"\n")

    def index(self, documents: Iterable[Document]) -> None:
        return

    def search(self, query: Query, k: int) -> list[tuple[str, float]]:
        return []


def _full(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content[: len(content) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def many(n: int) -> Iterator[dict[str, str]]:
    """Documents of which every seventh has the text of an earlier one; ids are in no order."""
    for at in range(n):
        yield {"_id": f"d{at * 7919 % n:06}", "text": f"text {at if at % 7 else at // 2}"}
