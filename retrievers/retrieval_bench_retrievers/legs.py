"""From what a config names as legs to retrievers: found, built together, closed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from retrieval_bench.core import secrets
from retrieval_bench.core.config import (
    RetrieverConfig,
    build_retriever,
    inline_config,
    load_retriever_config,
)
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.retriever import Retriever

LegSpec = str | Mapping[str, Any] | Retriever
"""The name or file of a config, an inline ``{target, params, name}``, or a retriever."""

Given = TypeVar("Given")
Made = TypeVar("Made")

_ancestors: ContextVar[tuple[str, ...]] = ContextVar("configs of legs being built", default=())


@dataclass(frozen=True, slots=True)
class Source:
    """A leg before it is built: nothing was imported or loaded yet."""

    name: str
    build: Callable[[], Retriever]
    facts: Mapping[str, Any]
    config: str | None = None
    """What tells a named config from all others, to see legs that contain themselves."""
    given: bool = False
    """Whether the caller made it, as an object."""


def sources_of(legs: Sequence[LegSpec]) -> list[Source]:
    """What each of ``legs`` is made of; nothing is built.

    Raises:
        ConfigError: fewer than two, or what is no leg.
    """
    if isinstance(legs, str | Mapping) or not isinstance(legs, Sequence):
        raise _bad_legs(f"legs given as {type(legs).__name__}")
    if len(legs) < 2:
        raise _bad_legs(f"legs given: {len(legs)}")
    given = [id(leg) for leg in legs if isinstance(leg, Retriever)]
    if len(set(given)) < len(given):
        raise _bad_legs("one retriever object given as two legs")
    return _each(_source, legs)


def _source(spec: LegSpec) -> Source:
    if isinstance(spec, Retriever):
        name = getattr(spec, "name", None)
        known = name if isinstance(name, str) and name else type(spec).__name__
        return Source(known, lambda: spec, {}, given=True)
    if isinstance(spec, str):
        config = load_retriever_config(spec)
        _require_uncalled(config)
        facts = {"target": config.target, "params": secrets.redact(config.params)}
        return Source(config.name, config.build, facts, str(config.source or config.target))
    if isinstance(spec, Mapping):
        _require_uncalled(inline_config(spec))
        name = spec.get("name") or str(spec.get("target", "inline")).rpartition(":")[2]
        return Source(str(name), lambda: build_retriever(spec), {})
    raise _bad_legs(f"a leg of type {type(spec).__name__}")


def _require_uncalled(config: RetrieverConfig) -> None:
    """Refuse what says how a leg is called: the hybrid calls it, and would not keep to it."""
    if config.calling:
        raise _bad_legs(
            f"{', '.join(config.calling)} of the leg {config.name}, which the hybrid would not "
            "keep: write it in the config of the hybrid"
        )


def built(
    sources: Sequence[Source], check: Callable[[Sequence[Retriever]], None]
) -> list[Retriever]:
    """The legs; when one cannot be had, or ``check`` raises, those that were built for this are
    closed again.

    Raises:
        HarnessError: all that is wrong with them, in one message.
    """
    own: list[Retriever] = []

    def build(source: Source) -> Retriever:
        retriever = _build(source)
        if not source.given:
            own.append(retriever)
        return retriever

    try:
        retrievers = _each(build, sources)
        check(retrievers)
    except BaseException:
        close_all(own)
        raise
    return retrievers


def _build(source: Source) -> Retriever:
    above = _ancestors.get()
    if source.config is None:
        return source.build()
    if source.config in above:
        raise ConfigError(
            f"leg {source.name!r} contains itself",
            where=" -> ".join([*above, source.config]),
            fix="take the name of the hybrid out of its own legs",
        )
    token = _ancestors.set((*above, source.config))
    try:
        return source.build()
    finally:
        _ancestors.reset(token)


def _each(make: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
    """``make`` of each; where several fail, one error tells all faults."""
    made, problems = [], []
    for item in given:
        try:
            made.append(make(item))
        except HarnessError as problem:
            problems.append(problem)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ConfigError("\n".join(str(problem) for problem in problems))
    return made


def close_all(retrievers: Iterable[Retriever]) -> None:
    """Close each, also when closing one of them raises."""
    with ExitStack() as stack:
        for retriever in retrievers:
            stack.callback(retriever.close)


def _bad_legs(given: str) -> ConfigError:
    return ConfigError(
        given,
        where="legs of the hybrid",
        accepted="a list of two or more: names or YAML files of retriever configs, inline "
        "{target, params, name}, or Retriever objects",
        fix="correct `legs:`, such as [bm25, dense]",
    )
