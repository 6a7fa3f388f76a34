"""The way from what a config names as legs to retrievers: found, built together, closed
together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeVar

from retrieval_bench.core import secrets
from retrieval_bench.core.config import (
    RetrieverConfig,
    build_retriever,
    inline_config,
    load_retriever_config,
)
from retrieval_bench.core.errors import ConfigError, HarnessError, MissingDependencyError
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Ranking, StepTrace, Usage
from retrieval_bench.experiment.building import built as built_as
from retrieval_bench.experiment.building import in_chunks

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


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg that was built.

    Attributes:
        name: in the hybrid.
        depth: hits that it is asked for, at least.
        facts: target and parameters of a leg given by name: the hybrid's own parameters do not say
            them.
    """

    name: str
    retriever: Retriever
    depth: int
    facts: Mapping[str, Any]


@contextmanager
def told_from(kind: str, name: str, whole: str) -> Iterator[None]:
    """Add to what fails inside in which leg or step it was, and of what."""
    try:
        yield
    except Exception as problem:
        problem.add_note(f"in {kind} {name!r} of the {whole}")
        if isinstance(problem, HarnessError):  # shown without its notes
            problem.where = "; ".join(part for part in (f"{kind} {name!r}", problem.where) if part)
            problem.args = (problem.render(),)
        raise


def steps_inside(names: Sequence[str], rankings: Sequence[Ranking]) -> dict[str, StepTrace]:
    """Collect the steps that the rankings of several retrievers kept, under the name of each."""
    kept: dict[str, StepTrace] = {}
    for name, ranking in zip(names, rankings, strict=True):
        for leg, trace in ranking.legs.items():
            kept[f"{name}/{leg}"] = StepTrace(trace.doc_ids, trace.doc_scores)
        for step, made in ranking.steps.items():
            kept[f"{name}/{step}"] = made
    return kept


def usage_of_legs(names: Sequence[str], rankings: Sequence[Ranking]) -> dict[str, Usage]:
    """Collect the usage of the legs of a hybrid, by stage."""
    return {
        f"leg:{name}" if stage == "call" else f"{name}.{stage}": used
        for name, ranking in zip(names, rankings, strict=True)
        for stage, used in ranking.usage.items()
    }


def sources_of(legs: Sequence[LegSpec]) -> list[Source]:
    """Read the source of each of ``legs``; nothing is built.

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


def built_alone(spec: LegSpec) -> Leg:
    """Find and build one retriever inside of another; its depth is 0.

    Raises:
        HarnessError: it cannot be had, or would contain itself.
    """
    source = _source(spec)
    if "chunk" in source.facts:
        raise ConfigError(
            f"chunk of {source.name!r}, in a step",
            accepted="`chunk` beside the steps: those behind it read the texts of chunks, too",
            fix="move it there",
        )
    return Leg(source.name, _build(source), 0, source.facts)


def _source(spec: LegSpec) -> Source:
    if isinstance(spec, Retriever):
        name = getattr(spec, "name", None)
        known = name if isinstance(name, str) and name else type(spec).__name__
        return Source(known, lambda: spec, {}, given=True)
    if isinstance(spec, str):
        config = load_retriever_config(spec)
        _require_uncalled(config)
        facts = {"target": config.target, "params": secrets.redact(config.params), **_cut(config)}
        return Source(
            config.name, partial(built_as, config), facts, str(config.source or config.target)
        )
    if isinstance(spec, Mapping):
        inline = inline_config(spec)
        _require_uncalled(inline)
        name = spec.get("name") or str(spec.get("target", "inline")).rpartition(":")[2]
        return Source(str(name), lambda: in_chunks(inline, build_retriever(spec)), {**_cut(inline)})
    raise ConfigError(
        f"a value of type {type(spec).__name__} where a retriever belongs",
        accepted="the name or YAML file of a retriever config, an inline {target, params, name}, "
        "or a Retriever object",
        fix="name a retriever, such as bm25",
    )


def _cut(config: RetrieverConfig) -> Mapping[str, Any]:
    return {} if config.chunk is None else {"chunk": config.chunk}


def _require_uncalled(config: RetrieverConfig) -> None:
    """Refuse what says how a leg is called: whoever holds it calls it, and would not keep to it."""
    if calling := [key for key in config.calling if key != "chunk"]:
        raise ConfigError(
            f"{', '.join(calling)} of {config.name}, which is called by another retriever here",
            accepted="these keys in the config that is measured",
            fix=f"move them there from {config.source or config.name}",
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
            f"retriever {source.name!r} contains itself",
            where=" -> ".join([*above, source.config]),
            fix="take its name out of its own legs or steps",
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
    raise_together(problems)
    return made


def raise_together(problems: Sequence[HarnessError]) -> None:
    """Raise the one problem as it is, or several in one message."""
    if len(problems) == 1:
        raise problems[0]
    if problems and all(isinstance(problem, MissingDependencyError) for problem in problems):
        raise problems[0]  # whoever knows the whole config names all that it lacks
    if problems:
        raise ConfigError("\n".join(str(problem) for problem in problems))


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


class WritesToLegs:
    """``add`` and ``delete`` of what is made of legs, and units of what these return."""

    _legs: Sequence[Leg]

    def units(self, unit_of: Mapping[str, str]) -> Mapping[str, str]:
        """Units of hits; a leg may return chunks."""
        return reduce(lambda known, leg: leg.retriever.units(known), self._legs, unit_of)

    def collection(self) -> str:
        """The collections of all legs, joined by commas."""
        names = (leg.retriever.collection() for leg in self._legs)
        return ",".join(dict.fromkeys(filter(None, names)))

    def add(self, documents: Sequence[Document]) -> None:
        """Add to each leg in turn; acknowledged by the last."""
        for leg in self._legs:
            leg.retriever.add(documents)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete from each leg in turn; acknowledged by the last."""
        for leg in self._legs:
            leg.retriever.delete(ids)
