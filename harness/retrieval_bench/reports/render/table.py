"""A table: what every command shows, and every format renders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.notices import is_note
from retrieval_bench.reports.render.cells import Content


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a title.

    Attributes:
        title: above it.
        columns: heads; all empty for a list of facts, which no format gives a head.
        rows: one content for each column.
        rules: numbers of the rows that start a new section.
        notes: stand below, one a line.
        words: numbers of the columns that hold words, and are left-aligned; the others, figures.
        lead: stand between the title and the rows: what must be known to read them.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Content]]
    rules: Sequence[int] = ()
    notes: Sequence[AnyNote] = ()
    words: Sequence[int] = (0,)
    lead: Sequence[AnyNote] = ()

    def with_notes(self, notes: Iterable[AnyNote]) -> Table:
        """The same table with ``notes`` below its own."""
        return replace(self, notes=[*self.notes, *notes])

    @property
    def headed(self) -> bool:
        """True if the columns have heads."""
        return any(self.columns)


class NoteKind(StrEnum):
    """Purpose of a note; a plain text says how something was measured."""

    RESULT = "result"
    METHOD = "method"
    LEGEND = "legend"
    WARNING = "warning"
    MORE = "more"
    NEXT = "next"


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence beside a table, and what it is for; a plain text is one of kind METHOD.

    Attributes:
        kind: RESULT: a part of the answer. LEGEND: what marks in the table stand for. WARNING:
            changes how it must be read. MORE: what was left out, and where it is. NEXT: what to do,
            with a command that can be copied.
    """

    text: str
    kind: NoteKind


AnyNote = str | Note


def kind_of(note: AnyNote) -> NoteKind:
    """The kind of a note."""
    return note.kind if isinstance(note, Note) else NoteKind.METHOD


def text_of(note: AnyNote) -> str:
    """The text of a note."""
    return note.text if isinstance(note, Note) else note


def result(text: str) -> Note:
    """``text`` as a part of the answer."""
    return Note(text, NoteKind.RESULT)


def warning(text: str) -> Note:
    """``text`` as a warning, unless its code says that it is a note."""
    return Note(text, NoteKind.METHOD if is_note(text) else NoteKind.WARNING)


def legend(text: str) -> Note:
    """``text`` as what must be known to read the table, also in short."""
    return Note(text, NoteKind.LEGEND)


def next_step(text: str) -> Note:
    """``text``, which tells a command, as what to do next."""
    return Note(text, NoteKind.NEXT)


def answers(tables: Iterable[Table]) -> list[Table]:
    """The titles of ``tables`` with what changes how they must be read, and nothing else."""
    loud = (NoteKind.RESULT, NoteKind.WARNING)
    return [
        replace(table, rows=(), notes=(), lead=[n for n in table.lead if kind_of(n) in loud])
        for table in tables
    ]


def in_short(tables: Iterable[Table], more: str) -> list[Table]:
    """The tables without how things were measured, and behind them ``more``: what ``-v`` adds."""
    *first, last = [
        replace(table, notes=[n for n in table.notes if kind_of(n) is not NoteKind.METHOD])
        for table in tables
    ]
    return [*first, last.with_notes([Note(f"more:  -v ({more})", NoteKind.MORE)])]


def signed_note(note: AnyNote) -> str:
    """A note behind the sign of its level, for formats without colours."""
    sign = SIGNS.get(kind_of(note), "")
    return f"{sign} {text_of(note)}" if sign else text_of(note)


SIGNS = {NoteKind.WARNING: "!", NoteKind.METHOD: "i", NoteKind.LEGEND: "i"}


def one_line(text: str) -> str:
    """``text`` as one line that a terminal shows and UTF-8 can hold: blanks for line breaks, a
    replacement character for every other control character and for half of a surrogate pair."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _BREAK.sub(" ", text))


_BREAK = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Findings(NamedTuple):
    """Findings on a measured run, to be shown with its figures.

    Attributes:
        lead: sentences of the answer.
        brief: further ones, where there is no table of them.
        tables: behind those of the run.
        next: the command to go on with.
        records: the same, of which documents are made.
    """

    lead: Sequence[AnyNote] = ()
    brief: Sequence[AnyNote] = ()
    tables: Sequence[Table] = ()
    next: str = ""
    records: Sequence[Documented] = ()


NOTHING = Findings()
