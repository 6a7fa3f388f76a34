"""The way from a name to an object: the only registry.

A target is a short name of what is built in, a short name that an installed package registered
under the entry-point group ``retrieval_bench.<kind>s``, ``module:attribute``, or
``path/to/file.py:attribute``. Names match exactly; a miss is answered with close names and the
whole list.
"""

from __future__ import annotations

import inspect
import json
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, reduce
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any, Literal

from retrieval_bench.core.calls.foreign import foreign_code, innermost, message_of
from retrieval_bench.core.errors import (
    ConfigError,
    HarnessError,
    PluginError,
    near_names,
    with_line,
)
from retrieval_bench.core.foreign_kinds import cure, is_another_kind, made_by, target_of
from retrieval_bench.core.installed.modules import (
    load_file,
    load_module,
    looked_up,
    refuse_namesake,
)
from retrieval_bench.core.retriever import Retriever

Kind = Literal["retriever", "metric", "dataset", "reader"]

_base: ContextVar[Path | None] = ContextVar("base", default=None)
"""Folder of the config that is being built, for names inside its parameters."""

BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "retriever": {
        "bm25": "retrieval_bench_retrievers.lexical.bm25:BM25",
        "bm25s": "retrieval_bench_retrievers.lexical.bm25s:BM25S",
        "dense": "retrieval_bench_retrievers.dense.dense:Dense",
        "maxsim": "retrieval_bench_retrievers.dense.maxsim:MaxSim",
        "learned-sparse": "retrieval_bench_retrievers.lexical.learned_sparse:LearnedSparse",
        "hybrid": "retrieval_bench_retrievers.hybrid.hybrid:Hybrid",
        "pipeline": "retrieval_bench_retrievers.pipeline.pipeline:Pipeline",
        "hybrid-dynamic": "retrieval_bench_retrievers.hybrid.dynamic.dynamic:HybridDynamic",
        "langchain": "retrieval_bench_retrievers.libraries.langchain:LangChainRetriever",
        "llamaindex": "retrieval_bench_retrievers.libraries.llamaindex:LlamaIndexRetriever",
        "haystack": "retrieval_bench_retrievers.libraries.haystack:HaystackRetriever",
        "pyterrier": "retrieval_bench_retrievers.libraries.pyterrier:PyTerrierRetriever",
        "postgres": "retrieval_bench_retrievers.engines.postgres:Postgres",
        "qdrant": "retrieval_bench_retrievers.engines.qdrant:Qdrant",
        "lancedb": "retrieval_bench_retrievers.engines.lance:LanceDB",
        "milvus": "retrieval_bench_retrievers.engines.milvus:Milvus",
        "seekdb": "retrieval_bench_retrievers.engines.seekdb:Seekdb",
        "sql": "retrieval_bench_retrievers.sql.sql:SQL",
        "callable": "retrieval_bench_retrievers.functions.callable:CallableRetriever",
        "http": "retrieval_bench_retrievers.http.http:HTTP",
        "command": "retrieval_bench_retrievers.programs.command:Command",
        "mcp": "retrieval_bench_retrievers.mcp.mcp:MCP",
        "trec_run": "retrieval_bench_retrievers.trec_run:TrecRun",
    },
    "metric": {},
    "dataset": {},
    "reader": {"huggingface": "retrieval_bench_retrievers.qa_reader:HuggingFaceReader"},
}


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A class or function that can be named.

    Attributes:
        name: of it.
        target: where its code is.
        source: what brings it.
        error: why it does not load; null where it does.
    """

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
    with looked_up(given):
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
    # What is built in or installed is not looked for beside a config.
    if target in BUILT_IN[kind]:
        return _attribute(BUILT_IN[kind][target], None)
    registered = _registered(kind)
    if target in registered:
        return _attribute(registered[target].value, None)
    raise PluginError(
        f"unknown {kind} {target!r}",
        kind="unknown-name",
        accepted=f"a short name ({near_names(target, names(kind))}), module:attribute, "
        "or file.py:attribute",
        fix="correct the name; `retrieval-bench data list` shows what exists",
    )


def load(target: str, *, base: Path | None = None) -> Any:
    """The attribute of the module or file that ``module:attribute`` names, dots allowed in both."""
    return _attribute(target, base or config_folder())


def _attribute(target: str, base: Path | None) -> Any:
    module_name, _, attribute = target.rpartition(":")
    if not module_name or not attribute:
        raise PluginError(f"{target!r}", accepted="module:attribute or file.py:attribute")
    if module_name.endswith(".py"):
        module = load_file(module_name, base)
    else:
        module = load_module(module_name, base)
        refuse_namesake(module, module_name, attribute, base)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        public = [name for name in vars(module) if not name.startswith("_")]
        raise PluginError(
            f"no {attribute!r} in {module_name}",
            where=str(getattr(module, "__file__", module_name)),
            kind="unknown-name",
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
        ConfigError: unknown, missing or ill-typed parameters, all of them in one message; or the
            constructor failed.
    """
    try:
        factory = resolve("retriever", target, base=base)
    except PluginError as problem:
        problem.where = problem.where or with_line(where, [("target",)])
        raise
    kind = factory if inspect.isclass(factory) and not issubclass(factory, Retriever) else None
    if not callable(factory) or target_of(factory) or (kind and made_by(kind)):
        raise _of_another_kind(target, where, factory)
    try:
        checked = _checked_params(factory, dict(params), target, where)
    except ConfigError as problem:
        if "is missing" in problem.given and is_another_kind(factory):
            raise _of_another_kind(target, where, factory) from None
        raise
    outer = _base.set(base or config_folder())

    def unbuildable(problem: BaseException) -> HarnessError:
        place = innermost(problem)
        return ConfigError(
            f"building retriever {target!r} failed with {message_of(problem)}",
            where=", ".join(filter(None, [where, "" if place.startswith(__file__) else place])),
            fix="correct the retriever or its parameters; --debug shows the traceback",
        )

    try:
        with foreign_code(unbuildable):
            made = factory(**checked)
    finally:
        _base.reset(outer)
    if not isinstance(made, Retriever):
        raise _of_another_kind(target, where, factory, made)
    return made


