"""The error tree: every message says what was given, where, what is accepted and what to do.

All errors that a user can cause derive from :class:`HarnessError`; the command line prints them
without a traceback and exits with 2. Anything else that reaches the top is a bug of this project.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, ClassVar, Literal

Kind = Literal[
    "bad-data",
    "bad-model",
    "bad-option",
    "bad-plugin",
    "bad-record",
    "bad-value",
    "bad-yaml",
    "broken-contract",
    "broken-package",
    "missing-package",
    "no-file",
    "nothing-measured",
    "unknown-name",
]
"""Kinds of errors, for programs: the list grows with a release, and no kind changes its name."""


class HarnessError(Exception):
    """Base of all errors with a remedy.

    Args:
        given: what was given, in the user's own words ("retriever 'bm52'").
        where: file and line, option, or config key; empty when there is only one place.
        accepted: what would have been accepted.
        fix: what to do now, as an imperative sentence.
        kind: where it is not that of its class.
    """

    usual: ClassVar[Kind] = "bad-value"

    def __init__(
        self,
        given: str,
        *,
        where: str = "",
        accepted: str = "",
        fix: str = "",
        kind: Kind | None = None,
    ) -> None:
        self.kind: Kind = kind or self.usual
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

    usual = "bad-plugin"


class DataError(HarnessError):
    """A dataset with faults; ``faults`` holds every one of them."""

    usual = "bad-data"

    def __init__(
        self,
        given: str,
        *,
        where: str = "",
        accepted: str = "",
        fix: str = "",
        kind: Kind | None = None,
        faults: Iterable[str] = (),
    ) -> None:
        self.faults = tuple(faults)
        super().__init__(given, where=where, accepted=accepted, fix=fix, kind=kind)

    def render(self) -> str:
        text = super().render()
        if not self.faults:
            return text
        return text + "\n" + "\n".join(f"  - {fault}" for fault in self.faults)


class ContractError(HarnessError):
    """A retriever broke the contract of :class:`retrieval_bench.core.retriever.Retriever`."""

    usual = "broken-contract"


class NothingMeasuredError(HarnessError):
    """Answers of which no figure means anything; the command line exits with 4."""

    usual = "nothing-measured"


class ModelError(HarnessError):
    """A model that is missing, or whose content is not what its hash says."""

    usual = "bad-model"


class MissingDependencyError(HarnessError):
    """An optional package that is needed for this and is not installed."""

    usual: ClassVar[Kind] = "missing-package"


class BrokenDependencyError(MissingDependencyError):
    """An optional package that is installed, and does not run here."""

    usual = "broken-package"


class RecordError(HarnessError):
    """A run folder that cannot be written or read.

    Attributes:
        runs: what was measured and could not be saved, so that it can at least be shown.
    """

    usual = "bad-record"
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
        raise ConfigError(what, kind="unknown-name", where=where, accepted=accepted, fix=fix)


NAMED = 12
"""So many names stand in an error."""


def listed(names: Sequence[str]) -> str:
    """``names`` with commas, of many the first ones, and how many there are."""
    more = f", ... ({len(names)} in all)" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def near_names(given: str, known: Iterable[str]) -> str:
    """A phrase that offers close names and then the list, of many names its beginning, for
    ``accepted``."""
    names = sorted(known)
    close = close_names(given, names)
    everything = listed(names) or "there are none"
    return f"did you mean {' or '.join(close)}? all: {everything}" if close else everything


def with_line(where: str, locations: Iterable[Sequence[int | str]]) -> str:
    """``where``, a path, with the line of the first of ``locations`` that the file has; as it is
    where it is no YAML file, or has none.

    Args:
        locations: keys and positions from the top, one after the other; what lacks leads to where
            it would stand, and words that are no key are passed over.
    """
    if not where.endswith((".yaml", ".yml")):
        return where
    import yaml

    try:
        root = yaml.compose(Path(where).read_bytes(), Loader=yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return where
    lines = sorted({line for location in locations if (line := _line(root, location))})
    return ":".join([where, ", ".join(map(str, lines[:3]))]) if lines else where


def _line(node: Any, location: Sequence[int | str]) -> int:
    """The line of a key, from 1; that of the mapping where it lacks; 0 of nothing."""
    import yaml

    line = 0
    for part in location:
        if isinstance(node, yaml.MappingNode):
            held = {key.value: (key, value) for key, value in node.value}
            if str(part) in held:
                key, node = held[str(part)]
                line = key.start_mark.line + 1
            else:
                line = line or node.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and part in range(len(node.value)):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
    return line
