"""Where two systems differ: the difference on every query, from the largest loss to the largest
gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.reports.pictures.canvas import Canvas, canvas
from retrieval_bench.reports.pictures.palette import INK, SOFT, STYLES
from retrieval_bench.reports.pictures.text import clean, cut

_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 64, 58, 640, 240
_LABELS = 3
"""Queries named at either end."""

_LABEL_CELLS = 30
_GAIN, _LOSS = STYLES[0].color, STYLES[1].color


def gains(
    differences: NDArray[np.float64],
    labels: Sequence[str],
    *,
    a: str,
    b: str,
    metric: str,
    about: str = "",
) -> str:
    """The differences b - a as bars in rising order, the queries at both ends by name, as SVG.

    Args:
        differences: one for each query, finite.
        labels: how the queries are called, any text.
        a, b: names of the systems.
        metric: what is subtracted.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    order = np.argsort(differences, kind="stable")
    values = differences[order]
    won, lost = int((values > 0).sum()), int((values < 0).sum())
    told = [
        (
            f"{cut(b, 30)} above {cut(a, 30)} on {counted(won, 'query')}, below on {lost:,}, "
            f"equal on {len(values) - won - lost:,}"
        ),
        *([f"dashed line: mean difference {signed(values.mean())}"] if len(values) else []),
    ]
    with canvas(_TOP + _PLOT_HEIGHT + 66 + 18 * len(told)) as sheet:
        sheet.head(f"Differences in {metric}, query by query", about)
        axes = sheet.panel(_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT, grid="y")
        largest = float(np.abs(values).max(initial=0.0)) or 1.0
        axes.set_ylim(-1.08 * largest, 1.08 * largest)
        axes.set_xlim(0, max(len(values), 1))
        axes.set_xticks([])
        edges, heights = _thinned(values)
        for sign, color in ((1, _GAIN), (-1, _LOSS)):
            axes.stairs(
                np.maximum(sign * heights, 0) * sign, edges, fill=True, color=color,
                linewidth=0, clip_on=False,
            )  # fmt: skip
        axes.axhline(0, color=INK, linewidth=0.8, clip_on=False)
        if len(values):
            mean = float(values.mean())
            axes.axhline(mean, color=SOFT, linewidth=1.0, linestyle=(0, (4, 3)), clip_on=False)
        sheet.write(16, _TOP + _PLOT_HEIGHT / 2, f"{cut(b, 24)} − {cut(a, 24)}",
                    anchor="center", upwards=True)  # fmt: skip
        _name_ends(sheet, order, values, labels)
        sheet.write(
            _LEFT + _PLOT_WIDTH / 2, _TOP + _PLOT_HEIGHT + 22,
            f"{counted(len(values), 'query')}, from the largest loss to the largest gain",
            anchor="center",
        )  # fmt: skip
        for at, line in enumerate(told):
            sheet.write(16, _TOP + _PLOT_HEIGHT + 50 + 18 * at, line, color=SOFT)
        return sheet.svg(
            title=f"Differences in {metric} between {clean(b)} and {clean(a)}, query by query",
            description=". ".join([*told, *_ends_in_words(order, values, labels)]) + ".",
        )


def _thinned(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges and heights of the bars; of more queries than px, those one px apart."""
    n = len(values)
    if n <= _PLOT_WIDTH:
        return np.arange(n + 1, dtype=np.float64), values
    at = np.unique(np.linspace(0, n - 1, _PLOT_WIDTH).round().astype(np.int64))
    return np.append(at, n).astype(np.float64), values[at]


def _ends(values: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """Places of the largest losses and of the largest gains, the largest first."""
    n = len(values)
    losses = [at for at in range(min(_LABELS, n)) if values[at] < 0]
    gained = [at for at in range(n - 1, max(n - 1 - _LABELS, -1), -1) if values[at] > 0]
    return losses, gained


def _name_ends(
    sheet: Canvas, order: NDArray[np.int64], values: NDArray[np.float64], labels: Sequence[str]
) -> None:
    """Largest losses written above the axis on the left, where no bar of a loss stands; largest
    gains below it on the right."""
    losses, gained = _ends(values)
    middle = _TOP + _PLOT_HEIGHT / 2
    for row, at in enumerate(losses):
        text = f"{cut(labels[order[at]], _LABEL_CELLS)} ({signed(values[at], 3)})"
        sheet.write(_LEFT + 8, middle - 14 - 15 * (len(losses) - 1 - row), text, color=SOFT)
    for row, at in enumerate(gained):
        text = f"{cut(labels[order[at]], _LABEL_CELLS)} ({signed(values[at], 3)})"
        sheet.write(_LEFT + _PLOT_WIDTH - 8, middle + 20 + 15 * row, text, color=SOFT,
                    anchor="right")  # fmt: skip


def _ends_in_words(
    order: NDArray[np.int64], values: NDArray[np.float64], labels: Sequence[str]
) -> list[str]:
    words = []
    for what, places in zip(("losses", "gains"), _ends(values), strict=True):
        if places:
            each = (f"{cut(labels[order[at]], 60)} {signed(values[at], 3)}" for at in places)
            words.append(f"Largest {what}: {', '.join(each)}")
    return words
