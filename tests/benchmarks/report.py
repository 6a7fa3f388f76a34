"""What a benchmark gives: rows of measured figures, beside what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from retrieval_bench.reports.render.table import Table

Unit = Literal["s", "bytes", "count"]


@dataclass(frozen=True, slots=True)
class Options:
    """How much is measured. ``quick``: sizes of a smoke run, whose figures mean nothing; ``full``:
    also what takes minutes."""

    quick: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure.

    Attributes:
        what: what was measured.
        ours: seconds, bytes or a count; less is better, always.
        other: the same of what stands beside it.
        beside: what ``other`` is.
        at_most: the target, for ``ours / other`` where there is an ``other``, unless
            ``absolute``; None where the figure is only told.
        absolute: ``at_most`` is for ``ours`` alone.
    """

    what: str
    ours: float
    unit: Unit
    other: float | None = None
    beside: str = ""
    at_most: float | None = None
    absolute: bool = False

    @property
    def ratio(self) -> float | None:
        """``ours / other``."""
        return self.ours / self.other if self.other else None

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without one."""
        value = self.ours if self.absolute else self.ratio
        return None if self.at_most is None or value is None else value <= self.at_most

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of :data:`COLUMNS`."""
        other = "" if self.other is None else f"{figure(self.other, self.unit)} {self.beside}"
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return (
            self.what,
            figure(self.ours, self.unit),
            other,
            _ratio(self.ratio),
            self._target(),
            verdict,
        )

    def as_dict(self) -> dict[str, Any]:
        """The row at full precision, in JSON types."""
        return {
            "what": self.what,
            "ours": self.ours,
            "unit": self.unit,
            "other": self.other,
            "beside": self.beside or None,
            "ours_to_other": self.ratio,
            "target_at_most": self.at_most,
            "target_is_on": None if self.at_most is None else "ours" if self.absolute else "ratio",
            "met": self.met,
        }

    def _target(self) -> str:
        if self.at_most is None:
            return ""
        if self.absolute:
            return f"under {figure(self.at_most, self.unit)}" if self.at_most else "none"
        if self.at_most == 1:
            return "less"
        return _ratio(self.at_most) if self.at_most < 1 else f"at most {self.at_most:g} x"


COLUMNS = ("", "ours", "beside it", "ratio", "target", "")


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one subject; ``notes`` say how they came about."""

    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    def table(self) -> Table:
        """For the terminal."""
        return Table(self.title, COLUMNS, [row.cells() for row in self.rows], (), self.notes)

    def without_targets(self) -> Group:
        """The same figures, not judged."""
        rows = [replace(row, at_most=None) for row in self.rows]
        return Group(self.title, rows, self.notes)

    def as_dict(self) -> dict[str, Any]:
        """In JSON types."""
        rows = [row.as_dict() for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


def figure(value: float, unit: Unit) -> str:
    """A figure for people: three digits, in the prefix that suits its size."""
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "bytes":
        return f"{value / 1e6:,.1f} MB"
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value / 1e-9:.0f} ns"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return ""
    if ratio == 0:
        return "nothing"
    return f"{_times(1 / ratio)} less" if ratio <= 1 else f"{_times(ratio)} more"


def _times(factor: float) -> str:
    return f"{factor:,.0f} x" if factor >= 100 else f"{factor:.3g} x"
