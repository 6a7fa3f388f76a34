"""The folder for what is made once and can always be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """``RETRIEVAL_BENCH_CACHE`` when that is set, otherwise ``retrieval-bench`` in
    ``XDG_CACHE_HOME`` or ``~/.cache``; None where no home is known."""
    own = os.environ.get("RETRIEVAL_BENCH_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(shared) if shared else Path.home() / ".cache"
    except RuntimeError:
        return None
    return folder / "retrieval-bench"
