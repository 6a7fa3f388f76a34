"""Values that a text holds as JSON or as Python prints them: lists in the cells of a table.

A list that some other library printed is no list of Python's, though it may look like one: numpy
sets blanks where Python sets commas, and Python joins texts that stand side by side, so that
``['a' 'b']`` would be read as one text. What cannot be read exactly as it was meant is an error
that names the cause, never another value.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from typing import Any

from retrieval_bench.data.files.lines import parse_json

LONGEST_CELL = 32_767
"""Characters of a cell that spreadsheets keep; they cut off the rest."""

ACCEPTED = 'a list as JSON has it, such as ["a", "b"]; JSON lines and parquet keep lists'

_BRACKETS = re.compile(r"\s*\[.*\]\s*", re.DOTALL)
_ENCLOSED = re.compile(r"\s*(\[.*\]|\{.*\}|\(.*\))\s*", re.DOTALL)
_TYPES = r"(?:np\.\w+|array|Timestamp|UUID)\("
_PRINTED = re.compile(
    rf"""\s*(?: \[\s*(?: [bu]?["'] | {{ | \[ | {_TYPES} ).*
            (?: ["'}}\])\d…] | \.{{3}} | nan | null | None | True | False | true | false ),?\s*\]
    | \[\s*-?\d[-+\deE.,\s_]*\] | array\(.*\) )\s*""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
"""Begins and ends as a printed list of texts, objects, lists or numbers does."""

_NUMBER = re.compile(r"(\d+|\d*\.\d+|\d+\.)([eE][-+]?\d+)?")
_NODES = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub),
    ast.Load,
)
_VALUES = (str, int, float, type(None))


class LiteralError(ValueError):
    """A text that looks like a printed list, and would not be read as it was meant."""


def literal(text: str) -> Any:
    """The value that ``text`` holds as JSON or as Python prints it; None where it is neither.

    Raises:
        LiteralError: reading it would change what was meant, such as texts side by side.
    """
    text = text.strip()
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        with warnings.catch_warnings(action="ignore"):  # of backslashes that Python does not know
            tree = ast.parse(text, mode="eval")
            value = ast.literal_eval(tree)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    if complaint := _joined(text) or _not_printed(tree):
        raise LiteralError(complaint)
    return value


def listed(text: Any) -> list[Any] | None:
    """The list that ``text`` holds as JSON or as Python prints it; None where it holds none.

    Raises:
        LiteralError: it is a list, but not one that can be read.
    """
    if not isinstance(text, str):
        return None
    if len(text) == LONGEST_CELL and re.match(r"\s*\[\s*[\"']", text):
        raise LiteralError(f"a list cut off after {LONGEST_CELL:,} characters, as spreadsheets do")
    value = literal(text) if _BRACKETS.fullmatch(text) else None
    if isinstance(value, list):
        return value
    if _PRINTED.fullmatch(text):
        raise LiteralError(_cause(text))
    return None


class Column:
    """The cells of one column, to tell texts in brackets from lists of which they are what is left.

    ``[a, b]`` may be a text. Beside lists, or where every cell is so, it is a list as Arrow and
    DuckDB print it, ``{a,b}`` one of PostgreSQL, ``('a', 'b')`` a tuple.
    """

    def __init__(self) -> None:
        self._texts = self._lists = False
        self._doubtful: list[tuple[Any, str]] = []

    def add(self, place: Any, value: Any, items: list[Any] | None) -> None:
        """One more cell, at ``place``, and its items if it is a list."""
        if items is not None:
            self._lists = True
        elif isinstance(value, str) and _ENCLOSED.fullmatch(value):
            self._doubtful.append((place, value))
        elif value:
            self._texts = True

    def lost(self) -> list[tuple[Any, str, str]]:
        """Places and cells that were lists, and what is wrong with them."""
        if self._texts and not self._lists:
            return []
        return [
            (place, text, _NEITHER if re.search("[\"']", text) else _UNQUOTED)
            for place, text in self._doubtful
        ]


def looks_listed(text: str) -> bool:
    """Return whether ``text`` would be read as a list, or refused as one."""
    try:
        return listed(text) is not None
    except LiteralError:
        return True


def may_be_listed(text: str) -> bool:
    """Return whether :class:`Column` could take ``text``, written without a list around it, for
    what is left of one."""
    return looks_listed(text) or _ENCLOSED.fullmatch(text) is not None


def _joined(text: str) -> str:
    """The complaint about texts side by side, which Python would join; empty without any."""
    before = tokenize.ENCODING
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING == before:
            return _cause(text)
        if token.type == tokenize.COMMENT:
            return "a list with a comment in it"
        if token.type == tokenize.NUMBER and not _NUMBER.fullmatch(token.string):
            return f"a list with the number {token.string}, which only Python writes so"
        if token.type != tokenize.NL:
            before = token.type
    return ""


def _not_printed(tree: ast.AST) -> str:
    """The complaint about what JSON has no word for, or a key that stands twice."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [ast.dump(key) for key in node.keys if key is not None]
            if len(set(keys)) < len(keys):
                return "an object with a key that stands twice"
        if isinstance(node, ast.Constant) and node.value is ...:
            return _SHORTENED
        if not isinstance(node, _NODES) or (
            isinstance(node, ast.Constant) and not isinstance(node.value, _VALUES)
        ):
            return "a list with a value that JSON has no word for"
    return ""


def _cause(text: str) -> str:
    if re.search(rf"\b{_TYPES}", text):
        return "a list as numpy or pandas prints it, with the names of its types"
    if re.search(r"""["'}\]\d]\s*,?\s*(\.{3}|…)\s*,?\s*["'{\[\]\d]""", text):
        return _SHORTENED
    if re.search(r"""["'}\]\d]\s+[bu]?["'{\[\d-]|["']["']""", text):
        return "a list without commas, as numpy prints it: Python would join its texts"
    return _NEITHER


_UNQUOTED = "a list without quotes: nobody can tell where one of its items ends"
_NEITHER = "a list that is neither JSON nor as Python prints it"
_SHORTENED = "a list that was shortened: the items at its three dots were not printed"
