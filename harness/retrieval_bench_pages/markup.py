"""HTML that is safe by construction: whatever is not :class:`Markup` is text, and is escaped.

Text comes from anywhere. Control characters and lone surrogates, which HTML cannot hold, are shown
as U+FFFD; what would turn the direction of the text around it is left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any

from retrieval_bench.core.figures import DIRECTIONS

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]|[\u202a-\u202e\u2066-\u2069]"
)

_VOID = frozenset({"meta", "link", "br", "input"})


class Markup(str):
    """HTML, written by this package and free of unescaped data."""

    __slots__ = ()


def harmless(text: str) -> str:
    """``text`` with what no page should hold replaced or left out."""
    return _HARMFUL.sub(lambda match: "" if match[0] in DIRECTIONS else "\ufffd", text)


def escaped(text: str) -> Markup:
    """``text`` as HTML, in an element or between double quotes; markup as it is."""
    return text if isinstance(text, Markup) else Markup(html.escape(harmless(text)))


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """One part behind the other."""
    return Markup(escaped(between).join(map(escaped, parts)))


def el(tag: str, *children: str, **attributes: Any) -> Markup:
    """An element.

    Args:
        attributes: True writes the name alone; None and False write nothing; an underscore at the
            end goes, and others become hyphens: ``class_="note", aria_label="..."``.
    """
    written = "".join(
        f" {_name(name)}" if value is True else f' {_name(name)}="{escaped(str(value))}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{joined(children)}</{tag}>")


def own_direction(text: str) -> Markup:
    """Text from data within a sentence: what direction it has stays its own."""
    return el("bdi", text)


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")
