"""Compressed files: which endings there are, and how each is unpacked while it is read.

Endings are those of files, ``.gz``, ``.bz2``, ``.xz`` and ``.zst``; the last needs the package
zstandard. The one place for compressions: whoever asks what a file is called without them, or reads
what is in it, asks here.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add

UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading may raise: the file cannot be had, or its packed data are damaged."""

_PIECE = 1 << 16


class DamagedError(OSError):
    """Packed data that cannot be unpacked."""


class Compression(NamedTuple):
    """One kind of compression.

    Attributes:
        name: what people call it.
        magic: the bytes that packed data begin with.
        opened: gives the content of a file, or of a stream of packed data.
    """

    name: str
    magic: bytes
    opened: Callable[[Any], Any]


class _Zstd(io.RawIOBase):
    """The content of a file of zstandard frames; a frame that is cut off is an error."""

    def __init__(self, file: Path | IO[bytes]) -> None:
        import zstandard

        self._packed = file.open("rb") if isinstance(file, Path) else file
        self._new = zstandard.ZstdDecompressor().decompressobj
        self._problem: type[Exception] = zstandard.ZstdError
        self._frame: Any = None
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left and (piece := self._next_piece()):
            self._left = memoryview(self._unpacked(piece))
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size

    def close(self) -> None:
        self._packed.close()
        super().close()

    def _next_piece(self) -> bytes:
        if self._frame is not None and self._frame.eof and self._frame.unused_data:
            piece: bytes = self._frame.unused_data
        else:
            piece = self._packed.read(_PIECE)
        if not piece and self._frame is not None and not self._frame.eof:
            raise EOFError("it ends before its last frame does")
        if piece and (self._frame is None or self._frame.eof):
            self._frame = self._new()
        return piece

    def _unpacked(self, piece: bytes) -> bytes:
        try:
            content: bytes = self._frame.decompress(piece)
        except self._problem as problem:
            raise DamagedError(str(problem)) from None
        return content


COMPRESSIONS: Mapping[str, Compression] = {
    ".gz": Compression("gzip", b"\x1f\x8b", gzip.open),
    ".bz2": Compression("bzip2", b"BZh", bz2.open),
    ".xz": Compression("xz", b"\xfd7zXZ\x00", lzma.open),
    ".zst": Compression("zstd", b"\x28\xb5\x2f\xfd", _Zstd),
}
"""By ending."""

ENDINGS = tuple(COMPRESSIONS)


def unpacked_name(name: str) -> str:
    """The name of a file without the ending of its compression, unless that is all it has."""
    return name[: len(name) - len(_ending(name))] or name


def opened(path: Path) -> IO[bytes]:
    """The content of a file, unpacked as its ending says.

    Raises:
        OSError: it cannot be had.
        MissingDependencyError: a ``.zst`` file without the package zstandard.
    """
    ending = _ending(path.name)
    return _content(path, ending, str(path)) if ending else path.open("rb")


def unpacked(raw: bytes, label: str) -> IO[bytes]:
    """The content of ``raw``, unpacked as its first bytes say; as it is where they say nothing.

    Raises:
        MissingDependencyError: packed by zstd, without the package zstandard.
    """
    ending = next((end for end, kind in COMPRESSIONS.items() if raw.startswith(kind.magic)), "")
    return _content(io.BytesIO(raw), ending, label) if ending else io.BytesIO(raw)


def damaged(path: Path, problem: Exception) -> str:
    """Describe packed data that could not be unpacked; empty where the file was not had."""
    kind = COMPRESSIONS.get(_ending(path.name))
    if kind is None or (isinstance(problem, OSError) and problem.errno is not None):
        return ""
    return f"damaged {kind.name} data: {problem}"


def well_named(path: Path, start: bytes) -> bool:
    """Return whether content that begins with ``start`` is packed as the name of its file says."""
    kind = COMPRESSIONS.get(_ending(path.name))
    return kind is not None and start.startswith(kind.magic)


def misnamed(start: bytes) -> str:
    """The complaint about content that is packed, though its name does not say so; else empty."""
    packed = ((end, kind) for end, kind in COMPRESSIONS.items() if start.startswith(kind.magic))
    return next((f"{kind.name} data in a file that is not named {end}" for end, kind in packed), "")


def _ending(name: str) -> str:
    return next((end for end in ENDINGS if name.lower().endswith(end)), "")


def _content(file: Path | IO[bytes], ending: str, label: str) -> IO[bytes]:
    try:
        return io.BufferedReader(COMPRESSIONS[ending].opened(file))
    except ImportError:
        raise MissingDependencyError(
            "a .zst file needs the package zstandard, which is not installed",
            where=label,
            accepted="the same file unpacked (zstd -d), or as .gz, .bz2 or .xz, needs no package",
            fix=f"{how_to_add('zstd')}, or pip install zstandard",
        ) from None
