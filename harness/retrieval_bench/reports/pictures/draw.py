"""The way from a specification of Vega-Lite to an SVG that stands in any page and follows dark
mode.

``vl-convert-python`` runs Vega without a browser. What it writes has the ids and fonts of a page
of its own; here ids become the picture's own, the fonts the reader's, and a style sheet that is
limited to the picture turns ink and background together where the reader's system is dark. So a
picture is readable on every page, also where the page is light and the system is not.
"""

from __future__ import annotations

import hashlib
import json
import re
from xml.sax.saxutils import escape

from retrieval_bench.core.installed.installation import require
from retrieval_bench.reports.pictures.vega import DARK, VERSION, Spec

FONTS = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', "
    "'Noto Sans', 'Apple SD Gothic Neo', 'Malgun Gothic', 'Noto Sans KR', 'Noto Sans CJK KR', "
    "'Hiragino Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', 'Noto Sans Arabic', "
    "'Noto Naskh Arabic', sans-serif"
)
"""The reader's own fonts, the common scripts among them; none is loaded from anywhere. No emoji
font, which has digits too and some viewers take them from there; emoji are found without."""

_SIZE = re.compile(r'<svg [^>]*width="([\d.]+)" height="([\d.]+)"[^>]*>')
_NOTHING = re.compile(
    r'<path class="(?:fore|back)ground"[^>]*? d="(?:M0,0h0v0h0Z)?"[^>]*/>|<text [^>]*/>'
    r'| (?:class|role|aria-\w+|pointer-events|font-family)="[^"]*"| opacity="1"'
    r'| text-anchor="start"| stroke-width="1"| transform="translate\(0,0\)"'
)
_EMPTY = re.compile(r"<g[^>]*(?:/>|(?<!/)></g>)")
_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")


def svg(spec: Spec) -> str:
    """The picture as text: with a title and a description for those who do not see it, texts as
    texts, no script, and no reference to anything outside.

    Raises:
        MissingDependencyError: vl-convert-python is not installed.
    """
    require("vl-convert-python", "plots", "pictures of a run")
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(json.dumps(spec, allow_nan=False), vl_version=VERSION)
    root = _SIZE.match(drawn)
    assert root is not None, "Vega begins with the size of the picture"
    width, height = root.groups()
    body = _outside_texts(drawn[root.end() :].removesuffix("</svg>"))
    title, description = " ".join(spec["title"]["text"]), spec["description"]
    own = "p" + hashlib.sha256(f"{body}\0{title}\0{description}".encode()).hexdigest()[:10]
    body = re.sub(r'(id="|url\(#)(?=\w)', rf"\g<1>{own}-", body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{own}" role="img" '
        f'aria-labelledby="{own}-t {own}-d" direction="ltr" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" style="max-width:100%;height:auto" '
        f'font-family="{FONTS}">\n<title id="{own}-t">{escape(title)}</title>\n'
        f'<desc id="{own}-d">{escape(description)}</desc>\n'
        f"<style>{_dark_rules(own, body)}</style>\n{body}</svg>\n"
    )


def _outside_texts(drawn: str) -> str:
    """Leave out what says nothing, with numbers to a hundredth; what is written stays as it is."""
    parts = re.split(r"(?<=>)([^<]+)(?=<)", drawn)
    tags = "\0".join(parts[::2])
    tags = _NUMBER.sub(lambda number: f"{float(number[0]):.2f}", _NOTHING.sub("", tags))
    while tags != (fewer := _EMPTY.sub("", tags)):
        tags = fewer
    texts = iter(parts[1::2])
    return re.sub("\0", lambda _: next(texts), tags)


def _dark_rules(own: str, body: str) -> str:
    rules = (
        f'#{own} [{paint}="{light}"]{{{paint}:{dark}}}'
        for light, dark in DARK.items()
        for paint in ("fill", "stroke")
        if f'{paint}="{light}"' in body
    )
    return "@media (prefers-color-scheme:dark){" + "".join(rules) + "}"
