"""One measurement beside the baselines that are there: what can be judged, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from retrieval_bench.comparison.pairs.comparability import nothing_is_relevant
from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.figures import about
from retrieval_bench.core.installed.git import why_no_commit
from retrieval_bench.core.notices import about_times
from retrieval_bench.core.types import Verdict, by_rule
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench.metrics import Metric, default_metrics, parse_metric, parse_metrics
from retrieval_bench.metrics.measures import DEFAULT_CONVENTION, METRICS_VERSION
from retrieval_bench.metrics.names import check_defined
from retrieval_bench.runs.run import Run
from retrieval_bench_regress import latency_gates as latency
from retrieval_bench_regress import quality_gates as quality
from retrieval_bench_regress.baseline import (
    Given,
    LatencyBaseline,
    QualityBaseline,
    RetrieverFacts,
    latency_of,
    protocol_of,
    quality_of,
)
from retrieval_bench_regress.code import Code, code_of, why_no_code, with_its_config
from retrieval_bench_regress.files import DamagedBaselineError, NoBaselineError, Places
from retrieval_bench_regress.gate import BaselineFacts, Regression, RevisionFacts, Subject
from retrieval_bench_regress.latency_gates import Duet, LatencyResult, When
from retrieval_bench_regress.policy import Policy
from retrieval_bench_regress.quality_gates import QualityResult

PROTOCOL: Mapping[str, Any] = {"profile": "baseline", "min_calls": 400, "warm_up_s": 3.0}
"""Of a baseline, unless it is asked for another: a few rounds, since stored times only raise a
suspicion. Whatever is held against it is measured by the same."""

SECONDS, MOST_CALLS = 3.0, 50_000
"""Short calls are repeated until they fill so much time, so often at most."""

NO_TIMES: Mapping[str, Any] = {"profile": RANKINGS_ONLY, "rounds": 1, "warm_up_s": 0.0}
"""Where no time can be judged."""


WANTED = (
    "Look at the queries that changed; if the change is wanted, --accept replaces the baseline."
)

ALWAYS_FAILING = "See why queries fail, then make the baseline anew"

FAILING = "See why queries fail that were answered before."
ACCEPTED_SO = "If that is as it should be, run it again with --accept."

NOTED = 1.5
"""Times the stored time that is noted where none is judged: the queries are asked once."""


Kind = TypeVar("Kind", QualityBaseline, LatencyBaseline)


@dataclass(frozen=True, slots=True)
class Held(Generic[Kind]):
    """Baselines that today's figures may be held against.

    Attributes:
        there: the baseline as it was read; None where there is none, or none that can be read.
        why_not: why nothing can be held against it; empty when it can.
        remedy: what to do about that.
    """

    there: Kind | None
    why_not: str = ""
    remedy: str = ""

    @property
    def usable(self) -> Kind | None:
        """The baseline, where today's figures can be held against it."""
        return None if self.why_not else self.there


