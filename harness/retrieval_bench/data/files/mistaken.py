"""Files that hold something else than their readers expect: what it is, and what to do.

Told once, before a reader takes each line of them for a broken one.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import NamedTuple

from retrieval_bench.core.installed.git import LFS_POINTER
from retrieval_bench.data.files import packed

LOOKED_AT = 512
"""Bytes from the start that tell most kinds."""

_PACKED_ONLY_WHEN = "UTF-8 text, packed only when its name says so"
_PARQUET = b"PAR1"
_TAR = slice(257, 262)


class Mistaken(NamedTuple):
    """Kind of a file, and what is accepted in its place."""

    what: str
    accepted: str


_KINDS: dict[bytes, Mistaken] = {
    LFS_POINTER: Mistaken(
        "a pointer of Git LFS, not the file itself",
        "the file: `git lfs pull` in its repository fetches it",
    ),
    b"/annex/objects/": Mistaken(
        "a pointer of git-annex, not the file itself",
        "the file: `git annex get` in its repository fetches it",
    ),
    b"PK\x03\x04": Mistaken("a zip archive or a spreadsheet", "the files in it, as text"),
    b"7z\xbc\xaf\x27\x1c": Mistaken("a 7z archive", "the files in it"),
    b"Rar!\x1a\x07": Mistaken("a rar archive", "the files in it"),
    b"\x04\x22\x4d\x18": Mistaken(
        "lz4 data", f"the file unpacked, or as {', '.join(packed.ENDINGS)}"
    ),
    _PARQUET: Mistaken("a parquet file", "UTF-8 text; parquet where it is named .parquet"),
    b"ARROW1": Mistaken("an Arrow file", "parquet, JSON lines or a table"),
    b"SQLite format 3": Mistaken("a database of SQLite", "its tables as JSON lines or CSV"),
    b"%PDF-": Mistaken("a PDF", "its text, as JSON lines"),
    b"<!doctype html": Mistaken("a web page", "the file that it was to be downloaded from"),
    b"<html": Mistaken("a web page", "the file that it was to be downloaded from"),
    codecs.BOM_UTF16_LE: Mistaken("UTF-16 text", "UTF-8 text"),
    codecs.BOM_UTF16_BE: Mistaken("UTF-16 text", "UTF-8 text"),
    codecs.BOM_UTF32_BE: Mistaken("UTF-32 text", "UTF-8 text"),
    **{
        b"\x80" + bytes([protocol]): Mistaken("a pickle of Python", "JSON lines or a table")
        for protocol in range(2, 6)
    },
}
"""By the first bytes, letters small."""


def mistaken(start: bytes) -> Mistaken | None:
    """Recognise content with the first bytes ``start`` that is no text."""
    if name := packed.misnamed(start):
        return Mistaken(name, _PACKED_ONLY_WHEN)
    small = start[:LOOKED_AT].lstrip().lower()
    for magic, kind in _KINDS.items():
        if start.startswith(magic) or small.startswith(magic):
            return kind
    if start[_TAR] == b"ustar":
        return Mistaken("a tar archive", "the files in it")
    return Mistaken("binary data", "UTF-8 text") if b"\x00" in start else None


def mistaken_file(path: Path) -> Mistaken | None:
    """Recognise a file whose bytes, as it lies there, are no text."""
    try:
        with path.open("rb") as file:
            start = file.read(LOOKED_AT)
    except OSError:
        return None
    named = packed.well_named(path, start) or (path.suffix == ".parquet" and start[:4] == _PARQUET)
    return None if named else mistaken(start)


def other_separator(line: str, used: str, fewest: int) -> str:
    """The name of what separates the columns of ``line`` where it is not ``used``; empty where
    nothing does.

    Args:
        fewest: columns that there must be.
    """
    names = {",": "commas", ";": "semicolons", "|": "bars", "\t": "tabs"}
    if used in line:
        return ""
    return next((name for sign, name in names.items() if line.count(sign) >= fewest - 1), "")
