"""Warnings with a code, so that programs need not read their words, and what each of them leaves of
what is claimed.

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
    NOTHING_RELEVANT = "nothing-relevant"
    DEEP = "deeper-than-corpus"
    JUDGES = "judges"
    DATA = "data"
    RETRIEVER = "retriever"
    OTHER = "other"
    NOTE = "note"
    """No warning: worth knowing beside the answer, and shown as a note."""


SMALL = frozenset({Code.DEEP, Code.DATA, Code.NO_KNOWN_TERM})
"""They change little in how an answer must be read, and are shown after the others."""


class Claim(StrEnum):
    """Subject of what a first line says of a system."""

    QUALITY = "quality"
    SPEED = "speed"


class Void(StrEnum):
    """Part of a claim on a system that a warning of it makes void."""

    NOTHING = "nothing"
    SMALL = "small"
    """Only large differences are shown."""
    SAID = "said"
    """The first line says it, too."""
    PRAISE = "praise"
    """It may be worse than it looks, so that nothing good can be said of it."""
    BLAME = "blame"
    """It may be better than it looks, so that nothing can be said to be better than it."""
    ALL = "all"


VOIDS: Mapping[Code, tuple[Void, Void]] = {
    # A pair is judged a second time on what both answered, and times are of answered calls.
    Code.FAILED: (Void.NOTHING, Void.NOTHING),
    Code.FAILED_CALLS: (Void.NOTHING, Void.SMALL),
    Code.LOST_LAUNCH: (Void.NOTHING, Void.NOTHING),
    Code.UNSTEADY: (Void.NOTHING, Void.SMALL),
    Code.BUSY: (Void.NOTHING, Void.SMALL),
    Code.THREADS: (Void.NOTHING, Void.SMALL),
    Code.CLOCK: (Void.NOTHING, Void.SMALL),
    # A tracer slows Python down many times, and compiled code not at all.
    Code.OBSERVERS: (Void.NOTHING, Void.ALL),
    Code.OUTSIDE_SERVER: (Void.NOTHING, Void.BLAME),
    Code.REMEMBERED: (Void.NOTHING, Void.PRAISE),
    Code.PROMPTS: (Void.BLAME, Void.NOTHING),
    Code.PARTIAL: (Void.BLAME, Void.PRAISE),
    Code.NOT_DETERMINISTIC: (Void.NOTHING, Void.NOTHING),
    # So it is in use, too: another encoder is another system.
    Code.CUT_OFF: (Void.NOTHING, Void.NOTHING),
    Code.QUERIES_CUT_OFF: (Void.NOTHING, Void.NOTHING),
    Code.UNFIT: (Void.NOTHING, Void.NOTHING),
    Code.NO_KNOWN_TERM: (Void.NOTHING, Void.NOTHING),
    # An empty list is an answer, which counts 0; but finding nothing takes no time.
    Code.NOTHING_FOUND: (Void.NOTHING, Void.PRAISE),
    Code.FEWER: (Void.BLAME, Void.PRAISE),
    Code.SAME_ANSWERS: (Void.PRAISE, Void.PRAISE),
    Code.TOO_GOOD: (Void.PRAISE, Void.NOTHING),
    Code.JUDGED_GAP: (Void.SAID, Void.NOTHING),
    Code.NO_GRAPH: (Void.NOTHING, Void.ALL),
    Code.FOREIGN_IDS: (Void.ALL, Void.NOTHING),
    Code.UNKNOWN_IDS: (Void.ALL, Void.NOTHING),
    Code.SELF_HITS: (Void.BLAME, Void.NOTHING),
    # Where the order of ties would turn an answer, it is none: that is looked at pair by pair.
    Code.TIES: (Void.NOTHING, Void.NOTHING),
    Code.LEAKED: (Void.PRAISE, Void.PRAISE),
    Code.NO_USAGE: (Void.NOTHING, Void.NOTHING),
    Code.NOTHING_RELEVANT: (Void.NOTHING, Void.NOTHING),
    Code.DEEP: (Void.NOTHING, Void.NOTHING),
    # Runs on queries that were drawn for their differences are not compared at all.
    Code.JUDGES: (Void.NOTHING, Void.NOTHING),
    Code.DATA: (Void.NOTHING, Void.NOTHING),
    Code.RETRIEVER: (Void.NOTHING, Void.NOTHING),
    Code.OTHER: (Void.NOTHING, Void.NOTHING),
    Code.NOTE: (Void.NOTHING, Void.NOTHING),
}
"""Code -> what it makes void of claims on quality and on speed."""


OF_TIMES = frozenset(
    {
        *(Code.LOST_LAUNCH, Code.UNSTEADY, Code.BUSY, Code.THREADS),
        *(Code.CLOCK, Code.OBSERVERS, Code.OUTSIDE_SERVER),
    }
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
    {
        Code.UNFIT,
        *(code for code, voids in VOIDS.items() if {*voids} & {Void.PRAISE, Void.BLAME, Void.ALL}),
    }
)
"""They say that a figure is not that of what was meant to be measured, and are shown first."""


def is_loud(text: str) -> bool:
    """Return whether a warning is one of :data:`LOUD`."""
    return isinstance(text, Notice) and text.code in LOUD


def voiding(texts: Iterable[str], claim: Claim, *what: Void) -> str:
    """Return the first warning that makes ``what``, or all, of a claim void; empty without one."""
    at = list(Claim).index(claim)
    for text in texts:
        if isinstance(text, Notice) and VOIDS[text.code][at] in (*what, Void.ALL):
            return text
    return ""


def gist(text: str) -> str:
    """Return the first sentence of a warning, without its full stop."""
    first = text.partition(". ")[0].rstrip(".")
    asked, mark, _ = first.partition("? ")
    return asked + mark.strip()


def is_note(text: str) -> bool:
    """Return whether it is worth knowing and no reason to worry."""
    return isinstance(text, Notice) and text.code is Code.NOTE


def loudest_first(texts: Iterable[str]) -> list[str]:
    """Return them in their order, but what changes the most at the head, what changes little behind
    the others, and notes at the end."""

    def place(text: str) -> int:
        code = text.code if isinstance(text, Notice) else Code.OTHER
        quiet = 2 * (code in SMALL) + 3 * (code is Code.NOTE)
        return -1 if is_loud(text) else quiet

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
