"""Where the texts and shapes of a picture lie, read from its SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

from retrieval_bench.reports.pictures.labels import Box
from retrieval_bench.reports.render.text import width_of

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"


class Text(NamedTuple):
    text: str
    box: Box
    size: float
    color: str


def texts(svg: str) -> list[Text]:
    """All texts with the room they take; those that are written upwards turned as they are."""
    found = []
    for element, given in _drawn(ElementTree.fromstring(svg), {}):
        if element.tag != f"{_SVG}text":
            continue
        size = float(given["font-size"].removesuffix("px"))
        width = width_of(element.text or "", size=size, bold=given.get("font-weight") == "700")
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[given.get("text-anchor", "start")]
        x, y = float(given["x"]), float(given["y"])
        box = Box(x - share * width, y - 0.75 * size, x + (1 - share) * width, y + 0.2 * size)
        if "rotate(-90" in given.get("transform", ""):
            box = Box(x - 0.75 * size, y - (1 - share) * width, x + 0.2 * size, y + share * width)
        found.append(Text(element.text or "", box, size, given["fill"]))
    return found


def shapes(svg: str) -> list[Box]:
    """The room of every line, area and marker but the background."""
    root = ElementTree.fromstring(svg)
    markers = {e.get("id"): _extent(e.get("d") or "") for e in root.iter(f"{_SVG}path")}
    found = []
    for element, given in _drawn(root, {}):
        if element.tag == f"{_SVG}use":
            own = markers[(element.get(_HREF) or "").removeprefix("#")]
            x, y = float(given.get("x", 0)), float(given.get("y", 0))
            found.append(Box(own.left + x, own.top + y, own.right + x, own.bottom + y))
        elif element.tag == f"{_SVG}path" and "id" not in element.attrib:
            found.append(_extent(given["d"]))
    return found[1:]


def dots(svg: str) -> list[Box]:
    """The markers of systems, and the rings around them."""
    sizes = ((box, box.right - box.left, box.bottom - box.top) for box in shapes(svg))
    return [box for box, across, down in sizes if 4 < across < 20 and abs(across - down) < 2]


def faults(svg: str) -> list[str]:
    """What lies outside the sheet, is too small to read, or is written over another text."""
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    inside = Box(-0.6, -0.6, width + 0.6, height + 0.6)
    written = texts(svg)
    said = [f"outside: {t.text!r} {t.box}" for t in written if not _holds(inside, t.box)]
    said += [f"outside: shape {box}" for box in shapes(svg) if not _holds(inside, box)]
    said += [f"small: {t.text!r} {t.size}" for t in written if t.size < 10]
    said += [
        f"overlap: {one.text!r} {other.text!r}"
        for one, other in combinations(written, 2)
        if one.box.covers(other.box) > 0.5
    ]
    return said


def _drawn(
    element: ElementTree.Element, given: dict[str, str]
) -> Iterator[tuple[ElementTree.Element, dict[str, str]]]:
    """Elements that are seen, with the attributes that they inherit."""
    if element.tag == f"{_SVG}defs":
        return
    given = {**given, **element.attrib}
    yield element, given
    for child in element:
        yield from _drawn(child, given)


def _extent(path: str) -> Box:
    """The room of a path, none of an empty one; points that steer a curve count as its own."""
    x, y = [], []
    for step, numbers in re.findall(r"([MLQCzh])([^MLQCzh]*)", path):
        at = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if step != "h":
            x += at[::2]
            y += at[1::2]
    return Box(min(x), min(y), max(x), max(y)) if x else Box(0, 0, 0, 0)


def _holds(outer: Box, inner: Box) -> bool:
    return (
        outer.left <= inner.left
        and outer.top <= inner.top
        and inner.right <= outer.right
        and inner.bottom <= outer.bottom
    )
