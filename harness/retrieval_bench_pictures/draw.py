"""The way from a specification of Vega-Lite to an SVG that stands in any page and follows dark
mode.

``vl-convert-python`` runs Vega without a browser, in a process of its own: its V8 ends the process
that it is in where it cannot start, as under a limit on address space. What it writes has the ids
and fonts of a page of its own; here ids become the picture's own, the fonts the reader's, and a
style sheet that is limited to the picture turns ink and background together where the reader's
system is dark. So a picture is readable on every page, also where the page is light and the system
is not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

from retrieval_bench.core.calls.foreign import how_ended
from retrieval_bench.core.errors import BrokenDependencyError
from retrieval_bench.core.installed.installation import require
from retrieval_bench_pictures.vega import DARK, VERSION, Spec

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

LONGEST_S = 60.0
"""Seconds that drawing may take."""

_START = (
    "import json, sys; given = json.load(sys.stdin.buffer); sys.path += given['folders']; "
    "from retrieval_bench_pictures.worker import main; main(given)"
)


_asked_later: list[str] = []
_drawn: dict[str, str] = {}


def ahead(specs: Iterable[Spec]) -> None:
    """Let the next process draw these, too: they are asked for later by the same command."""
    _asked_later.extend(json.dumps(spec, allow_nan=False) for spec in specs)


def svg(spec: Spec) -> str:
    """One picture, see :func:`svgs`."""
    return svgs([spec])[0]


def svgs(specs: Sequence[Spec]) -> list[str]:
    """The pictures as texts, all drawn in one process: with a title and a description for those who
    do not see it, texts as texts, no script, and no reference to anything outside.

    Raises:
        MissingDependencyError: vl-convert-python is not installed, or does not run here.
    """
    if not specs:
        return []
    require("vl-convert-python", "plots", "pictures of a run")
    texts = [json.dumps(spec, allow_nan=False) for spec in specs]
    if not _drawn.keys() >= set(texts):
        each = list(dict.fromkeys([*texts, *_asked_later]))  # folders share some
        later = dict.fromkeys(_asked_later)
        _asked_later.clear()
        drawn = dict(zip(each, in_a_process(each), strict=True))
        _drawn.clear()
        _drawn.update((text, drawn[text]) for text in later)
    else:
        drawn = _drawn
    return [_own(spec, drawn[text]) for spec, text in zip(specs, texts, strict=True)]


def in_a_process(texts: Sequence[str]) -> list[str]:
    """What Vega makes of ``texts``, in a process that ends with this one.

    Raises:
        BrokenDependencyError: it drew nothing.
    """
    library = find_spec("vl_convert")
    assert library is not None, "it was asked for"
    assert library.origin is not None, "it is a package with files"
    given = {
        "folders": [str(Path(library.origin).parents[1]), str(Path(__file__).parents[1])],
        "parent": os.getpid(),
        "version": VERSION,
        "specs": texts,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _START],
            input=json.dumps(given).encode(),
            capture_output=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _broken(f"took more than {LONGEST_S:g} s") from None
    except OSError as problem:
        raise _broken(f"cannot be started: {problem.strerror}") from None
    try:
        drawn: list[str] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr or done.stdout).decode(errors="replace").splitlines()[-1:]
        words = ["ended", how_ended(done.returncode), *(last if done.returncode >= 0 else [])]
        raise _broken(": ".join(words)) from None
    return drawn


def _broken(what: str) -> BrokenDependencyError:
    return BrokenDependencyError(
        f"the process that draws {what}",
        accepted="some 70 GB of address space, and threads",
        fix="raise `ulimit -v` (it reserves 70 GB) and `ulimit -u`, or do without pictures",
    )


def _own(spec: Spec, drawn: str) -> str:
    """What Vega has ``drawn``, with ids, fonts and colours of its own."""
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
