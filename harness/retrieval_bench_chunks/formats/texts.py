"""Documents that are text files, one each, character for character as they stand there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from retrieval_bench.core.types import Document
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.files.shards import Location
from retrieval_bench.data.source import Located, Stream, file_stream


def text_documents(location: Location, named: Callable[[Path], str]) -> Stream[Document]:
    """A document for each file; line ends are not changed, since spans count characters.

    Args:
        named: the id of the document that a file holds.
    """
    return file_stream(location, partial(_document, named))


def _document(named: Callable[[Path], str], path: Path, faults: Faults) -> Located[Document]:
    try:
        yield None, Document(named(path), path.read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        faults.of(path).error(None, f"cannot be read as UTF-8: {problem}")
