"""The way from YAML to validated models: an unknown key is an error, and all faults come at
once."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.calls.failures import Retry
from retrieval_bench.core.calls.usage import Price
from retrieval_bench.core.errors import ConfigError, listed, near_names, with_line
from retrieval_bench.core.installed.git import LFS_POINTER
from retrieval_bench.core.installed.installation import config_folders
from retrieval_bench.core.installed.modules import find_file
from retrieval_bench.core.retriever import Retriever

Model = TypeVar("Model", bound=BaseModel)

YAML_FAULTS = (
    *(yaml.YAMLError, ValueError, TypeError, RecursionError),
    *(AttributeError, LookupError, ArithmeticError),
)
"""What PyYAML raises: its own errors, and whatever converting a value ends in (2024-02-30)."""

LARGEST = 1 << 20
"""Bytes of a YAML file, and values that aliases may make of it: some seconds for PyYAML, and far
more than settings need."""

DEEPEST = 100
"""Parts of a dotted key."""

_CHUNKER = re.compile(r"([a-z]+)(?:-(\d{1,9}))?(?:-(\d{1,9}))?")


class RetrieverConfig(BaseModel):
    """A retriever by name, with its parameters; ``${NAME}`` is still unfilled here.

    Attributes:
        retry: which failed calls are made again.
        rate_limit: calls a second, at most; pauses are outside of the timed calls.
        server: ``{pid: N}`` or ``{port: N}`` of the process that answers.
        price: ``{tokens_in, tokens_out, calls}``: money for a million tokens, and for a call.
        chunk: how documents are cut into chunks before it indexes them; None = not at all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    target: str
    params: dict[str, Any] = {}
    description: str = ""
    retry: Retry = Retry()
    rate_limit: Annotated[float, Field(gt=0)] | None = None
    server: dict[str, int] | None = None
    price: Price | None = None
    chunk: dict[str, Any] | None = None
    source: Path | None = Field(default=None, exclude=True)

    @property
    def calling(self) -> list[str]:
        """The keys given that say how it is called, and so belong to whoever calls it."""
        return sorted(self.model_fields_set & {"retry", "rate_limit", "server", "price", "chunk"})

    def build(self) -> Retriever:
        """The retriever, with ``${NAME}`` filled from the environment, without a chunker."""
        where = str(self.source or f"retriever {self.name!r}")
        filled = secrets.expand({"target": self.target, "params": self.params}, where)
        return plugins.construct(
            filled["target"],
            filled["params"],
            base=self.source.parent if self.source else None,
            where=where,
        )


def retriever_names() -> list[str]:
    """Names that :func:`load_retriever_config` takes, without the paths."""
    from_files = {f.stem for folder in config_folders("retrievers") for f in folder.glob("*.yaml")}
    return sorted(from_files | set(plugins.names("retriever")))


def load_retriever_config(
    name_or_path: str, overrides: Sequence[str] = (), *, base: Path | None = None
) -> RetrieverConfig:
    """The config that a name or a YAML file stands for.

    Args:
        name_or_path: a path that ends in .yaml or .yml, the name of a file in
            ``configs/retrievers``, a plug-in's short name, ``module:Class``, or another file, which
            is a run that ``trec_run`` replays; one with a chunker behind it, as in
            ``bm25+tokens-400-40``, cuts documents into chunks of that size and overlap.
        overrides: ``dotted.path=value`` into the parameters, values in YAML.
        base: folder that relative paths are tried against first.

    Raises:
        ConfigError: no such name (close ones are offered), or faults in the file.
    """
    name, plus, cut = name_or_path.rpartition("+")
    if not plus or (chunker := _CHUNKER.fullmatch(cut)) is None:
        return _overridden(_find(name_or_path, base), overrides)
    by, *sizes = filter(None, chunker.groups())
    chunk = {"by": by, **dict(zip(("size", "overlap"), map(int, sizes), strict=False))}
    config = _find(name, base)
    if config.chunk is not None:
        raise ConfigError(
            f"a second chunker, {cut}",
            where=f"retriever {name_or_path!r}",
            accepted="one: the config has `chunk` already",
            fix="leave one of the two out",
        )
    config = config.model_copy(update={"chunk": chunk, "name": f"{config.name}+{cut}"})
    return _overridden(config, overrides)


