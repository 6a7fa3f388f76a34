"""Texts that must not change without being read."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def golden(name: str, text: str) -> None:
    """Compare ``text`` with the file ``name``; UPDATE_GOLDEN=1 rewrites it."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