@dataclass(frozen=True, slots=True)
class Session:
    """Figures that are measured now, as the files of today have it.

    Attributes:
        make: the command that makes the baseline.
    """

    experiment: Experiment
    places: Places
    policy: Policy
    given: Given
    make: str

    def quality(self) -> Held[QualityBaseline]:
        """The baseline of quality."""
        try:
            quality_baseline = self.places.read_quality()
        except NoBaselineError:
            return Held(None, "no baseline of quality", f"make one: {self.make}")
        except RecordError as problem:
            return Held(None, _sentence(problem), self._anew(problem))
        rules = {"convention": DEFAULT_CONVENTION, "metrics_version": METRICS_VERSION}
        why = quality.incomparable(quality_baseline, **self._data(), rules=rules)
        return Held(
            quality_baseline, why, f"make the baseline anew: {self.make} --force" if why else ""
        )

    def latency(self) -> Held[LatencyBaseline]:
        """The baseline of latency on this machine."""
        try:
            latency_baseline = self.places.read_latency()
        except NoBaselineError:
            others = self.places.elsewhere()
            if not others:
                return Held(None, "no baseline of latency", f"make one: {self.make}")
            why = (
                f"no baseline of this machine ({self.places.machine}), only of "
                f"{', '.join(others)}: times of another machine say nothing here"
            )
            remedy = (
                f"make one here: {self.make}; or measure both revisions here: --duet always; or "
                "judge quality alone: --policy quality"
            )
            return Held(None, why, remedy)
        except RecordError as problem:
            return Held(None, _sentence(problem), self._anew(problem))
        why = latency.incomparable(latency_baseline, **self._data())
        return Held(
            latency_baseline, why, f"make the baseline anew: {self.make} --force" if why else ""
        )

    def with_protocol(
        self, before: LatencyBaseline | None, *, times: bool, **given: Any
    ) -> Session:
        """The same, measured as ``before`` was, or as ``given``; without ``times`` only for the
        rankings, with as many threads and seconds per call."""
        known = None if before is None else protocol_of(before)
        if times:
            protocol = known or Protocol(**PROTOCOL)
        else:
            protocol = Protocol(**NO_TIMES)
            if known is not None:
                protocol = replace(protocol, threads=known.threads, timeout_s=known.timeout_s)
        protocol = replace(protocol, **given)
        prepare_environment(protocol.threads)
        return replace(self, experiment=replace(self.experiment, protocol=protocol))

    def with_metrics(self, before: QualityBaseline | None, more: Sequence[str] = ()) -> Session:
        """The same with the metrics of the policy, of the baseline as far as they are known here,
        the usual ones, and ``more``.

        Raises:
            ConfigError: one of ``more`` is no metric, or the policy has limits for what is not
                defined where truth is by rule.
        """
        k = self.experiment.k
        kept = () if before is None or before.k != k else _parsed(before)[0]
        qrels = self.experiment.dataset.qrels
        usual, policy, fix = default_metrics(k, qrels), self.policy, ""
        if by_rule(qrels):
            policy = policy.for_slots(usual)
            fix = f'name a --policy with limits for these, such as limits: {{"SlotR@{k}": -0.01}}'
        check_defined(policy.quality, qrels, policy.source, fix)
        metrics = tuple(dict.fromkeys((*usual, *policy.quality, *kept, *parse_metrics(more))))
        return replace(self, policy=policy, experiment=replace(self.experiment, metrics=metrics))

    def longer(self, run: Run) -> Protocol | None:
        """The protocol with as many calls as :data:`SECONDS` hold; None where there are as many.

        They are rounded up to a power of two: a mean that was measured is another one each time,
        and times of another protocol have another key in the history.
        """
        mean, before = run.summary.latency_ms.mean, self.experiment.protocol
        calls = 0 if mean is None else min(MOST_CALLS, round(SECONDS * 1_000 / max(mean, 1e-3)))
        if calls <= 2 * before.min_calls:
            return None
        return replace(before, min_calls=min(MOST_CALLS, 1 << (calls - 1).bit_length()))

    def judged(
        self,
        run: Run | None,
        of_quality: Held[QualityBaseline],
        of_latency: Held[LatencyBaseline],
        *,
        duet: Callable[[Code], Duet],
        when: When,
    ) -> Regression:
        """The verdict on ``run``, None where nothing could have been held against it.

        Args:
            duet: of the code of the baseline against that of today.
        """
        policy, advice, notes = self.policy, [], []
        quality_result = latency_result = None
        refused = run is not None and bool(why_not_kept(run, quality_of(run, self.given)))
        if policy.quality:
            before = of_quality.usable
            if before is None or run is None:
                quality_result = quality.not_measured(policy.quality, of_quality.why_not)
                advice.append(of_quality.remedy)
            else:
                now = quality_of(run, self.given)
                if nothing_is_relevant(run):
                    why = "no judged query has a relevant document"
                    quality_result = quality.not_measured(policy.quality, why)
                else:
                    quality_result = quality.judge_quality(
                        before, now, policy.quality, rise=policy.rise
                    )
                advice += self._about_quality(quality_result, refused)
        if policy.latency:
            source = _source(of_quality, of_latency, when)
            latency_result = self._judged_times(run, of_latency, source, duet, when)
            if latency_result.duet is not None and isinstance(source, QualityBaseline):
                notes.append(
                    f"side a of the duet is {str(source.commit)[:10]}, the commit of the quality "
                    "baseline: that of latency names none"
                )
            advice += self._about_latency(latency_result, of_latency, when, refused)
        elif run is not None and of_latency.usable is not None:
            notes += self._slower(run, of_latency.usable)
        if run is not None:
            notes += self._differs(run, of_quality.usable, of_latency.usable)
        known = {"quality": of_quality.there, "latency": of_latency.there}
        paths = {"quality": self.places.quality, "latency": self.places.latency}
        return Regression(
            self.subject,
            policy,
            {
                name: _facts(paths[name], baseline)
                for name, baseline in known.items()
                if baseline is not None
            },
            quality_result,
            latency_result,
            tuple(dict.fromkeys(filter(None, advice))),
            tuple(notes),
            () if run is None else tuple(self._warnings(run)),
            texts=self._texts(quality_result),
        )

    def _texts(self, quality_result: QualityResult | None) -> dict[str, str]:
        """Id -> text of the queries whose ranking changed."""
        changed = {query.query_id for query in (quality_result.changed if quality_result else ())}
        queries = self.experiment.dataset.queries
        return {query.id: query.text for query in queries if query.id in changed}

    def _warnings(self, run: Run) -> Iterator[str]:
        """Return the warnings of the measurement; on its times only where they are judged."""
        for text in run.summary.warnings:
            if self.policy.latency or not about_times(text):
                yield text

    def _differs(
        self, run: Run, of_quality: QualityBaseline | None, of_latency: LatencyBaseline | None
    ) -> Iterator[str]:
        """List all else that is not as it was: settings and versions, which no revision holds."""
        before = [item.retriever for item in (of_quality, of_latency) if item is not None]
        now = run.manifest["retriever"]
        if changed := [item for item in before if item.hash != now["hash"]]:
            yield f"The settings of the retriever changed: {_changes(changed[0], run)}."
        if of_quality is not None and (unknown := _parsed(of_quality)[1]):
            yield f"metrics of the baseline that are not known here: {', '.join(unknown)}"
        was = {} if of_latency is None else of_latency.packages
        packages = run.manifest["environment"]["packages"]
        other = [
            f"{name} {packages.get(name, 'gone')} (was {version})"
            for name, version in was.items()
            if packages.get(name) != version
        ]
        if other:
            yield f"other versions than the baseline's: {', '.join(other)}"

    def notes(self, latency: LatencyBaseline | None) -> list[str]:
        """List the notes on a baseline that is made today."""
        notes = []
        revision = self.given.revision
        if revision is None:
            why = why_no_commit()
            notes.append(
                f"{why[:1].upper()}{why[1:]}: regress can judge quality with this baseline, but "
                "cannot time the code of today and of then side by side."
            )
        elif revision["dirty"]:
            notes.append(
                "files are new or differ from the last commit, so that no duet against this "
                f"baseline is possible: commit first, then {self.make} --force"
            )
        if latency is None:
            notes.append("no times: the rankings were read from a saved run")
        return notes

    @property
    def subject(self) -> Subject:
        """The retriever and the data that are measured, for a document."""
        return subject_of(self.experiment, self.places.machine, self.given.revision)

    def _judged_times(
        self,
        run: Run | None,
        of_latency: Held[LatencyBaseline],
        source: QualityBaseline | LatencyBaseline | None,
        duet: Callable[[Code], Duet],
        when: When,
    ) -> LatencyResult:
        limits, before = self.policy.latency, of_latency.usable
        make_duet = None
        if (code := code_of(source)) is not None:
            make_duet = with_its_config(duet(code), code, self.make)
        why = of_latency.why_not
        if before is not None or when is When.ALWAYS:
            why = "" if make_duet is not None else why_no_code(source)
        now = None if run is None or before is None else latency_of(run, self.given)
        return latency.judge_latency(before, now, limits, duet=make_duet, when=when, reason=why)

    def _slower(self, run: Run, before: LatencyBaseline) -> list[str]:
        """Note a slow-down of this machine that the policy does not judge."""
        now = latency_of(run, self.given)
        looked = latency.judge_latency(before, now, {"p50": 0.0}, duet=None, when=When.NEVER)
        ratio = max((gate.stored or 0.0 for gate in looked.gates), default=0.0)
        if ratio < NOTED:
            return []
        times = f"{ratio:.1f} times as long as in the latency baseline of this machine"
        why = (
            "It was asked once, and the policy judges no time: leave --policy out to have it judged"
        )
        return [f"A typical query takes {times}. {why}."]

    def _about_quality(self, quality_result: QualityResult, refused: bool) -> list[str]:
        verdicts = {gate.verdict for gate in quality_result.gates}
        if quality_result.unanswered:
            return [FAILING, *([] if refused else [ACCEPTED_SO])]
        if quality_result.failing:
            return [f"{ALWAYS_FAILING}: {self.make} --force"]
        if Verdict.MISSING in verdicts:
            return [f"Make the baseline anew, with all metrics of the policy: {self.make} --force"]
        is_open = any(verdict.open for verdict in verdicts)
        if not is_open and Verdict.WORSE not in verdicts:
            return []
        return [WANTED if Verdict.WORSE in verdicts else _undecided(quality_result)]

    def _about_latency(
        self, latency_result: LatencyResult, held: Held[LatencyBaseline], when: When, refused: bool
    ) -> list[str]:
        messages: list[str] = []
        if latency_result.verdict is Verdict.WORSE:
            accept = "" if refused else ", or take it as the price with --accept"
            messages = [f"Make it faster{accept}."]
        elif latency_result.unanswered:
            messages = [FAILING, *([] if refused else [ACCEPTED_SO])]
        elif latency_result.verdict is Verdict.UNDECIDED:
            messages = self._about_undecided(latency_result, held)
        elif refused:  # nor would a baseline be made anew
            messages = []
        elif latency_result.verdict not in (Verdict.MISSING, Verdict.NOT_COMPARABLE):
            messages = self._outdated(latency_result)
        elif held.usable is None and when is not When.ALWAYS:
            messages = [held.remedy]
        elif latency_result.unsupported and not latency_result.suspicious:
            messages = ["Measure on more queries, or take latency out of the policy."]
        elif latency_result.duet is not None:
            anew = f"make the baseline anew: {self.make} --force"
            messages = [f"Start it again. If only the machine or a package differs, {anew}"]
        elif not latency_result.broken:
            messages = [f"Commit first, then make the baseline anew: {self.make} --force"]
        return messages

    def _about_undecided(
        self, latency_result: LatencyResult, held: Held[LatencyBaseline]
    ) -> list[str]:
        if latency_result.duet:
            return ["Measure again on an idle machine."]
        if code_of(held.usable) is not None:
            return ["Leave out --duet never."]
        first = f"Commit first, then make the baseline anew: {self.make} --force"
        return self._outdated(latency_result) or [first]

    def _outdated(self, latency_result: LatencyResult) -> list[str]:
        """Warn of stored times that are far above those of today."""
        outdated = [figure.gate for figure in latency_result.figures if figure.outdated]
        if not outdated:
            return []
        why = f"the stored times of {', '.join(outdated)} are far above those of today"
        return [f"Make the baseline anew, {why}: {self.make} --force"]

    def _data(self) -> dict[str, Any]:
        data = self.experiment.dataset
        return {"split": data.split, "fingerprint": data.fingerprint, "k": self.experiment.k}

    def _anew(self, problem: RecordError) -> str:
        makeable = isinstance(problem, DamagedBaselineError)
        return f"{problem.fix}: {self.make} --force" if makeable else problem.fix


