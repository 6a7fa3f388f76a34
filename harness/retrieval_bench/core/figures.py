"""How figures and texts are written: with the digits that are worth it, and so that they show."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence


def quality_text(value: float | None) -> str:
    """A quality with the digits that are worth printing."""
    return "-" if value is None else f"{value:.4f}"


LEAST_SHOWN_MS, _TINY_MS = 0.0005, "< 0.001"
"""A time below this would be written as nothing, and stands so."""

BELOW_CLOCK = "below what the clock can tell (answers are remembered?)"
"""In place of a p50 that would be written as 0.000 ms."""


def ms_text(value: float | None) -> str:
    """Milliseconds."""
    if value is None:
        return "-"
    if 0 <= value < LEAST_SHOWN_MS:
        return _TINY_MS
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def short_ms(value: float) -> str:
    """Milliseconds with three digits that count, at most three behind the point."""
    if 0 <= value < LEAST_SHOWN_MS:
        return _TINY_MS
    decimals = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"


def signed(value: float | None, decimals: int = 4, unit: str = "") -> str:
    """A difference with its sign; one that rounds to nothing has none. As it stands for qualities.

    The ends of an interval keep their sign: it says on which side of 0 they lie.
    """
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:+,.{decimals}f}"
    return (text if text.strip("+-0.") else text[1:]) + unit


def end_text(value: float, decimals: int = 3) -> str:
    """An end of the interval of a difference: with its sign, and with as many digits as it takes
    to see on which side of 0 it lies."""
    text = f"{value + 0.0:+,.{decimals}f}"  # -0.0 has no side
    if value == 0 or text.strip("+-0."):
        return text
    return f"{value:+.{-math.floor(math.log10(abs(value)))}f}"


def share_text(share: float | None, ends: Sequence[float] | None) -> str:
    """A share with its interval: "0.953 [0.941, 0.963]"."""
    if share is None:
        return "-"
    of = f" [{', '.join(end_text(end).removeprefix('+') for end in ends)}]" if ends else ""
    return f"{share:.3f}{of}"


def change_text(share: float | None) -> str:
    """A ratio less 1 as a signed percentage: "+3.1 %"."""
    return signed(None if share is None else 100 * share, 1, " %")


def three_digits(value: float) -> str:
    """Three digits that count, and no exponent for large numbers: "0.0348", "15.7", "1,204"."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def times_text(times: float) -> str:
    """Return how many times as much: "1.05x", "64x"."""
    return f"{times:.2f}x" if times < 10 else f"{times:,.0f}x"


def about(n: int) -> str:
    """A number with the two digits that an estimate is worth: "950", "13,000"."""
    return f"{float(f'{n:.2g}'):,.0f}"


def p_text(value: float) -> str:
    """A p-value."""
    return "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0") if value < 1 else "1"


DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of the text behind them, and so of what is not theirs."""


def visible(text: str, keep: str = "") -> str:
    """``text`` with control characters, but those in ``keep``, those that turn the direction of
    text, and lone surrogates as backslash escapes: printed, it cannot move the cursor of a terminal
    nor change what stands around it."""
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode()
        if c not in keep and (c in DIRECTIONS or unicodedata.category(c) in ("Cc", "Cs"))
        else c
        for c in text
    )
