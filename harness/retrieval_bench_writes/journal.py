"""Journal of what may be left in a collection of others, also after this process was killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import IO

from retrieval_bench.core.installed.cache import cache_folder

_FOLDER = "writes"


class Journal(dict[str, str]):
    """Ids that were sent and are not known to be gone, each with a text that finds it; both stand
    in a file before they are sent. The file is locked while this measures, and a lock goes with its
    process.

    Args:
        path: of the file; None = of a collection that ends with this process.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self._path = path
        self._file: IO[str] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")  # nobody finds it before it is locked
            self._file = new.open("a", encoding="utf-8")
            self._path = new.rename(path) if _locked(self._file) else new

    def __setitem__(self, name: str, text: str) -> None:
        super().__setitem__(name, text)
        if self._file is not None:
            self._file.write(f"{json.dumps([name, text])}\n")
            self._file.flush()

    def close(self) -> None:
        """Forget the file where nothing is left."""
        if self._path is not None and self._file is not None:
            if not self:
                self._path.unlink(missing_ok=True)
            self._file.close()


def journal_of(collection: str, where: str, token: str) -> Path | None:
    """The file of a measurement; None where there is no folder for it.

    Args:
        where: what else says which collection it is: the parameters of the retriever.
    """
    root = cache_folder()
    key = blake2b(f"{collection}\0{where}".encode(), digest_size=8).hexdigest()
    return None if root is None else root / _FOLDER / f"{key}-{token}.ids"


def left_before(path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Files of measurements of the same collection that ended without a word, and what is in them;
    each stays locked until the next is asked for, so that two do not take it at once."""
    key = path.name.partition("-")[0]
    for file in sorted({*path.parent.glob(f"{key}-*.ids")} - {path}):
        with ExitStack() as stack:
            try:
                held = stack.enter_context(file.open("r+", encoding="utf-8"))
            except FileNotFoundError:  # another one took it meanwhile
                continue
            if _locked(held):
                lines = held.read().rpartition("\n")[0].splitlines()  # it may have ended amid one
                yield file, dict(map(json.loads, lines))


def _locked(file: IO[str]) -> bool:
    """Lock a file; says whether it is: nobody else has it, and the system has locks (not Windows,
    where nothing is taken from anybody)."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
