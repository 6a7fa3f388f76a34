"""Quality against time: which systems no other one beats in both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from retrieval_bench.core.errors import counted, distinct_names
from retrieval_bench.reports.render.text import clean, number
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.lettering import fitted, interval, width_of
from retrieval_bench_pictures.vega import Spec, mark

_LOG_FROM = 4.0
"""Largest to smallest time from which the axis of times is logarithmic."""

_HEIGHT = 320

_LINE = 13
"""Px from one line of a name to the next."""

_MANY = len(vega.STYLES)
"""Systems from which numbers stand beside the dots, and their names in a legend below."""


Step = tuple[str, float, float | None]
"""Place of a pipeline after a step: the name of that, quality, time."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Place of a system.

    Attributes:
        name: shown as it is; equal names are told apart by a number.
        quality: its mean; NaN = not known.
        ms: its time; None = not known.
        quality_ci, ms_ci: 95 % intervals, None where there is none.
        path: of a pipeline, where it is after each step but the last; one without a time is left
            out.
    """

    name: str
    quality: float
    ms: float | None
    quality_ci: tuple[float, float] | None = None
    ms_ci: tuple[float, float] | None = None
    path: tuple[Step, ...] = ()

    @property
    def has_place(self) -> bool:
        """True if both are known."""
        return self.ms is not None and self.ms > 0 and bool(np.isfinite(self.ms + self.quality))


def front(quality: Sequence[float], ms: Sequence[float]) -> list[bool]:
    """Return whether no other system is as good and as fast, and better in one of both."""
    q, t = np.array(quality, dtype=np.float64), np.array(ms, dtype=np.float64)
    as_good = (q[:, None] >= q) & (t[:, None] <= t)
    better = (q[:, None] > q) | (t[:, None] < t)
    unbeaten = ~np.any(as_good & better, axis=0)
    return [bool(best) for best in np.atleast_1d(unbeaten)]


def pareto(
    systems: Sequence[Spot],
    *,
    metric: str,
    level: str = "p95",
    unit: str = "",
    about: str = "",
    recommended: Collection[str] = (),
    width: int = vega.WIDTH,
) -> Spec:
    """Every system as a dot at its time and quality in the box of its two intervals; a step line
    joins those that no other one beats in both.

    Args:
        metric: name of the quality.
        level: what the times are, such as "p95".
        unit: what stands below the axis, where that is no time.
        recommended: names of the systems to mark by a ring and the word.
    """
    names = [clean(name) for name in distinct_names([spot.name for spot in systems])]
    rows = _rows(names, systems, recommended)
    paths: list[Spec] = [
        {"system": name, "after": step, "quality": quality, "ms": ms}
        for name, spot in zip(names, systems, strict=True)
        if spot.has_place
        for step, quality, ms in (*spot.path, ("", spot.quality, spot.ms))
        if spot.path and ms is not None and ms > 0
    ]
    missing = [name for name, spot in zip(names, systems, strict=True) if not spot.has_place]
    times = [row[end] for row in rows for end in ("left", "right")] + [step["ms"] for step in paths]
    quality = [row[end] for row in rows for end in ("low", "high")]
    across = vega.scale_for([np.array([time for time in times if time > 0])], _LOG_FROM)
    title = unit or f"{level} of all calls in ms"
    title += ", logarithmic" * (across["type"] == "log")
    x = vega.axis("ms", across, f"{title} ({'less' if unit else 'faster'}: left)")
    upwards = vega.around([*quality, *(step["quality"] for step in paths)], 0.08)
    y = vega.axis("quality", upwards, f"Mean {metric}", width)
    named = _labels(rows, paths, len(systems), (across, upwards), width)
    content = {
        "height": _HEIGHT,
        "data": {"values": rows},
        "encoding": {"x": x, "y": y},
        "layer": [*_marks(paths, (x, y), _channels(rows, len(systems), width)), *named],
    }
    return vega.picture(
        content,
        title=f"{metric} against {level}",
        about=about,
        notes=_notes(rows, missing, level, pipelines=bool(paths), many=len(systems) >= _MANY),
        said=_said(rows, paths, "" if unit else "ms "),
        width=width,
    )


def _rows(
    names: Sequence[str], systems: Sequence[Spot], recommended: Collection[str]
) -> list[Spec]:
    """Return the rows of systems that have a place; ``number`` counts from 1 in the order given."""
    rows: list[Spec] = [
        {"system": name, "number": at, "ms": spot.ms, "quality": spot.quality,
         "left": left, "right": right, "low": low, "high": high,
         "recommended": spot.name in recommended}
        for at, (name, spot) in enumerate(zip(names, systems, strict=True), start=1)
        if spot.ms is not None and spot.has_place
        for left, right in [spot.ms_ci or (spot.ms, spot.ms)]
        for low, high in [spot.quality_ci or (spot.quality, spot.quality)]
    ]  # fmt: skip
    on_front = front([row["quality"] for row in rows], [row["ms"] for row in rows])
    for row, best in zip(rows, on_front, strict=True):
        row |= {"front": best, "bold": best or row["recommended"]}
    return rows


def _channels(rows: Sequence[Spec], n: int, width: int) -> tuple[Spec, Spec]:
    """Build the channels of colour and of shape. Of many systems only the front stands out, and a
    legend says which number is which."""
    names = [row["system"] for row in rows]
    styles, key = [vega.STYLES[(row["number"] - 1) % _MANY] for row in rows], None
    if n >= _MANY:
        columns = 3 if vega.is_wide(width) else 2
        room = (width - 2 * vega.MARGIN) / columns - 60
        labels = [f"{row['number']} {fitted(row['system'], room)}" for row in rows]
        key = vega.legend(names, labels, columns)
        colors = [vega.INK if row["bold"] else vega.DOT for row in rows]
        styles = [vega.STYLES[0]._replace(color=color) for color in colors]
    color, _, shape = vega.told_apart(names, styles, key)
    return color, shape


def _marks(
    paths: Sequence[Spec], axes: tuple[Spec, Spec], look: tuple[Spec, Spec]
) -> Iterator[Spec]:
    """The front at the back, then the boxes, which cover it, and the dots on top."""
    (x, y), (color, shape) = axes, look
    steps = {"interpolate": "step-after", "strokeDash": [5, 3], "strokeWidth": 1.2}
    yield mark("line", color=vega.SOFT, **steps) | {"transform": [{"filter": "datum.front"}]}
    box = {**vega.span("x", x, "left", "right"), **vega.span("y", y, "low", "high")}
    yield mark("rect", None, box, color=vega.PAPER, opacity=0.7)
    edges = {**box, "color": color, "stroke": {**color, "legend": None}}
    yield mark("rect", None, edges, fillOpacity=0.12, strokeWidth=0.7)
    if paths:
        yield mark("line", paths, {"color": color, **vega.UNSORTED}, strokeWidth=1.1)
        rings = [step for step in paths if step["after"]]
        yield mark("point", rings, {"stroke": color}, fill=vega.PAPER, size=25)
    yield mark("point", None, {"color": color, "shape": shape})
    ring = mark("point", filled=False, stroke=vega.INK, strokeWidth=1.6, size=240)
    yield ring | {"transform": [{"filter": "datum.recommended"}]}


_Box = tuple[float, float, float, float]


def _labels(
    rows: Sequence[Spec], paths: Sequence[Spec], n: int, scales: tuple[Spec, Spec], width: int
) -> list[Spec]:
    """Names beside the dots, the recommended first: they get the better places."""
    wide, shown = vega.is_wide(width), []
    for row in sorted(rows, key=lambda row: (not row["recommended"], not row["front"])):
        text = str(row["number"])
        if n < _MANY:
            text = fitted(row["system"], 166 if wide else 120, bold=True)
            text += "\nrecommended" * row["recommended"]
        shown.append({**row, "text": text, "apart": 14 if row["recommended"] else 10})
    shown += [
        {**step, "text": fitted(f"{step['system']}: {step['after']}", 150), "apart": 10}
        for step in paths
        if step["after"] and wide and n < _MANY
    ]
    dots = [_on_sheet(item, *scales, width) for item in shown]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in dots]
    data = []
    for spot, dot in zip(shown, dots, strict=True):
        place, box = _free_place(dot, spot["text"].split("\n"), spot["apart"], taken, width)
        taken.append(box)
        data.append({**{key: spot.get(key) for key in ("ms", "quality", "text", "bold")}, **place})
    look: Spec = {key: {"expr": f"datum.{key}"} for key in ("align", "dx", "dy")}
    look |= {"baseline": "top", "lineBreak": "\n", "lineHeight": _LINE,
             "fontWeight": {"expr": "datum.bold ? 'bold' : 'normal'"}}  # fmt: skip
    bold = {"condition": {"test": "datum.bold", "value": vega.INK}, "value": vega.SOFT}
    name = {"text": {"field": "text"}, "color": bold}
    halo = {"stroke": vega.PAPER, "strokeWidth": 3, "opacity": 0.7}
    return [mark("text", data, name, **look, **halo), mark("text", data, name, **look)]


def _on_sheet(spot: Spec, across: Spec, upwards: Spec, width: int) -> tuple[float, float]:
    """Estimate where a dot is, in px from the upper left corner of the axes."""
    (left, right), (low, high) = across["domain"], upwards["domain"]
    scale = log if across["type"] == "log" else float
    share = (scale(spot["ms"]) - scale(left)) / (scale(right) - scale(left))
    return (width - 70) * share, _HEIGHT * (high - spot["quality"]) / (high - low)


def _free_place(
    dot: tuple[float, float], lines: Sequence[str], apart: float, taken: Sequence[_Box], width: int
) -> tuple[Spec, _Box]:
    """Beside, above or below a dot: where its name hides least of what is ``taken``."""
    (x, y), across, up = dot, max(width_of(line, bold=True) for line in lines), _LINE * len(lines)
    choices: list[tuple[float, int, Spec, _Box]] = []
    for align, dx, start in (("left", apart, 0.0), ("right", -apart, across),
                             ("left", 5.0, 0.0), ("right", -5.0, across)):  # fmt: skip
        for dy in (-up / 2,) if abs(dx) == apart else (-apart - up + 4, apart - 4):
            left, top = x + dx - start, y + dy
            box = (left, top, left + across, top + up)
            outside = (-left, left + across - width + 62, -top, top + up - _HEIGHT)
            hidden = sum(_shared(box, other) for other in taken)
            price = hidden + 100 * sum(max(away, 0.0) for away in outside)
            choices.append((price, len(choices), {"align": align, "dx": dx, "dy": dy}, box))
    *_, place, box = min(choices, key=lambda choice: choice[:2])
    return place, box


def _shared(box: _Box, other: _Box) -> float:
    """The area that both share."""
    across = min(box[2], other[2]) - max(box[0], other[0])
    return max(across, 0.0) * max(min(box[3], other[3]) - max(box[1], other[1]), 0.0)


def _notes(
    rows: Sequence[Spec], missing: Sequence[str], level: str, *, pipelines: bool, many: bool
) -> list[str]:
    if not rows:
        return [f"No system has both a mean and a {level}."]
    cheap = "cheap" if level == "money" else "fast"
    notes = [f"Dashed line: no other system is both as good and as {cheap}. Boxes: 95 % intervals."]
    if many and any(row["recommended"] for row in rows):
        notes[0] += " Rings: recommended."
    if pipelines:
        notes.append("Small rings and solid lines: a pipeline after each of its steps.")
    if missing:
        shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" * (len(missing) > 4))
        what = level if level == "money" else f"a {level}"
        notes.append(f"Systems without a mean or {what} are not shown: {shown}.")
    return notes


def _said(rows: Sequence[Spec], paths: Sequence[Spec], unit: str) -> list[str]:
    order = sorted(rows, key=lambda r: (not r["recommended"], not r["front"], -r["quality"]))
    best = sum(row["front"] for row in rows)
    said = [f"{counted(best, 'system')} on the front."] if rows else []
    said += [
        f"{r['system']}{', recommended' * r['recommended']}{', on the front' * r['front']}: "
        f"quality {r['quality']:.4f} [{r['low']:.4f}, {r['high']:.4f}], "
        f"{number(r['ms'])} {unit}{interval((r['left'], r['right']))}."
        for r in order
    ]
    return said + [
        f"{s['system']} after {s['after']}: quality {s['quality']:.4f}, {number(s['ms'])} ms."
        for s in paths
        if s["after"]
    ]