def _of_another_kind(target: str, where: str, given: Any, made: Any = None) -> PluginError:
    what, fix = cure(target, given, made)
    return PluginError(
        f"{target!r} {what}",
        where=where,
        accepted="a subclass of retrieval_bench.Retriever, or a function that makes one",
        fix=fix,
    )


def _checked_params(
    factory: Any, params: dict[str, Any], target: str, where: str
) -> dict[str, Any]:
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some built-in types have no signature to check against
        return params
    init = factory.__init__ if inspect.isclass(factory) else factory
    try:
        hints = typing.get_type_hints(init)
    except Exception:  # hints of third parties may name what is importable only for type checkers
        hints = {}
    kinds = {parameter.kind for parameter in parameters.values()}
    open_ended = inspect.Parameter.VAR_KEYWORD in kinds
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    declared = {name: p for name, p in parameters.items() if p.kind not in variable}
    checked = dict(params)
    faults: list[str] = []
    for name, parameter in declared.items():
        if name in params:
            checked[name] = _checked_value(name, params[name], hints.get(name, Any), faults)
        elif parameter.default is inspect.Parameter.empty:
            faults.append(f"{name!r} is missing")
    if not open_ended:
        faults += [f"unknown key {name!r}" for name in params if name not in declared]
    if faults:
        at_fault = [name for name in params if any(f"'{name}" in fault for fault in faults)]
        raise ConfigError(
            f"parameters of {target!r}: " + "; ".join(faults),
            kind="bad-yaml" if Path(where).is_file() else None,
            where=with_line(where, [("params", name) for name in at_fault] or [("params",)]),
            accepted=_accepted(factory, declared, faults, open_ended=open_ended),
            fix="correct the keys under `params:` or in --set"
            + ("" if ":" in target else f"; `retrieval-bench data list {target}` explains them"),
        )
    return checked


