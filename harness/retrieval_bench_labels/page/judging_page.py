"""The page as HTML: one template, one style, one script; what differs is where answers go.

Nothing of the data is ever put into the page as HTML: texts travel as JSON, in which no tag can end
or begin, and the script shows them through ``textContent``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources

SCRIPTS = ("transport.js", "marking.js", "asked.js", "page.js")
"""In the order in which they run, as one script."""

_NOTHING_ELSE = "img-src data:; base-uri 'none'; form-action 'none'"
_NO_HTML = "require-trusted-types-for 'script'; trusted-types 'none'"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    f"frame-ancestors 'none'; {_NOTHING_ELSE}; {_NO_HTML}"
)
"""What a page of the server may do: load its own script and style, and talk to its own origin."""

_MARK = "<!-- here -->"


def script() -> str:
    """All scripts as one."""
    return "\n".join(_file(name) for name in SCRIPTS)


def style() -> str:
    """The style sheet."""
    return _file("page.css")


def served_page(data: Mapping[str, object]) -> str:
    """The page of a server, which gives ``page.js`` and ``page.css`` beside it."""
    return _page(
        '<link rel="stylesheet" href="page.css">\n'
        f"{_data(data)}\n"
        '<script defer src="page.js"></script>'
    )


def whole_page(data: Mapping[str, object]) -> str:
    """The page as one file, which loads nothing and may talk to nobody."""
    code, looks = script(), style()
    policy = (
        f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(looks)}; "
        f"{_NOTHING_ELSE}; {_NO_HTML}"
    )
    return _page(
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{looks}</style>\n"
        f"{_data(data)}\n",
        f"<script>{code}</script>\n",
    )


def _page(head: str, foot: str = "") -> str:
    before, between, after = _file("index.html").split(_MARK)
    return "".join([before, head, between, foot, after])


def _data(data: Mapping[str, object]) -> str:
    """Write the data as a block that is no script; ``<`` is escaped, so that no text can end it."""
    return f'<script type="application/json" id="data">{embedded(data)}</script>'


def embedded(data: object) -> str:
    """JSON that can stand in HTML whatever its texts are."""
    return json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
