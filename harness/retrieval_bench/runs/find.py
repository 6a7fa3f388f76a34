"""Saved runs by the names that people give them: a folder, ``@last``, ``NAME@latest``, or the
beginning of an id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from retrieval_bench.core.config import retriever_names
from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.installed.installation import typed
from retrieval_bench.runs.records import DEFAULT_ROOT, LOAD, MANIFEST, SECOND, SUMMARY, read_json

_SECOND = re.compile(r"\d{8}T\d{6}Z")

LATEST = ("last", "latest")
LAST = tuple(f"@{word}" for word in LATEST)


class Kind(NamedTuple):
    """A kind of record.

    Attributes:
        noun: what it is.
        file: that its folder holds, with ``retriever`` in it.
        root: folder of all of them.
        words: behind "@", which name the newest.
    """

    noun: str
    file: str
    root: Path
    words: tuple[str, ...]


RUNS = Kind("run", SUMMARY, DEFAULT_ROOT, LATEST)
LOADS = Kind("load", LOAD, Path("results") / "loads", ("load",))
ACCEPTED = "the folder of a run, @last, NAME@latest, or the beginning of a run's id"


def is_run(given: str | Path) -> bool:
    """Return whether ``given`` names a saved run, or is written as only a run is."""
    text = str(given)
    _, at, which = text.rpartition("@")
    if at and which in LATEST:
        return True
    path = Path(text)
    if text in retriever_names() and not (path / SUMMARY).is_file():
        return False
    # A folder that holds no run is still meant as one: what reads it says what is missing.
    folder = path.is_dir() or ("/" in text and ":" not in text and not path.suffix)
    return folder or bool(_beginning_with(text))


def is_load(given: str | Path) -> bool:
    """Return whether ``given`` names a saved load, or is written as only a load is."""
    text = str(given)
    there = (Path(text) / LOAD).is_file() or bool(_beginning_with(text, LOADS))
    return there or text.rpartition("@")[1:] == ("@", *LOADS.words)


def find_run(given: str | Path, of: Kind = RUNS) -> Path:
    """The folder of the run, or another record, that ``given`` names.

    Raises:
        ConfigError: no saved one is called that, or several begin with it; a file.
    """
    text = str(given)
    name, at, which = text.rpartition("@")
    if at and which in of.words:
        for folder in _newest_first(of):
            if not name or name == _retriever(folder, of):
                return folder
        what = f"no saved {of.noun} of {name!r}" if name else f"no saved {of.noun}"
        accepted = ACCEPTED.replace("run", of.noun).replace("latest", of.words[-1])
        fix = "measure one: " + ("bench" if of is RUNS else of.noun)
        raise ConfigError(what, where=str(of.root), accepted=accepted, fix=fix)
    if of is RUNS and Path(text).is_file():
        raise ConfigError(
            "a file in place of a saved run",
            where=text,
            accepted=ACCEPTED,
            fix="if it holds rankings, "
            f"`{typed('compare', text, 'OTHER', dataset='DATASET')}` saves them; then "
            "`retrieval-bench explain @last`",
        )
    if Path(text).exists():
        return Path(text)
    paths = _beginning_with(text, of)
    if len(paths) > 1:
        raise ConfigError(
            f"{len(paths)} saved {of.noun}s begin with {text!r}",
            where=str(of.root),
            accepted=", ".join(folder.name for folder in paths[:3]),
            fix="write more of the id",
        )
    return paths[0] if paths else Path(text)


def find_runs(given: str | Path) -> list[Path]:
    """The folders of the runs that ``given`` names: ``@last`` is all that was measured together.

    Raises:
        ConfigError: no saved run is called that, or several begin with it.
    """
    newest = find_run(given)
    if str(given) not in LAST:
        return [newest]
    session = _session(newest)
    folders = [newest]
    for folder in _newest_first():
        if folder != newest:
            if session is None or _session(folder) != session:
                break
            folders.append(folder)
    return folders[::-1]


def _newest_first(of: Kind = RUNS) -> Iterator[Path]:
    """Folders of runs; their names begin with the second, within which the files tell the order. Of
    one that was given another name the files tell the second, too."""
    folders = of.root.iterdir() if of.root.is_dir() else ()
    runs = [folder for folder in folders if (folder / of.file).is_file()]

    def when(folder: Path) -> tuple[str, int, str]:
        second, written = folder.name.partition("-")[0], (folder / of.file).stat().st_mtime_ns
        if not _SECOND.fullmatch(second):
            second = datetime.fromtimestamp(written / 1e9, UTC).strftime(SECOND)
        return second, written, folder.name

    yield from sorted(runs, key=when, reverse=True)


def _beginning_with(text: str, of: Kind = RUNS) -> list[Path]:
    if not text or "/" in text or len(text) < 4:
        return []
    return [folder for folder in _newest_first(of) if folder.name.startswith(text)]


def _session(folder: Path) -> str | None:
    """Return the id of the measurement that made the run, None where it is not known."""
    try:
        session = read_json(folder / MANIFEST, ACCEPTED).get("session")
    except RecordError:
        return None
    return None if session is None else str(session)


def _retriever(folder: Path, of: Kind = RUNS) -> str:
    """Return who was measured; nothing where that cannot be read: reading the run says why."""
    try:
        return str(read_json(folder / of.file, ACCEPTED).get("retriever"))
    except RecordError:
        return ""
