"""Things named as a retriever that are none of ours: the target that it goes through, as lines.

An object is known by the modules that its class and the classes above it come from, a function that
nobody called yet by what it says that it returns, and by what it uses; no library is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

LIBRARIES = {
    "langchain_core": "langchain",
    "llama_index": "llamaindex",
    "haystack": "haystack",
    "pyterrier": "pyterrier",
}
"""Package that classes come from -> target."""
_NAMES = {
    "langchain": "LangChain retriever",
    "llamaindex": "LlamaIndex retriever",
    "haystack": "Haystack retriever",
    "pyterrier": "PyTerrier pipeline",
}
_WORDS = {target: f"a {name}" for target, name in _NAMES.items()}
_QUERIES = ("query", "text", "question", "q")
"""What functions call what they search for."""
_DO = "name a YAML file in place of it, with these lines:"
_ROOTS = ("langchain", "llama_index", "haystack", "pyterrier")
"""How the packages of these libraries begin."""


def target_of(given: Any) -> str | None:
    """The target for an object of a library, None for any other; Haystack marks those of its
    components by their metaclass."""
    return None if inspect.isclass(given) else made_by(type(given))


def made_by(kind: type) -> str | None:
    """The target for objects of a class of a library, None for any other."""
    packages = (
        item.__module__.partition(".")[0]
        for item in (*inspect.getmro(kind), *inspect.getmro(type(kind)))
    )
    return next((LIBRARIES[package] for package in packages if package in LIBRARIES), None)


def is_another_kind(function: Any) -> bool:
    """Say whether a function takes what one of a library does, or one that searches, and not the
    parameters of a retriever that it makes."""
    if inspect.isclass(function):
        return False
    handed = {"documents", "k", *_QUERIES}.intersection(_signature(function))
    return bool(handed) or _used_by(function) is not None


def cure(named: str, given: Any, made: Any = None) -> tuple[str, str]:
    """``named`` in words, and what to do with it.

    Args:
        given: the object that the name leads to.
        made: what calling it gave; None where it was not called.
    """
    target = target_of(given)
    if target is not None:
        return f"is {_WORDS[target]}", f"{_DO}{_lines(target, named)}"
    target = made_by(given) if inspect.isclass(given) else None
    if target is not None:
        return f"is a class of {_NAMES[target]}s, not an object of it", _made(target, named, given)
    if inspect.isclass(given) or not callable(given):
        what = f"{given!r:.60}, no class and no function"
        what = f"a class, {given.__name__}, and no retriever" if inspect.isclass(given) else what
        return f"is {what}", "name a class that inherits from retrieval_bench.Retriever"
    takes = _signature(given)
    of = f"is a function of ({', '.join(takes)})"
    if made is None and takes[:1] and takes[0] in _QUERIES:
        return f"{of}, which searches", f"{_DO}{_lines('callable', named)}"
    target = _used_by(given) if made is None else target_of(made)
    external = "" if "documents" in takes else ", external: true"
    fix = f"{_DO}{_lines(target or 'langchain', named, external)}"
    if target is None:
        fix += f"\n    or another target of {', '.join(_WORDS)}: the library that it is of"
    if "k" not in takes and target != "pyterrier":
        fix += "\n    and let it take the parameter k, the hits that it is asked for"
    if target is None and made is None:
        return of, fix
    return f"{of} that returns {_WORDS[target] if target else type(made).__name__}", fix


def _made(target: str, named: str, kind: type) -> str:
    """Lines that make an object of a class, and those that name what makes it."""
    takes = [
        name
        for name, parameter in _made_from(kind).items()
        if parameter.default is parameter.empty and parameter.kind not in _VARIABLE
    ]
    own_index = {*takes} <= {"k"}
    place, _, attribute = named.rpartition(":")
    own, imports = place.endswith(".py"), f"from {place} import {attribute}\n\n      "
    file, imports = (place, "") if own else ("made.py", imports)
    handed = "k" if own_index else "documents, k"
    given = ", ".join(f"{name}={name if name in handed.split(', ') else '...'}" for name in takes)
    name = f"make_{attribute.lower()}"
    function = f"def {name}({handed}):\n          return {attribute}({given})"
    external = ", external: true" if own_index else ""
    lines = _lines(target, f"{file}:{name}", external)
    if target == "pyterrier" and not takes:
        function, lines = f"made = {attribute}()", _lines(target, f"{file}:made")
    return f"add to {file}:\n      {imports}{function}\n    and {_DO}{lines}"


def _lines(target: str, named: str, external: str = "") -> str:
    parameter = {"callable": "function", "pyterrier": "pipeline"}.get(target, "factory")
    return f'\n      target: {target}\n      params: {{{parameter}: "{named}"{external}}}'


def _made_from(kind: type) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class, which a metaclass may hide."""
    declared = _parameters(kind)
    if any(parameter.kind not in _VARIABLE for parameter in declared.values()):
        return declared
    made = next(vars(of)["__init__"] for of in inspect.getmro(kind) if "__init__" in vars(of))
    _, *rest = _parameters(made).items()
    return dict(rest)


_VARIABLE = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # built in C
        return {}


def _signature(function: Any) -> list[str]:
    return list(_parameters(function))


def _used_by(function: Any) -> str | None:
    """The target of the first library that ``function`` speaks of."""
    for name in _names(function):
        root = next((root for root in _ROOTS if name.startswith(root)), None)
        if root is not None:
            return root.replace("_", "").replace("llamaindexcore", "llamaindex")
    return None


def _names(function: Any) -> Iterator[str]:
    """Types that it says it returns, packages that it imports, and those of the names it uses."""
    returned = getattr(function, "__annotations__", {}).get("return")
    yield str(getattr(returned, "__module__", ""))
    code = getattr(function, "__code__", None)
    for name in code.co_names if code is not None else ():
        yield name
        found = getattr(function, "__globals__", {}).get(name)
        for part in found.__mro__ if inspect.isclass(found) else (found,):
            yield str(getattr(part, "__module__", None) or getattr(part, "__name__", ""))
