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
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, cast

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
        rank: of what it adds among what others add, the smallest first.
        stands_on: packages of this repository without which it adds nothing.
        groups: words that have subcommands -> the heading of ``--help`` they stand under, and help.
        commands: by what is typed, such as ``label pool``.
        options: command of another package -> place of the options that it gains, a
            :class:`~retrieval_bench.cli.options.Added`.
        claims: command as it is typed -> place of what its first line claims of a system, a
            :class:`~retrieval_bench.comparison.claims.FirstLine`; the others claim nothing.
        documents: by name, what its commands print with ``--format json``.
        files: by name, files that users write -> place of the function that makes their JSON
            Schema, and its line in the list.
        keys: word for a record of another package -> place of a record that is made of it, whose
            keys stand in its documents.
        names: what users import from ``retrieval_bench``, or ``testing.NAME`` from that module ->
            its place.
        services: what the kernel calls where a user asks for it -> its place.
        formats: of datasets, a :class:`~retrieval_bench.data.source.DataFormat` each.
        datasets: how a dataset's name begins -> the function that loads it, by name and split.
    """

    rank: int = 1_000
    stands_on: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, str]] = MappingProxyType({})
    commands: Mapping[str, Command] = MappingProxyType({})
    options: Mapping[str, str] = MappingProxyType({})
    claims: Mapping[str, str] = MappingProxyType({})
    documents: Mapping[str, Document] = MappingProxyType({})
    files: Mapping[str, tuple[str, str]] = MappingProxyType({})
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
    import re
    from pathlib import Path  # both cost ``--help`` more than they may

    module, _, attribute = f"retrieval_bench.{name}".rpartition(".")
    stub = Path(f"{sys.modules[module].__file__}i").read_text("utf-8")
    of = re.search(rf"^from (retrieval_bench_\w+)[^(\n]*(\([^)]*)?\b{attribute} as", stub, re.M)
    missing = f"; not here: {of[1]}; install retrieval-bench whole" if of else ""
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

    raise ConfigError(
        f"nothing here can {name}",
        where=f"packages here: {', '.join(own_packages()) or 'none'}",
        accepted="the package that does it, beside retrieval_bench",
        fix="install retrieval-bench whole",
    )


_BESIDE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


@cache
def _found() -> tuple[Capability, ...]:
    own = map(_own, own_packages())
    return (*sorted(own, key=lambda package: package.rank), *map(named, _installed()))


@cache
def capabilities() -> tuple[Capability, ...]:
    """All that can work here: those of this repository by their rank, then those of others."""
    return tuple(package for package in _found() if not _lacking(package))


def _lacking(package: Capability) -> list[str]:
    """Name the packages that it stands on, itself or by another one, and that are not here."""
    away = [
        [name] if name not in own_packages() else _lacking(_own(name)) for name in package.stands_on
    ]
    return [*dict.fromkeys(chain(*away))]


def lacks(command: str) -> str:
    """Say what keeps the package of a command from working; empty where nothing does."""
    for package in _found():
        if command in package.commands and (lacking := _lacking(package)):
            return f"it stands on {', '.join(lacking)}, not here: install retrieval-bench whole"
    return ""


@cache
def own_packages() -> tuple[str, ...]:
    """Name the packages beside the kernel, in order."""
    beside = sorted(name for name in os.listdir(_BESIDE) if name.startswith("retrieval_bench_"))  # noqa: PTH208
    return tuple(name for name in beside if os.path.isfile(f"{_BESIDE}/{name}/capability.py"))  # noqa: PTH113


def _own(name: str) -> Capability:
    return cast("Capability", named(f"{name}.capability:CAPABILITY"))


def _installed() -> Iterator[str]:
    """Places of what other packages register. Reading all entry points takes longer than
    ``--help``, and nearly everywhere there are none: so files are looked into first."""
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
