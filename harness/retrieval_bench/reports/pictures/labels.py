"""Names beside the dots they belong to, where they hide neither a dot nor each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from retrieval_bench.reports.pictures.text import cells_of

_CELL = 6.4
"""Width of a column of text of the usual size in px, rather too wide than too narrow."""

_HEIGHT = 12.0
_APART = 9.0


class Box(NamedTuple):
    """A rectangle on the sheet, in px; y counts downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Box) -> float:
        """The area that both share."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across * down if across > 0 and down > 0 else 0.0


def placed(
    labels: Sequence[tuple[float, float, str]], area: Box, taken: Sequence[Box] = ()
) -> list[Box]:
    """Where each label goes: beside its dot, in ``area``, over as little as possible.

    Args:
        labels: x and y of the dot and the text, those first that matter most.
        taken: what labels should not cover, dots among it.
    """
    covered = [*taken, *(_around(x, y) for x, y, _ in labels)]
    boxes = []
    for x, y, text in labels:
        width = _CELL * cells_of(text)
        choices = [_within(choice, area) for choice in _beside(x, y, width)]
        best = min(choices, key=lambda box: sum(box.covers(other) for other in covered))
        boxes.append(best)
        covered.append(best)
    return boxes


def _around(x: float, y: float) -> Box:
    return Box(x - 5, y - 5, x + 5, y + 5)


def _beside(x: float, y: float, width: float) -> list[Box]:
    """The places for a label, the preferred first."""
    half = _HEIGHT / 2
    places = [
        (x + _APART, y - half),
        (x - _APART - width, y - half),
        (x + 5, y - _APART - _HEIGHT),
        (x + 5, y + _APART - 2),
        (x - 5 - width, y - _APART - _HEIGHT),
        (x - 5 - width, y + _APART - 2),
        (x - width / 2, y - _APART - _HEIGHT - 4),
        (x - width / 2, y + _APART + 2),
    ]
    places += [(x + 14, y - half + step) for step in (-26, 26, -40, 40)]
    places += [(x - 14 - width, y - half + step) for step in (-26, 26, -40, 40)]
    return [Box(left, top, left + width, top + _HEIGHT) for left, top in places]


def _within(box: Box, area: Box) -> Box:
    across = max(area.left - box.left, 0.0) + min(area.right - box.right, 0.0)
    down = max(area.top - box.top, 0.0) + min(area.bottom - box.bottom, 0.0)
    return Box(box.left + across, box.top + down, box.right + across, box.bottom + down)
