"""One measurement from checked parts to saved runs: index, measure, evaluate, write."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from retrieval_bench.capabilities import offered, service
from retrieval_bench.core import secrets
from retrieval_bench.core.calls.foreign import folder_kept, foreign_code
from retrieval_bench.core.calls.usage import total
from retrieval_bench.core.errors import RecordError, distinct_names
from retrieval_bench.core.notices import Code, Notice, about_times, coded
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.scripts import ScriptSample, main_scripts, script_profile
from retrieval_bench.core.types import (
    EMPTY,
    Dataset,
    Query,
    by_rule,
    hits_are_ranges,
    kind_of_truth,
)
from retrieval_bench.data.saved_indexes import index_documents
from retrieval_bench.experiment.accounting import (
    Scored,
    Subject,
    Task,
    WithoutParts,
    summarize,
)
from retrieval_bench.experiment.candidate import Candidate, Searched, ask, close_all
from retrieval_bench.experiment.failing import recovered
from retrieval_bench.experiment.filtered import filtered
from retrieval_bench.experiment.planned_run import PlannedRun
from retrieval_bench.experiment.tie_warnings import effect_of_ties
from retrieval_bench.experiment.until import Asking
from retrieval_bench.experiment.warnings import (
    deep,
    drawn,
    failures,
    foreign_ids,
    nothing_found,
    of_answers,
    of_data,
    one_question,
    refuse_elsewhere,
    remembered,
    silent,
    suspicious,
    unknown_ids,
    unsteady,
)
from retrieval_bench.measure import runner
from retrieval_bench.measure.behind_cut import Cut, behind_cut
from retrieval_bench.measure.calls import NOT_RUN, OK, Measurement
from retrieval_bench.measure.environment import environment, peak_rss_bytes
from retrieval_bench.measure.machine import observers
from retrieval_bench.measure.machine.disturbances import disturbances
from retrieval_bench.measure.protocol import Plan, Protocol, plan
from retrieval_bench.measure.threads import search_threads
from retrieval_bench.metrics import Metric
from retrieval_bench.metrics.tied import TieEffect
from retrieval_bench.runs.dataset import labels_of
from retrieval_bench.runs.evaluation import JUDGED_AT, evaluate
from retrieval_bench.runs.records import DEFAULT_ROOT, interrupts_deferred, write_run
from retrieval_bench.runs.run import Run, pack_rankings
from retrieval_bench.stats.resampling import RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class Experiment:
    """Plan of a measurement, complete and checked; see
    :func:`retrieval_bench.experiment.preparation.prepare`."""

    candidates: Sequence[Candidate]
    dataset: Dataset
    queries: tuple[Query, ...]
    k: int
    metrics: tuple[Metric, ...]
    protocol: Protocol
    out: Path | None
    source: str | None = None
    """Where the dataset was found, a name or a path; None for an object."""
    language: str | None = None
    """As it was given beside the dataset; None = as that says itself."""
    root: Path = DEFAULT_ROOT
    """Where runs are saved without ``out``."""
    session: str = field(default_factory=lambda: token_hex(8))
    """Shared by runs that were measured together."""
    launches: Callable[[Reporter | None], list[Run]] | None = None
    """When given, it is measured in processes of their own, with retrievers of their own."""
    until: Callable[[Experiment], Asking] | None = None
    """When given, each query is asked once, until enough is known."""
    ablate: bool | None = False
    """Ask retrievers once more without the parts that their kept lists cannot be left out of; None
    leaves out none at all."""

    @property
    def names(self) -> list[str]:
        """The names of the retrievers, told apart."""
        return distinct_names([candidate.name for candidate in self.candidates])

    @property
    def plan(self) -> Plan:
        """The number of calls that each retriever gets."""
        return plan(self.protocol, len(self.queries))

    @property
    def counted(self) -> tuple[Query, ...]:
        """The queries that count in a mean."""
        return tuple(query for query in self.queries if self._counts(query))

    def _counts(self, query: Query) -> bool:
        return query.answerable and query.id in self.dataset.qrels

    def _counted(self, status: Sequence[str]) -> list[int]:
        # A failed query counts as 0; one that an interrupted run did not reach does not count.
        asked = enumerate(zip(self.queries, status, strict=False))
        return [at for at, (query, one) in asked if self._counts(query) and one != NOT_RUN]

    def ending(self, until: Callable[[Experiment], Asking]) -> Experiment:
        """The same, asking each query that counts once, as far as ``until`` says."""
        queries = self.counted
        protocol = replace(self.protocol, max_calls=len(queries))  # leaves none to the warm-up
        return replace(self, queries=queries, protocol=protocol, until=until)

    def dry_run(self) -> PlannedRun:
        """Plan :meth:`run`, before anything was tried."""
        calls, n = self.plan, len(self.candidates)
        most = None if calls.warm_up_most is None else calls.measured + calls.warm_up_most
        return PlannedRun(
            retrievers=[candidate.name for candidate in self.candidates],
            dataset=self.dataset.name,
            queries=len(self.queries),
            rounds=calls.rounds,
            measured_calls=calls.measured,
            launches=calls.launches,
            warm_up_calls_at_least=calls.warm_up,
            warm_up_calls_at_most=calls.warm_up_most,
            warm_up_seconds_at_most=self.protocol.warm_up_s,
            calls_at_least=(calls.total * calls.launches if self.until is None else 1) * n,
            calls_at_most=None if most is None else most * calls.launches * n,
            warnings=self.dataset.warnings,
        )

    def run(self, reporter: Reporter | None = None, *, save: bool = True) -> list[Run]:
        """Index, measure, evaluate and save; one run for each candidate, in their order.

        The retrievers are closed at the end, also those that were given as objects.
        """
        if self.launches is not None:
            self.close()  # two of a retriever would disturb each other
            runs = self.launches(reporter)
            with interrupts_deferred():
                return self._sound(runs, save)
        reporter = reporter or Silent()
        try:
            for candidate in self.candidates:
                self._index(candidate, reporter)
            known, *_ = survey = self.survey()
            for c in self.candidates:
                c.server = c.server or ask(c, "server_pid", [], None)
            systems = [candidate.system(known) for candidate in self.candidates]
            asking = None if self.until is None else self.until(self)
            with self._searching(), search_threads(self.protocol.threads) as complaints:
                surroundings = environment(self.protocol.threads)
                with reporter.phase(Phase(Step.SEARCHING, ", ".join(self.names))) as task:
                    measurements = runner.measure(
                        systems, self.queries, self.k, self.protocol, progress=task, enough=asking
                    )
                seen = observers.seen()  # by now retrievers have loaded what they load
                surroundings |= (
                    {"observers": [measurement.name for measurement in seen]} if seen else {}
                )
                noise = measurements[0].noise
                without = self._without_parts(measurements, reporter)
                disturbed = disturbances(noise, surroundings["machine"], self.protocol.threads)
            if not any(len(m.timings.wall_ns) for m in measurements):
                raise KeyboardInterrupt  # it came in the warm-up: there is nothing to keep
            if asking is not None:
                measurements = [asking.whole_queries(measurement) for measurement in measurements]
            told = [*coded(complaints, Code.THREADS), *coded(disturbed, Code.BUSY)]
            told += [measurement.warning for measurement in seen]
            with interrupts_deferred():
                calls = Counter[int | None]()
                for asked, measured in zip(self.candidates, measurements, strict=True):
                    calls[asked.server] += len(measured.timings.wall_ns)
                runs = [
                    self._account(
                        candidate,
                        measurement,
                        surroundings,
                        told,
                        survey,
                        asking=asking,
                        server_calls=calls[candidate.server],
                        without=parts,
                    )
                    for candidate, measurement, parts in zip(
                        self.candidates, measurements, without, strict=True
                    )
                ]
                return self._sound(runs, save)
        finally:
            self.close()

    def search(
        self,
        reporter: Reporter | None = None,
        *,
        first: int | None = None,
        enough: runner.Enough | None = None,
    ) -> Searched:
        """Index and search with the first retriever; nothing is evaluated or saved.

        Args:
            first: ask so many queries only; how the retriever fits is told of all.
            enough: ends it after a query, as in :func:`.runner.measure`.

        Raises:
            KeyboardInterrupt: the user stopped it; half of the answers are of no use here.
        """
        reporter = reporter or Silent()
        candidate = self.candidates[0]
        try:
            self._index(candidate, reporter)
            known = self.survey()[0]
            system = candidate.system(known)
            with (
                self._searching(),
                search_threads(self.protocol.threads) as complaints,
                reporter.phase(Phase(Step.SEARCHING, candidate.name)) as task,
            ):
                asked = self.queries[:first]
                (measurements,) = runner.measure(
                    [system], asked, self.k, self.protocol, progress=task, enough=enough
                )
            if measurements.interrupted:
                raise KeyboardInterrupt
            messages: list[str] = []
            health = ask(candidate, "health", messages, (), self.queries)
            facts = ask(candidate, "describe", messages, {})
            can = candidate.capabilities
            warnings = [
                *self.dataset.warnings,
                *nothing_found(self.dataset, asked, measurements.rankings, can, health),
                *suspicious(self.dataset, asked, measurements.rankings, self.k, health),
                *replace(self, queries=asked)._ties(candidate, measurements, known, facts)[1],
                *(foreign_ids(measurements.rankings, self.dataset, known) if can.external else ()),
                *drawn(self.dataset),
                *deep(self.k, self.dataset),
                *complaints,
                *health,
                *failures(measurements.status),
                *messages,
            ]
            return Searched(
                candidate.name,
                tuple(measurements.rankings),
                tuple(measurements.status),
                measurements.timings,
                tuple(secrets.redact(warning) for warning in warnings),
            )
        finally:
            self.close()

    @contextmanager
    def ready(self, reporter: Reporter | None = None) -> Iterator[Container[str] | None]:
        """Every retriever ready to be called by whoever measures in another way; gives the ids that
        may be returned, None where they are not known. Closed afterwards."""
        with closing(self), self._searching(), search_threads(self.protocol.threads):
            for candidate in self.candidates:
                self._index(candidate, reporter or Silent())
            yield self.survey()[0]

    @contextmanager
    def _searching(self) -> Iterator[None]:
        """Stand where the retrievers went, if all of them went to one place."""
        folders = [candidate.folder for candidate in self.candidates]
        together = len({folder.place for folder in folders}) == 1
        with folders[0].lent() if together else folder_kept():
            yield

    def _sound(self, runs: Sequence[Run], save: bool) -> list[Run]:
        """``runs`` whose figures mean something, saved if asked for."""
        kept = [run for run in runs if not unknown_ids(run.summary.warnings)]
        kept = self._saved(kept) if save and kept else kept
        refuse_elsewhere(runs, kept)
        return kept

    def _saved(self, runs: Sequence[Run]) -> list[Run]:
        try:
            return [write_run(run, self.out, self.root) for run in runs]
        except RecordError as problem:
            problem.runs = runs
            raise

    def close(self) -> None:
        """Close every retriever; one that fails to close is told as a warning."""
        close_all(self.candidates)

    def _index(self, candidate: Candidate, reporter: Reporter) -> None:
        retriever, documents = candidate.retriever, self.dataset.documents
        with candidate.folder.lent(), foreign_code(candidate.failed_to_index):
            retriever.use_k(self.k)
            if candidate.capabilities.external or documents is None:
                return
            with reporter.phase(Phase(Step.INDEXING, candidate.name)) as task:
                retriever.progress = task
                start = time.perf_counter()
                candidate.indexed = index_documents(retriever, self.dataset, candidate.name)
        candidate.index = {
            "seconds": time.perf_counter() - start,
            "peak_rss_bytes": peak_rss_bytes(),
            "disk_bytes": ask(candidate, "disk_bytes", [], None),
        } | ({"opened": True} if candidate.indexed.opened else {})

    def survey(self) -> tuple[Collection[str] | None, str, list[str]]:
        """Ids that may be returned (None where the corpus is not known), which scripts the texts
        are written in, and a sample of documents; in one walk, a corpus may be large."""
        scripts = "queries " + main_scripts(script_profile(q.text for q in self.queries))
        if self.dataset.documents is None:
            return None, scripts, []
        ids, sample = set(), ScriptSample()
        for document in self.dataset.documents:
            ids.add(document.id)
            sample.add(document.contents)
        known = set(self.dataset.unit_of.values()) if self.dataset.unit_of else ids
        if hits_are_ranges(self.dataset.qrels):
            known = service("know ranges of documents")(known)
        return known, f"corpus {main_scripts(sample.profile())}; {scripts}", sample.texts

    def _without_parts(
        self, measurements: Sequence[Measurement], reporter: Reporter
    ) -> Sequence[WithoutParts]:
        """The answers of each retriever without each of its parts, where a package asks for them:
        once all calls are timed."""
        leave_out = offered("leave out parts")
        if leave_out is None or self.until is not None or self.ablate is None:
            return [WithoutParts()] * len(measurements)
        all_without: Sequence[WithoutParts] = leave_out(self, measurements, reporter)
        for measurement, without in zip(measurements, all_without, strict=True):
            measurement.spent = total([measurement.spent, without.spent])
        return all_without

    def _ties(
        self, asked: Candidate, measurement: Measurement, known: Any, facts: Mapping[str, Any]
    ) -> tuple[TieEffect | None, list[Notice]]:
        if by_rule(self.dataset.qrels):  # several slots may be filled at one rank
            return None, []
        rows = self._counted(measurement.status) if self.dataset.judged else ()
        task = Cut(self.queries, self.dataset, self.k, self.protocol)
        with asked.folder.lent():
            behind = behind_cut(asked.system(known), measurement, task, rows)
            return effect_of_ties(behind, task, self.metrics, asked.capabilities, facts=facts)

    def _account(
        self,
        candidate: Candidate,
        measurement: Measurement,
        surroundings: Mapping[str, Any],
        complaints: Sequence[str],
        survey: tuple[Collection[str] | None, str, list[str]],
        *,
        asking: Asking | None,
        server_calls: int,
        without: WithoutParts,
    ) -> Run:
        ids, clusters = [q.id for q in self.queries], labels_of(self.dataset, self.queries)
        rankings = pack_rankings(ids, measurement.rankings, self.k, without.rankings, clusters)
        rows, can = self._counted(measurement.status), candidate.capabilities
        timings, qrels = measurement.timings, self.dataset.qrels
        kept_of_slots, told_of_slots = EMPTY, list[str]()
        if kind := kind_of_truth(qrels):
            seen = service(f"decide by {kind}")(qrels, ids, measurement.rankings, rows, self.k)
            qrels, kept_of_slots, told_of_slots = seen
        evaluation = evaluate(
            rankings.ranking[rows],
            rankings.doc_ids,
            [ids[row] for row in rows],
            *(qrels, self.metrics),
            judged_at=min(self.k, JUDGED_AT),
            intervals=asking is None,
            clusters=rankings.labels if self.dataset.cluster_key else EMPTY,
        )
        of_filters = filtered(self.dataset, self.queries, measurement.rankings, can)
        messages: list[str] = []  # what the retriever itself could not say
        facts = ask(candidate, "describe", messages, {})
        known, scripts, texts = survey
        facts_told = [scripts, *ask(candidate, "health_facts", messages, (), self.queries)]
        health = ask(candidate, "health", messages, (), self.queries)
        health = [*candidate.indexed.warnings, *health]
        ties, of_ties = self._ties(candidate, measurement, known, facts)
        outside = offered("warn of time outside a server")
        took = None if asking or measurement.spent else timings.wall_ns
        warnings = [
            *of_data(self.dataset, self.k),
            *(tell(self.dataset, texts) if (tell := offered("tell languages")) else []),
            *one_question(evaluation, rankings, self.dataset),
            *told_of_slots,
            *of_ties,
            *of_answers(
                self.dataset,
                self.queries,
                measurement.rankings,
                can,
                health,
                rows=rows,
                corpus=None if hits_are_ranges(self.dataset.qrels) else known,
                k=self.k,
            ),
            *complaints,
            *coded(measurement.warnings, Code.CLOCK),
            *unsteady(candidate, measurement),
            *failures(measurement.status),
            *recovered(measurement.attempts),
            *silent(timings),
            *(outside(candidate, self, timings.stages, facts, took) if outside else []),
            *coded(without.warnings, Code.OTHER),
            *coded(messages, Code.RETRIEVER),
        ]
        if asking is not None or can.replays:  # such times are shown nowhere
            warnings = [warning for warning in warnings if not about_times(warning)]
        subject = Subject(
            candidate.name,
            can,
            candidate.index or {"seconds": None, "peak_rss_bytes": None, "disk_bytes": None},
            facts.get("parallel"),
            candidate.server,
            server_calls,
        )
        until_decided = None if asking is None else asking.facts()
        summary = summarize(
            subject,
            Task(self.dataset, self.queries, self.k, self.protocol.levels, until_decided, clusters),
            measurement,
            Scored(evaluation, ties, of_filters, without.facts),
            warnings=warnings,
            health=facts_told,
        )
        warnings = [*summary.warnings, *remembered(summary.latency_ms, summary.warnings)]
        summary = summary.replace(warnings=warnings)
        given = {} if self.language is None else {"given_language": self.language}
        manifest = {
            "retriever": candidate.described(facts),
            "dataset": summary.dataset.as_dict() | {"source": self.source} | given,
            **kept_of_slots,
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
            summary.with_texts(secrets.redact),
            secrets.redact_manifest(manifest),
            rankings,
            tuple(s if s in (OK, NOT_RUN) else secrets.redact(s) for s in measurement.status),
            measurement.timings,
            evaluation,
        )
