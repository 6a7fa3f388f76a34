"""Claims on a system, and what each warning of it leaves of them: the one place where that is
decided. What the first line of a command claims stands with the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from retrieval_bench.capabilities import capabilities, named
from retrieval_bench.core.notices import Code, Notice, says


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
    Code.STANDS_STILL: (Void.NOTHING, Void.NOTHING),  # so it does in use, too
    Code.RETRIEVER: (Void.NOTHING, Void.NOTHING),
    Code.OTHER: (Void.NOTHING, Void.NOTHING),
    Code.NOTE: (Void.NOTHING, Void.NOTHING),
}
"""Code -> what it makes void of claims on quality and on speed."""


SHARED = frozenset({Code.FEWER, Code.SELF_HITS})
"""They wrong nobody where both systems have them."""


class FirstLine(NamedTuple):
    """Claims of the first line of a command.

    Attributes:
        claims: subject -> what makes void what is said of it, beside :attr:`Void.ALL`.
        itself: a retriever is held against itself: nobody is wronged by what is :data:`SHARED`.
    """

    claims: Mapping[Claim, tuple[Void, ...]] = MappingProxyType({})
    itself: bool = False


_GOOD, _FIGURE = (Void.PRAISE,), (Void.PRAISE, Void.BLAME)

NOTHING = FirstLine()
"""It counts, names files, or tells what was looked at: no warning of a system changes that."""
FIGURES = FirstLine({Claim.QUALITY: _FIGURE, Claim.SPEED: _FIGURE})
QUALITY = FirstLine({Claim.QUALITY: _FIGURE})
SPEED = FirstLine({Claim.SPEED: _FIGURE})
CHEAPEST = FirstLine({Claim.SPEED: _GOOD})
"""The cheapest value that finds enough."""
BY_ITSELF = FirstLine({Claim.QUALITY: _FIGURE}, itself=True)
ORDER = FirstLine({Claim.QUALITY: ()})
"""The order of the same lists by other rules."""
NOT_BELOW = FirstLine({Claim.QUALITY: _GOOD, Claim.SPEED: _FIGURE}, itself=True)
"""Of quality it says that today's is not below that of then, by the same rules: whatever is wrong
with both wrongs nobody. Answers that hardly come from a search are another matter."""


@cache
def first_lines() -> Mapping[str, FirstLine]:
    """Command, as it is typed -> what its first line, in Python, too, claims; of those that are not
    here it is :data:`NOTHING`. ``compare`` holds system against system: :func:`.voided.void` asks
    for each pair."""
    added = [(to, of) for package in capabilities() for to, of in package.claims.items()]
    return {"bench": FIGURES, "compare": FIGURES} | {to: named(place) for to, place in added}


def left_open(command: str, warnings: Iterable[str], *subjects: Claim) -> str:
    """Return why what the first line of a command claims, of these ``subjects`` or of all, is open:
    the gist of the first warning that makes it void; empty where the claim stands."""
    line, texts = first_lines().get(command, NOTHING), list(warnings)
    if line.itself:
        texts = [text for text in texts if not says([text], *SHARED)]
    for claim in subjects or line.claims:
        if text := voiding(texts, claim, *line.claims[claim]):
            return gist(text)
    return ""


def in_doubt(command: str, warnings: Iterable[str], *subjects: Claim) -> str:
    """Continue a figure that a warning makes void; the warning stands beside it."""
    return " (in doubt)" if left_open(command, warnings, *subjects) else ""


def unless_open(command: str, answer: str, warnings: Iterable[str]) -> str:
    """Return the ``answer`` of a command, or in its place why nothing is claimed."""
    return unless(left_open(command, warnings), answer)


def unless(why: str, answer: str) -> str:
    """Return the ``answer``, or, where there is a ``why``, in its place that nothing is claimed: as
    a sentence where the answer is one."""
    if not why:
        return answer
    of, rest = "Nn"[answer[:1].islower()], "." * (answer[-1:] == "." and why[-1:] != "?")
    return f"{of}othing is claimed while this is open: {why}{rest}"


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