def why_not_kept(run: Run, of: QualityBaseline) -> str:
    """Return why no baseline can be made of ``run``; empty where one can."""
    irrelevant = "no judged query has a relevant document" if nothing_is_relevant(run) else ""
    return quality.why_failing(of) or irrelevant


def _undecided(quality_result: QualityResult) -> str:
    """Advise what can be done where these queries can't tell."""
    needed = [
        gate.queries_needed for gate in quality_result.gates if gate.queries_needed is not None
    ]
    more = f"about {about(max(needed))} more queries" if needed else "more queries"
    return (
        "Look at the queries that changed, and undo the change, take it with --accept, or judge "
        f"{more}; until then the key `undecided` of the policy decides the exit code."
    )


def _changes(before: RetrieverFacts, run: Run) -> str:
    """Each parameter that is not what it was."""
    was, now = before.params, run.settings
    changed = [
        f"{name} {was.get(name, 'not set')} -> {now.get(name, 'not set')}"
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    ]
    return ", ".join(changed) or "its class"


def _parsed(baseline: QualityBaseline) -> tuple[list[Metric], list[str]]:
    """Its metrics, and the names that mean none here: of another version, or of a plug-in."""
    known, unknown = [], []
    for name in baseline.metrics:
        try:
            known.append(parse_metric(name))
        except ConfigError:
            unknown.append(name)
    return known, unknown


