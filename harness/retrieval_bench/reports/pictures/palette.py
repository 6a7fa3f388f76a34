"""Colours, dashes and markers. No two systems differ by colour alone."""

from __future__ import annotations

from typing import NamedTuple

INK = "#1c1c1e"
SOFT = "#5c5c63"
GRID = "#dcdce0"
PAPER = "#ffffff"
DOT = "#8d8d96"
FILL = "#a9c4e4"

DARK = {
    INK: "#ececf0",
    SOFT: "#b0b0b8",
    GRID: "#3b3d44",
    PAPER: "#17181c",
    DOT: "#84848e",
    FILL: "#3f638f",
    "#0b57a4": "#74b4ff",
    "#c1440e": "#ff9a66",
    "#0d7a56": "#4fcfa3",
    "#7b3fa0": "#cf9df2",
    "#8a6100": "#e8c154",
    "#b1296c": "#ff8fc3",
    "#176f7d": "#63d2e2",
    "#4a4a50": "#c9c9d1",
}
"""Colour of a picture -> what it is on a dark screen. Nothing is drawn in another colour."""


class Style(NamedTuple):
    """How one system is drawn; ``dash`` is a pattern in px, empty for a solid line."""

    color: str
    dash: tuple[float, ...]
    marker: str


STYLES = (
    Style("#0b57a4", (), "o"),
    Style("#c1440e", (6, 2.5), "s"),
    Style("#0d7a56", (1.5, 2), "^"),
    Style("#7b3fa0", (8, 2, 1.5, 2), "D"),
    Style("#8a6100", (3.5, 2), "v"),
    Style("#b1296c", (10, 3), "P"),
    Style("#176f7d", (6, 2, 1.5, 2, 1.5, 2), "X"),
    Style("#4a4a50", (1, 3.5), "p"),
)
"""As many systems as one pair of axes can show apart."""
