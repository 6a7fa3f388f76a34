"""Claims on a system, and what each warning of it leaves of them: the one place where that is
decided, for the first lines of all commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from retrieval_bench.core.notices import Code, Notice


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
    Code.SAME_QUESTION: (Void.NOTHING, Void.NOTHING),
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
