"""One measurement from its words to its saved runs: prepare, index, measure, evaluate, write.

Everything that can be found wrong is found, and told together, before anything is indexed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from harness import plugins, secrets
from harness.config import RetrieverConfig, load_retriever_config
from harness.data import load_dataset
from harness.errors import ConfigError, ContractError, DataError, HarnessError, counted
from harness.evaluation import evaluate
from harness.measure import runner
from harness.measure.environment import environment, peak_rss_bytes
from harness.measure.protocol import Plan, plan
from harness.measure.protocol import Protocol as MeasuringProtocol
from harness.measure.threads import prepare_environment, search_threads
from harness.metrics import Metric, default_metrics, parse_metrics
from harness.records import check_destination, write_run
from harness.retriever import Retriever
from harness.run import Run, pack_rankings
from harness.scripts import main_scripts, script_profile
from harness.summary import summarize
from harness.types import Dataset, Query
from harness.units import UnitRetriever

Task = Callable[[int, int], None]
"""Told (done, total) of a phase that takes long."""


class Reporter(Protocol):
    """Shows how far a run is; the command line has one, tests and notebooks need none."""

    def phase(self, name: str) -> Any:
        """A context that gives a :data:`Task` for the phase ``name``."""


class Silent:
    """A :class:`Reporter` that shows nothing."""

    def phase(self, name: str) -> Any:
        """Nothing is shown."""
        return nullcontext(lambda done, total: None)


@dataclass(slots=True)
class Candidate:
    """One retriever of an experiment, and what its manifest says of where it came from."""

    name: str
    retriever: Retriever
    config: Mapping[str, Any]
    index: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Experiment:
    """What is going to be measured, complete and checked; see :func:`prepare`."""

    candidates: list[Candidate]
    dataset: Dataset
    queries: tuple[Query, ...]
    k: int
    metrics: tuple[Metric, ...]
    protocol: MeasuringProtocol
    out: Path | None
    session: str = field(default_factory=lambda: token_hex(8))
    """Shared by runs that were measured together."""

    @property
    def plan(self) -> Plan:
        """How many calls each retriever gets."""
        return plan(self.protocol, len(self.queries))

    def run(self, reporter: Reporter | None = None, *, save: bool = True) -> list[Run]:
        """Index, measure, evaluate and save; one run for each candidate, in their order."""
        reporter = reporter or Silent()
        try:
            for candidate in self.candidates:
                self._index(candidate, reporter)
            known = self._known_ids()
            systems = [
                runner.System(c.name, c.retriever, None if _is_external(c) else known)
                for c in self.candidates
            ]
            with search_threads(self.protocol.threads) as complaints:
                names = ", ".join(c.name for c in self.candidates)
                with reporter.phase(f"searching with {names}") as task:
                    measurements = runner.measure(
                        systems, self.queries, self.k, self.protocol, progress=task
                    )
                surroundings = environment(self.protocol.threads)
            if not any(len(m.timings.wall_ns) for m in measurements):
                raise KeyboardInterrupt  # it came in the warm-up: there is nothing to keep
            runs = [
                self._account(candidate, measurement, surroundings, complaints)
                for candidate, measurement in zip(self.candidates, measurements, strict=True)
            ]
        finally:
            for candidate in self.candidates:
                candidate.retriever.close()
        return [write_run(run, self.out) for run in runs] if save else runs

    def _index(self, candidate: Candidate, reporter: Reporter) -> None:
        retriever, documents = candidate.retriever, self.dataset.documents
        retriever.use_k(self.k)
        if _is_external(candidate) or documents is None:
            return
        with reporter.phase(f"indexing {candidate.name}") as task:
            retriever.progress = task
            start = time.perf_counter()
            try:
                retriever.use_language(self.dataset.language)
                retriever.index(documents)
            except HarnessError:
                raise
            except Exception as problem:
                raise ContractError(
                    f"indexing failed with {type(problem).__name__}: {problem}",
                    where=f"retriever {candidate.name!r}, {_innermost(problem)}",
                    fix="correct the retriever or its parameters; --debug shows the traceback",
                ) from problem
        candidate.index = {
            "seconds": time.perf_counter() - start,
            "peak_rss_bytes": peak_rss_bytes(),
            "disk_bytes": retriever.disk_bytes(),
        }

    def _known_ids(self) -> Container[str] | None:
        if self.dataset.documents is None:
            return None
        if self.dataset.unit_of:
            return set(self.dataset.unit_of.values())
        return {document.id for document in self.dataset.documents}

    def _account(
        self,
        candidate: Candidate,
        measurement: runner.Measurement,
        surroundings: Mapping[str, Any],
        complaints: Sequence[str],
    ) -> Run:
        rankings = pack_rankings([q.id for q in self.queries], measurement.rankings, self.k)
        # A failed query counts as 0; one that an interrupted run did not reach does not count.
        rows = [
            at
            for at, query in enumerate(self.queries)
            if query.answerable and measurement.status[at] != runner.NOT_RUN
        ]
        evaluation = evaluate(
            rankings.ranking[rows],
            rankings.doc_ids,
            [self.queries[at].id for at in rows],
            self.dataset.qrels,
            self.metrics,
        )
        warnings = [
            *self.dataset.warnings,
            *complaints,
            *measurement.warnings,
            *candidate.retriever.health(self.queries),
            *_failures(measurement.status),
        ]
        if _is_external(candidate):
            warnings += _foreign_ids(rankings.doc_ids, self.dataset)
        summary = summarize(
            retriever=candidate.name,
            dataset=self.dataset,
            queries=self.queries,
            k=self.k,
            evaluation=evaluation,
            measurement=measurement,
            index=candidate.index or {"seconds": None, "peak_rss_bytes": None, "disk_bytes": None},
            warnings=warnings,
            capabilities=candidate.retriever.capabilities,
            health=self._health(candidate.retriever),
        )
        manifest = {
            "retriever": {
                "name": candidate.name,
                **candidate.config,
                "hash": _hash(candidate.config),
                "facts": dict(candidate.retriever.describe()),
            },
            "dataset": summary["dataset"],
            "k": self.k,
            "metrics": [str(metric) for metric in self.metrics],
            "protocol": self.protocol.as_dict(),
            "environment": surroundings,
            "session": self.session,
        }
        return Run(
            secrets.redact(summary),
            secrets.redact(manifest),
            rankings,
            tuple(secrets.redact(measurement.status)),
            measurement.timings,
            evaluation,
        )

    def _health(self, retriever: Retriever) -> list[str]:
        """Which scripts the texts are written in, and how they fit the retriever."""
        scripts = "queries " + main_scripts(script_profile(q.text for q in self.queries))
        if self.dataset.documents is not None:
            profile = script_profile(document.contents for document in self.dataset.documents)
            scripts = f"corpus {main_scripts(profile)}; {scripts}"
        return [scripts, *retriever.health_facts(self.queries)]


def prepare(
    retrievers: Sequence[Any],
    dataset: str | Path | Dataset,
    *,
    split: str = "test",
    k: int = 10,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protocol: MeasuringProtocol | None = None,
    out: Path | None = None,
    save: bool = True,
) -> Experiment:
    """An experiment with every part built and checked; nothing is indexed yet.

    Args:
        retrievers: names of configs, YAML files, ``module:Class``, inline mappings, or objects:
            a :class:`Retriever`, a LangChain retriever or runnable, or a function (query, k).
        overrides: ``dotted.path=value`` into the parameters of every retriever.

    Raises:
        HarnessError: every problem that was found, in one message.
    """
    prepare_environment()
    problems = Problems()
    candidates: list[Candidate] = []
    for given in retrievers:
        with problems.kept():
            candidates.append(_candidate(given, overrides))
    data: Dataset | None = None
    with problems.kept():
        data = dataset if isinstance(dataset, Dataset) else load_dataset(dataset, split)
    if k < 1:
        problems.add(ConfigError(f"k = {k}", where="--k", accepted="a whole number from 1"))
    chosen: tuple[Metric, ...] = ()
    with problems.kept():
        chosen = parse_metrics(metrics) if metrics else default_metrics(max(k, 1))
    for metric in chosen:
        if metric.cut is not None and metric.cut > max(k, 1) and metrics:
            problems.add(
                ConfigError(
                    f"metric {metric} with k = {k}",
                    where="--metrics",
                    accepted=f"cut-offs up to k = {k}",
                    fix=f"raise --k to {metric.cut}, or lower the cut-off",
                )
            )
    if save:
        with problems.kept():
            check_destination(out)
    queries: tuple[Query, ...] = ()
    if data is not None:
        counted = {q.id for q in data.evaluated} | {q.id for q in data.unanswerable}
        queries = tuple(q for q in data.queries if q.id in counted)
        with problems.kept():
            _check_match(candidates, data, queries)
            plan(protocol or MeasuringProtocol(), len(queries))
    problems.raise_if_any()
    if data is None:
        raise AssertionError("a dataset that did not load is a problem that was raised")
    if data.unit_of:
        for candidate in candidates:
            candidate.retriever = UnitRetriever(candidate.retriever, data.unit_of)
    return Experiment(candidates, data, queries, k, chosen, protocol or MeasuringProtocol(), out)


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


def _candidate(given: Any, overrides: Sequence[str]) -> Candidate:
    if isinstance(given, str | Path):
        given = load_retriever_config(str(given), overrides)
    elif isinstance(given, Mapping):
        name = str(given.get("name", given.get("target", "inline")))
        given = RetrieverConfig.model_validate({"name": name, **given})
    if isinstance(given, RetrieverConfig):
        config = {
            "target": given.target,
            "params": given.params,
            "source": str(given.source) if given.source else None,
        }
        return Candidate(given.name, given.build(), config)
    if overrides:
        raise ConfigError(
            f"overrides for a {type(given).__name__} object",
            accepted="overrides for a retriever that is given by name or file",
        )
    if isinstance(given, Retriever):
        return Candidate(type(given).__name__, given, {"target": _path_of(type(given))})
    if hasattr(given, "invoke") or hasattr(given, "ainvoke"):
        wrapped = plugins.resolve("retriever", "langchain")(factory=given)
        return Candidate(type(given).__name__, wrapped, {"target": _path_of(type(given))})
    if callable(given):
        wrapped = plugins.resolve("retriever", "callable")(function=given)
        return Candidate(getattr(given, "__name__", "callable"), wrapped, {"target": "callable"})
    raise ConfigError(
        f"a {type(given).__name__} as retriever",
        accepted="a name, a YAML file, a Retriever, a LangChain retriever or a function(query, k)",
    )


def _check_match(candidates: Sequence[Candidate], data: Dataset, queries: Sequence[Query]) -> None:
    if not queries:
        raise DataError(
            f"no query of {data.name!r} has a judgement in split {data.split!r}",
            accepted="at least one judged or unanswerable query",
            fix="; ".join(["choose another --split, or check the ids", *data.warnings]),
        )
    if data.documents is None:
        needy = [c.name for c in candidates if not _is_external(c)]
        if needy:
            raise DataError(
                f"dataset {data.name!r} has no corpus, and {', '.join(needy)} needs one to index",
                accepted="an external retriever (`external: true`), or a dataset with documents",
                fix="add the documents to the dataset folder, or declare the retriever external",
            )


def _is_external(candidate: Candidate) -> bool:
    return candidate.retriever.capabilities.external


def _failures(status: Sequence[str]) -> list[str]:
    reasons: dict[str, int] = {}
    for one in status:
        if one not in (runner.OK, runner.NOT_RUN):
            reasons[one] = reasons.get(one, 0) + 1
    return [f"{counted(n, 'query')} failed: {reason}" for reason, n in reasons.items()]


def _foreign_ids(doc_ids: Sequence[str], data: Dataset) -> list[str]:
    if not doc_ids:
        return []
    judged = {doc_id for row in data.qrels.values() for doc_id in row}
    if judged.isdisjoint(doc_ids):
        example = f"for example {doc_ids[0]!r} beside {min(judged, default='')!r}"
        return [
            (
                f"none of the {len(doc_ids):,} returned ids is judged ({example}): "
                "the index and the judgements seem to use different ids"
            )
        ]
    return []


def _innermost(problem: BaseException) -> str:
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "unknown place"
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _hash(config: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in config.items() if key != "source"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _path_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
