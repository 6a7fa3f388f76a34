"""A table of text: what every command shows, and every format renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum


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


class NoteKind(StrEnum):
    """What a note is for; a plain text says how something was measured."""

    METHOD = "method"
    LEGEND = "legend"
    WARNING = "warning"
    MORE = "more"


class Note(str):
    """A note that is more than a method.

    Attributes:
        kind: LEGEND: what marks in the table stand for. WARNING: changes how it must be read. MORE:
            what was left out, and where it is.
    """

    __slots__ = ("kind",)

    kind: NoteKind

    def __new__(cls, text: str, kind: NoteKind) -> Note:
        """``text`` as a note of ``kind``."""
        note = super().__new__(cls, text)
        note.kind = kind
        return note


def kind_of(note: str) -> NoteKind:
    """The kind of a note."""
    return note.kind if isinstance(note, Note) else NoteKind.METHOD


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
