"""The pages of the guide that are made from the code: options, JSON documents, Python."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import retrieval_bench
from retrieval_bench.capabilities import Capability, capabilities, named
from retrieval_bench.cli import parser
from retrieval_bench.cli.commands import GROUPS
from retrieval_bench_catalog.documents import DOCUMENTS, schema_of
from retrieval_bench_catalog.schemas import documented, schema
from retrieval_bench_regress.baseline import SCHEMA_VERSION, LatencyBaseline, QualityBaseline
from tests.builders import api_records
from tests.builders.guide import GUIDE

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
`@last`, `hybrid@latest`, or the start of its id. For completion by the shell:
`eval "$(register-python-argcomplete retrieval-bench)"`. Exit codes are in [results.md](results.md).
"""


def options_page() -> str:
    """Every command with its own options; those that several have in common come last, once."""
    every = dict(commands())
    rows = Counter(_row(action) for one in every.values() for action in _actions(one))
    shared: dict[str, tuple[str, str, str]] = {}
    for row, n in rows.most_common():
        if n > 1 and row[0].startswith("`-"):
            shared.setdefault(row[0], row)
    of_all = {row for row, n in rows.items() if n >= 0.8 * len(every)}
    lines: list[str] = []
    common: list[str] = []
    for name, one in every.items():
        lines += ["", f"## {name}", "", str(one.description).partition("\n")[0]]
        actions = sorted(_actions(one), key=lambda action: bool(action.option_strings))
        listed = [row for row in map(_row, actions) if row not in of_all]
        own = [row for row in listed if row != shared.get(row[0])]
        also = [row[0].split()[0].strip("`,") for row in listed if row == shared.get(row[0])]
        lines += _table(("option", "default", "meaning"), own) if own else []
        lines += ["", f"Also: {_also(also, common)}."] if also else []
        common = common or also
    named = ", ".join(sorted(row[0] for row in of_all))
    lines += ["", "## Options of several commands", "", f"Nearly every command has {named}."]
    lines += _table(("option", "default", "meaning"), sorted(shared.values()))
    return _page(_OPTIONS, lines)


def _also(names: Sequence[str], bench: Sequence[str]) -> str:
    """Names of options; where they are nearly those of ``bench``, how they differ from these."""
    lacking = [name for name in bench if name not in names]
    if len(lacking) > 3 or not bench:
        return ", ".join(f"`{name}`" for name in names)
    own = [f"`{name}`" for name in names if name not in bench]
    return f"{', '.join([*own, 'those of `bench`'])} but {', '.join(f'`{one}`' for one in lacking)}"


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
        needed = one.get_default("needs")
        action.required |= needed is not None and action.dest == needed.name
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

What `--format json` prints. Each document says its `schema_version`, 1 unless its line here says
more. Within one version a key keeps its name, its place and its type; new keys may come. Formats of
other programs (`--format github-action-benchmark`, `trec`) are theirs.

`?` behind a key says that it may be missing. Brackets name the record that the key holds, or holds
several of. The table at the end says what a key means, in most of the records that have it.
`retrieval-bench data schema` lists the documents; `retrieval-bench data schema NAME` prints the
JSON Schema of one, with every type and every meaning.
"""

FILES: Mapping[str, tuple[str, type]] = {
    "quality": ("a baseline of quality, a file in `results/baselines`", QualityBaseline),
    "latency": ("a baseline of latency, a file in a folder of its machine", LatencyBaseline),
}
"""Files that are read and written, and no document: what they are, and their types."""


def json_page() -> str:
    """Every document and record with its keys, and what each key means, once."""
    records: dict[str, Any] = {}
    shapes: list[Any] = []
    lines: list[str] = []
    for name, entry in DOCUMENTS.items():
        made = _apart(schema_of(name), records, entry.command)
        shapes += made
        version = f", `schema_version` {entry.version}" if entry.version > 1 else ""
        lines += ["", f"## {name}", "", f"`{entry.command}`{version}."]
        lines += map(_listed, made)
    for name, (what, kind) in FILES.items():
        made = _apart(schema([kind], name, SCHEMA_VERSION), records, "a baseline")
        shapes += made
        lines += ["", f"## File {name}", "", f"{what[0].upper()}{what[1:]}.", *map(_listed, made)]
    lines += ["", "## Records", ""]
    lines += [f"* `{name}`: {_keys(made)}" for name, made in sorted(records.items())]
    lines += ["", "## Keys", *_table(("key", "meaning"), _meanings([*shapes, *records.values()]))]
    return _page(_JSON, lines)


def _apart(made: Any, records: dict[str, Any], where: str) -> list[Any]:
    """The forms of a document; what they hold is added to ``records``, with ``where`` it stands
    behind its name where another record has that name, too."""
    text = json.dumps(made)
    for name, one in made.get("$defs", {}).items():
        if records.get(name, one) != one:
            text = text.replace(f'/{name}"', f'/{name} of {where}"')
            text = text.replace(f'"{name}": {{', f'"{name} of {where}": {{')
    made = json.loads(text)
    records |= made.get("$defs", {})
    return list(made.get("anyOf", [made]))


def _listed(made: Mapping[str, Any]) -> str:
    first = re.split("(?<=[.;]) ", made["description"])[0]
    return _keys(made) if "--format json" in first else f"{first} {_keys(made)}"


def _keys(made: Mapping[str, Any]) -> str:
    """The keys of an object, with the records that they hold."""
    shown = []
    for key, field in (made["properties"] | made.get("patternProperties", {})).items():
        if key == "schema_version":
            continue
        missing = "" if key in made["required"] else "?"
        held = sorted(set(re.findall(r"#/\$defs/([^\"]+)\"", json.dumps(field))))
        behind = f" ({', '.join(f'`{name}`' for name in held)})" if held else ""
        shown.append(f"`{key}`{missing}{behind}")
    return f"{', '.join(shown)}."


_CLAUSE = re.compile(r"(?:[;.:]|, (?:where|which|whose|as|such|in|but|until|since))(?= |$)")
"""Where the first clause of a meaning ends."""


def _meanings(shapes: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Each key once, with the first clause of what it means in most of the records that have it."""
    meanings: dict[str, Counter[str]] = {}
    for made in shapes:
        for key, field in made["properties"].items():
            clause = _CLAUSE.split(field.get("description", ""))[0]
            meanings.setdefault(key, Counter())[clause] += 1
    keys: dict[str, list[str]] = {}
    for key, counted in sorted(meanings.items()):
        keys.setdefault(counted.most_common(1)[0][0], []).append(f"`{key}`")
    return [(", ".join(names), text) for text, names in keys.items() if text]


