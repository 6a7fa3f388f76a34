"""The pages of the guide that are made from the code: options, JSON documents, Python."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from retrieval_bench.cli import parser
from retrieval_bench.cli.commands import GROUPS
from retrieval_bench.cli.documents import DOCUMENTS, schema_of
from retrieval_bench.core.docstrings import documented, unmarked
from retrieval_bench.core.schemas import schema
from retrieval_bench.regression.baseline import SCHEMA_VERSION, LatencyBaseline, QualityBaseline
from tests.builders import api_records

MADE = "<!-- Made from the code: UPDATE_GOLDEN=1 pytest tests/golden/test_reference_pages.py -->"


def _page(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head.format(made=MADE).strip(), *lines, ""])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    found = ["| " + " | ".join(row) + " |" for row in [head, *cells]]
    return ["", found[0], "|" + "---|" * len(head), *found[1:]]


# -- options -------------------------------------------------------------------------------------

_OPTIONS = """
# Commands and options

{made}

Names may be separated by blanks or by commas (`compare bm25,dense`). A saved run is its folder,
`@last`, `hybrid@latest`, or the start of its id. A misspelt command, option or name is answered
with the nearest one. For completion by the shell: `eval "$(register-python-argcomplete
retrieval-bench)"`. Exit codes are in [results.md](results.md).
"""


def options_page() -> str:
    """Every command with its options; those that all of them have come last."""
    every = dict(commands())
    rows = Counter(_row(action) for one in every.values() for action in _actions(one))
    of_all = {row for row, n in rows.items() if n >= len(every) - 1}  # one has a further format
    lines = []
    for name, one in every.items():
        usage = " ".join(one.format_help().partition("\n\n")[0].split()).removeprefix("usage: ")
        lines += ["", f"## {name}", "", str(one.description).partition("\n")[0], "", f"`{usage}`"]
        own = [action for action in _actions(one) if _row(action) not in of_all]
        own.sort(key=lambda action: bool(action.option_strings))
        lines += _table(("option", "default", "meaning"), map(_row, own)) if own else []
    lines += ["", "## All commands", *_table(("option", "default", "meaning"), sorted(of_all))]
    return _page(_OPTIONS, lines)


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """What ``--help`` names, and what the groups hold, in that order."""
    for name, one in _below(parser()).items():
        if name in GROUPS:
            yield from ((f"{name} {inner}", two) for inner, two in _below(one).items())
        else:
            yield name, one


def _below(whole: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    (action,) = (a for a in whole._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def _actions(one: argparse.ArgumentParser) -> list[argparse.Action]:
    shown = [action for action in one._actions if action.help != argparse.SUPPRESS]
    for action in shown:
        action.required |= action.dest == one.get_default("needs")
    return shown


def _row(action: argparse.Action) -> tuple[str, str, str]:
    """Name, default and meaning; a default that the help text tells stands in its own cell."""
    value = f" {action.metavar}" if action.option_strings and action.metavar else ""
    name = ", ".join(f"`{one}{value}`" for one in action.option_strings or [str(action.metavar)])
    text = " ".join((action.help or "").replace("%%", "%").split())
    told = re.search(r" \(default: (.*?)\)(?=$|;)", text)
    default = ""
    if told is not None:
        text, default = text.replace(told[0], ""), told[1]
    elif type(action.default) in (str, int, float) and action.default != argparse.SUPPRESS:
        default = f"{action.default}"
    if action.required and action.nargs != "*":
        default = "required"
    if action.choices is not None and not all(one in text for one in action.choices):
        text = f"{text}: {', '.join(f'`{one}`' for one in action.choices)}"
    return name, default, text


# -- JSON ----------------------------------------------------------------------------------------

_JSON = """
# JSON documents

{made}

What `--format json` prints. Each document says its `schema_version`. Within one version a key
keeps its name, its place and its type; new keys may come. A change that breaks this gets a new
version and an entry in the changelog, and files that older versions wrote are read for as long as
it is possible. Fields are always there unless their type says *may be missing*. Formats of other
programs (`--format github-action-benchmark`, `trec`) are theirs.

