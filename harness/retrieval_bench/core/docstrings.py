"""What docstrings say, for the pages and schemas that are made from them."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

SECTIONS = ("Args", "Attributes", "Returns", "Raises")


def documented(one: Any) -> dict[str, dict[str, str]]:
    """The sections of a docstring, each name -> what it is; "" holds the text of its own."""
    entries: dict[str, list[str]] = {"": []}
    section = ""
    for line in inspect.cleandoc(one.__doc__ or "").splitlines():
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
    found = {"": {"": unmarked(" ".join(entries.pop("")))}}
    for title, texts in entries.items():
        named = [re.match(r"([\w, ]+): (.*)", text) for text in texts]
        if all(named) and title != "Returns":
            found[title] = {match[1]: unmarked(match[2]) for match in named if match}
        else:
            found[title] = {"": unmarked(" ".join(texts))}
    return found


@cache
def attributes_of(kind: type) -> dict[str, str]:
    """What the docstrings of a class and of those that it extends say of each attribute."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        for names, text in documented(one).get("Attributes", {}).items():
            found |= dict.fromkeys((name.strip() for name in names.split(",")), text)
    return found


def unmarked(text: str) -> str:
    """Without the marks that docstrings have for names."""
    text = re.sub(r":\w+:`\.?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return " ".join(text.split())
