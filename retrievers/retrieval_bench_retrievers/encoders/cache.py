"""Vectors of texts on disk, so that a text is encoded once under the same settings.

A cache is a folder named by a hash of everything that decides a vector, and holds files of some
1,000 vectors each, looked up by the hash of the text: a corpus that grows encodes what is new. A
file appears under its name when it is whole (written aside, then renamed), so processes may share a
folder; it carries checksums, and one that fails them is removed and its texts are encoded again.
What cannot be read or written is reported in ``notes`` and never stops a run.

File: magic, number of vectors and dimension (uint32 each), sha256 of what stands before and of the
keys, sha256 of the vectors, keys (sha256 of each text, 32 bytes), vectors (float32); little-endian.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.installed.cache import cache_folder, write_whole

FILE_SIZE = 1024
"""Vectors in one file: what a process that is killed while it encodes has to do again."""

_MAGIC = b"RBVEC\x00\x00\x01"
_HEAD = struct.Struct("<8sII32s32s")
_KEY = 32
_SUFFIX = ".vectors"
_FIRST = "first-"
"""Begins the names of files whose vectors are taken in place of those of other files."""


class _DamagedError(Exception):
    pass


class EmbeddingCache:
    """The vectors that were made under one identity.

    Args:
        root: folder of all caches, see :func:`default_root`.
        identity: what decides a vector besides the text; JSON types.
        dimension: length of a vector.

    Attributes:
        notes: what went wrong, in plain words.
        bytes_used: size of the files that vectors were taken from or put into.
    """

    def __init__(self, root: Path, identity: Mapping[str, Any], dimension: int) -> None:
        canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True)
        self.folder = root / hashlib.sha256(canonical.encode()).hexdigest()[:32]
        self.notes: list[str] = []
        self.bytes_used = 0
        self._dimension = dimension
        self._writable = True

    def fill(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> list[int]:
        """Put the vectors of known ``keys`` into their rows of ``vectors``.

        Args:
            keys: of distinct texts, from :func:`text_key`.
            vectors: shape (len(keys), dimension), written to.

        Returns:
            The rows that were not found, ascending.
        """
        missing = {key: row for row, key in enumerate(keys)}
        damaged = 0
        for path in self._files():
            try:
                self._take(path, missing, vectors)
            except FileNotFoundError:
                continue
            except _DamagedError:
                damaged += 1
                with suppress(OSError):
                    path.unlink()
            except OSError as problem:
                self._note("cannot be read, so texts are encoded again", problem)
        if damaged:
            files = "file" if damaged == 1 else "files"
            self.notes.append(
                f"{damaged} damaged {files} of the embedding cache removed: the texts in "
                f"{'it' if damaged == 1 else 'them'} are encoded again"
            )
        return sorted(missing.values())

    def store(
        self, keys: Sequence[bytes], vectors: NDArray[np.float32], *, first: bool = False
    ) -> None:
        """Keep one vector for each key, all in one file.

        Args:
            first: they are taken in place of those that were kept without it, or before with it.
        """
        if not keys or not self._writable:
            return
        key_block = b"".join(keys)
        vector_block = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        of_keys = _checksum(len(keys), self._dimension, key_block)
        of_vectors = hashlib.sha256(vector_block).digest()
        head = _HEAD.pack(_MAGIC, len(keys), self._dimension, of_keys, of_vectors)
        name = _FIRST * first + hashlib.sha256(of_keys + of_vectors).hexdigest()[:32]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / f"{name}{_SUFFIX}", head + key_block + vector_block)
        except OSError as problem:
            self._writable = False
            self._note("cannot be written, so the next run encodes again", problem)
        else:
            self.bytes_used += len(head) + len(key_block) + len(vector_block)

    def _files(self) -> list[Path]:
        try:
            found = [path for path in self.folder.iterdir() if path.suffix == _SUFFIX]
            return sorted(found, key=_turn)
        except FileNotFoundError:
            return []
        except OSError as problem:
            self._note("cannot be read, so texts are encoded again", problem)
            return []

    def _take(self, path: Path, missing: dict[bytes, int], vectors: NDArray[np.float32]) -> None:
        """Move what ``path`` holds of ``missing`` to ``vectors``; the vectors are read only if
        there is any."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            keys, of_vectors = self._read_keys(file, size)
            place_of = {key: place for place, key in enumerate(keys) if key in missing}
            if not place_of:
                return
            block = file.read()
        if hashlib.sha256(block).digest() != of_vectors:
            raise _DamagedError
        stored = np.frombuffer(block, dtype="<f4").reshape(len(keys), self._dimension)
        vectors[[missing.pop(key) for key in place_of]] = stored[[*place_of.values()]]
        self.bytes_used += size

    def _read_keys(self, file: BinaryIO, size: int) -> tuple[list[bytes], bytes]:
        """The keys of an open file, and the checksum of the vectors behind them."""
        head = file.read(_HEAD.size)
        if len(head) != _HEAD.size:
            raise _DamagedError
        magic, n, dimension, of_keys, of_vectors = _HEAD.unpack(head)
        whole = _HEAD.size + n * (_KEY + 4 * dimension)
        if magic != _MAGIC or dimension != self._dimension or size != whole:
            raise _DamagedError
        block = file.read(n * _KEY)
        if _checksum(n, dimension, block) != of_keys:
            raise _DamagedError
        return [block[at : at + _KEY] for at in range(0, len(block), _KEY)], of_vectors

    def _note(self, trouble: str, problem: OSError) -> None:
        note = f"the embedding cache {trouble} ({problem.strerror or type(problem).__name__})"
        if note not in self.notes:
            self.notes.append(note)


def default_root() -> Path | None:
    """The folder of all caches of vectors; None where no home is known."""
    folder = cache_folder()
    return None if folder is None else folder / "embeddings"


def text_key(text: str) -> bytes:
    """The key of a text: the sha256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).digest()


def _turn(path: Path) -> tuple[int, str]:
    """Files of vectors that come first are read before others, what was written last before all."""
    written = 0
    if path.name.startswith(_FIRST):
        with suppress(OSError):
            written = path.stat().st_mtime_ns
    return -written, path.name


def _checksum(n: int, dimension: int, key_block: bytes) -> bytes:
    return hashlib.sha256(_MAGIC + struct.pack("<II", n, dimension) + key_block).digest()
