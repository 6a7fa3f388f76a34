"""From a name to an object: the only registry.

A target is a short name of what is built in, a short name that an installed package registered
under the entry-point group ``harness.<kind>s``, ``module:attribute``, or
``path/to/file.py:attribute``. Names match exactly; a miss is answered with close names and the
whole list.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from harness.errors import ConfigError, HarnessError, PluginError, near_names
from harness.retriever import Retriever

Kind = Literal["retriever", "metric", "dataset"]

_base: ContextVar[Path | None] = ContextVar("base", default=None)
"""Folder of the config that is being built, for names inside its parameters."""

BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "retriever": {
        "bm25": "retrievers.bm25:BM25",
        "bm25s": "retrievers.bm25s:BM25S",
        "dense": "retrievers.dense:Dense",
        "hybrid": "retrievers.hybrid:Hybrid",
        "langchain": "retrievers.langchain:LangChainRetriever",
        "callable": "retrievers.callable:CallableRetriever",
        "trec_run": "retrievers.trec_run:TrecRun",
    },
    "metric": {},
    "dataset": {},
}


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One name that can be used, for ``list``; ``error`` says why it does not load, if so."""

    name: str
    target: str
    source: str
    error: str | None


def config_folder() -> Path | None:
    """Folder of the config that is being built, None outside of that."""
    return _base.get()


def beside_config(given: str | Path) -> Path:
    """A path from a parameter: a relative one starts at the config that is being built, or, where
    nothing is there, at the current folder."""
    path = Path(given).expanduser()
    folder = config_folder()
    if folder is not None and not path.is_absolute() and (folder / path).exists():
        return folder / path
    return path


def names(kind: Kind) -> list[str]:
    """All short names of ``kind``, sorted; nothing is imported."""
    return sorted({*BUILT_IN[kind], *_registered(kind)})


def resolve(kind: Kind, target: str, *, base: Path | None = None) -> Any:
    """The object that ``target`` names.

    Args:
        base: folder of the config that holds the target; modules and files beside it are found.
            None = that of the config that is being built, if any.

    Raises:
        PluginError: unknown short name, module that fails to import, attribute that is not there.
    """
    if ":" in target:
        return load(target, base=base)
    if target in BUILT_IN[kind]:
        return load(BUILT_IN[kind][target])
    registered = _registered(kind)
    if target in registered:
        return load(registered[target].value)
    raise PluginError(
        f"unknown {kind} {target!r}",
        accepted=f"a short name ({near_names(target, names(kind))}), module:attribute, "
        "or file.py:attribute",
        fix="correct the name; `retrieval-bench list` shows what exists",
    )


def load(target: str, *, base: Path | None = None) -> Any:
    """The attribute of the module or file that ``module:attribute`` names, dots allowed in both."""
    base = base or config_folder()
    module_name, _, attribute = target.rpartition(":")
    if not module_name or not attribute:
        raise PluginError(f"{target!r}", accepted="module:attribute or file.py:attribute")
    if module_name.endswith(".py"):
        module = _load_file(module_name, base)
    else:
        module = _load_module(module_name, base)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        public = [name for name in vars(module) if not name.startswith("_")]
        raise PluginError(
            f"no {attribute!r} in {module_name}",
            where=str(getattr(module, "__file__", module_name)),
            accepted=near_names(attribute, public),
        ) from None


def listing(kind: Kind) -> list[PluginEntry]:
    """Every short name with its target, and the reason where loading fails."""
    registered = _registered(kind)
    rows = [(name, target, "built in") for name, target in BUILT_IN[kind].items()]
    rows += [
        (name, entry.value, entry.dist.name if entry.dist else "installed")
        for name, entry in registered.items()
        if name not in BUILT_IN[kind]
    ]
    entries = []
    for name, target, source in sorted(rows):
        try:
            load(target)
            error = None
        except HarnessError as problem:
            error = str(problem)
        entries.append(PluginEntry(name, target, source, error))
    return entries


