"""What the parts of a retriever buy and take: for each its gain with an interval, and beside it its
share of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retrieval_bench.core.figures import short_ms, signed
from retrieval_bench.reports.pictures.canvas import (
    WIDTH,
    Canvas,
    Frame,
    Scale,
    canvas,
    is_wide,
    marked,
    set_scale,
)
from retrieval_bench.reports.pictures.palette import FILL, INK, SOFT, STYLES
from retrieval_bench.reports.render.text import fitted, in_words

_TOP, _HEAD, _ROW, _FOOT = 46, 26, 22, 34
_NAME, _WORD = 130, 74
"""Px for the name of a part, and for what is said of it."""

_GOOD, _BAD, _OPEN = STYLES[0], STYLES[1], STYLES[7]


@dataclass(frozen=True, slots=True)
class PartBar:
    """One part.

    Attributes:
        name: shown as it is.
        worth: what is said of it, in a word or two.
        good: True for one that helps, False for one that should go, None where nothing is shown.
        gain: with it minus without it; None = not known.
        ci95: its interval.
        ms: of the median call; None = not known.
    """

    name: str
    worth: str
    good: bool | None
    gain: float | None
    ci95: tuple[float, float] | None = None
    ms: float | None = None


def parts(
    bars: Sequence[PartBar], *, name: str, metric: str, about: str = "", width: int = WIDTH
) -> str:
    """Gains as dots with their intervals beside the line of no gain, times as bars, as SVG.

    Args:
        name: of the retriever.
        metric: of the gains.
        about: a line under the heading.
        width: of the sheet, in px.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    wide = is_wide(width)
    down = _HEAD + _ROW * max(len(bars), 1) + _FOOT
    height = _TOP + down * (1 if wide else 2) + 8
    title = f"What each part of {fitted(name, 240)} buys"
    with canvas(height, width, title=title, about=about, notes=[_NOTE]) as sheet:
        across = (width - 2 * sheet.margin) * (0.62 if wide else 1.0)
        left = Frame(sheet.margin, _TOP, across, down)
        _gains(sheet, bars, metric, left)
        right = (
            Frame(sheet.margin + across + 18, _TOP, width - 2 * sheet.margin - across - 18, down)
            if wide
            else Frame(sheet.margin, _TOP + down, across, down)
        )
        _times(sheet, bars, right, named=not wide)
        return sheet.svg(title=title, description=_described(bars, metric))


_NOTE = (
    "A dot is the mean with the part minus the mean without it, its line the 95 % interval of all "
    "parts together. Times are computed from the stages of the measured calls."
)


def _gains(sheet: Canvas, bars: Sequence[PartBar], metric: str, place: Frame) -> None:
    sheet.write(place.left, place.top + 16, f"Gain in {fitted(metric, 180)}", bold=True)
    frame = Frame(
        place.left + _NAME,
        place.top + _HEAD,
        place.width - _NAME - _WORD - 8,
        _ROW * max(len(bars), 1),
    )
    axes = sheet.panel(*frame, grid="x")
    set_scale(axes.xaxis, _scale(bars), ticks=5)
    axes.set_ylim(max(len(bars), 1) - 0.5, -0.5)
    axes.set_yticks([])
    axes.axvline(0, color=INK, linewidth=0.9, clip_on=False)
    for at, bar in enumerate(bars):
        y = frame.top + _ROW * (at + 0.5) + 4
        sheet.write(frame.left - 8, y, fitted(bar.name, _NAME - 12), anchor="right")
        color = SOFT if bar.good is None else INK
        sheet.write(frame.right + 8, y, bar.worth, color=color, bold=bar.good is False)
        if bar.gain is None:
            continue
        style = _OPEN if bar.good is None else _GOOD if bar.good else _BAD
        if bar.ci95 is not None:
            axes.plot(bar.ci95, (at, at), color=style.color, linewidth=1.5, clip_on=False)
        axes.plot([bar.gain], [at], **marked(style))


def _times(sheet: Canvas, bars: Sequence[PartBar], place: Frame, *, named: bool) -> None:
    sheet.write(place.left, place.top + 16, "ms of the median call", bold=True)
    name = _NAME if named else 0
    frame = Frame(
        place.left + name,
        place.top + _HEAD,
        place.width - name - 52,
        _ROW * max(len(bars), 1),
    )
    axes = sheet.panel(*frame, grid="x")
    most = max((bar.ms or 0.0 for bar in bars), default=0.0)
    set_scale(axes.xaxis, Scale(0.0, 1.05 * most or 1.0, log=False), ticks=3)
    axes.set_ylim(max(len(bars), 1) - 0.5, -0.5)
    axes.set_yticks([])
    for at, bar in enumerate(bars):
        y = frame.top + _ROW * (at + 0.5) + 4
        if named:
            sheet.write(frame.left - 8, y, fitted(bar.name, name - 12), anchor="right")
        if bar.ms is None:
            sheet.write(frame.left + 6, y, "not known", color=SOFT)
            continue
        axes.barh([at], [max(bar.ms, 0.0)], height=0.6, color=FILL, linewidth=0, clip_on=False)
        sheet.write(frame.right + 46, y, short_ms(bar.ms), anchor="right")


def _scale(bars: Sequence[PartBar]) -> Scale:
    values = [
        value for bar in bars if bar.gain is not None for value in (bar.gain, *(bar.ci95 or ()))
    ]
    ends = np.array([0.0, *values])
    margin = 0.08 * float(np.ptp(ends)) or 0.05
    return Scale(float(ends.min()) - margin, float(ends.max()) + margin, False)


def _described(bars: Sequence[PartBar], metric: str) -> str:
    said = []
    for bar in bars:
        gain = "gain not known" if bar.gain is None else f"{signed(bar.gain, 3)} {metric}"
        time = "" if bar.ms is None else f", {short_ms(bar.ms)} ms"
        said.append(f"{bar.name}: {gain}, {bar.worth}{time}.")
    return in_words([*said, _NOTE])
