"""Extending the kernel: the record of a capability, and where capabilities register.

A capability is a package beside the kernel. Its module ``capability`` holds one
:class:`Capability`, ``CAPABILITY``, of names alone: nothing is loaded before it is used, so that
``--help`` costs what it cost. A package whose folder is taken away is no error: nothing names it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

OWN = (
    "retrieval_bench_explain",
    "retrieval_bench_load",
    "retrieval_bench_tune",
    "retrieval_bench_modes",
    "retrieval_bench_fresh",
    "retrieval_bench_doctor",
    "retrieval_bench_regress",
    "retrieval_bench_duet",
    "retrieval_bench_labels",
    "retrieval_bench_score",
    "retrieval_bench_answers",
    "retrieval_bench_pages",
    "retrieval_bench_exchange",
    "retrieval_bench_scale",
    "retrieval_bench_conformance",
)
"""Packages of this repository, in the order in which ``--help`` has their commands."""

GROUP = b"retrieval_bench.capabilities"
"""Entry points of others: a name, and ``module:CAPABILITY``."""


SCHEMA_VERSION = 1
"""``schema_version`` of documents whose type says no other."""


class Command(NamedTuple):
    """A command.

    Attributes:
        place: of its ``run_NAME``, as ``module:attribute``.
        help: its line in the help.
        examples: what may stand behind it.
        heading: of ``--help``, of a command of one word.
        after: the command that it stands behind in the help; else it stands last.
    """

    place: str
    help: str
    examples: tuple[str, ...]
    heading: str = ""
    after: str = ""


class Document(NamedTuple):
    """A JSON document.

    Attributes:
        command: that prints it.
        types: of what it shows, one of these: ``module:Class``, separated by blanks.
        versioned: where its ``schema_version`` stands; empty where its type says it, or nobody.
    """

    command: str
    types: str
    versioned: str = ""

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Its types."""
        return tuple(map(named, self.types.split()))

    @property
    def version(self) -> int:
        """Its ``schema_version``."""
        if self.versioned:
            return int(named(self.versioned))
        return int(getattr(self.kinds[0], "schema_version", SCHEMA_VERSION))


class Capability(NamedTuple):
    """Additions of a package.

    Attributes:
        stands_on: packages of this repository without which it adds nothing.
        groups: words that have subcommands -> the heading of ``--help`` they stand under, and help.
        commands: by what is typed, such as ``label pool``.
        options: command of another package -> place of the options that it gains, a
            :class:`~retrieval_bench.cli.options.Added`.
        documents: by name, what its commands print with ``--format json``.
        keys: word for a record of another package -> place of a record that is made of it, whose
            keys stand in its documents.
        names: what users import from ``retrieval_bench``, or ``testing.NAME`` from that module ->
            its place.
        services: what the kernel calls where a user asks for it -> its place.
        formats: of datasets, a :class:`~retrieval_bench.data.source.DataFormat` each.
        datasets: how a dataset's name begins -> the function that loads it, by name and split.
    """

    stands_on: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, str]] = MappingProxyType({})
    commands: Mapping[str, Command] = MappingProxyType({})
    options: Mapping[str, str] = MappingProxyType({})
    documents: Mapping[str, Document] = MappingProxyType({})
    keys: Mapping[str, str] = MappingProxyType({})
    names: Mapping[str, str] = MappingProxyType({})
    services: Mapping[str, str] = MappingProxyType({})
    formats: Mapping[str, str] = MappingProxyType({})
    datasets: Mapping[str, str] = MappingProxyType({})


def named(place: str) -> Any:
    """The object that ``module:attribute`` names."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def brought(name: str) -> Any:
    """Find what a package beside the kernel has under a name that users import.

    Raises:
        AttributeError: none has it.
    """
    if (thing := _brought("names", name)) is not None:
        return thing
    module, _, attribute = f"retrieval_bench.{name}".rpartition(".")
    away = [package for package in OWN if package not in _there()]
    missing = f"; not here: {', '.join(away)}; install retrieval-bench whole" if away else ""
    raise AttributeError(f"module {module!r} has no attribute {attribute!r}{missing}")


def offered(name: str) -> Any | None:
    """Find what a package beside the kernel does for it under this name; None where none does."""
    return _brought("services", name)


def keys_added_to(record: str) -> list[Any]:
    """List the records of packages whose keys stand in the documents of this one."""
    return [named(added.keys[record]) for added in capabilities() if record in added.keys]


def _brought(point: str, name: str) -> Any | None:
    for package in capabilities():
        if (place := getattr(package, point).get(name)) is not None:
            return named(place)
    return None


def service(name: str) -> Any:
    """The same, where it was asked for.

    Raises:
        ConfigError: none does.
    """
    if (does := offered(name)) is not None:
        return does
    from retrieval_bench.core.errors import ConfigError

    away = [package for package in OWN if package not in _there()]
    raise ConfigError(
        f"nothing here can {name}",
        where=", ".join(away),
        accepted="the package that does it, beside retrieval_bench",
        fix="install retrieval-bench whole",
    )


_BESIDE = Path(__file__).parents[1]


@cache
def _found() -> tuple[Capability, ...]:
    own = [f"{name}.capability:CAPABILITY" for name in _there()]
    return tuple(map(named, [*own, *_installed()]))


@cache
def capabilities() -> tuple[Capability, ...]:
    """All that can work here: those of this repository in their order, then those of others."""
    return tuple(package for package in _found() if not _lacking(package))


def _lacking(package: Capability) -> list[str]:
    return [name for name in package.stands_on if name not in _there()]


def lacks(command: str) -> str:
    """Say what keeps the package of a command from working; empty where nothing does."""
    for package in _found():
        if command in package.commands and (lacking := _lacking(package)):
            return f"it stands on {', '.join(lacking)}, not here: install retrieval-bench whole"
    return ""


@cache
def _there() -> list[str]:
    return [name for name in OWN if (_BESIDE / name / "capability.py").is_file()]


def _installed() -> Iterator[str]:
    """Places of what other packages register.

    Reading all entry points takes longer than ``--help``, and nearly everywhere there are none: so
    files are looked into first.
    """
    if not any(map(_registers, sys.path)):
        return
    from importlib.metadata import entry_points

    yield from (entry.value for entry in entry_points(group=GROUP.decode()))


def _registers(folder: str) -> bool:
    """Say whether a package that is installed here names our entry points."""
    try:
        packages = [name for name in os.listdir(folder or ".") if name.endswith("-info")]  # noqa: PTH208
    except OSError:
        return False
    for name in packages:
        try:
            with open(f"{folder}/{name}/entry_points.txt", "rb") as file:  # noqa: PTH123
                if GROUP in file.read():
                    return True
        except OSError:  # most packages have none
            continue
    return False
