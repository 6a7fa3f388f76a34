"""How figures are written: with the digits that are worth printing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def quality_text(value: float | None) -> str:
    """A quality with the digits that are worth printing."""
    return "-" if value is None else f"{value:.4f}"


def ms_text(value: float | None) -> str:
    """Milliseconds."""
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def short_quality(value: float) -> str:
    """The end of an interval of a quality."""
    return f"{value:.3f}".replace("0.", ".", 1)


def short_ms(value: float) -> str:
    """The end of an interval in milliseconds."""
    return f"{value:.3g}"


def seconds_text(value: float | None) -> str:
    """Seconds."""
    return "-" if value is None else f"{value:.2f}"


def signed(value: float | None) -> str:
    """A difference of qualities with its sign; one that rounds to nothing has none."""
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:+.4f}"
    return text[1:] if float(text) == 0 else text


def p_text(value: float) -> str:
    """A p-value."""
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0") if value < 1 else "1"


def interval_text(ends: Sequence[float] | None) -> str:
    """An interval of a quality; empty where there is none."""
    return interval_of(ends, quality_text)


def interval_of(ends: Sequence[float] | None, form: Any) -> str:
    """An interval, each end as ``form`` writes it; empty where there is none."""
    return "" if ends is None else f"[{form(ends[0])}, {form(ends[1])}]"
