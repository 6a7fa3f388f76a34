"""The way from words to an experiment that can run: every part built and checked, all faults at
once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrieval_bench.capabilities import service
from retrieval_bench.core.calls.foreign import WorkingFolder
from retrieval_bench.core.calls.waiting import waited_for
from retrieval_bench.core.config import (
    RetrieverConfig,
    config_hash,
    inline_config,
    load_retriever_config,
    path_of,
    validate,
)
from retrieval_bench.core.errors import ConfigError, HarnessError, MissingDependencyError
from retrieval_bench.core.retriever import Retriever, require_k
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.core.units.self_hits import as_judged
from retrieval_bench.data import found_at, given_dataset
from retrieval_bench.data.needs_judgements import require_corpus, require_queries
from retrieval_bench.experiment.building import built
from retrieval_bench.experiment.candidate import Candidate, close_all
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.layers import completed
from retrieval_bench.experiment.objects import adapted
from retrieval_bench.measure.machine.servers import Server
from retrieval_bench.measure.protocol import Protocol, plan
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench.metrics import Metric, default_metrics, parse_metrics
from retrieval_bench.metrics.names import check_defined
from retrieval_bench.runs.records import DEFAULT_ROOT, check_destination


def prepare(
    retrievers: Sequence[Any],
    dataset: str | Path | Dataset,
    *,
    split: str = "test",
    language: str | None = None,
    self_hits: str | None = None,
    k: int = 10,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protocol: Protocol | None = None,
    out: Path | None = None,
    save: bool = True,
    every_query: bool = False,
) -> Experiment:
    """An experiment with every part built and checked; nothing is indexed yet.

    Args:
        retrievers: names of configs, YAML files, ``module:Class``, inline mappings, or objects:
            a :class:`Retriever`, a function (query, k), or a retriever of another library
            (:mod:`.objects`).
        language, self_hits: of the dataset, as in :func:`.load_dataset`.
        overrides: ``dotted.path=value`` into the parameters of every retriever.
        protocol: with launches, all is measured in processes of their own.
        every_query: also queries that nothing judges; of a dataset without any judgement these are
            asked in any case.

    Raises:
        HarnessError: every problem that was found, in one message; with launches also a retriever
            or a dataset that only exists as an object in this process.
    """
    protocol = protocol or Protocol()
    launches = None
    if protocol.launches:
        launches = service("measure in fresh processes")(
            retrievers, dataset, split, k, metrics, overrides, protocol, language, self_hits
        ).run
    prepare_environment(protocol.threads)
    problems = Problems()
    metrics = [metrics] if isinstance(metrics, str) else metrics
    candidates = _candidates(retrievers, overrides, problems)
    root, out = DEFAULT_ROOT.absolute(), None if out is None else out.absolute()
    data: Dataset | None = None
    with problems.kept():
        data = given_dataset(dataset, split, language=language, self_hits=self_hits)
    with problems.kept():
        require_k(k)
    chosen: tuple[Metric, ...] = ()
    with problems.kept():
        chosen = parse_metrics(metrics) if metrics else ()
    deep = [
        item for item in chosen if item.cut is not None and isinstance(k, int) and item.cut > k >= 1
    ]
    if deep:
        more = f" and {len(deep) - 1:,} more" if deep[1:] else ""
        problems.add(
            ConfigError(
                f"metric {deep[0]}{more} with k = {k}",
                where="--metrics",
                accepted=f"cut-offs up to k = {k}",
                fix=f"raise --k to {max(item.cut or 0 for item in deep)}, or lower the cut-off",
            )
        )
    if save:
        with problems.kept():
            check_destination(out)
    queries: tuple[Query, ...] = ()
    if data is not None:
        queries = data.queries if every_query else data.asked
        with problems.kept():
            _check_match(candidates, data, queries)
            plan(protocol, len(queries))
        with problems.kept():
            check_defined(chosen, data.qrels)
        for candidate in candidates:
            with problems.kept():
                candidate.retriever = as_judged(candidate.retriever, data)
    try:
        problems.raise_if_any()
    except HarnessError:
        close_all(candidates)
        raise
    if data is None:
        raise AssertionError("a dataset that did not load is a problem that was raised")
    chosen = chosen or default_metrics(k, data.qrels)
    source = None if isinstance(dataset, Dataset) else found_at(dataset)
    return Experiment(
        candidates,
        data,
        queries,
        k,
        chosen,
        protocol,
        out,
        source,
        language,
        root,
        launches=launches,
    )


def prepare_told(message: Mapping[str, Any], copies: int = 1) -> Experiment:
    """The experiment that a :class:`.LaunchSpec` has put into a message; nothing of it is saved.

    Args:
        copies: instances of each retriever.
    """
    told = dict(message)
    protocol = told["protocol"] | {"levels": tuple(told["protocol"]["levels"])}
    names = ("split", "language", "self_hits", "k", "metrics", "overrides")
    return prepare(
        told["retrievers"] * copies,
        told["dataset"],
        protocol=Protocol(**protocol),
        save=False,
        **{name: told[name] for name in names},
    )


class Problems:
    """Collects errors, to tell all of them at once."""

    def __init__(self) -> None:
        self._found: list[HarnessError] = []

    def add(self, problem: HarnessError) -> None:
        """Keep one more."""
        self._found.append(problem)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Errors of this project that are raised inside are kept instead."""
        try:
            yield
        except HarnessError as problem:
            self.add(problem)

    def raise_if_any(self) -> None:
        """Raise the one problem as it is, or several in one message."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            parts = "\n".join(f"{i}. {p.render()}" for i, p in enumerate(self._found, start=1))
            raise HarnessError(f"{len(self._found)} problems\n{parts}") from self._found[0]


def _candidates(
    retrievers: Sequence[Any], overrides: Sequence[str], problems: Problems
) -> list[Candidate]:
    """Candidates that can be built; what packages the others lack is told once, for all of them."""
    candidates: list[Candidate] = []
    missing: dict[str, MissingDependencyError] = {}
    for given in retrievers:
        with problems.kept():
            try:
                candidates.append(_candidate(given, overrides))
            except MissingDependencyError as problem:
                named = given if isinstance(given, str | Path) else getattr(given, "name", given)
                missing[f"retriever {str(named)!r}"] = problem
    if missing:
        first, *others = missing.values()
        first.where = ", ".join(missing)
        if others:
            first.given = "; ".join(dict.fromkeys(lacking.given for lacking in missing.values()))
            first.fix = " && ".join(dict.fromkeys(lacking.fix for lacking in missing.values()))
        problems.add(completed(first, retrievers))
    return candidates


def _candidate(given: Any, overrides: Sequence[str]) -> Candidate:
    if not isinstance(given, str | Path | Mapping | RetrieverConfig):
        return _of_object(given, overrides)
    called = {}
    if isinstance(given, str | Path):
        given = load_retriever_config(str(given), overrides)
        called = {"overrides": list(overrides)}
    elif isinstance(given, Mapping):
        given = inline_config(given, overrides)
    folder, server = WorkingFolder(), None
    if given.server is not None:
        where = str(given.source or given.name)
        server = validate(Server, given.server, where=f"{where}, server").find()
    with folder.lent(), waited_for(f"building {given.name}"):
        retriever = built(given)
    config = {
        "target": given.target,
        "params": given.params,
        **({} if given.chunk is None else {"chunk": given.chunk}),
        "source": str(given.source) if given.source else None,
        **called,
        "hash": config_hash(given.target, given.params, given.chunk),
    }
    return Candidate(
        given.name,
        retriever,
        config,
        folder=folder,
        retry=given.retry,
        rate_limit=given.rate_limit,
        server=server,
        price=given.price,
    )


def _of_object(given: Any, overrides: Sequence[str]) -> Candidate:
    if overrides:
        raise ConfigError(
            f"overrides for a {type(given).__name__} object",
            accepted="overrides for a retriever that is given by name or file",
        )
    if isinstance(given, Retriever):
        called_itself = getattr(given, "name", None)
        name = called_itself if isinstance(called_itself, str) else ""
        kind = type(given)
        return Candidate(name or kind.__name__, given, {"target": path_of(kind)})
    candidate = adapted(given)
    if candidate is None:
        raise ConfigError(
            f"a {type(given).__name__} as retriever",
            accepted="a name, a YAML file, a Retriever, a retriever of LangChain, LlamaIndex, "
            "Haystack or PyTerrier, or a function(query, k)",
        )
    return candidate


def _check_match(candidates: Sequence[Candidate], data: Dataset, queries: Sequence[Query]) -> None:
    require_queries(data, queries)
    told = [(c.name, c.capabilities) for c in candidates]
    replayed = [name for name, can in told if can.replays and not can.filters]
    if replayed and any(query.filter for query in queries):
        raise ConfigError(
            f"{', '.join(replayed)} on queries with filters",
            where=f"dataset {data.name!r}",
            accepted="retrievers that are asked: a saved ranking does not say whether filters were "
            "applied",
            fix="measure the retriever itself, or score the run: retrieval-bench score run",
        )
    require_corpus(data, dict(told))
