"""Vectors of 1,024 documents in a file each: what processes and machines share.

Documents are cut by their position, so a block is the same whoever makes it and however many
others there are. A file appears when it is whole; it is an array of numpy (float32, a row for each
document), behind that JSON that says what made it and of which texts, and the sha256 of all that.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import platform
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.cache import write_whole
from retrieval_bench.core.retriever import DocumentEncoder
from retrieval_bench.core.types import Document, Documents
from retrieval_bench.measure.machine.kernel import read_table
from retrieval_bench_scale.cluster import difference

Vectors = NDArray[np.float32]

SIZE = 1024
"""Documents in a block."""

FOLDER = "blocks"
_FORMAT = 1
_CHECKSUM = 64
_ABANDONED_S = 24 * 3600
_KERNELS = ("sse", "ssse", "avx", "amx", "fma", "f16c", "neon", "asimd", "sve", "bf16", "i8mm")
"""How flags of processors begin for which libraries have kernels of their own."""


class State(StrEnum):
    """Of the file of a block."""

    SOUND = "sound"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is remembered of texts.

    Attributes:
        ids: of the documents, by position.
        digests: sha256 over the texts of each block.
        first: position of the first document with the same text, of each.
    """

    ids: Sequence[str]
    digests: Sequence[str]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Corpus:
        """Walks them once."""
        ids: list[str] = []
        keys = bytearray()
        for document in documents:
            ids.append(document.id)
            keys += _key(document.contents)
        if not ids:
            return cls((), (), np.empty(0, np.int64))
        blocks = range(0, len(keys), SIZE * 32)
        digests = [hashlib.sha256(keys[at : at + SIZE * 32]).hexdigest() for at in blocks]
        _, first, same = np.unique(
            np.frombuffer(keys, "S32"), return_index=True, return_inverse=True
        )
        return cls(ids, digests, first[same].astype(np.int64))


class Reader:
    """The texts of blocks; who asks in ascending order walks the corpus once."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._walk: Iterator[Document] = iter(())
        self._next: int | None = None

    def texts(self, number: int) -> list[str]:
        """Title and text of each document of a block."""
        if self._next is None or number < self._next:
            self._walk, self._next = iter(self._documents), 0
        skipped, self._next = (number - self._next) * SIZE, None
        texts = [one.contents for one in islice(self._walk, skipped, skipped + SIZE)]
        self._next = number + 1
        return texts


@dataclass(frozen=True, slots=True)
class BlockFolder:
    """The files of all blocks.

    Attributes:
        facts: what made them: see :func:`facts_of`.
        dimension: numbers of a vector.
    """

    folder: Path
    facts: Mapping[str, Any]
    dimension: int

    def path(self, number: int) -> Path:
        """The file of a block."""
        return self.folder / f"{number:06}.npy"

    def write(self, number: int, texts: Sequence[str], vectors: Vectors) -> None:
        """Write the file of a block whole, or leave nothing of it.

        Raises:
            OSError: it cannot be written.
        """
        said = {"facts": dict(self.facts), "block": number, "texts": digest_of(texts)}
        file = io.BytesIO()
        np.save(file, np.ascontiguousarray(vectors, "<f4"), allow_pickle=False)
        file.write(json.dumps(said, ensure_ascii=True, sort_keys=True).encode())
        content = file.getvalue()
        write_whole(self.path(number), content + hashlib.sha256(content).hexdigest().encode())

    def look(self, number: int, texts: str) -> State:
        """Whether a block is there and as it was written.

        Args:
            texts: their digest.

        Raises:
            ConfigError: the file is sound, and holds something else; or it is none of ours.
        """
        path = self.path(number)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return State.MISSING
        body, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
        if hashlib.sha256(body).hexdigest().encode() != checksum:
            if _bare_array(content):
                raise ConfigError(
                    f"{path.name} is an array of numpy that does not say what made it",
                    where=str(self.folder),
                    accepted="a folder of blocks, or an empty one",
                    fix="take it away, or name another folder with --out",
                )
            return State.DAMAGED
        said = _said(body)
        other = difference(said["facts"], self.facts)
        if not other and (said["block"], said["texts"]) != (number, texts):
            other = f"is block {said['block']} of other texts"
            other = other if said["block"] == number else f"is block {said['block']}"
        if other:
            raise ConfigError(
                f"the block {path.name} {other}",
                where=str(self.folder),
                accepted="blocks of this corpus, made by the same model, versions and processor",
                fix="take it away, or name another folder with --out",
            )
        return State.SOUND

    def vectors(self, number: int) -> Vectors:
        """Those of a block that was looked at, mapped into memory."""
        mapped: Vectors = np.load(self.path(number), mmap_mode="r", allow_pickle=False)
        return mapped

    def clear(self) -> None:
        """Take away what processes that were killed have left, and no other may still write."""
        for path in [*self.folder.glob(".*.npy.*"), *self.folder.glob(".exact-*")]:
            with suppress(OSError):
                if path.stat().st_mtime > time.time() - _ABANDONED_S:
                    continue
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def facts_of(encoder: DocumentEncoder) -> Mapping[str, Any] | None:
    """All but the texts that decides the bits of a vector; None where a model is not known."""
    made = encoder.identity()
    if made is None:
        return None
    said = {"form": [_FORMAT, SIZE], "numpy": np.__version__, "processor": processor()}
    facts: Mapping[str, Any] = json.loads(json.dumps({**said, **made}))
    return facts


def processor(root: Path = Path("/")) -> str:
    """What decides which kernels libraries choose: the maker and the flags of instructions."""
    table = read_table(root / "proc/cpuinfo")
    flags = (table.get("flags") or table.get("Features") or "").split()
    maker = table.get("vendor_id") or table.get("CPU implementer") or ""
    known = sorted(flag for flag in flags if flag.startswith(_KERNELS))
    return " ".join(filter(None, [platform.machine(), maker, *known]))


def digest_of(texts: Iterable[str]) -> str:
    """Over the texts of a block."""
    return hashlib.sha256(b"".join(map(_key, texts))).hexdigest()


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _bare_array(content: bytes) -> bool:
    """Whether it is a whole array, with nothing behind it: a file of somebody else."""
    file = io.BytesIO(content)
    try:
        np.lib.format.read_magic(file)
        shape, _, kind = np.lib.format.read_array_header_1_0(file)
    except Exception:  # the head of a damaged file fails in many ways
        return False
    return file.tell() + math.prod(shape) * kind.itemsize == len(content)


def _said(body: bytes) -> dict[str, Any]:
    """The JSON behind the array."""
    file = io.BytesIO(body)
    np.load(file, allow_pickle=False)
    said: dict[str, Any] = json.loads(file.read())
    return said
