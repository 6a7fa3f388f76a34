"""Cells of a table: figures with their interval, unit and marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from retrieval_bench.core.figures import (
    end_text,
    ms_text,
    p_text,
    short_ms,
    signed,
    three_digits,
    times_text,
)

NOTHING = "-"
"""Stands where there could be a figure and is none."""


@dataclass(frozen=True, slots=True)
class Form:
    """Form of a figure; called with one, it is a cell.

    Attributes:
        text: of the value.
        end: of the ends of its interval; as ``text`` where it is None.
    """

    text: Callable[[float], str]
    end: Callable[[float], str] | None = None

    def __call__(
        self,
        value: float | str | None,
        interval: Sequence[float] | None = None,
        marks: str = "",
        *,
        strong: bool = False,
        remark: str = "",
    ) -> Cell:
        """``value`` in this form, as :class:`Cell` has it."""
        return Cell(value, self, interval, marks, remark, strong)


def _decimals(n: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{n}f}"


def _share_end(value: float) -> str:
    return end_text(value).removeprefix("+")


QUALITY = Form(_decimals(4), _share_end)
SHORT_QUALITY = Form(_decimals(3), _share_end)
DIFFERENCE = Form(signed, end_text)
SHORT_DIFFERENCE = Form(lambda value: signed(value, 3), end_text)
TIMES = Form(times_text)
EFFECT = Form(lambda value: signed(value, 2))
MILLISECONDS = Form(ms_text, short_ms)
SHORT_MS = Form(short_ms)
SECONDS = Form(_decimals(2))
COUNT = Form(lambda value: f"{value:,.0f}")
COUNT_CHANGE = Form(lambda value: signed(value, 0))
PERCENT = Form(lambda share: f"{100 * share:.1f} %")
BARE_PERCENT = Form(lambda share: f"{100 * share:.2f}", lambda share: f"{100 * share:.1f}")
POINTS = Form(lambda share: signed(100 * share, 2))
CHANGE = Form(lambda share: signed(100 * share, 1, " %"), lambda share: f"{100 * share:+.1f}")
RATIO = Form(lambda r: signed(100 * (r - 1), 1, " %"), lambda r: f"{100 * (r - 1):+.1f}")
"""A ratio as the change in percent that it stands for."""
P = Form(p_text)
MEGABYTES = Form(lambda n: f"{n / 1e6:,.0f}" if n >= 1e8 else f"{n / 1e6:,.1f}")
RATE = Form(three_digits)
SCORE = Form(lambda value: f"{value:.6g}")


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure, or words, with what belongs to it.

    Attributes:
        value: a number, words, or None where there could be one and is none.
        form: how a number is written.
        interval: its ends, where it has one.
        marks: raised behind it: small letters, digits, "-", "," and "*".
        remark: a word or two behind or below it.
        strong: whether it is a result that a reader looks for first.
    """

    value: float | str | None
    form: Form = COUNT
    interval: Sequence[float] | None = None
    marks: str = ""
    remark: str = ""
    strong: bool = False

    @property
    def text(self) -> str:
        """The value as it is written, without all else."""
        if isinstance(self.value, str):
            return self.value
        if self.value is None or math.isnan(self.value):
            return NOTHING
        return self.form.text(self.value)

    @property
    def ends(self) -> tuple[str, str] | None:
        """The ends of the interval as they are written."""
        if self.interval is None:
            return None
        low, high = map(self.form.end or self.form.text, self.interval)
        return low, high

    @property
    def more(self) -> str:
        """The text that stands behind or below the value."""
        interval = "" if self.ends is None else "[{}, {}]".format(*self.ends)
        return " ".join(filter(None, (interval, self.remark)))


class Label(str):
    """Words for people that programs know under another name.

    Attributes:
        code: the name in CSV, and in what is typed.
    """

    __slots__ = ("code",)

    code: str

    def __new__(cls, text: str, code: str) -> Label:
        """``text`` for people, ``code`` for programs."""
        label = super().__new__(cls, text)
        label.code = code
        return label


def code_of(text: str) -> str:
    """Return the code that programs read in place of ``text``."""
    return text.code if isinstance(text, Label) else text


Content = str | Cell


def cell_of(content: Content) -> Cell:
    """``content`` as a cell; text is words."""
    return content if isinstance(content, Cell) else Cell(content)
