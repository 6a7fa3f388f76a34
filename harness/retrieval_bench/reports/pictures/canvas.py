"""A sheet measured in px from its upper left corner, on which the pictures are laid out.

matplotlib's object-oriented interface and its SVG backend alone: no window, no global figure. Its
settings are put to its defaults while a picture is drawn, and back afterwards, so that a user's
own do not change a report.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installation import how_to_add
from retrieval_bench.reports.pictures.palette import GRID, INK, PAPER, SOFT, Style
from retrieval_bench.reports.pictures.svg import finish
from retrieval_bench.reports.pictures.text import clean, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH = 720
"""Of every picture, in px."""

SMALL, NORMAL, LARGE = 11, 12, 14

_LOG_FROM = 20.0
"""Largest to smallest value from which an axis is logarithmic."""

_NO_TIME = 1e-9
"""Milliseconds that no clock tells from 0."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "retrieval-bench",
    "font.size": SMALL,
    "hatch.linewidth": 0.8,
    "path.simplify": False,
    "text.parse_math": False,
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of an axis in data units."""

    low: float
    high: float
    log: bool

    def place(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Position of ``values`` on the axis, 0 at its low end and 1 at its high end."""
        if self.log:
            inside = np.log(np.maximum(values, self.low) / self.low)
            return np.asarray(inside / np.log(self.high / self.low))
        return np.asarray((np.maximum(values, self.low) - self.low) / (self.high - self.low))

    def value(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of :meth:`place`."""
        if self.log:
            return np.asarray(self.low * (self.high / self.low) ** places)
        return np.asarray(self.low + places * (self.high - self.low))


def scale_for(values: Iterable[NDArray[np.float64]]) -> Scale:
    """A range that holds all ``values``, logarithmic where they differ by much.

    Values of 0 or less do not stretch the axis: they lie on its low end.
    """
    parts = [part for part in values if part.size]
    low = min([float(p.min()) for p in parts], default=0.0)
    high = max([float(p.max()) for p in parts], default=0.0)
    if high <= _NO_TIME:
        return Scale(0.0, 1.0, False)
    positive = min(float(p[p > _NO_TIME].min()) for p in parts if p.max() > _NO_TIME)
    if high / positive >= _LOG_FROM:
        return Scale(positive / 1.15, high * 1.15, True)
    if low < 0.3 * high:
        return Scale(0.0, high * 1.04, False)
    margin = 0.04 * (high - low) or 0.1 * high
    return Scale(low - margin, high + margin, False)


class Canvas:
    """One picture that is being drawn; all lengths in px."""

    def __init__(self, figure: Figure, height: int) -> None:
        self._figure = figure
        self._height = height
        self._texts: dict[str, str] = {}

    def panel(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        *,
        grid: Literal["both", "x", "y"] = "both",
    ) -> Axes:
        """A pair of axes without upper and right border, with grid lines behind the data."""
        across, down = WIDTH, self._height
        axes = self._figure.add_axes(
            (left / across, 1 - (top + height) / down, width / across, height / down)
        )
        axes.patch.set_visible(False)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("bottom", "left"):
            axes.spines[side].set(color=SOFT, linewidth=0.8)
        axes.tick_params(
            which="both", color=SOFT, labelcolor=INK, labelsize=SMALL, width=0.8, pad=4
        )
        axes.tick_params(which="minor", length=2)
        axes.grid(visible=True, axis=grid, color=GRID, linewidth=0.7, clip_on=False)
        return axes

    def write(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = SMALL,
        color: str = INK,
        anchor: str = "left",
        bold: bool = False,
        upwards: bool = False,
    ) -> None:
        """``text``, of any origin, with its base line at ``y``; never interpreted."""
        token = f"~{len(self._texts)}~"
        self._texts[token] = clean(text)
        self._figure.text(
            x / WIDTH,
            1 - y / self._height,
            token,
            size=size,
            color=color,
            ha=anchor,
            va="baseline",
            weight="bold" if bold else "normal",
            rotation=90 if upwards else 0,
            rotation_mode="anchor",
        )

    def head(self, title: str, about: str = "") -> None:
        """The heading at the top of the picture; leaves off at 46 px."""
        self.write(16, 24, title, size=LARGE, bold=True)
        if about:
            self.write(16, 41, about, color=SOFT)

    def line(
        self,
        x: Sequence[float],
        y: Sequence[float],
        *,
        color: str = INK,
        width: float = 1.0,
        dash: Sequence[float] = (),
    ) -> None:
        """A line on the sheet, outside all axes."""
        from matplotlib.lines import Line2D

        self._figure.add_artist(
            Line2D(
                [at / WIDTH for at in x],
                [1 - at / self._height for at in y],
                color=color,
                linewidth=width,
                linestyle=dashed(dash),
            )
        )

    def sample(self, x: float, y: float, style: Style, *, line: bool = True) -> None:
        """How a system is drawn, centred at ``x``."""
        from matplotlib.lines import Line2D

        if line:
            self.line((x - 16, x + 16), (y, y), color=style.color, width=1.6, dash=style.dash)
        place = ([x / WIDTH], [1 - y / self._height])
        self._figure.add_artist(Line2D(*place, **marked(style)))

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str, edge: str, hatch: str
    ) -> None:
        """A rectangle on the sheet from its upper left corner, outside all axes."""
        from matplotlib.patches import Rectangle

        low = 1 - (y + height) / self._height
        self._figure.add_artist(
            Rectangle(
                (x / WIDTH, low),
                width / WIDTH,
                height / self._height,
                facecolor=fill,
                edgecolor=edge,
                linewidth=0.8,
                hatch=hatch,
            )
        )

    def svg(self, *, title: str, description: str) -> str:
        """The finished picture."""
        file = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        self._figure.savefig(file, format="svg", metadata=nothing)
        return finish(
            file.getvalue(),
            title=clean(title),
            description=clean(description),
            texts=self._texts,
            size=(WIDTH, self._height),
        )


@contextmanager
def canvas(height: int) -> Iterator[Canvas]:
    """A blank sheet, :data:`WIDTH` wide.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingDependencyError(
            "the package matplotlib is not installed",
            where="pictures of a run",
            accepted="the extra `plots`",
            fix=how_to_add("plots"),
        ) from None
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        # The SVG backend counts 72 dots to the inch: with as many here, a point is a px.
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, facecolor=PAPER)
        FigureCanvasSVG(figure)
        yield Canvas(figure, height)


