"""What `retrieval_bench` gives: its public names, and every record that they lead to."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import typing
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

import retrieval_bench
from retrieval_bench.capabilities import capabilities, named

INSIDE = ("retrieval_bench.reports.render", "retrieval_bench.core.config")
"""Not given to be read: what tables are made of, and configs, which the guide has a page on."""


def functions() -> dict[str, Any]:
    """The public functions, by name."""
    return {name: one for name, one in _public().items() if not inspect.isclass(one)}


def records() -> list[type]:
    """The public classes, what the functions give, and what their attributes hold."""
    for added in capabilities():  # subclasses of what stands for several are known once loaded
        list(map(named, added.keys.values()))
    waiting: list[Any] = [one for one in _public().values() if inspect.isclass(one)]
    for one in functions().values():
        waiting += _parts(_hints(one)["return"])
    found: list[type] = []
    while waiting:
        one = typing.get_origin(waiting[0]) or waiting[0]
        del waiting[0]
        ours = inspect.isclass(one) and one.__module__.startswith("retrieval_bench")
        if not ours or one in found or one.__module__.startswith(INSIDE):
            continue
        found.append(one)
        if has_modes(one):
            kinds = sorted(one.__subclasses__(), key=lambda kind: kind.__name__)  # not as loaded
            waiting += [kind for kind in kinds if _stands(kind)]
        for hint in attributes(one).values():
            waiting += _parts(hint)
    return found


def has_modes(one: type) -> bool:
    """Whether it is a record that stands for several, which add to it."""
    return inspect.isabstract(one) and dataclasses.is_dataclass(one)


def attributes(one: type) -> dict[str, Any]:
    """The public fields and properties of a class, with the types of what they hold."""
    hints = _hints(one)
    found = {name: hints[name] for name in fields(one)}
    for name, member in inspect.getmembers(one):
        getter = member.fget if isinstance(member, property) else None
        getter = member.func if isinstance(member, cached_property) else getter
        if getter is not None and not name.startswith("_"):
            found[name] = _hints(getter).get("return")
    return found


def fields(one: type) -> list[str]:
    """The public fields of a record, in their order."""
    named = getattr(one, "_fields", ())
    if dataclasses.is_dataclass(one):
        named = [field.name for field in dataclasses.fields(one)]
    return [name for name in named if not name.startswith("_")]


def names_in(section: dict[str, str]) -> set[str]:
    """``a, b: ...`` names both."""
    return {name.strip() for names in section for name in names.split(",")}


def _stands(kind: type) -> bool:
    """Whether a class is the one of its name: a dataclass with slots is made of another one."""
    return getattr(importlib.import_module(kind.__module__), kind.__name__) is kind


def _public() -> dict[str, Any]:
    return {name: getattr(retrieval_bench, name) for name in retrieval_bench.__all__}


def _hints(one: Any) -> dict[str, Any]:
    """Also where a name is imported for type checking only."""
    known: dict[str, Any] = {}
    for base in reversed(inspect.getmro(one) if inspect.isclass(one) else (one,)):
        module: ModuleType = importlib.import_module(base.__module__)
        known |= _while_checking(module) | vars(module)
    return typing.get_type_hints(one, known)


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in typing.get_args(hint):
        yield from _parts(part)


def _while_checking(module: ModuleType) -> dict[str, Any]:
    """What a module imports for type checkers alone."""
    names: dict[str, Any] = {"DataFrame": Any, "__package__": module.__package__}
    names |= {"__spec__": module.__spec__}
    ours = module.__name__.startswith("retrieval_bench")
    for node in ast.parse(inspect.getsource(module)).body if ours else ():
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            imports = ast.Module(
                [one for one in node.body if "pandas" not in ast.unparse(one)], type_ignores=[]
            )
            exec(compile(imports, module.__name__, "exec"), names)
    return names
