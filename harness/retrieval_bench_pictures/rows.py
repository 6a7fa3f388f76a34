"""Rows below each other: a name on the left, marks on one axis, figures in columns on the right."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.types import EMPTY
from retrieval_bench_pictures.lettering import fitted, width_of
from retrieval_bench_pictures.vega import SOFT, Spec, mark

COLUMN = 54
"""Px of a column of figures."""

STEP = 18
"""Px from one row to the next."""


def rows_of(
    labels: Sequence[str],
    marks: Sequence[Spec],
    *,
    names: int,
    width: int | None = None,
    figures: Mapping[str, Sequence[str]] = EMPTY,
    align: str = "right",
    bold: Sequence[int] = (),
) -> Spec:
    """A view of as many rows as there are ``labels``; ``marks`` have the field ``row``, from 0.

    Args:
        names: px for the labels, which are cut to it; 0 = none are shown.
        width: px of the axis; None = as much as there is room for.
        figures: head of each column, and a text for each row.
        bold: rows whose label is a heading.
    """
    room = max(names - 8, 0)
    shown = [fitted(label, room, bold=at in bold) for at, label in enumerate(labels)] or [""]
    # Readers have fonts of their own, which may be wider than the one that Vega measures with.
    extent = names if width is not None else 8 + max(width_of(text, bold=True) for text in shown)
    weight = {"test": f"indexof({list(bold)}, datum.value) >= 0", "value": "bold"}
    look = {
        "title": None, "domain": False, "ticks": False, "grid": False, "labelOverlap": False,
        "labels": names > 0,
        "labelPadding": 6, "minExtent": extent, "maxExtent": extent,
        "labelExpr": f"{json.dumps(shown)}[datum.value]",
        "labelFontWeight": {"condition": weight, "value": "normal"},
    }  # fmt: skip
    scale = {"domain": list(range(len(shown)))}
    columns = []
    for at, (head, texts) in enumerate(figures.items()):
        beside = COLUMN * (at + 1) if align == "right" else 8
        place: Any = {"expr": f"width + {beside}"} if width is None else width + beside
        x = {"x": {"value": place}}
        cells = [{"row": row, "text": text} for row, text in enumerate(texts)]
        across = {"align": align, "baseline": "middle"}
        columns.append(mark("text", cells, {**x, "text": {"field": "text"}}, **across))
        top = {**x, "y": {"value": -8}, "text": {"value": head}}
        columns.append(mark("text", [{}] if head else [], top, color=SOFT, **across))
    return {
        "height": {"step": STEP},
        **({} if width is None else {"width": width}),
        "encoding": {"y": {"field": "row", "type": "ordinal", "scale": scale, "axis": look}},
        "layer": [*marks, *columns],
    }
