"""A table of text: what every command shows, and every format renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace


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

    def with_notes(self, notes: Iterable[str]) -> Table:
        """The same table with ``notes`` below its own."""
        return replace(self, notes=[*self.notes, *notes])


class Marked(str):
    """A cell with raised letters behind its text; as plain text with those that Unicode has.

    Attributes:
        text: without the marks.
        marks: small letters, digits, "-" and ",".
    """

    __slots__ = ("marks", "text")

    text: str
    marks: str

    def __new__(cls, text: str, marks: str) -> Marked:
        """``text`` with ``marks`` raised behind it."""
        cell = super().__new__(cls, text + marks.translate(_RAISED))
        cell.text, cell.marks = text, marks
        return cell


_RAISED = str.maketrans(
    "abcdefghijklmnopqrstuvwxyz0123456789-,",
    "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ𐞥ʳˢᵗᵘᵛʷˣʸᶻ⁰¹²³⁴⁵⁶⁷⁸⁹⁻˒",
)
