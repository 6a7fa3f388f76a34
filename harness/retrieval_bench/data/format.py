"""What a format of datasets is: one object that finds the files of a folder and opens them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.data.config import Columns
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.source import Files, Found, Source


def _no_usual_names(_folder: Path) -> None:
    return None


@dataclass(frozen=True, slots=True)
class DataFormat:
    """One format. One of your own is named as ``format: module:name`` in a ``dataset.yaml``.

    Attributes:
        layout: its files, in one phrase.
        needs: parts that every split must have, of "documents", "queries", "judgements".
        open_source: called as ``open_source(files, columns, faults)``; gives three streams, of
            which nothing need be read yet. What is wrong with the files is reported to ``faults``,
            never raised, so that all of it comes at once.
        find: the files of a folder by their usual names, None where it is none of this format; a
            format without usual names leaves it out.
        columns: whether the names of columns are the user's own.
    """

    layout: str
    needs: tuple[str, ...]
    open_source: Callable[[Files, Columns, Faults], Source]
    find: Callable[[Path], Found | None] = _no_usual_names
    columns: bool = False
