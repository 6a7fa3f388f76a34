"""Checksums of a record's files, so that a changed file is told from one that another program made.

``SHA256SUMS`` is the file that ``sha256sum --check`` reads. It names what was written with the
record; pictures and text that came later are not in it, and a record without it is read as it is.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from retrieval_bench.core.errors import RecordError

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> None:
    """Write the checksum of each file that lies in ``folder``."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    lines = [f"{_digest(path)}  {path.name}\n" for path in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def check_sums(folder: Path) -> None:
    """Refuse a record of which a file was changed or lost after it was written.

    Raises:
        RecordError: a file is missing or another than its checksum says, or a line of the
            checksums is none.
    """
    try:
        lines = (folder / SUMS).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as problem:
        raise _damaged(folder, f"{SUMS} cannot be read: {problem}") from None
    for line in lines:
        digest, _, name = line.partition("  ")
        if not name or name != Path(name).name:
            raise _damaged(folder, f"a line of {SUMS} is no checksum with the name of a file")
        try:
            same = _digest(folder / name) == digest
        except OSError as problem:
            raise _damaged(folder, f"{name} cannot be read: {problem.strerror}") from None
        if not same:
            raise _damaged(folder, f"{name} is not what was written (another checksum)")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _damaged(folder: Path, what: str) -> RecordError:
    return RecordError(
        f"the folder is damaged or was edited: {what}",
        where=str(folder),
        accepted="the files as they were written",
        fix=f"copy the folder again from where it was made, or measure again; whoever changed it "
        f"on purpose removes {SUMS}",
    )
