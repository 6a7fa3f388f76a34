"""Files, whatever folder they are in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def save(path: Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path``, whose folder need not be there, and return ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def save_all(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write ``files`` by their paths below ``folder``, and return ``folder``."""
    for name, content in files.items():
        save(folder / name, content)
    return folder