`retrieval-bench data schema` lists the documents, `retrieval-bench data schema NAME` prints the
JSON Schema of one. Both that and this page are made from the types that the commands print, which
also `help()` shows. What a field holds that is an object of its own, stands behind the documents.
"""

FILES: Mapping[str, tuple[str, type]] = {
    "quality": ("a baseline of quality, a file in `results/baselines`", QualityBaseline),
    "latency": ("a baseline of latency, a file in a folder of its machine", LatencyBaseline),
}
"""Files that are read and written, and no document: what they are, and their types."""


def json_page() -> str:
    """Every document: its version, its fields, their types and what they mean."""
    lines: list[str] = []
    records: dict[str, Any] = {}
    for name, entry in DOCUMENTS.items():
        lines += ["", f"## {name}", "", f"`{entry.command}`, `schema_version` {entry.version}"]
        lines += _shown(schema_of(name), records, entry.command)
    lines += ["", "## Files"]
    for name, (what, kind) in FILES.items():
        lines += ["", f"### {name}", "", f"{what[0].upper()}{what[1:]}."]
        lines += _shown(schema([kind], name, SCHEMA_VERSION), records, "a baseline")
    lines += ["", "## Records"]
    for name, made in sorted(records.items()):
        lines += ["", f"### {name}", "", made["description"], *_fields(made)]
    return _page(_JSON, lines)


def _shown(made: Any, records: dict[str, Any], where: str) -> list[str]:
    """The fields of a document; what they hold is added to ``records``, with ``where`` it stands
    behind its name where another record has that name, too."""
    text = json.dumps(made)
    for name, one in made.get("$defs", {}).items():
        if records.get(name, one) != one:
            text = text.replace(f'/{name}"', f'/{name} of {where}"')
            text = text.replace(f'"{name}": {{', f'"{name} of {where}": {{')
    made = json.loads(text)
    records |= made.get("$defs", {})
    lines = []
    for one in made.get("anyOf", [made]):
        lines += ["", one["description"], *_fields(one)]
    return lines


def _fields(made: Mapping[str, Any]) -> list[str]:
    """Of an object: each with its type and meaning; those that share both stand in one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for key, field in made["properties"].items():
        lacking = "" if key in made["required"] else "; may be missing"
        rows.setdefault((f"{_type(field)}{lacking}", field.get("description", "")), []).append(key)
    for pattern, field in made.get("patternProperties", {}).items():
        rows[_type(field), "any number of such keys"] = [pattern]
    shown = [(", ".join(f"`{key}`" for key in keys), *row) for row, keys in rows.items()]
    return _table(("field", "type", "meaning"), shown)


def _type(field: Mapping[str, Any]) -> str:
    """A type in words."""
    kinds = field.get("type", "anything")
    found = kinds if isinstance(kinds, str) else " or ".join(kinds)
    if "$ref" in field:
        found = f"`{field['$ref'].rpartition('/')[2]}`"
    elif "const" in field:
        found = str(field["const"])
    elif "enum" in field:
        found = " or ".join(f'"{one}"' for one in field["enum"])
    elif "anyOf" in field:
        kinds_of = map(_type, field["anyOf"])
        found = " or ".join(f"({one})" if " or " in one else one for one in kinds_of)
    elif "prefixItems" in field:
        found = f"[{', '.join(map(_type, field['prefixItems']))}]"
    elif kinds == "array":
        found = f"list of {_type(field['items'])}"
    elif kinds == "object":
        found = f"name: {_type(field['additionalProperties'])}"
    return found


# -- Python --------------------------------------------------------------------------------------

_PYTHON = """
# Python

{made}

What `from retrieval_bench import ...` gives. Every result shows itself: `print(result)` as text, a
notebook as a table, `result.details` with all there is; `help(result)` tells what it holds.
Everything that is wrong with the input is a `retrieval_bench.core.errors.HarnessError`, in one
message. The [notebook](../learn/which-retriever.ipynb) has examples.
"""


def python_page() -> str:
    """The public functions, and every record that they give."""
    lines = ["", "## Functions"]
    for name, one in api_records.functions().items():
        lines += ["", f"### {name}", "", f"`{name}{_signature(one)}`", *_documented(one)]
    lines += [
        "",
        "## Records",
        "",
        "The public classes, what the functions give, and what that holds.",
    ]
    for kind in api_records.records():
        where = f"`{kind.__module__}.{kind.__name__}`"
        lines += ["", f"### {kind.__name__}", "", where, *_documented(kind), *_members(kind)]
    return _page(_PYTHON, lines)


def _signature(one: Callable[..., Any]) -> str:
    signature = inspect.signature(one)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    gives = str(signature.return_annotation).partition("[")[0]
    return f"{signature.replace(parameters=bare, return_annotation=signature.empty)} -> {gives}"


def _documented(one: Any) -> list[str]:
    lines = []
    for title, entries in documented(one).items():
        lines += ["", f"{title}:", ""] if title else [""]
        lines += [f"* `{name}`: {text}" if name else text for name, text in entries.items()]
    return lines


def _members(kind: type) -> list[str]:
    """Properties that ``Attributes`` does not tell, and methods, each with its first sentence."""
    told = api_records.names_in(documented(kind).get("Attributes", {}))
    above = [one for one in kind.__mro__[1:] if api_records.has_modes(one)]
    ours = {
        name
        for one in kind.__mro__
        if "retrieval_bench" in one.__module__ and one not in above
        for name in vars(one)
    }
    lines = []
    for name, member in inspect.getmembers(kind):
        text = (inspect.getdoc(member) or "").partition("\n\n")[0]
        call = "()" if inspect.isroutine(member) else ""
        constant = type(member) in (str, bool, int, float)
        if name in ours - told and not name.startswith(("_", "model_")) and text and not constant:
            lines.append(f"* `{name}{call}`: {unmarked(text)}")
    return ["", "Also:", "", *lines] if lines else []
