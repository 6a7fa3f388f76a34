"""Layers of the set-up that retrievers need, for `make` and for messages.

``python -m retrieval_bench.experiment.layers NAME ...`` prints names of extras. What it does
not understand needs none: the command that runs the retriever says what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed.installation import config_folders, how_to_add, is_there
from retrieval_bench.core.installed.modules import find_file

_TARGETS = {"bm25s": "bm25s", "dense": "dense", "http": "http", "mcp": "http"}
_EXPRESSIONS = frozenset(
    ("hits", "id", "score", "ids", "scores", "text", "source", "server_time", "usage")
)
"""Parameters of a program that are JMESPath."""

_ENGINES = ("postgres", "qdrant", "lancedb", "milvus", "seekdb")
_MODELS = {
    "all-minilm-l6-v2-int8": {"dense-light"},
    "bge-small-en-v1.5-int8": {"dense-light", "bge-small"},
    "multilingual-e5-small-q4": {"multilingual"},
}
_TOKENIZERS = {"kiwi": "korean"}


def completed(problem: MissingDependencyError, specs: Iterable[Any]) -> MissingDependencyError:
    """``problem``, which names the first that is missing, as one that names all that ``specs``
    need, with one line that adds them."""
    names = lacking(specs)
    if len(names) < 2:  # what it says is all
        return problem
    return MissingDependencyError(
        problem.given,
        where=problem.where,
        accepted=f"the layers {', '.join(f'`{name}`' for name in names)} of the set-up",
        fix=how_to_add(*names),
    )


def lacking(specs: Iterable[Any]) -> list[str]:
    """The layers that ``specs`` need, as in :func:`layers`, and that are not installed."""
    return [name for name in sorted(set().union(*map(layers, specs))) if not is_there(name)]


def ready(command: str, specs: Iterable[Any]) -> str:
    """``command``, which runs ``specs``, as a line that can be pasted here: behind one that adds
    what they lack."""
    names = lacking(specs)
    return f"{how_to_add(*names)} && {command}" if names else command


def layers(spec: Any, base: Path | None = None, above: frozenset[Path] = frozenset()) -> set[str]:
    """Extras that a retriever and its legs need.

    Args:
        spec: its name, a YAML file, or ``{target, params}``.
        base: folder that relative paths are tried against first.
        above: configs that have it as a leg.
    """
    try:
        if isinstance(spec, str):
            file = _file(spec, base)
            if file in above:
                return set()
            content = {"target": spec} if file is None else yaml.safe_load(file.read_bytes())
            if file is not None:
                base, above = file.parent, above | {file}
        else:
            content = spec
        return _of_target(content, base, above)
    except Exception:  # it is not for this command to say what is wrong with a config
        return set()


def of_store(target: str, encoder: str | None) -> dict[str, Any]:
    """The retriever that loading needs the layers of: a store's own, with vectors of a model or
    without."""
    params: dict[str, Any] = {"mode": "bm25"}
    if encoder is not None:
        params = {"encoder": {"model": encoder}, "statement": "%(embedding)s"}
    if target == "postgres":  # a server that is there already
        target, params["dsn"] = "sql", "postgresql://"
    return {"target": target, "params": params}


def _file(name: str, base: Path | None) -> Path | None:
    if name.endswith((".yaml", ".yml")):
        return find_file(name, base)[0]
    named = (folder / f"{name}.yaml" for folder in config_folders("retrievers"))
    return next((file for file in named if file.is_file()), None)


def _of_target(content: Mapping[str, Any], base: Path | None, above: frozenset[Path]) -> set[str]:
    target, params = content["target"], content.get("params") or {}
    needed = {_TARGETS.get(target)}
    if target == "dense":
        needed = {*_model(params)}
    elif target == "command" and not _EXPRESSIONS.isdisjoint(params):
        needed = {"http"}
    elif target in ("http", "mcp") and params.get("encoder") is not None:
        needed |= _model(params["encoder"])
    elif target == "sql":
        needed = {"postgres" if params.get("dsn", "embedded") == "embedded" else "sql"}
        if "%(embedding)s" in str(params.get("statement")):
            needed |= _model(params.get("encoder") or {})
    elif target in _ENGINES:
        needed = {target}
        if params.get("mode", "dense") in ("dense", "hybrid"):
            needed |= _model(params.get("encoder") or {})
    elif target == "pipeline":
        needed = {layer for step in params["steps"] for layer in _step(step, base, above)}
    tokenizer = params.get("tokenizer")
    name = tokenizer.get("name") if isinstance(tokenizer, Mapping) else tokenizer
    needed.add(_TOKENIZERS.get(str(name)))
    legs = params.get("legs")
    of_legs = [layers(leg, base, above) for leg in (legs if isinstance(legs, list) else ())]
    return {layer for layer in needed if layer}.union(*of_legs)


def _model(params: Mapping[str, Any]) -> set[str]:
    return _MODELS.get(str(params.get("model")).casefold(), {"dense"})


def _step(step: Mapping[str, Any], base: Path | None, above: frozenset[Path]) -> set[str]:
    """Return the document of a step of a pipeline."""
    if "retrieve" in step:
        return layers(step["retrieve"], base, above)
    named = str(step.get("rerank", ":"))
    if named == "minilm-l12":
        return {"dense-light", "bge-small"}
    return set() if ":" in named else {"dense"}


if __name__ == "__main__":
    sys.stdout.write(" ".join(sorted(set().union(*map(layers, sys.argv[1:])))) + "\n")
