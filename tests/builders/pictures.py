"""What is read in specifications of pictures and in what is drawn of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:  # the package may be away
    from retrieval_bench_pictures.vega import Spec

SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 150_000
"""Bytes of the largest picture."""
TEXTS = [
    "양자 컴퓨터는 어떻게 작동합니까?",
    "为什么天空是蓝色的？",
    "ما هي عاصمة فرنسا؟",
    "qu'est-ce que l'été ?",
    "👩‍👩‍👧‍👦 🎉",
    '<script>alert("x")</script>',
    "'\"&amp; $x^2$ %d \\alpha ~0~ \\n {{x}}",
    "two\nlines\tand \x00 \ud800 \uffff",
]


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(svg: str) -> list[str]:
    """All that is written, a line each."""
    return [
        line.text or ""
        for text in parsed(svg).iter(f"{SVG}text")
        for line in (text.findall(f"{SVG}tspan") or [text])
    ]


def described(spec: Spec) -> str:
    return str(spec["description"])


def layers(spec: Spec) -> Iterator[Spec]:
    """The marks of all views, in the order drawn."""
    for inner in ("concat", "hconcat", "vconcat", "layer"):
        for view in spec.get(inner, []):
            yield from layers(view)
    if "mark" in spec:
        yield spec


def data(spec: Spec, kind: str, *fields: str) -> list[dict[str, Any]]:
    """The rows of the first marks of a kind that have all ``fields``."""
    inherited = spec.get("data", {"values": []})["values"]
    for layer in layers(spec):
        rows: list[dict[str, Any]] = layer.get("data", {"values": inherited})["values"]
        if layer["mark"]["type"] == kind and rows and set(fields) <= set(rows[0]):
            return rows
    return []


def notes(spec: Spec) -> str:
    return " ".join(spec["title"]["subtitle"])
