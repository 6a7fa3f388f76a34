"""The folder for what is made once and can always be made again, and files that are there whole."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from retrieval_bench.core.installed.modules import user_path


def cache_folder() -> Path | None:
    """``RETRIEVAL_BENCH_CACHE`` when that is set, otherwise ``retrieval-bench`` in
    ``XDG_CACHE_HOME`` or ``~/.cache``; None where no home is known."""
    own = os.environ.get("RETRIEVAL_BENCH_CACHE")
    if own:
        return user_path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(shared) if shared else Path.home() / ".cache"
    except RuntimeError:
        return None
    return folder / "retrieval-bench"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody sees a part of it, and leave nothing behind on failure.

    A link stays one; what is no file, such as /dev/stdout or /dev/null, is written to as it is.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    aside = path.with_name(f".{path.name}.{os.getpid()}.{token_hex(4)}")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
