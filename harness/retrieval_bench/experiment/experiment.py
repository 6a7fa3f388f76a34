"""One measurement from checked parts to saved runs: index, measure, evaluate, write."""

from __future__ import annotations

import signal
import threading
import time
import warnings as python_warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import ContractError, HarnessError, RecordError, counted
from retrieval_bench.core.figures import visible
from retrieval_bench.core.foreign import WorkingFolder, foreign_code, innermost, message_of
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.scripts import ScriptSample, main_scripts, script_profile
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.experiment.summary import summarize
from retrieval_bench.measure import runner
from retrieval_bench.measure.disturbances import disturbances
from retrieval_bench.measure.environment import environment, peak_rss_bytes
from retrieval_bench.measure.protocol import Plan, Protocol, plan
from retrieval_bench.measure.steady import WINDOW, WINDOWS
from retrieval_bench.measure.threads import search_threads
from retrieval_bench.measure.tutorial import TutorialLatency, tutorial_latency
from retrieval_bench.metrics import Metric
from retrieval_bench.runs.evaluation import JUDGED_AT, evaluate
from retrieval_bench.runs.records import DEFAULT_ROOT, write_run
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench.stats.resampling import RESAMPLES, SEED

REMEMBERED = 5.0
"""From this ratio of a query's first call to its later ones on, a warning speaks of a cache."""

_EXAMPLES = 3
"""Messages of one kind of failure that are shown."""


@dataclass(slots=True)
class Candidate:
    """One retriever of an experiment, and what its manifest says of where it came from."""

    name: str
    retriever: Retriever
    config: Mapping[str, Any]
    index: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """One retriever's answers, with neither figures nor files.

    Attributes:
        name: of the retriever.
        rankings: one for each query, None where it failed.
        status: one for each query: "ok", or why it failed.
        timings: all measured calls.
        warnings: faults of the data, the fit of the retriever to it, what failed.
    """

    name: str
    rankings: tuple[Ranking | None, ...]
    status: tuple[str, ...]
    timings: runner.Timings
    warnings: tuple[str, ...]


