"""Parameters under ``params:`` of a target, read from its class: the signature says names, types
and defaults, the docstring what they mean."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import yaml

from retrieval_bench.core import plugins
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.config import load_retriever_config, retriever_names
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.installed.installation import packaged_configs
from retrieval_bench.reports.render.table import Table, result

_VARIABLE = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
_ENTRY = re.compile(r"^ *\*{0,2}(\w+(?:, \w+)*): +(.*)$")
_REFERENCE = re.compile(r"(?:see|as of) :class:`[.~]?([\w.]+)`\.?$")
_ROLE = re.compile(r":\w+:`[.~]?([^`]*)`|``([^`]*)``")


class Parameter(TypedDict):
    """A parameter.

    Attributes:
        name: under ``params:``.
        type: as its class declares it.
        required: whether it has to be given.
        default: what it is where nobody gives it, in Python; empty where it is required.
        meaning: what it is for, and what is accepted.
    """

    name: str
    type: str
    required: bool
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TargetDetails(Documented):
    """A target with its parameters.

    Attributes:
        target: its name.
        description: in a sentence.
        parameters: in the order of its class.
        yaml: a config that names it.
    """

    target: str
    description: str
    parameters: list[Parameter]
    yaml: str


def details(named: str) -> TargetDetails:
    """The parameters of the target ``named``, or of the target of a config that is called so.

    Raises:
        ConfigError, PluginError: there is none, or it does not load.
    """
    target = named if named in plugins.names("retriever") else load_retriever_config(named).target
    factory = plugins.resolve("retriever", target)
    meanings = _meanings(factory)
    grammar = getattr(factory, "accepts", {})
    parameters: list[Parameter] = [
        {
            "name": name,
            "type": str(parameter.annotation),
            "required": parameter.default is inspect.Parameter.empty,
            "default": ""
            if parameter.default is inspect.Parameter.empty
            else repr(parameter.default),
            "meaning": " ".join(filter(None, [meanings.get(name, ""), grammar.get(name, "")])),
        }
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.kind not in _VARIABLE
    ]
    description = _clean((inspect.getdoc(factory) or "").split("\n\n")[0])
    return TargetDetails(target, description, parameters, _example(target, parameters))


def _meanings(factory: Any) -> dict[str, str]:
    """Descriptions of parameters in the docstrings of a class and of those above it."""
    meanings: dict[str, str] = {}
    for kind in inspect.getmro(factory) if inspect.isclass(factory) else (factory,):
        _, _, arguments = inspect.cleandoc(kind.__doc__ or "").partition("Args:\n")
        names: list[str] = []
        for line in re.split(r"\n(?=\S)", arguments)[0].split("\n"):
            if line.startswith("     ") and names:  # goes on
                for name in names:
                    meanings[name] += f" {line.strip()}"
            elif entry := _ENTRY.match(line):
                names = [name for name in entry[1].split(", ") if name not in meanings]
                meanings |= dict.fromkeys(names, entry[2].strip())
            if kind is factory:
                meanings |= {
                    name: _referred(kind, name, meanings[name])
                    for name in names
                    if _REFERENCE.match(meanings[name])
                }
    return {name: _clean(text) for name, text in meanings.items()}


def _referred(kind: type, name: str, text: str) -> str:
    """Words of the class that ``text`` names on ``name``; ``text`` where it says nothing."""
    reference = _REFERENCE.match(text)
    named = vars(sys.modules[kind.__module__]).get(
        reference[1].rpartition(".")[2] if reference else ""
    )
    doc = inspect.cleandoc(named.__doc__ or "") if inspect.isclass(named) else ""
    entry = re.search(rf"^ +(?:\w+, )*{name}(?:, \w+)*: ((?:.|\n {{8,}})*)", doc, re.MULTILINE)
    return text if entry is None else entry[1]


def _clean(text: str) -> str:
    return " ".join(_ROLE.sub(lambda found: found[1] or found[2], text).split())


def _example(target: str, parameters: list[Parameter]) -> str:
    """The shortest of the configs here that have parameters for ``target``; without one, lines with
    what is required."""
    texts: list[str] = []
    for name in retriever_names():
        file = packaged_configs() / "retrievers" / f"{name}.yaml"
        try:
            config = load_retriever_config(str(file)) if file.is_file() else None
        except HarnessError:
            continue
        if config is not None and config.target == target and config.params:
            content = yaml.safe_load(Path(file).read_bytes())
            shown = {key: content[key] for key in ("target", "params")}
            texts.append(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True).strip())
    needed = {entry["name"]: entry["name"].upper() for entry in parameters if entry["required"]}
    bare = {"target": target, **({"params": needed} if needed else {})}
    texts = texts or [yaml.safe_dump(bare, sort_keys=False).strip()]
    return min(texts, key=len)


def details_tables(target: TargetDetails) -> list[Table]:
    """The same as a table."""
    rows = [
        (entry["name"], entry["type"], entry["default"] or "required", entry["meaning"])
        for entry in target.parameters
    ]
    columns = ("name", "type", "default", "meaning")
    lead = [result(target.description)]
    table = Table(f"Parameters of {target.target}", columns, rows, words=(0, 1, 2, 3), lead=lead)
    lines = [(line,) for line in target.yaml.split("\n")]
    return [table, Table("Example of a YAML file", ("",), lines)]
