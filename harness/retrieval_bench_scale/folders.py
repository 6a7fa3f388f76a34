"""What is kept to be used again: how much it is, and how it is removed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.installed.cache import cache_folder
from retrieval_bench.data.saved_indexes import CONTENT, FOLDER

_WHAT = {FOLDER: "indexes", "embeddings": "vectors", "blocks": "blocks"}
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class KeptFolder(Documented):
    """One folder that can be made again.

    Attributes:
        kind: "indexes", "vectors", or "blocks" of vectors that were not merged or may be again.
        name: of the retriever or the model, as far as it is known, and of the folder.
        bytes: on disk.
        days: since it was last used.
        removed: by this call.
    """

    KEYS = "kind name bytes days removed"

    kind: str
    name: str
    bytes: int
    days: float
    removed: bool


@dataclass(frozen=True, slots=True)
class Kept(Documented):
    """All of them.

    Attributes:
        folder: that they lie in; null where no home is known.
        folders: the largest first.
    """

    KEYS = "folder folders"

    folder: Path | None
    folders: tuple[KeptFolder, ...]


def kept(older_than_days: float | None = None) -> Kept:
    """What there is.

    Args:
        older_than_days: what was not used for so long is removed; None = nothing.
    """
    root = cache_folder()
    if root is None:
        return Kept(None, ())
    found = [
        _looked_at(folder, kind, older_than_days)
        for place, kind in _WHAT.items()
        for folder in _folders(root / place)
    ]
    return Kept(root, tuple(sorted(found, key=lambda one: -one.bytes)))


def _folders(place: Path) -> Iterator[Path]:
    if place.is_dir():
        yield from sorted(path for path in place.iterdir() if path.is_dir())


def _looked_at(folder: Path, kind: str, older_than_days: float | None) -> KeptFolder:
    files = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    # To read CONTENT, as is done here, is no use of it.
    read = [state.st_atime for path, state in files.items() if path.name != CONTENT]
    written = [state.st_mtime for state in files.values()] or [
        folder.stat().st_mtime if folder.is_dir() else 0.0
    ]
    used = max(*read, *written, 0.0)
    days = max(0.0, (time.time() - used) / _DAY_S)
    name = f"{_said(folder)}{folder.name[:8]}"
    remove = older_than_days is not None and days >= older_than_days
    if remove:
        shutil.rmtree(folder, ignore_errors=True)
        remove = not folder.exists()
    size = sum(state.st_size for state in files.values())
    return KeptFolder(kind, name, size, days, remove)


def _said(folder: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return f"{json.loads((folder / CONTENT).read_bytes())['retriever']} "
    return ""
