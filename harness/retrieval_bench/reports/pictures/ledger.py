"""What the parts of a retriever buy and take: for each its gain with an interval, and beside it its
share of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_bench.core.figures import short_ms, signed
from retrieval_bench.reports.pictures import vega
from retrieval_bench.reports.pictures.rows import COLUMN, STEP, rows_of
from retrieval_bench.reports.pictures.vega import Spec, mark
from retrieval_bench.reports.render.text import clean, fitted

_NAMES, _WORTH = 130, 70
"""Px for the name of a part, and for what is said of it."""

_LOOKS = {True: vega.STYLES[0], False: vega.STYLES[1], None: vega.STYLES[7]}

_NOTE = (
    "A dot is the mean with the part minus the mean without it, its line the 95 % interval of all "
    "parts together. Times are computed from the stages of the measured calls."
)


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

    def described(self, metric: str) -> str:
        gain = "gain not known" if self.gain is None else f"{signed(self.gain, 3)} {metric}"
        time = "" if self.ms is None else f", {short_ms(self.ms)} ms"
        return f"{self.name}: {gain}, {self.worth}{time}."


def parts(
    bars: Sequence[PartBar], *, name: str, metric: str, about: str = "", width: int = vega.WIDTH
) -> Spec:
    """Gains as dots with their intervals beside the line of no gain, times as bars.

    Args:
        name: of the retriever.
        metric: of the gains.
    """
    wide, room = vega.is_wide(width), width - 2 * vega.MARGIN
    across = int(0.62 * room) if wide else room
    times = _times(bars, room - across - 20, names=0) if wide else _times(bars, room, names=_NAMES)
    return vega.picture(
        {"hconcat" if wide else "vconcat": [_gains(bars, metric, across), times], "spacing": 20},
        title=f"What each part of {fitted(name, 240)} buys",
        about=about,
        notes=[_NOTE],
        said=[clean(bar.described(metric)) for bar in bars],
        width=width,
    )


def _gains(bars: Sequence[PartBar], metric: str, across: int) -> Spec:
    data = [
        {"row": at, "system": str(bar.good), "gain": bar.gain, "low": low, "high": high}
        for at, bar in enumerate(bars)
        if bar.gain is not None
        for low, high in [bar.ci95 or (bar.gain, bar.gain)]
    ]
    ends = [end for bar in bars if bar.gain is not None for end in bar.ci95 or (bar.gain,)]
    x = vega.axis("gain", vega.around([0.0, *ends], 0.08), tickCount=4)
    color, _, shape = vega.told_apart([str(good) for good in _LOOKS], list(_LOOKS.values()))
    down = {"y": {"value": 0}, "y2": {"value": STEP * max(len(bars), 1)}}
    return {
        "title": {"text": f"Gain in {fitted(metric, 180)}", "fontSize": 11, "offset": 6},
        **rows_of(
            [bar.name for bar in bars],
            [
                mark("rule", [{"gain": 0}], {"x": x, **down}),
                mark("rule", data, {**vega.span("x", x, "low", "high"), "color": color}),
                mark("point", data, {"x": x, "color": color, "shape": shape}),
            ],
            names=_NAMES,
            width=across - _NAMES - _WORTH,
            figures={"": [bar.worth for bar in bars]},
            align="left",
        ),
    }


def _times(bars: Sequence[PartBar], across: int, *, names: int) -> Spec:
    most = max((bar.ms or 0.0 for bar in bars), default=0.0)
    x = vega.axis("ms", vega.linear(0.0, 1.05 * most or 1.0), tickCount=3)
    data = [{"row": at, "ms": bar.ms} for at, bar in enumerate(bars) if bar.ms is not None]
    return {
        "title": {"text": "ms of the median call", "fontSize": 11, "offset": 6},
        **rows_of(
            [bar.name for bar in bars],
            [mark("bar", data, {"x": x}, color=vega.FILL, height=11)],
            names=names,
            width=across - names - COLUMN,
            figures={"": ["not known" if bar.ms is None else short_ms(bar.ms) for bar in bars]},
        ),
    }