def chunker_in(name: str, chunk: Mapping[str, Any] | None) -> str:
    """What the end of ``name`` says of how documents are cut, as in ``+tokens-400-40``; empty where
    the config says it, or nobody."""
    _, plus, cut = name.rpartition("+")
    named = _CHUNKER.fullmatch(cut) if plus and chunk else None
    return plus + cut if named and chunk and named[1] == chunk.get("by") else ""


def inline_config(mapping: Mapping[str, Any], overrides: Sequence[str] = ()) -> RetrieverConfig:
    """The config that an inline ``{target, params, name, description}`` stands for; its name is
    the target unless given.

    Args:
        overrides: as in :func:`load_retriever_config`; objects in ``params`` are kept as they are.

    Raises:
        ConfigError: faults in the mapping, all in one message.
    """
    if "source" in mapping:
        raise ConfigError("unknown key 'source'", where="inline retriever")
    named = {"name": str(mapping.get("target", "inline")), **mapping}
    return _overridden(validate(RetrieverConfig, named, where="inline retriever"), overrides)


def _overridden(config: RetrieverConfig, overrides: Sequence[str]) -> RetrieverConfig:
    if not overrides:
        return config
    # `chunk.size=400` is said of the cut, whose keys stand beside the parameters.
    settings: dict[str, Any] = _containers_copied({**config.params, "chunk": config.chunk or {}})
    for override in overrides:
        _apply(settings, override)
    chunk = settings.pop("chunk") or None
    return config.model_copy(update={"params": settings, "chunk": chunk})


def placed(params: Mapping[str, Any], objects: Mapping[str, Any]) -> dict[str, Any]:
    """``params`` with ``objects`` at their dotted paths; what was given is not changed."""
    placed: dict[str, Any] = _containers_copied(dict(params))
    for path, value in objects.items():
        *parents, last = path.split(".")
        node: Any = placed
        for part in parents:
            node = _step(node, part, path)
        node[_position(node, last, path) if isinstance(node, list) else last] = value
    return placed


def _containers_copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _containers_copied(item) for key, item in value.items()}
    return [_containers_copied(item) for item in value] if isinstance(value, list) else value


def build_retriever(spec: str | Mapping[str, Any]) -> Retriever:
    """A retriever from the name of a config or from an inline ``{target, params}``; what the legs
    of a hybrid are given as. Relative paths start at the config that is being built."""
    base = plugins.config_folder()
    if isinstance(spec, str):
        return load_retriever_config(spec, base=base).build()
    return (
        inline_config(spec).model_copy(update={"source": base / "inline" if base else None}).build()
    )


