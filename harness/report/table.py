"""A table of text: what every command shows, and every format renders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text.

    Attributes:
        rules: numbers of the rows that start a new section.
        notes: stand below, one a line.
        words: numbers of the columns that hold words, and are left-aligned; the others, numbers.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    rules: Sequence[int] = ()
    notes: Sequence[str] = field(default=())
    words: Sequence[int] = (0,)
