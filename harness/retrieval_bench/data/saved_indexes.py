"""Indexes that outlive a run: one folder each, named by a hash of the documents and of all that
decides the index, so that a folder can be old but never be taken for another one.

A folder appears under its name when it is whole: it is written aside, with the sizes and checksums
of its files, and renamed. Two processes that build the same index both do the work, and the first
one's stays.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.calls.foreign import message_of
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.installed.cache import cache_folder
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Dataset, Documents
from retrieval_bench.data.fingerprint import corpus_fingerprint

FOLDER = "indexes"
CONTENT = "content.json"
_FORMAT = 1
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """Where the index of a retriever over a dataset lies, or would lie.

    Attributes:
        folder: named by ``identity`` and the documents.
        content: what ``content.json`` says, without the files.
    """

    folder: Path
    content: Mapping[str, Any]

    @classmethod
    def of(cls, retriever: Retriever, dataset: Dataset) -> SavedIndex | None:
        """None where the retriever keeps no index, or there is no folder for it. To be asked after
        ``use_language`` and ``use_filters``."""
        root = index_folder()
        if root is None or dataset.documents is None or retriever.capabilities.external:
            return None
        identity = retriever.index_identity()
        if identity is None:
            return None
        content = {
            "format": _FORMAT,
            "documents": corpus_fingerprint(dataset),
            "identity": identity,
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return cls(root / hashlib.sha256(text.encode()).hexdigest()[:32], content)

    @property
    def there(self) -> bool:
        """True where it was built."""
        try:
            return (self.folder / CONTENT).is_file()
        except OSError:  # somebody else's
            return False

    def damage(self) -> str:
        """Faults of its files; empty where nothing is."""
        try:
            files = json.loads((self.folder / CONTENT).read_bytes())["files"]
            for name, known in files.items():
                if (found := _checksum(self.folder / name)) != known:
                    return f"{name} has {found[0]:,} bytes or a checksum that it was not saved with"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            return f"{CONTENT} can't be read: {type(problem).__name__}"
        return ""

    def keep(self, retriever: Retriever, name: str) -> None:
        """Write the index of ``retriever``, in place of one that is there.

        Args:
            name: of the retriever, for people.

        Raises:
            ConfigError: it cannot be written; nothing of it stays.
        """
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            with _aside(self.folder, lambda: self.there and not self.damage()) as aside:
                retriever.save(aside)
                files = {
                    path.relative_to(aside).as_posix(): _checksum(path)
                    for path in sorted(aside.rglob("*"))
                    if path.is_file()
                }
                made = {**self.content, "retriever": name, "files": files}
                (aside / CONTENT).write_text(json.dumps(made, ensure_ascii=True), encoding="ascii")
            if self.damage():
                raise OSError("another folder is in its place, which can't be replaced")
        except TypeError as problem:
            raise ConfigError(
                f"the index of {name} cannot be saved: {message_of(problem)}",
                accepted="filter fields whose values are texts, numbers, true, false or lists",
                fix="give other values to the fields that filters name; runs build this index",
            ) from None
        except (OSError, RuntimeError) as problem:  # FAISS raises the second of a full disk
            raise ConfigError(
                f"the index of {name} cannot be saved: {message_of(problem)}",
                where=str(self.folder.parent),
                accepted="a folder that can be written to, with room for the index",
                fix="make room there, or set RETRIEVAL_BENCH_CACHE to another folder",
            ) from None


@dataclass(frozen=True, slots=True)
class Indexed:
    """How an index came to be.

    Attributes:
        opened: it was taken from ``folder``, and not built.
        folder: of the saved one; None where there is none.
        damage: of a saved one that was built anew.
    """

    opened: bool = False
    folder: Path | None = None
    damage: str = ""

    @property
    def warnings(self) -> list[str]:
        """Faults of the saved one."""
        if not self.damage:
            return []
        return [f"the saved index is damaged ({self.damage}): it was built and saved anew"]


def documents_to_index(retriever: Retriever, dataset: Dataset) -> Documents | None:
    """The documents that ``retriever`` is to index, once it knows all that it must know before;
    None where it holds its corpus already, or the dataset has none."""
    if retriever.capabilities.external or dataset.documents is None:
        return None
    retriever.use_language(dataset.language)
    retriever.use_filters(dataset.filter_fields)
    return dataset.documents


def index_documents(retriever: Retriever, dataset: Dataset, name: str) -> Indexed:
    """Have the index of ``retriever``: the saved one where there is one, else a new one. One that
    is damaged is built and saved again.

    Raises:
        HarnessError: as of ``Retriever.index``.
    """
    documents = documents_to_index(retriever, dataset)
    if documents is None:
        return Indexed()
    saved = SavedIndex.of(retriever, dataset) if _any_saved() else None
    if saved is None or not saved.there:
        retriever.index(documents)
        return Indexed()
    damage = saved.damage()
    if not damage:
        with suppress(OSError, ValueError, KeyError, RuntimeError):
            retriever.load(saved.folder)
            _touch(saved.folder)
            return Indexed(opened=True, folder=saved.folder)
        damage = "it can't be opened"
    retriever.index(documents)
    with suppress(HarnessError):  # it goes on without
        saved.keep(retriever, name)
    return Indexed(folder=saved.folder, damage=damage)


def index_folder() -> Path | None:
    """The folder of all saved indexes; None where no home is known."""
    cache = cache_folder()
    return None if cache is None else cache / FOLDER


def _any_saved() -> bool:
    """Return whether there is any: who saves none pays for no hash."""
    root = index_folder()
    return root is not None and root.is_dir() and any(root.iterdir())


@contextmanager
def _aside(folder: Path, sound: Callable[[], bool]) -> Iterator[Path]:
    """A new folder beside ``folder`` that takes its place in the end, unless a sound one is there
    by then: another process was first, with the same index."""
    aside = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        yield aside
        aside.chmod(folder.parent.stat().st_mode & 0o777)  # others of a shared cache read it, too
        if sound():
            return
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
            with suppress(OSError):  # another process was first
                folder.rename(old / "index")
            shutil.rmtree(old, ignore_errors=True)
        with suppress(OSError):  # another process was first; whether it is sound is asked then
            aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _checksum(path: Path) -> list[int]:
    """Size and CRC-32: it is read whole at every opening, and meets accidents, no enemies."""
    crc = size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
            size += len(chunk)
    return [size, crc]


def _touch(folder: Path) -> None:
    """Remember that it was used."""
    with suppress(OSError):
        os.utime(folder / CONTENT)