def construct(
    target: str, params: Mapping[str, Any], *, base: Path | None = None, where: str = ""
) -> Retriever:
    """An instance of the retriever that ``target`` names, with checked parameters.

    Raises:
        PluginError: the target does not resolve or is no retriever.
        ConfigError: unknown, missing or ill-typed parameters, all of them in one message.
    """
    factory = resolve("retriever", target, base=base)
    if not callable(factory):
        raise PluginError(f"{target!r} is no class and no function", where=where)
    checked = _checked_params(factory, dict(params), target, where)
    outer = _base.set(base or config_folder())
    try:
        made = factory(**checked)
    finally:
        _base.reset(outer)
    if not isinstance(made, Retriever):
        raise PluginError(
            f"{target!r} gave {type(made).__name__}",
            where=where,
            accepted="a subclass of harness.retriever.Retriever",
            fix="for a LangChain retriever use `target: langchain` with `params: {factory: "
            f"{target}}}`; for a function use `target: callable`",
        )
    return made


def _checked_params(
    factory: Any, params: dict[str, Any], target: str, where: str
) -> dict[str, Any]:
    from pydantic import ConfigDict, ValidationError, create_model

    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some built-in types have no signature to check against
        return params
    init = factory.__init__ if inspect.isclass(factory) else factory
    try:
        hints = typing.get_type_hints(init)
    except Exception:  # hints of third parties may name what is importable only for type checkers
        hints = {}
    fields: dict[str, Any] = {}
    open_ended = False
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            open_ended = True
        elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[name] = (hints.get(name, Any), default)
    model = create_model(
        "Params",
        __config__=ConfigDict(
            extra="allow" if open_ended else "forbid", arbitrary_types_allowed=True, strict=False
        ),
        **fields,
    )
    try:
        model.model_validate(params)
    except ValidationError as problem:
        accepted = ", ".join(sorted(fields)) or "(none)"
        raise ConfigError(
            f"parameters of {target!r}: " + "; ".join(describe_faults(problem)),
            where=where,
            accepted=accepted + (", and what the factory takes" if open_ended else ""),
            fix="correct the keys under `params:` or in --set",
        ) from None
    return params


_TYPE_NAMES = {"int", "float", "str", "bool", "dict", "list", "none"}


def describe_faults(problem: Any) -> list[str]:
    """One phrase for each fault of a pydantic ``ValidationError``; input values are not repeated,
    they may hold secrets."""
    faults = []
    for error in problem.errors(include_input=False, include_url=False):
        # Where several types are accepted pydantic adds the name of the type to the path.
        parts = [str(part) for part in error["loc"] if str(part) not in _TYPE_NAMES]
        path = ".".join(part for part in parts if "[" not in part) or "(top)"
        if error["type"] == "extra_forbidden":
            faults.append(f"unknown key {path!r}")
        elif error["type"] == "missing":
            faults.append(f"{path!r} is missing")
        else:
            faults.append(f"{path!r}: {error['msg']}")
    return list(dict.fromkeys(faults))


def _registered(kind: Kind) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"harness.{kind}s")}


def _load_module(name: str, base: Path | None) -> Any:
    _make_importable(base)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        package = name.partition(".")[0]
        own = package in ("harness", "retrievers") and problem.name == name
        raise PluginError(
            f"no module named {problem.name!r}, needed for {name!r}",
            accepted="a module that Python can import from here, or a file",
            fix=(
                f"`{package}` is a package of this project; name your own file as "
                f"./{name.replace('.', '/')}.py:attribute"
                if own
                else "install it, or name the file: ./path/to/file.py:attribute"
            ),
        ) from problem
    except HarnessError:
        raise
    except Exception as problem:
        raise PluginError(
            f"importing {name!r} failed with {type(problem).__name__}: {problem}"
        ) from problem


def _make_importable(base: Path | None) -> None:
    # At the end of the path: a user's own `retrievers/` must not hide this project's package.
    for folder in (str(base) if base else None, str(Path.cwd())):
        if folder and folder not in sys.path:
            sys.path.append(folder)


def _load_file(name: str, base: Path | None) -> Any:
    given = Path(name).expanduser()
    tried = [given] if given.is_absolute() or base is None else [base / given, given]
    path = next((p for p in tried if p.is_file()), None)
    if path is None:
        raise PluginError(f"no file {name!r}", where=", ".join(str(p.absolute()) for p in tried))
    module_name = "_harness_file_" + path.resolve().as_posix().replace("/", "_").replace(".", "_")
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} cannot be read as a Python module")
    module = importlib.util.module_from_spec(spec)
    _make_importable(base)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except HarnessError:
        raise
    except Exception as problem:
        del sys.modules[module_name]
        raise PluginError(
            f"importing {path} failed with {type(problem).__name__}: {problem}"
        ) from problem
    return module