def marked(style: Style) -> dict[str, Any]:
    """matplotlib's properties of the marker of a system; plus and cross, being thin, are larger."""
    return {
        "color": style.color,
        "marker": style.marker,
        "markersize": 8 if style.marker in "PX" else 6,
        "markeredgecolor": PAPER,
        "markeredgewidth": 0.7,
        "clip_on": False,
    }


def dashed(dash: Sequence[float]) -> Any:
    """matplotlib's name for a pattern of dashes in px."""
    return (0, tuple(dash)) if dash else "solid"


def set_scale(axis: Axis, scale: Scale, *, ticks: int = 7) -> None:
    """Range and ticks of an axis in plain numbers; on a logarithmic one 1, 2, 5, 10 or decades."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

    across = axis is axis.axes.xaxis
    set_limits = axis.axes.set_xlim if across else axis.axes.set_ylim
    if scale.log:
        major, minor = _log_ticks(scale, ticks)
        (axis.axes.set_xscale if across else axis.axes.set_yscale)("log")
        axis.set_major_locator(FixedLocator(major))
        axis.set_minor_locator(FixedLocator(minor))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    set_limits(scale.low, scale.high)


def _log_ticks(scale: Scale, most: int) -> tuple[list[float], list[float]]:
    decades = range(int(np.floor(np.log10(scale.low))), int(np.ceil(np.log10(scale.high))) + 1)

    def at(*multiples: int, step: int = 1) -> list[float]:
        every = (float(f"{m}e{d}") for d in decades[::step] for m in multiples)
        return [value for value in every if scale.low <= value <= scale.high]

    major = at(1, 2, 5)
    if len(major) <= 1.5 * most:
        return major, sorted({*at(*range(1, 10))} - {*major})
    step = -(-len(decades) // most)
    return at(1, step=step), at(*range(1, 10)) if step == 1 else at(1)
