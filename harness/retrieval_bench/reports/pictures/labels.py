"""Names beside the dots they belong to, where they hide neither a dot nor each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import cos, hypot, pi, sin
from typing import NamedTuple

from retrieval_bench.reports.render.text import width_of

LINE = 13
"""Px from one line of a label to the next."""

_APART = 4
"""Px between a dot and its label."""

_STEP, _DIRECTIONS = 13, 16
"""Px from one ring of places around a dot to the next, and places of each."""

_PER_PX = 8.0
"""Square px that a label may cover of what it should not, rather than lie a px further away."""

_MISTAKEN = 300.0
"""What a place costs that is nearer to the dot of another label, in such square px."""


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

    def gap(self, other: Box) -> float:
        """The distance between both."""
        across = max(self.left - other.right, other.left - self.right, 0.0)
        down = max(self.top - other.bottom, other.top - self.bottom, 0.0)
        return hypot(across, down)

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the box that lies nearest to another one."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


class Label(NamedTuple):
    """Lines of text that belong to the dot at ``x`` and ``y``."""

    x: float
    y: float
    lines: tuple[str, ...]
    bold: bool = False
    radius: float = 5.0

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        widest = max(width_of(line, bold=self.bold) for line in self.lines)
        return widest, LINE * len(self.lines) - 1.0

    @property
    def dot(self) -> Box:
        """The room that the dot itself takes."""
        r = self.radius
        return Box(self.x - r, self.y - r, self.x + r, self.y + r)


def placed(labels: Sequence[Label], area: Box, unwanted: Sequence[Box] = ()) -> list[Box]:
    """Where each label goes: in ``area``, near its dot, never over a dot or another label while
    there is a free place at all.

    Args:
        labels: those first that matter most, for they get the better places.
        unwanted: what labels should not cover either, if they need not go far away for it.
    """
    dots = [label.dot for label in labels]
    boxes: list[Box] = []
    for label in labels:
        others = [dot for dot in dots if dot != label.dot]
        best, least = label.dot, (float("inf"), float("inf"))
        for away, choice in _places(label, area):
            if least[0] == 0 and least[1] <= _PER_PX * away:
                break
            hidden = sum(choice.covers(other) for other in (*dots, *boxes))
            if hidden > least[0]:
                continue
            price = _PER_PX * away + sum(choice.covers(other) for other in unwanted)
            gap = choice.gap(label.dot)
            price += _MISTAKEN * any(choice.gap(other) < gap for other in others)
            if (hidden, price) < least:
                best, least = choice, (hidden, price)
        boxes.append(best)
    return boxes


def _places(label: Label, area: Box) -> Iterator[tuple[float, Box]]:
    """Places for a label and how much further away than need be they are, the nearest first."""
    (width, height), apart = label.size, label.radius + _APART
    x, y = label.x, label.y
    over, under = y - apart - height, y + apart - 2
    beside = (x + apart, y - height / 2), (x - apart - width, y - height / 2)
    corners = [(left, top) for left in (x + 5, x - 5 - width) for top in (over, under)]
    for left, top in (*beside, *corners, (x - width / 2, over - 3), (x - width / 2, under + 3)):
        yield 0.0, _within(Box(left, top, left + width, top + height), area)
    reach = hypot(area.right - area.left, area.bottom - area.top)
    for ring in range(1, int(reach / _STEP)):
        away = float(_STEP * ring)
        for at in range(_DIRECTIONS):
            across, up = cos(2 * pi * at / _DIRECTIONS), sin(2 * pi * at / _DIRECTIONS)
            # The middle of the label moves on an ellipse, so that its edge moves on a circle.
            left = x + across * (apart + away + width / 2) - width / 2
            top = y - up * (apart + away + height / 2) - height / 2
            yield away, _within(Box(left, top, left + width, top + height), area)


def _within(box: Box, area: Box) -> Box:
    across = max(area.left - box.left, 0.0) + min(area.right - box.right, 0.0)
    down = max(area.top - box.top, 0.0) + min(area.bottom - box.bottom, 0.0)
    return Box(box.left + across, box.top + down, box.right + across, box.bottom + down)
