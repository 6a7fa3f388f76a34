"""What a fresh process says to the one that started it, see :mod:`.child`. It imports next to
nothing: a cold start measures what is imported."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

Say = Callable[[Mapping[str, Any]], None]
"""Sends one message, of JSON types, to the parent."""


def channel() -> Say:
    """Open a channel for messages from here. From now on stdout, also below Python, is stderr: what
    a retriever prints is no message."""
    lines = os.fdopen(os.dup(1), "wb")  # not inherited by what a retriever starts
    os.dup2(2, 1)
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.stdout = sys.stderr

    def say(message: Mapping[str, Any]) -> None:
        lines.write(json.dumps(message).encode() + b"\n")
        lines.flush()

    return say
