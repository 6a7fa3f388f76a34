"""Warnings with a code, so that programs need not read their words.

A warning is a text wherever it goes; in JSON it is an object, ``{"code": ..., "text": ...}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """Subject of a warning."""

    FAILED = "failed-queries"
    FAILED_CALLS = "failed-calls"
    LOST_LAUNCH = "lost-launch"
    UNSTEADY = "unsteady-times"
    BUSY = "busy-machine"
    THREADS = "threads"
    CLOCK = "clock"
    OBSERVERS = "observers"
    OUTSIDE_SERVER = "outside-server"
    REMEMBERED = "answers-remembered"
    PROMPTS = "prompts-missing"
    PARTIAL = "partial-answers"
    NOT_DETERMINISTIC = "not-deterministic"
    CUT_OFF = "documents-cut-off"
    QUERIES_CUT_OFF = "queries-cut-off"
    UNFIT = "unfit-for-language"
    NOTHING_FOUND = "nothing-found"
    FEWER = "fewer-hits"
    SAME_ANSWERS = "same-answers"
    TOO_GOOD = "too-good"
    JUDGED_GAP = "judged-gap"
    NO_GRAPH = "no-graph"
    NO_KNOWN_TERM = "no-known-term"
    FOREIGN_IDS = "foreign-ids"
    UNKNOWN_IDS = "unknown-ids"
    SELF_HITS = "self-hits"
    TIES = "ties"
    LEAKED = "leaked"
    NO_USAGE = "no-usage"
    SAME_QUESTION = "same-question"
    NOTHING_RELEVANT = "nothing-relevant"
    DEEP = "deeper-than-corpus"
    JUDGES = "judges"
    DATA = "data"
    STANDS_STILL = "stands-still"
    RETRIEVER = "retriever"
    OTHER = "other"
    NOTE = "note"
    """No warning: worth knowing beside the answer, and shown as a note."""


SMALL = frozenset({Code.DEEP, Code.DATA, Code.NO_KNOWN_TERM})
"""They change little in how an answer must be read, and are shown after the others."""

OF_TIMES = frozenset(
    {Code.LOST_LAUNCH, Code.UNSTEADY, Code.BUSY, Code.THREADS}
    | {Code.CLOCK, Code.OBSERVERS, Code.OUTSIDE_SERVER}
)
"""They say something of times alone."""


class Notice(str):
    """A warning.

    Attributes:
        code: what it is about.
    """

    __slots__ = ("code",)

    code: Code

    def __new__(cls, text: str, code: Code = Code.OTHER) -> Notice:
        """``text`` about ``code``."""
        notice = super().__new__(cls, text)
        notice.code = code
        return notice

    def __reduce__(self) -> tuple[type[Notice], tuple[str, Code]]:
        return Notice, (str(self), self.code)

    def with_text(self, text: str) -> Notice:
        """Another text with the same code."""
        return Notice(text, self.code)


def coded(texts: Iterable[str], code: Code) -> list[Notice]:
    """``texts`` as warnings; those that have a code keep it."""
    return [text if isinstance(text, Notice) else Notice(text, code) for text in texts]


def about_times(text: str) -> bool:
    """Return whether a warning says something of times alone."""
    return isinstance(text, Notice) and text.code in OF_TIMES


def says(texts: Iterable[str], *codes: Code) -> bool:
    """Say whether one of the warnings is about one of ``codes``."""
    return any(isinstance(text, Notice) and text.code in codes for text in texts)


LOUD = frozenset(
    {Code.PROMPTS, Code.UNFIT, Code.PARTIAL, Code.NOTHING_FOUND, Code.OUTSIDE_SERVER}
    | {Code.FEWER, Code.SAME_ANSWERS, Code.TOO_GOOD, Code.NO_GRAPH, Code.REMEMBERED}
    | {Code.OBSERVERS, Code.FOREIGN_IDS, Code.UNKNOWN_IDS, Code.SELF_HITS, Code.LEAKED}
)
"""They say that a figure is not that of what was meant to be measured, and are shown first."""


def is_note(text: str) -> bool:
    """Return whether it is worth knowing and no reason to worry."""
    return says([text], Code.NOTE)


def loudest_first(texts: Iterable[str]) -> list[str]:
    """Return them in their order, but what changes the most at the head, what changes little behind
    the others, and notes at the end."""

    def place(text: str) -> int:
        code = text.code if isinstance(text, Notice) else Code.OTHER
        return -1 if code in LOUD else 2 * (code in SMALL) + 3 * (code is Code.NOTE)

    return sorted(texts, key=place)


def with_text(notice: str, text: str) -> str:
    """``text`` in place of that of ``notice``, with its code if it has one."""
    return notice.with_text(text) if isinstance(notice, Notice) else text


def to_document(value: Any) -> Any:
    """``value`` with every list of warnings as objects, as JSON documents have them."""
    if isinstance(value, Mapping):
        return {
            key: [_entry(text) for text in item]
            if key == "warnings" and isinstance(item, list | tuple)
            else to_document(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [to_document(item) for item in value]
    return value


def from_document(entries: Iterable[Any]) -> list[str]:
    """Warnings of a document; those of an older version have no code."""
    known = {code.value: code for code in Code}
    return [
        Notice(str(entry.get("text", "")), known.get(str(entry.get("code")), Code.OTHER))
        if isinstance(entry, Mapping)
        else entry
        if isinstance(entry, str)
        else str(entry)
        for entry in entries
    ]


def _entry(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    code = text.code if isinstance(text, Notice) else Code.OTHER
    return {"code": code.value, "text": str(text)}
