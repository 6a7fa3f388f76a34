"""Steps of a pipeline of which one uses up tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrieval_bench import report_usage


def longer(text: str) -> list[str]:
    """The text, and the same with a word more."""
    report_usage(tokens_in=12, tokens_out=3)
    return [f"about {text}", text]


def in_order(text: str, documents: Sequence[Any]) -> list[int]:
    """As they come."""
    return [-at for at, _ in enumerate(documents)]
