"""From matplotlib's SVG to one that is small, stands in any page, and follows dark mode.

matplotlib writes styles as CSS for the whole document and ids that every figure shares; two such
pictures in one HTML page disturb each other and the page. Here styles become attributes, ids
become the picture's own, and the only style sheet is limited to the picture.

A picture has a background of its own and switches ink and background together by
``prefers-color-scheme``. So it is readable on every page, also where the page is light and the
reader's system dark; a transparent picture is not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from retrieval_bench.reports.pictures.palette import DARK

FONTS = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', "
    "'Noto Sans', 'Apple SD Gothic Neo', 'Malgun Gothic', 'Noto Sans KR', 'Noto Sans CJK KR', "
    "'Hiragino Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Noto Sans Arabic', "
    "'Noto Naskh Arabic', sans-serif"
)
"""The reader's own fonts, the common scripts among them; none is loaded from anywhere. No emoji
font, which has digits too and some viewers take them from there; emoji are found without."""

_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"#([\w.-]+)")
_STEP = re.compile(r"\s*([MLQCz])\s*")
_POINT = re.compile(r"M(-?[\d.]+) (-?[\d.]+)L\1 \2(?![\d.])")
_FONT = re.compile(r"(?:(\d+) )?([\d.]+px) ")
_DEFAULTS = {
    ("stroke-linejoin", "round"),
    ("stroke-linecap", "butt"),
    ("text-anchor", "start"),
    ("stroke", "none"),
    ("opacity", "1"),
}
_OWN = ("id", "d", "x", "y", "transform", "width", "height", "xlink:href")
_HREF = "{http://www.w3.org/1999/xlink}href"


def finish(
    drawn: str, *, title: str, description: str, texts: Mapping[str, str], size: tuple[int, int]
) -> str:
    """The picture as it is saved.

    Args:
        drawn: what matplotlib wrote.
        title, description: for those who do not see the picture.
        texts: placeholder in ``drawn`` -> the text that belongs there. matplotlib is never shown
            a text from data: it would look for every glyph in its own font.
        size: width and height in px.
    """
    seed = "\0".join((drawn, title, description, *texts.values()))
    own = "p" + hashlib.sha256(seed.encode()).hexdigest()[:10]
    names = {name: f"{own}-{i}" for i, name in enumerate(_referenced(drawn))}
    body = "".join(_body(_leaves(ElementTree.fromstring(drawn), names, texts)))
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'id="{own}" role="img" aria-labelledby="{own}-t {own}-d" direction="ltr" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'style="max-width:100%;height:auto" stroke-linejoin="round" font-family="{FONTS}">\n'
        f'<title id="{own}-t">{escape(title)}</title>\n'
        f'<desc id="{own}-d">{escape(description)}</desc>\n'
        f"<style>{_dark_rules(own, body)}</style>\n{body}</svg>\n"
    )


def _referenced(drawn: str) -> list[str]:
    """The ids that something refers to, in the order of reference."""
    return list(dict.fromkeys(_REFERENCE.findall(" ".join(_references(drawn)))))


def _references(drawn: str) -> Iterator[str]:
    return (m.group(0) for m in re.finditer(r'(?:url\(|href=")#[\w.-]+', drawn))


def _dark_rules(own: str, body: str) -> str:
    rules = (
        f'#{own} [{paint}="{light}"]{{{paint}:{dark}}}'
        for light, dark in DARK.items()
        for paint in ("fill", "stroke")
        if f'{paint}="{light}"' in body
    )
    return "@media (prefers-color-scheme:dark){" + "".join(rules) + "}"


class _Leaf(NamedTuple):
    """Something drawn: attributes that neighbours may share, those of its own, what is inside."""

    tag: str
    shared: dict[str, str]
    own: dict[str, str]
    inside: str = ""


def _body(leaves: Iterable[_Leaf]) -> Iterator[str]:
    """Elements in the order drawn; what neighbours share is written once."""
    for (tag, shared), run in groupby(leaves, key=lambda leaf: (leaf.tag, leaf.shared)):
        alike = list(run)
        if tag == "path" and not any("id" in leaf.own for leaf in alike):
            path = "".join(leaf.own.get("d", "") for leaf in alike)
            yield f"<path{_written(shared)} d={quoteattr(path)}/>\n"
        elif len(alike) < 3:
            yield from (_tagged(tag, {**shared, **leaf.own}, leaf.inside) for leaf in alike)
        else:
            yield f"<g{_written(shared)}>\n"
            yield from (_tagged(tag, leaf.own, leaf.inside) for leaf in alike)
            yield "</g>\n"


def _leaves(
    element: ElementTree.Element, names: Mapping[str, str], texts: Mapping[str, str]
) -> Iterator[_Leaf]:
    """What is drawn in ``element``; groups that say nothing are dissolved."""
    tag = element.tag.rpartition("}")[2]
    if tag in ("metadata", "style"):
        return
    attributes = _attributes(element, names)
    own = {name: attributes.pop(name) for name in _OWN if name in attributes}
    if tag == "text":
        yield _Leaf(tag, attributes, own, escape(texts.get(element.text or "", element.text or "")))
        return
    children = [leaf for child in element for leaf in _leaves(child, names, texts)]
    if tag == "svg" or (tag == "g" and not attributes and not own):
        yield from children
    elif tag == "defs":
        # A marker takes its colours from where it is used: rules of a style sheet reach only there.
        bare = (
            leaf._replace(shared=_without_paint(leaf.shared)) if leaf.tag == "path" else leaf
            for leaf in children
        )
        if content := "".join(_body(bare)):
            yield _Leaf(tag, {}, {}, content)
    elif tag != "g" or children:
        yield _Leaf(tag, attributes, own, "".join(_body(children)))


def _without_paint(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in attributes.items() if name not in ("fill", "stroke")}


def _tagged(tag: str, attributes: Mapping[str, str], inside: str) -> str:
    return f"<{tag}{_written(attributes)}" + (f">{inside}</{tag}>\n" if inside else "/>\n")


def _written(attributes: Mapping[str, str]) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())


def _attributes(element: ElementTree.Element, names: Mapping[str, str]) -> dict[str, str]:
    """Attributes with styles among them, what is the default anyway left out."""
    found: dict[str, str] = {}
    for name, value in element.items():
        if name == "id":
            if value in names:
                found["id"] = names[value]
        elif name == "style":
            styles = (part.partition(":") for part in value.split(";") if part.strip())
            found |= {key.strip(): setting.strip() for key, _, setting in styles}
        elif name == "transform" and value.startswith("rotate(-0 "):
            pass
        else:
            found["xlink:href" if name == _HREF else name] = value
    found.pop("font-family", None)
    if shorthand := _FONT.match(found.pop("font", "")):  # as matplotlib wrote it once
        weight, size = shorthand.groups()
        found |= {"font-size": size} | ({"font-weight": weight} if weight else {})
    return {
        name: _short(name, _REFERENCE.sub(lambda m: "#" + names.get(m[1], m[1]), value))
        for name, value in found.items()
        if (name, value) not in _DEFAULTS
    }


def _short(name: str, value: str) -> str:
    if name in ("id", "fill", "stroke", "clip-path", "xlink:href"):
        return value
    value = _NUMBER.sub(_two_decimals, value)
    if name != "d":
        return value
    # A point drawn with a round pen is a line of no length.
    return _POINT.sub(r"M\1 \2h0", _STEP.sub(r"\1", value.strip()))


def _two_decimals(found: re.Match[str]) -> str:
    text = f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
