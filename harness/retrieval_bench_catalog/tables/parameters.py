"""Parameters under ``params:`` of a target, read from its class: the signature says names, types
and defaults, the docstring what they mean."""

from __future__ import annotations

import inspect
import math
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from retrieval_bench.core import plugins
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.config import load_retriever_config, retriever_names
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.installed.installation import packaged_configs
from retrieval_bench.core.wrapping import WIDTH
from retrieval_bench.reports.render.table import Table, result

_VARIABLE = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
_ENTRY = re.compile(r"^ {4}\*{0,2}(\w+(?:, \w+)*): +((?:.|\n {5,})*)", re.MULTILINE)
_REFERENCE = re.compile(r"(?:see|as of) :class:`[.~]?([\w.]+)`\.?$")
_ROLE = re.compile(r":\w+:`[.~]?([^`]*)`|``([^`]*)``")


@dataclass(frozen=True, slots=True)
class Parameter:
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
        Parameter(
            name,
            str(parameter.annotation),
            (required := parameter.default is inspect.Parameter.empty),
            "" if required else repr(parameter.default),
            " ".join(filter(None, [meanings.get(name, ""), grammar.get(name, "")])),
        )
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.kind not in _VARIABLE
    ]
    description = _clean((inspect.getdoc(factory) or "").split("\n\n")[0])
    return TargetDetails(target, description, parameters, _example(target, parameters))


def _meanings(factory: Any) -> dict[str, str]:
    """Descriptions of parameters in the docstrings of a class and of those above it."""
    meanings: dict[str, str] = {}
    for kind in inspect.getmro(factory) if inspect.isclass(factory) else (factory,):
        meanings = _entries(kind) | meanings
    for name, text in meanings.items():
        if reference := _REFERENCE.match(text):
            named = reference[1].rpartition(".")[2]
            of = vars(sys.modules[factory.__module__]).get(named)
            meanings[name] = _entries(of).get(name, text) if inspect.isclass(of) else text
    return {name: _clean(text) for name, text in meanings.items()}


def _entries(kind: Any) -> dict[str, str]:
    """Names in the sections of a docstring, and what it says of them; of two the first."""
    entries: dict[str, str] = {}
    for entry in _ENTRY.finditer(inspect.cleandoc(kind.__doc__ or "")):
        for name in entry[1].split(", "):
            entries.setdefault(name, entry[2])
    return entries


def _clean(text: str) -> str:
    return " ".join(_ROLE.sub(lambda found: found[1] or found[2], text).split())


def _example(target: str, parameters: list[Parameter]) -> str:
    """The shortest of the configs here that have parameters for ``target``, of those that no line
    has to be broken of; without one, lines with what is required."""
    texts = [
        yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=math.inf).strip()
        for shown in _packaged()
        if shown["target"] == target and shown["params"]
    ]
    needed = {entry.name: entry.name.upper() for entry in parameters if entry.required}
    bare = {"target": target, **({"params": needed} if needed else {})}
    texts = texts or [yaml.safe_dump(bare, sort_keys=False).strip()]
    return min(texts, key=lambda text: (max(map(len, text.split("\n"))) > WIDTH, len(text)))


@cache
def _packaged() -> list[dict[str, Any]]:
    """Targets and parameters of the configs that come with the package, each file read once."""
    configs = []
    for name in retriever_names():
        file = packaged_configs() / "retrievers" / f"{name}.yaml"
        with suppress(HarnessError):
            if file.is_file():
                config = load_retriever_config(str(file))
                configs.append({"target": config.target, "params": config.params})
    return configs


def details_tables(target: TargetDetails) -> list[Table]:
    """The same as a table."""
    rows = [
        (entry.name, entry.type, entry.default or "required", entry.meaning)
        for entry in target.parameters
    ]
    columns = ("name", "type", "default", "meaning")
    lead = [result(target.description)]
    table = Table(f"Parameters of {target.target}", columns, rows, words=(0, 1, 2, 3), lead=lead)
    lines = [(line,) for line in target.yaml.split("\n")]
    return [table, Table("Example of a YAML file", ("",), lines)]