def config_hash(
    target: str, params: Mapping[str, Any], chunk: Mapping[str, Any] | None = None
) -> str:
    """Return the config hash of the target and the parameters, with the configs that legs and steps
    name in their place, and of how documents are cut."""
    cut = {} if chunk is None else {"chunk": chunk}
    text = json.dumps(_resolved(target, params) | cut, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def flat(params: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """``params`` by dotted path, values as texts."""
    for key, value in params.items():
        if isinstance(value, dict):
            yield from flat(value, f"{path}{key}.")
        elif isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
            yield f"{path}{key}", "/".join(map(str, value))
        else:
            yield f"{path}{key}", str(value)


def _resolved(target: str, params: Mapping[str, Any]) -> dict[str, Any]:
    settings = dict(params)
    if isinstance(settings.get("legs"), list):
        settings["legs"] = [_resolved_leg(leg) for leg in settings["legs"]]
    if isinstance(settings.get("steps"), list):
        settings["steps"] = [
            {**step, "retrieve": _resolved_leg(step["retrieve"])}
            if isinstance(step, Mapping) and "retrieve" in step
            else step
            for step in settings["steps"]
        ]
    return {"target": target, "params": settings}


def _resolved_leg(leg: Any) -> Any:
    if isinstance(leg, str):
        try:
            config = load_retriever_config(leg)
        except ConfigError:  # a retriever of one's own may mean something else by the word
            return leg
        cut = {} if config.chunk is None else {"chunk": config.chunk}
        return _resolved(config.target, config.params) | cut
    if isinstance(leg, Mapping):
        cut = {"chunk": leg["chunk"]} if leg.get("chunk") else {}
        return _resolved(str(leg.get("target")), leg.get("params", {})) | cut
    return path_of(type(leg))


def path_of(kind: type) -> str:
    """``module:Class``, as a config would name it."""
    return f"{kind.__module__}:{kind.__qualname__}"


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ConfigError: unreadable, too large, not YAML, or not a mapping; with the line where YAML
            says it.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ConfigError(
                f"the file holds more than {LARGEST:,} bytes",
                where=str(path),
                accepted="settings in YAML",
                fix="name this file only if it holds settings; data stand in files of their own",
            )
        if text.startswith(LFS_POINTER):
            raise ConfigError(
                "a pointer of Git LFS, not the file itself",
                where=str(path),
                accepted="settings in YAML",
                fix="`git lfs pull` in its repository fetches the file",
            )
        content = yaml.load(text, Loader=UniqueKeyLoader)
    except OSError as problem:
        what = f"cannot read the file: {problem.strerror}"
        raise ConfigError(what, kind="no-file", where=str(path)) from None
    except YAML_FAULTS as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        what = getattr(problem, "problem", None) or str(problem).partition("\n")[0]
        raise ConfigError(f"not readable as YAML: {what}", kind="bad-yaml", where=where) from None
    if not isinstance(content, dict):
        raise ConfigError(
            f"the file holds {type(content).__name__}",
            kind="bad-yaml",
            where=str(path),
            accepted="a YAML mapping",
        )
    return content


def validate(
    model: type[Model],
    content: Mapping[str, Any],
    *,
    where: str,
    accepted: str = "",
    fix: str = "correct the file",
    context: Any = None,
) -> Model:
    """``content`` as ``model``.

    Args:
        accepted: for the message; without it of each fault what ``description`` says of the key, or
            the keys that there are.
        context: of the validation.

    Raises:
        ConfigError: all faults in one message, without the values, which may be secret.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as problem:
        errors = problem.errors()
        known = dict.fromkeys(_keys(model, error["loc"]) for error in errors)
        at = [(*error["loc"], *error.get("ctx", {}).get("keys", ())) for error in errors]
        raise ConfigError(
            "; ".join(plugins.describe_faults(problem)),
            kind="bad-yaml",
            where=with_line(where, at),
            accepted=accepted or "; ".join(known),
            fix=fix,
        ) from None


def _keys(model: type[BaseModel], location: Sequence[int | str]) -> str:
    """Say what the section takes in which a fault lies: as its description says, or its keys; those
    of the top where it is no model."""
    first = model.model_fields.get(str(location[0])) if location else None
    if first is not None and first.description:
        return f"{location[0]}: {first.description}"
    section: Any = model
    for part in location[:-1]:
        section = getattr(getattr(section, "model_fields", {}).get(part), "annotation", None)
    fields = getattr(section, "model_fields", model.model_fields)
    of = "" if fields is model.model_fields else f"of {'.'.join(map(str, location[:-1]))}: "
    return f"keys {of}" + ", ".join(name for name, field in fields.items() if not field.exclude)


def parse_value(text: str, where: str) -> Any:
    """A value of the command line, read as YAML."""
    try:
        return yaml.load(text, Loader=UniqueKeyLoader)
    except YAML_FAULTS:
        raise ConfigError(
            f"{text!r} is not a YAML value",
            where=where,
            fix="put text into quotes, such as '\"a: b\"'",
        ) from None


def _find(name_or_path: str, base: Path | None) -> RetrieverConfig:
    if name_or_path.endswith((".yaml", ".yml")):
        found, tried = find_file(name_or_path, base)
        if found is not None:
            return _from_file(found)
        raise ConfigError(
            f"no retriever file {name_or_path!r}",
            kind="no-file",
            where=", ".join(str(path.absolute()) for path in tried),
            accepted=f"a YAML file, or one of: {listed(retriever_names())}",
        )
    if ":" in name_or_path:
        return RetrieverConfig(name=name_or_path.rpartition(":")[2], target=name_or_path)
    for folder in config_folders("retrievers"):
        found, _ = find_file(str(folder / f"{name_or_path}.yaml"), None)
        if found is not None:
            return _from_file(found)
    if name_or_path in plugins.names("retriever"):
        return RetrieverConfig(name=name_or_path, target=name_or_path)
    found, _ = find_file(name_or_path, base)
    if found is not None and found.suffix != ".py":
        params = {"path": str(found.resolve())}
        name = Path(found.name.removesuffix(".gz")).stem
        return RetrieverConfig(name=name, target="trec_run", params=params)
    known = near_names(name_or_path, retriever_names())
    raise ConfigError(
        f"unknown retriever {name_or_path!r}",
        kind="unknown-name",
        accepted=f"{known}; or a path ending in .yaml, or a file of a run",
        fix="correct the name; `retrieval-bench data list` shows what exists",
    )


def _from_file(path: Path) -> RetrieverConfig:
    content = read_yaml(path)
    if "source" in content:
        where = with_line(str(path), [("source",)])
        raise ConfigError("unknown key 'source'", kind="bad-yaml", where=where)
    content.setdefault("name", path.stem)
    return validate(RetrieverConfig, {**content, "source": path.resolve()}, where=str(path))


def _apply(params: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    where = f"--set {override}"
    if not equals or not key:
        raise ConfigError(f"{override!r}", where="--set", accepted="key=value, key may be dotted")
    *parents, last = key.split(".")
    if len(parents) >= DEEPEST:
        raise ConfigError(
            f"a key of {len(parents) + 1:,} parts", where="--set", accepted=f"up to {DEEPEST} parts"
        )
    node: Any = params
    for part in parents:
        node = _step(node, part, where)
    value = parse_value(text, where)
    if isinstance(node, list):
        node[_position(node, last, where)] = value
    elif isinstance(node, dict):
        node[last] = value
    else:
        raise _no_keys_inside(key, where)


def _step(node: Any, part: str, where: str) -> Any:
    if isinstance(node, list):
        return node[_position(node, part, where)]
    if isinstance(node, dict):
        return node.setdefault(part, {})
    raise _no_keys_inside(part, where)


def _no_keys_inside(key: str, where: str) -> ConfigError:
    return ConfigError(
        f"{key!r} goes into a value that holds no keys",
        where=where,
        accepted="a path into a mapping or a list",
        fix="set the whole value, such as --set 'tokenizer={name: ngram, n: 3}'",
    )


def _position(node: list[Any], part: str, where: str) -> int:
    positions = list(map(str, range(len(node))))
    if part in positions:
        return positions.index(part)
    raise ConfigError(f"{part!r}", where=where, accepted=f"a position from 0 to {len(node) - 1}")


def for_editors(name: str) -> str:
    """The first line of a YAML file that is written here, by which editors find its schema beside
    it: ``retrieval-bench data schema NAME --full > NAME.schema.json``."""
    return f"# yaml-language-server: $schema={name}.schema.json\n"


class UniqueKeyLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where PyYAML silently keeps the last, and aliases that
    stand for too much."""

    def get_single_node(self) -> yaml.Node | None:
        """The document, whose aliases are counted each time before they become values."""
        node: yaml.Node | None = super().get_single_node()
        if node is not None and _n_values(node, {}) > LARGEST:
            raise yaml.constructor.ConstructorError(
                None, None, f"its aliases stand for more than {LARGEST:,} values", node.start_mark
            )
        return node


def _n_values(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """Return how many values ``node`` stands for: one inside of itself has no end."""
    if node not in known:
        known[node] = LARGEST + 1
        inner = node.value if isinstance(node, yaml.CollectionNode) else ()
        if isinstance(node, yaml.MappingNode):
            inner = chain.from_iterable(inner)
        known[node] = 1 + sum(_n_values(item, known) for item in inner)
    return known[node]


def _unique_mapping(loader: UniqueKeyLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:bool":  # of keys that are words, such as `on`
            key_node.tag = "tag:yaml.org,2002:str"
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key {key!r} given twice", key_node.start_mark
            )
        seen.add(key)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)
