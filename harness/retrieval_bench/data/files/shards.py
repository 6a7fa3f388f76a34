"""A part of a dataset that lies in several files: named by a list, a folder or a pattern."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.modules import looked_up
from retrieval_bench.data.files.lines import kind_of
from retrieval_bench.data.files.packed import unpacked_name

_ACCEPTED = "a file, a list of files, a folder, or a pattern such as corpus/train-*.parquet"
_NO_DATA = (".md", ".lock")
SHARD = re.compile(r"[-_.](\d{5})-of-(\d{5})$")
"""How the names of shards end: which one it is, and how many there are."""


@dataclass(frozen=True, slots=True)
class Shards:
    """Files that are one part together, in their order.

    Attributes:
        label: as messages name all of them.
        paths: two or more.
    """

    label: str
    paths: tuple[Path, ...]

    def name(self, path: Path) -> str:
        """Return the name that tells one of the files from the others."""
        names = [place.name for place in self.paths]
        return path.name if len(set(names)) == len(names) else str(path)


Location = Path | Shards
"""Where a part lies."""


def paths_of(location: Location) -> tuple[Path, ...]:
    """All files of a part."""
    return (location,) if isinstance(location, Path) else location.paths


def located(folder: Path, given: str | Sequence[str]) -> Location:
    """The files that ``given`` names, from ``folder`` on; sorted where a folder or a pattern stands
    for several.

    Raises:
        ConfigError: there are none, a folder has files of several kinds, or shards are missing.
    """
    names = [given] if isinstance(given, str) else list(given)
    paths: list[Path] = []
    for name in names:
        with looked_up(name):
            paths += _paths(folder / Path(name).expanduser())
    distinct = tuple(dict.fromkeys(paths))
    if not distinct:
        raise ConfigError(
            f"no file of {given!r}",
            kind="no-file",
            where=str(folder),
            accepted=_ACCEPTED,
            fix="correct the names in dataset.yaml, or put the files there",
        )
    if distinct != (folder / Path(names[0]).expanduser(),) or not isinstance(given, str):
        _require_whole(folder, distinct)
    if len(distinct) == 1:
        return distinct[0]
    first = folder / names[0]
    return Shards(str(first) if len(names) == 1 else f"{first} and others", distinct)


def _require_whole(folder: Path, paths: Sequence[Path]) -> None:
    """Refuse shards whose names say that there are more: nobody would see from the figures that a
    download stopped half-way. A single file that is named is meant alone."""
    there: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        stem = Path(unpacked_name(path.name)).stem
        if named := SHARD.search(stem):
            of = str(path.parent / stem[: named.start()]), named[2]
            there.setdefault(of, set()).add(named[1])
    for (shards, n), numbers in there.items():
        if len(numbers) < int(n):
            raise ConfigError(
                f"{len(numbers):,} of the {int(n):,} files of {shards}, by their own names",
                where=str(folder),
                accepted="all of them",
                fix="fetch the others; files that are meant alone need names without -of-",
            )


def _paths(path: Path) -> list[Path]:
    if path.is_dir():
        return _inside(path)
    if glob.has_magic(str(path)) and not path.exists():
        paths = (Path(name) for name in sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207
        return [item for item in paths if item.is_file()]
    with suppress(OSError):  # it is told with all other faults when it is read
        path.stat()  # a ValueError: no file can have that name
    return [path]


def _inside(folder: Path) -> list[Path]:
    """The files of data in a folder: not hidden ones, and no pages about it.

    Raises:
        ConfigError: they have several endings, so that some of them may be no part of it.
    """
    paths = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith((".", "_")) and path.suffix not in _NO_DATA
    ]
    by_kind = {kind_of(path): path.name for path in paths}
    if len(by_kind) > 1:
        raise ConfigError(
            f"a folder with files of several kinds: {', '.join(by_kind.values())}",
            where=str(folder),
            accepted=_ACCEPTED,
            fix="name the files that belong to it by a pattern",
        )
    return paths