def _accepted(
    factory: Any, declared: Mapping[str, Any], faults: Sequence[str], *, open_ended: bool
) -> str:
    """The parameters; of those at fault that have a grammar of their own, that."""
    grammar = getattr(factory, "accepts", {})
    at_fault = [name for name in grammar if any(f"'{name}" in fault for fault in faults)]
    if at_fault:
        return "; ".join(f"{name}: {grammar[name]}" for name in at_fault)
    more = ", and what the factory takes" if open_ended else ""
    return (", ".join(sorted(declared)) or "(none)") + more


def _checked_value(name: str, value: Any, annotation: Any, faults: list[str]) -> Any:
    """``value`` as ``annotation`` wants it; what does not fit is told in ``faults``.

    A number is no truth value and a truth value no number. Text, which is all that an environment
    variable can hold, is read as what is wanted unless text is. Objects are handed on as they are.
    """
    from pydantic import ValidationError

    adapter = adapter_of(annotation)
    if adapter is None:
        return value
    try:
        fitting = adapter.validate_python(value, strict=True)
    except ValidationError as problem:
        try:
            return _read_as(adapter, value, problem)
        except ValidationError as final:
            faults += describe_faults(final, name)
            return value
    # A mapping may have become a model. An ``Iterable`` becomes an iterator, which ends: not that.
    # What stays equal is handed on as it is: a copy would not know what came from the environment.
    if isinstance(value, dict | list) and not isinstance(fitting, Iterator) and fitting != value:
        return fitting
    return value


def _read_as(adapter: Any, value: Any, problem: Exception) -> Any:
    """``value`` converted without loss: text, or a list or mapping of a config."""
    if isinstance(value, str):
        return adapter.validate_python(value, strict=False)
    if not isinstance(value, dict | list):
        raise problem
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):  # it holds objects
        return adapter.validate_python(value, strict=False)
    # YAML, as JSON, has no tuple, set, path or enumeration: strict, but for those.
    return adapter.validate_json(text, strict=True)


def adapter_of(annotation: Any) -> Any:
    """Make a pydantic ``TypeAdapter``; None for an annotation that pydantic cannot check."""
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError
    from pydantic_core import SchemaError

    for config in (ConfigDict(arbitrary_types_allowed=True), None):  # models bring their own
        try:
            return TypeAdapter(annotation, config=config)
        except (PydanticUserError, SchemaError, TypeError):
            continue
    return None


_TYPE_NAMES = {"int", "float", "str", "bool", "dict", "list", "none"}


def describe_faults(problem: Any, parent: str = "") -> list[str]:
    """One phrase for each fault of a pydantic ``ValidationError``; input values are not repeated,
    they may hold secrets. ``parent`` is the key that was validated, empty for a whole mapping."""
    faults = []
    for error in problem.errors(include_input=False, include_url=False):
        # Where several types are accepted pydantic adds the name of the type to the path.
        parts = [str(part) for part in error["loc"] if str(part) not in _TYPE_NAMES]
        inside = [part for part in parts if "[" not in part]
        path = ".".join([parent, *inside] if parent else inside) or "(top)"
        if error["type"] == "extra_forbidden":
            faults.append(f"unknown key {path!r}")
        elif error["type"] == "missing":
            faults.append(f"{path!r} is missing")
        else:
            faults.append(f"{path!r}: {error['msg']}")
    return list(dict.fromkeys(faults))


def _registered(kind: Kind) -> dict[str, EntryPoint]:
    folders = tuple((folder, _changed_at(folder)) for folder in sys.path)
    return {entry.name: entry for entry in _installed(folders)[kind]}


@lru_cache(maxsize=1)
def _installed(_folders: tuple[tuple[str, int], ...]) -> Mapping[Kind, EntryPoints]:
    """Entry points of what is installed: read once, which takes tens of milliseconds, and again
    where the path or a folder of it changed."""
    entries = entry_points()
    return {kind: entries.select(group=f"retrieval_bench.{kind}s") for kind in BUILT_IN}


def _changed_at(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
