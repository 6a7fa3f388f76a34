"""A corpus that stays in its file: each walk reads it again, nothing of it is held in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Document
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.files import Stamp, stamp
from retrieval_bench.data.source import Stream


@dataclass(frozen=True, slots=True)
class FileCorpus:
    """Documents of one file that was found without faults, in the order of the file.

    Walks may overlap. A walk raises :class:`.DataError` when the file is no longer
    the one that was checked (size or modification time), at its start or at its end.
    """

    stream: Stream[Document]
    count: int
    checked: Stamp

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Document]:
        self._require_unchanged()
        for _, document in self.stream.read(Faults()):
            yield document
        self._require_unchanged()

    def _require_unchanged(self) -> None:
        if self.stream.path is None or stamp(self.stream.path) != self.checked:
            raise changed(self.stream.label)


def changed(label: str) -> DataError:
    """The error for a file that was written to while it was in use."""
    return DataError(
        "the corpus file was changed or removed after it was checked",
        where=label,
        accepted="files that stay as they are while a dataset is in use",
        fix="load the dataset again",
    )