@dataclass(slots=True)
class Experiment:
    """What is going to be measured, complete and checked; see
    :func:`retrieval_bench.experiment.preparation.prepare`."""

    candidates: list[Candidate]
    dataset: Dataset
    queries: tuple[Query, ...]
    k: int
    metrics: tuple[Metric, ...]
    protocol: Protocol
    out: Path | None
    source: str | None = None
    """Where the dataset was found, a name or a path; None for an object."""
    root: Path = DEFAULT_ROOT
    """Where runs are saved without ``out``."""
    folder: WorkingFolder = field(default_factory=WorkingFolder)
    """Where this process and the retrievers stand."""
    session: str = field(default_factory=lambda: token_hex(8))
    """Shared by runs that were measured together."""
    elsewhere: Callable[[Reporter | None], list[Run]] | None = None
    """When given, it measures in place of this process, with retrievers of its own."""

    @property
    def plan(self) -> Plan:
        """How many calls each retriever gets."""
        return plan(self.protocol, len(self.queries))

    def run(self, reporter: Reporter | None = None, *, save: bool = True) -> list[Run]:
        """Index, measure, evaluate and save; one run for each candidate, in their order.

        The retrievers are closed at the end, also those that were given as objects.
        """
        if self.elsewhere is not None:
            self.close()  # two of a retriever would disturb each other
            runs = self.elsewhere(reporter)
            with _interrupts_deferred():
                return self._saved(runs) if save else runs
        with self.folder.lent():
            return self._measured(reporter or Silent(), save=save)

    def _measured(self, reporter: Reporter, *, save: bool) -> list[Run]:
        try:
            for candidate in self.candidates:
                self._index(candidate, reporter)
            known, scripts = self._survey()
            systems = [
                runner.System(c.name, c.retriever, None if _is_external(c) else known)
                for c in self.candidates
            ]
            with search_threads(self.protocol.threads) as complaints:
                surroundings = environment(self.protocol.threads)
                names = ", ".join(c.name for c in self.candidates)
                with reporter.phase(Phase(Step.SEARCHING, names)) as task:
                    measurements = runner.measure(
                        systems, self.queries, self.k, self.protocol, progress=task
                    )
                noise = measurements[0].noise
                disturbed = disturbances(noise, surroundings["machine"], self.protocol.threads)
            if not any(len(m.timings.wall_ns) for m in measurements):
                raise KeyboardInterrupt  # it came in the warm-up: there is nothing to keep
            told = [*complaints, *disturbed]
            with _interrupts_deferred():
                runs = [
                    self._account(candidate, measurement, surroundings, told, scripts)
                    for candidate, measurement in zip(self.candidates, measurements, strict=True)
                ]
                return self._saved(runs) if save else runs
        finally:
            close_all(self.candidates)

    def ask(self, reporter: Reporter | None = None) -> Asked:
        """Index and search with the first retriever; nothing is evaluated or saved.

        Raises:
            KeyboardInterrupt: the user stopped it; half of the answers are of no use here.
        """
        with self.folder.lent():
            return self._asked(reporter or Silent())

    def _asked(self, reporter: Reporter) -> Asked:
        candidate = self.candidates[0]
        try:
            self._index(candidate, reporter)
            known, _ = self._survey()
            system = runner.System(
                candidate.name, candidate.retriever, None if _is_external(candidate) else known
            )
            with (
                search_threads(self.protocol.threads) as complaints,
                reporter.phase(Phase(Step.SEARCHING, candidate.name)) as task,
            ):
                (found,) = runner.measure(
                    [system], self.queries, self.k, self.protocol, progress=task
                )
            if found.interrupted:
                raise KeyboardInterrupt
            told: list[str] = []
            warnings = [
                *self.dataset.warnings,
                *_deep(self.k, self.dataset),
                *complaints,
                *_asked(candidate, "health", told, (), self.queries),
                *_failures(found.status),
                *told,
            ]
            return Asked(
                candidate.name,
                tuple(found.rankings),
                tuple(found.status),
                found.timings,
                tuple(secrets.redact(warning) for warning in warnings),
            )
        finally:
            close_all(self.candidates)

    def tutorial(self, reporter: Reporter | None = None) -> TutorialLatency:
        """The first retriever, timed as the usual notebook does; nothing is evaluated or saved."""
        reporter = reporter or Silent()
        candidate = self.candidates[0]
        with self.folder.lent():
            try:
                self._index(candidate, reporter)
                with (
                    search_threads(self.protocol.threads),
                    reporter.phase(Phase(Step.SEARCHING, candidate.name)),
                ):
                    search = candidate.retriever.search
                    return tutorial_latency(lambda query: search(query, self.k), self.queries)
            finally:
                close_all(self.candidates)

    def _saved(self, runs: Sequence[Run]) -> list[Run]:
        try:
            return [write_run(run, self.out, self.root) for run in runs]
        except RecordError as problem:
            problem.runs = runs
            raise

    def close(self) -> None:
        """Close every retriever; one that fails to close is told as a warning."""
        with self.folder.lent():
            close_all(self.candidates)

    def _index(self, candidate: Candidate, reporter: Reporter) -> None:
        retriever, documents = candidate.retriever, self.dataset.documents

        def failed(problem: BaseException) -> ContractError:
            return ContractError(
                f"indexing failed with {message_of(problem)}",
                where=f"retriever {candidate.name!r}, {innermost(problem)}",
                fix="correct the retriever or its parameters; --debug shows the traceback",
            )

        with foreign_code(failed):
            retriever.use_k(self.k)
            if _is_external(candidate) or documents is None:
                return
            with reporter.phase(Phase(Step.INDEXING, candidate.name)) as task:
                retriever.progress = task
                start = time.perf_counter()
                retriever.use_language(self.dataset.language)
                retriever.index(documents)
        candidate.index = {
            "seconds": time.perf_counter() - start,
            "peak_rss_bytes": peak_rss_bytes(),
            "disk_bytes": _asked(candidate, "disk_bytes", [], None),
        }

    def _survey(self) -> tuple[Container[str] | None, str]:
        """Ids that may be returned (None where the corpus is not known), and which scripts the
        texts are written in; in one walk, a corpus may be large."""
        scripts = "queries " + main_scripts(script_profile(q.text for q in self.queries))
        if self.dataset.documents is None:
            return None, scripts
        ids, sample = set(), ScriptSample()
        for document in self.dataset.documents:
            ids.add(document.id)
            sample.add(document.contents)
        known = set(self.dataset.unit_of.values()) if self.dataset.unit_of else ids
        return known, f"corpus {main_scripts(sample.profile())}; {scripts}"

    def _account(
        self,
        candidate: Candidate,
        measurement: runner.Measurement,
        surroundings: Mapping[str, Any],
        complaints: list[str],
        scripts: str,
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
            judged_at=min(self.k, JUDGED_AT),
        )
        told: list[str] = []  # what the retriever itself could not say
        facts = _asked(candidate, "describe", told, {})
        health = [scripts, *_asked(candidate, "health_facts", told, (), self.queries)]
        warnings = [
            *self.dataset.warnings,
            *_without_relevant(self.dataset),
            *_deep(self.k, self.dataset),
            *complaints,
            *measurement.warnings,
            *_unsteady(candidate, measurement),
            *_asked(candidate, "health", told, (), self.queries),
            *_failures(measurement.status),
            *told,
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
            health=health,
            levels=self.protocol.levels,
            parallel=facts.get("parallel"),
        )
        summary["warnings"] += _remembered(summary["latency_ms"])
        manifest = {
            "retriever": {
                "name": candidate.name,
                "hash": None,  # an object does not say what it was built from
                **candidate.config,
                "facts": dict(facts),
            },
            "dataset": {**summary["dataset"], "source": self.source},
            "k": self.k,
            "metrics": [str(metric) for metric in self.metrics],
            "protocol": self.protocol.as_dict(),
            "bootstrap": {"seed": SEED, "resamples": RESAMPLES},
            "environment": surroundings,
            "noise": measurement.noise,
            "session": self.session,
            "beside": sorted(c.name for c in self.candidates if c is not candidate),
        }
        return Run(
            secrets.redact_summary(summary),
            secrets.redact_manifest(manifest),
            rankings,
            tuple(
                status if status in (runner.OK, runner.NOT_RUN) else secrets.redact(status)
                for status in measurement.status
            ),
            measurement.timings,
            evaluation,
        )


