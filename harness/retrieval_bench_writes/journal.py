"""Journal of what may be left in a collection of others, also after this process was killed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

from retrieval_bench.core.installed.cache import cache_folder

_FOLDER = "writes"


class Journal(set[str]):
    """Ids that were sent and not deleted yet; each stands in a file before it is sent.

    Args:
        path: of the file; None = of a collection that ends with this process.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self._path = path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, /) -> None:
        """One more; it is written down at once."""
        super().add(name)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")

    def close(self) -> None:
        """Forget the file where nothing is left."""
        if self._path is not None and not self:
            self._path.unlink(missing_ok=True)


def journal_of(collection: str, where: str, token: str) -> Path | None:
    """The file of a measurement; None where there is no folder for it.

    Args:
        where: what else says which collection it is: the parameters of the retriever.
    """
    root = cache_folder()
    key = blake2b(f"{collection}\0{where}".encode(), digest_size=8).hexdigest()
    return None if root is None else root / _FOLDER / f"{key}-{token}.ids"


def left_before(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """Files of measurements of the same collection that ended without a word, and the ids in
    them."""
    key = path.name.partition("-")[0]
    files: Iterable[Path] = path.parent.glob(f"{key}-*.ids")
    for file in sorted(set(files) - {path}):
        yield file, list(dict.fromkeys(file.read_text(encoding="utf-8").split()))