def _sentence(problem: RecordError) -> str:
    return f"{problem.given} ({problem.where})"


def _facts(path: Any, baseline: QualityBaseline | LatencyBaseline) -> BaselineFacts:
    revision = baseline.revision
    facts: BaselineFacts = {
        "path": str(path),
        "revision": None if revision is None else cast("RevisionFacts", revision.model_dump()),
        "config": baseline.retriever.hash,
    }
    if isinstance(baseline, LatencyBaseline):
        facts["date"] = baseline.date
    return facts


def _source(
    of_quality: Held[QualityBaseline], of_latency: Held[LatencyBaseline], when: When
) -> QualityBaseline | LatencyBaseline | None:
    """Whose revision side a of a duet is. A suspicion of stored times is about the code that they
    were measured of; where a duet is made in any case, any baseline with a commit will do."""
    if when is not When.ALWAYS:
        return of_latency.usable
    there = [item for item in (of_latency.there, of_quality.there) if item is not None]
    return next((item for item in there if item.commit), there[0] if there else None)


def subject_of(experiment: Experiment, machine: str, revision: Mapping[str, Any] | None) -> Subject:
    """The retriever and the data of an experiment, for a document.

    Args:
        machine: a fingerprint of what changes times; empty where none is compared.
    """
    data = experiment.dataset
    return {
        "retriever": experiment.candidates[0].name,
        "dataset": {
            "name": data.name,
            "split": data.split,
            "fingerprint": data.fingerprint,
            "n_queries": len(data.evaluated),
        },
        "k": experiment.k,
        "machine": machine,
        "revision": cast("RevisionFacts | None", revision),
    }
