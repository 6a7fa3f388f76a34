"""The error tree: every message says what was given, where, what is accepted and what to do.

All errors that a user can cause derive from :class:`HarnessError`; the command line prints them
without a traceback and exits with 2. Anything else that reaches the top is a bug of this project.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any


class HarnessError(Exception):
    """Base of all errors with a remedy.

    Args:
        given: what was given, in the user's own words ("retriever 'bm52'").
        where: file and line, option, or config key; empty when there is only one place.
        accepted: what would have been accepted.
        fix: what to do now, as an imperative sentence.
    """

    def __init__(self, given: str, *, where: str = "", accepted: str = "", fix: str = "") -> None:
        self.given = given
        self.where = where
        self.accepted = accepted
        self.fix = fix
        super().__init__(self.render())

    def render(self) -> str:
        """The message as shown: one part a line, empty parts left out."""
        lines = [self.given if not self.where else f"{self.given}\n  where: {self.where}"]
        if self.accepted:
            lines.append(f"  accepted: {self.accepted}")
        if self.fix:
            lines.append(f"  do: {self.fix}")
        return "\n".join(lines)

    @property
    def line(self) -> str:
        """What was given, where, and what to do."""
        where = f" ({self.where})" if self.where else ""
        return f"{self.given}{where}; {self.fix}"


class ConfigError(HarnessError):
    """A config file, option or parameter that cannot be used."""


class PluginError(HarnessError):
    """A name or ``module:attribute`` that does not lead to an object."""


class DataError(HarnessError):
    """A dataset with faults; ``faults`` holds every one of them."""

    def __init__(
        self,
        given: str,
        *,
        where: str = "",
        accepted: str = "",
        fix: str = "",
        faults: Iterable[str] = (),
    ) -> None:
        self.faults = tuple(faults)
        super().__init__(given, where=where, accepted=accepted, fix=fix)

    def render(self) -> str:
        text = super().render()
        if not self.faults:
            return text
        return text + "\n" + "\n".join(f"  - {fault}" for fault in self.faults)


class ContractError(HarnessError):
    """A retriever broke the contract of :class:`retrieval_bench.core.retriever.Retriever`."""


class NothingMeasuredError(HarnessError):
    """Answers of which no figure means anything; the command line exits with 4."""


class ModelError(HarnessError):
    """A model that is missing, or whose content is not what its hash says."""


class MissingDependencyError(HarnessError):
    """An optional package that is needed for this and is not installed."""


class BrokenDependencyError(MissingDependencyError):
    """An optional package that is installed, and does not run here."""


class RecordError(HarnessError):
    """A run folder that cannot be written or read.

    Attributes:
        runs: what was measured and could not be saved, so that it can at least be shown.
    """

    runs: Sequence[Any] = ()


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence on what became of the work."""


def counted(n: int, noun: str) -> str:
    """``n`` with its noun: "1 query", "1,200 queries"."""
    if n == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{n:,} {noun[:-1]}ies"
    return f"{n:,} {noun}es" if noun.endswith(("ch", "ss")) else f"{n:,} {noun}s"


def first_few(names: Sequence[str]) -> str:
    """The first three of ``names``, and dots where there are more."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def distinct_names(names: Sequence[str]) -> list[str]:
    """``names`` in their order, equal ones told apart: "a", "a#2", "a#3"."""
    distinct: list[str] = []
    for name in names:
        numbered = (f"{name}#{i}" for i in count(2))
        distinct.append(next(n for n in chain([name], numbered) if n not in distinct))
    return distinct


def check_distinct(given: Sequence[str], what: str) -> None:
    """Refuse what would only be compared with itself.

    Raises:
        ConfigError: something is there twice.
    """
    twice = [name for at, name in enumerate(given) if name in given[:at]]
    if twice:
        raise ConfigError(
            f"the {what} {twice[0]} is given twice",
            accepted=f"each {what} once",
            fix="take one of them away",
        )


def close_names(given: str, known: Iterable[str]) -> list[str]:
    """Up to three names that are spelled nearly as ``given``."""
    return difflib.get_close_matches(given, sorted(known), n=3, cutoff=0.5)


def check_known(
    given: object, known: Iterable[str], what: str, *, where: str = "", fix: str = ""
) -> None:
    """Refuse what is none of the ``known`` names.

    Args:
        what: what was given, with its kind: "test 'w'".

    Raises:
        ConfigError: it is none.
    """
    names = tuple(known)
    if given not in names:
        accepted = near_names(str(given), names)
        raise ConfigError(what, where=where, accepted=accepted, fix=fix)


def near_names(given: str, known: Iterable[str]) -> str:
    """A phrase that offers close names and then the whole list, for ``accepted``."""
    names = sorted(known)
    close = close_names(given, names)
    everything = ", ".join(names) if names else "there are none"
    return f"did you mean {' or '.join(close)}? all: {everything}" if close else everything
