"""A sheet measured in px from its upper left corner, on which the pictures are laid out.

matplotlib's object-oriented interface and its SVG backend alone: no window, no global figure. Its
settings are put to its defaults while a picture is drawn, and back afterwards, so that a user's
own do not change a report.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installation import how_to_add
from retrieval_bench.reports.pictures.palette import GRID, INK, PAPER, SOFT, Style
from retrieval_bench.reports.pictures.svg import finish
from retrieval_bench.reports.render.text import clean, fitted, tick, width_of, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH, NARROW = 720, 358
"""Of a picture for a desk and of one for a phone, in px: a screen of 390 px shows the latter at its
natural size, between margins of 16 px."""

SMALL, NORMAL, LARGE = 11, 12, 14

_WIDE_FROM = 560
"""Px from which a sheet has room for figures and labels beside its axes."""

_HEAD_LINE, _LINE, _BETWEEN = 18, 15, 3
"""Px of a line of the heading and of a note, and px between two notes."""

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


def is_wide(width: int) -> bool:
    """Whether a sheet has room for figures and labels beside its axes."""
    return width >= _WIDE_FROM


def margin(width: int) -> int:
    """Px that stay free at either side of a sheet."""
    return 16 if is_wide(width) else 8


class Frame(NamedTuple):
    """Where a pair of axes lies on the sheet, in px from its upper left corner."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The end of the axis across."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Where the axis across lies."""
        return self.top + self.height

    @property
    def middle(self) -> float:
        """Half the way from left to right."""
        return self.left + self.width / 2


def frame_for(width: int, height: float, *, labels: float = 0, right: float = 16) -> Frame:
    """Axes that take the width of the sheet but for ``right`` px and, on the left, what labels of
    so many px need; the label of a narrow sheet's upward axis stands above it."""
    left, top = (max(64, labels + 28), 58) if is_wide(width) else (max(48, labels + 16), 78)
    return Frame(left, top, width - left - right, height)


class Canvas:
    """One picture that is being drawn; all lengths in px.

    Attributes:
        width: of the sheet.
        margin: what stays free at either side.
    """

    def __init__(self, figure: Figure, width: int, height: int, lower: int) -> None:
        self.width = width
        self.margin = margin(width)
        self._figure = figure
        self._height = height
        self._lower = lower
        self._texts: dict[str, str] = {}

    def _across(self, x: float) -> float:
        return x / self.width

    def _up(self, y: float) -> float:
        return 1 - (y + self._lower) / self._height

    def panel(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        *,
        grid: Literal["both", "x", "y"] | None = "both",
    ) -> Axes:
        """A pair of axes without upper and right border, with grid lines behind the data."""
        axes = self._figure.add_axes(
            (
                self._across(left),
                self._up(top + height),
                self._across(width),
                height / self._height,
            )
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
        if grid is not None:
            axes.grid(visible=True, axis=grid, color=GRID, linewidth=0.7, clip_on=False)
        return axes

    def label(self, frame: Frame, *, across: str, upwards: str, below: float = 34) -> None:
        """What the axes show: ``across`` so many px ``below`` them, ``upwards`` beside them, or
        above them on a narrow sheet."""
        if is_wide(self.width):
            self.write(frame.middle, frame.bottom + below, across, anchor="center")
            middle = frame.top + frame.height / 2
            self.write(13, middle, fitted(upwards, frame.height), anchor="center", upwards=True)
        else:
            room = self.width - 2 * self.margin
            text = fitted(across, room)
            self.write(self.width / 2, frame.bottom + below, text, anchor="center")
            self.write(self.margin, frame.top - 12, fitted(upwards, room))

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
            self._across(x),
            self._up(y),
            token,
            size=size,
            color=color,
            ha=anchor,
            va="baseline",
            weight="bold" if bold else "normal",
            rotation=90 if upwards else 0,
            rotation_mode="anchor",
        )

    def lines(
        self,
        y: float,
        lines: Sequence[str],
        step: float = _LINE,
        *,
        x: float | None = None,
        size: float = SMALL,
        color: str = INK,
        bold: bool = False,
    ) -> None:
        """Text that is broken to lines already, from the left margin or ``x`` on."""
        for at, line in enumerate(lines):
            left = self.margin if x is None else x
            self.write(left, y + step * at, line, size=size, color=color, bold=bold)

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
                [self._across(at) for at in x],
                [self._up(at) for at in y],
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
        place = ([self._across(x)], [self._up(y)])
        self._figure.add_artist(Line2D(*place, **marked(style)))

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str, edge: str, hatch: str
    ) -> None:
        """A rectangle on the sheet from its upper left corner, outside all axes."""
        from matplotlib.patches import Rectangle

        self._figure.add_artist(
            Rectangle(
                (self._across(x), self._up(y + height)),
                self._across(width),
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
            size=(self.width, self._height),
        )


@contextmanager
def canvas(
    height: float,
    width: int = WIDTH,
    *,
    title: str = "",
    about: str = "",
    notes: Sequence[str] = (),
) -> Iterator[Canvas]:
    """A sheet with a heading at its top and notes at its foot, both broken to its width.

    Args:
        height: of the picture between them, where the heading is a line each; the sheet is as
            much higher as texts of several lines and notes take, and what is drawn lies lower.
        title, about: the heading, which leaves off at 46 px.
        notes: each begins a line of its own.

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

    room = width - 2 * margin(width)
    head = wrapped(title, room, size=LARGE, bold=True, most=3)
    small = wrapped(about, room, most=3)
    foot = [wrapped(note, room) for note in notes]
    lower = _HEAD_LINE * max(len(head) - 1, 0) + _LINE * max(len(small) - 1, 0)
    below = sum(_LINE * len(note) + _BETWEEN for note in foot)
    down = round(height) + lower + below
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        # The SVG backend counts 72 dots to the inch: with as many here, a point is a px.
        figure = Figure(figsize=(width / 72, down / 72), dpi=72, facecolor=PAPER)
        FigureCanvasSVG(figure)
        sheet = Canvas(figure, width, down, lower)
        # The heading stands where it would if it took a line each; only what follows lies lower.
        sheet.lines(24 - lower, head, _HEAD_LINE, size=LARGE, bold=True)
        sheet.lines(41 - _LINE * max(len(small) - 1, 0), small, color=SOFT)
        y = height
        for note in foot:
            sheet.lines(y, note, color=SOFT)
            y += _LINE * len(note) + _BETWEEN
        yield sheet


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


def width_of_ticks(scale: Scale, *, ticks: int) -> float:
    """Px that the labels of an axis take, rather too many, as :func:`set_scale` writes them."""
    ends = {scale.low: scale.low, scale.high: scale.high}
    if not scale.log:
        finest = (scale.high - scale.low) / (10 * ticks)
        ends = dict.fromkeys(ends, finest)
    decimals = {end: max(0, -math.floor(math.log10(finest))) for end, finest in ends.items()}
    return max(width_of(f"{end:,.{places}f}") for end, places in decimals.items())


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