# -- Python --------------------------------------------------------------------------------------

_PYTHON = """
# Python

{made}

What `from retrieval_bench import ...` gives; `help(NAME)` says the rest. Results have
`print(result)`, `result.details`, `result.to_frame(what)` (means, queries, calls, hits; pairs of a
comparison) and `result.plot(what)` (latency, queries, rounds, stages; pareto, quality, latency of a
comparison); see the [notebook](../learn/which-retriever.ipynb). Wrong input comes as one
`retrieval_bench.core.errors.HarnessError`.
"""


def python_page() -> str:
    """The public functions and classes, and every record that they lead to, a line each."""
    functions = api_records.functions().items()
    kinds = api_records.records()
    public = [kind for kind in kinds if kind.__name__ in retrieval_bench.__all__]
    lines = ["", "## Functions", *_table(("name", "what it does"), map(_line, functions))]
    lines += ["", "## Classes", *_table(("name", "what it is"), map(_class_line, public))]
    lines += ["", "## Records", "", "What results hold: `help(result.NAME)`."]
    rest = [kind for kind in kinds if kind not in public]
    lines += _table(("name", "what it is"), map(_class_line, rest))
    return _page(_PYTHON, lines)


def _line(named: tuple[str, Any]) -> tuple[str, str]:
    """A name and the first sentence of its docstring."""
    return f"`{named[0]}`", documented(named[1])[""][""].partition(". ")[0].removesuffix(".")


def _class_line(kind: type) -> tuple[str, str]:
    return _line((kind.__name__, kind))


def stub(module: str) -> str:
    """What type checkers read of ``__init__`` or ``testing``, which name no package themselves."""
    inside = "" if module == "__init__" else module
    own = {} if inside else vars(retrieval_bench)["_HOME"]
    places = {name: f"{home}:{name}" for name, home in own.items()}
    for added in capabilities():
        for path, place in added.names.items():
            of, _, name = path.rpartition(".")
            if of == inside:
                places[name] = place
    homes: dict[str, list[str]] = {}
    for name, place in sorted(places.items()):
        home, _, attribute = place.partition(":")
        homes.setdefault(home, []).append(f"{attribute} as {name}")
    text = ""
    for home in sorted(homes):
        line = f"from {home} import {', '.join(homes[home])}\n"
        below = "".join(f"    {one},\n" for one in homes[home])
        text += line if len(line) <= 101 else f"from {home} import (\n{below})\n"
    return text + ("" if inside else "\n__version__: str\n__all__: list[str]\n")


# -- packages --------------------------------------------------------------------------------------


def package_page(name: str) -> str:
    """The README of a package beside the kernel: what it is for, adds and stands on."""
    package = import_module(name)
    added: Capability = named(f"{name}.capability:CAPABILITY")
    what = str(package.__doc__).partition("\n\n")[0].strip()
    lists = {
        "commands": added.commands,
        "options of": added.options,
        "documents": added.documents,
        "keys in documents of a": added.keys,
        "names of Python": added.names,
        "formats": added.formats,
        "datasets named": added.datasets,
        "services": added.services,
    }
    rows = [f"| {of} | {_quoted(names)} |" for of, names in lists.items() if names]
    table = ["| it adds | |", "|---|---|", *rows] if rows else ["It adds nothing to the kernel."]
    lines = [f"# {name}", "", what, "", *table]
    stands = "nothing but the kernel" if not added.stands_on else _quoted(added.stands_on)
    lines += [
        "",
        f"It stands on {stands}. `capability.py` names all of it; the kernel imports nothing",
    ]
    return "\n".join([*lines, "of it, and works without this folder.", ""])


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def llms_page() -> str:
    """``llms.txt`` of the guide: its doors and pages, with what each is for.

    Source: the layout of llmstxt.org.
    """
    text = (GUIDE / "README.md").read_text(encoding="utf-8")
    lines = ["# retrieval-bench", ""]
    lines += ["> How good and how fast retrievers are, side by side: one command measures ranking"]
    lines += [
        "> quality and latency, compares with paired tests, and guards against regressions.",
        "",
    ]
    lines += ["- [Skill for coding agents](skills/retrieval-bench/SKILL.md): begin here"]
    for line in text.splitlines():
        if line.startswith("## "):
            lines += ["", line, ""]
        elif line.startswith("| ") and "](" in line:
            what, pages = (cell.strip() for cell in line.strip("|").rsplit(" | ", 1))
            links = re.findall(r"\[([^]]+)\]\(([^)]+)\)", pages)
            lines += [f"- [{name}]({path}): {what}" for name, path in links]
    return "\n".join([*lines, ""])