def _remembered(latency: Mapping[str, Any]) -> list[str]:
    """Of a retriever whose later answers come far sooner than the first: the figures are those of
    repeated queries."""
    ratio = latency["first_visit"]["ratio"]
    if ratio is None or ratio < REMEMBERED:
        return []
    told = f"the first call of a query took {ratio:,.0f} times as long as later ones"
    return [f"{told}: answers may be remembered, and the times are those of repeated queries"]


def _unsteady(candidate: Candidate, measurement: runner.Measurement) -> list[str]:
    if measurement.steady_after is not None or candidate.retriever.capabilities.replays:
        return []
    n = counted(measurement.warm_up_calls, "warm-up call")
    least = len(measurement.status) + WINDOW * WINDOWS
    if measurement.warm_up_calls < least:
        return [f"whether times had settled is not known: {n}, it takes {least:,} to tell"]
    return [f"times still changed after {n}: the first measured ones may be slower than later ones"]


def _is_external(candidate: Candidate) -> bool:
    return candidate.retriever.capabilities.external


def _failures(status: Sequence[str]) -> list[str]:
    """Failed queries by kind of failure, with some of the messages: a service that puts a request
    id into each of them would otherwise fill the screen."""
    kinds: dict[str, list[str]] = {}
    for one in status:
        if one not in (runner.OK, runner.NOT_RUN):
            kinds.setdefault(one.partition(":")[0], []).append(one)
    lines = []
    for messages in kinds.values():
        distinct = list(dict.fromkeys(messages))
        shown = " / ".join(distinct[:_EXAMPLES])
        more = f" / and {len(distinct) - _EXAMPLES} more" if len(distinct) > _EXAMPLES else ""
        lines.append(f"{counted(len(messages), 'query')} failed: {shown}{more}")
    return lines


def _deep(k: int, data: Dataset) -> list[str]:
    if not 0 < data.n_documents < k:
        return []
    documents = counted(data.n_documents, "document")
    return [f"k = {k:,} is more than the {documents}: no ranking can be that long"]


def _without_relevant(data: Dataset) -> list[str]:
    n = len(data.without_relevant)
    if not n:
        return []
    return [f"{counted(n, 'evaluated query')} with no relevant document: 0 whatever is returned"]


def _asked(
    candidate: Candidate, question: str, told: list[str], otherwise: Any, *arguments: Any
) -> Any:
    """What the retriever says of itself. It is asked after the measurement, which a mistake in the
    answer must not cost: that becomes a sentence in ``told``."""

    def failed(problem: BaseException) -> ContractError:
        return ContractError(f"{question}() of {candidate.name} failed with {message_of(problem)}")

    try:
        with foreign_code(failed):
            return getattr(candidate.retriever, question)(*arguments)
    except HarnessError as problem:
        told.append(problem.given)
        return otherwise


def close_all(candidates: Sequence[Candidate]) -> None:
    """Close every retriever, whatever the others do."""
    for candidate in candidates:
        told: list[str] = []
        _asked(candidate, "close", told, None)
        for message in told:
            python_warnings.warn(visible(secrets.redact(message)), RuntimeWarning, stacklevel=2)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """A first Ctrl-C waits until what was measured is saved; a second one does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def later(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
