"""Texts of docstrings, for the pages and schemas that are made from them."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

SECTIONS = ("Args", "Attributes", "Returns", "Raises")


def documented(documented_object: Any) -> dict[str, dict[str, str]]:
    """The sections of a docstring, each name -> what it is; "" holds the text of its own."""
    entries: dict[str, list[str]] = {"": []}
    section = ""
    for line in inspect.cleandoc(documented_object.__doc__ or "").splitlines():
        if line.removesuffix(":") in SECTIONS:
            section = line.removesuffix(":")
            entries[section] = []
        elif line.startswith("     ") and section:
            entries[section][-1] += f" {line.strip()}"
        elif line.startswith("    ") and section:
            entries[section].append(line.strip())
        elif line:
            section = ""
            entries[""].append(line)
    sections = {"": {"": unmarked(" ".join(entries.pop("")))}}
    for title, texts in entries.items():
        named = [re.match(r"([\w, ]+): (.*)", text) for text in texts]
        if all(named) and title != "Returns":
            sections[title] = {match[1]: unmarked(match[2]) for match in named if match}
        else:
            sections[title] = {"": unmarked(" ".join(texts))}
    return sections


@cache
def attributes_of(kind: type) -> dict[str, str]:
    """Read what the docstrings of a class and of its bases say of each attribute."""
    attributes: dict[str, str] = {}
    for item in reversed(kind.__mro__):
        for names, text in documented(item).get("Attributes", {}).items():
            attributes |= dict.fromkeys((name.strip() for name in names.split(",")), text)
    return attributes


def unmarked(text: str) -> str:
    """Leave out the marks that docstrings have for names."""
    text = re.sub(r":\w+:`\.?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return " ".join(text.split())
