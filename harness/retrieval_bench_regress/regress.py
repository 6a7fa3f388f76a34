"""``baseline`` and ``regress`` from words to the answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import (
    ConfigError,
    HarnessError,
    Interrupted,
    RecordError,
    check_known,
)
from retrieval_bench.core.installed.installation import typed
from retrieval_bench.core.progress import Reporter
from retrieval_bench.data import pinned
from retrieval_bench.data.needs_judgements import require_all_judged, require_judged
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.preparation import Problems, prepare
from retrieval_bench.measure.environment import git_revision, machine
from retrieval_bench.runs.records import write_run
from retrieval_bench.runs.run import Run, relative_folder
from retrieval_bench_duet import controller
from retrieval_bench_duet.decision import GATES
from retrieval_bench_duet.result import DuetResult, write_duet
from retrieval_bench_duet.revisions.environments import Setup
from retrieval_bench_duet.revisions.revisions import WORKTREE, place_of
from retrieval_bench_duet.revisions.trees import Repository
from retrieval_bench_duet.sides import Side
from retrieval_bench_regress.baseline import Given, latency_of, quality_of
from retrieval_bench_regress.code import Code, check_there
from retrieval_bench_regress.files import FOLDER, Places
from retrieval_bench_regress.gate import Regression, Subject
from retrieval_bench_regress.latency_gates import Duet, When
from retrieval_bench_regress.policy import Policy, load_policy
from retrieval_bench_regress.session import Session, why_not_kept
from retrieval_bench_regress.storing import NothingToKeepError, Stored, check_free, store

SCHEMA_VERSION = 1
"""Of the document of ``baseline``; 1: first version."""


@dataclass(frozen=True, slots=True)
class Request:
    """Request to measure against a baseline, in the user's words.

    Attributes:
        retriever: name of a config, YAML file, ``module:Class``.
        dataset: name or folder.
        overrides: ``dotted.path=value`` into the parameters.
        policy: file of the limits; None = ``configs/policy.yaml``.
        baselines: their folder; None = ``results/baselines``.
    """

    retriever: str
    dataset: str = "science-mini"
    split: str = "test"
    k: int = 10
    overrides: Sequence[str] = ()
    policy: Path | None = None
    baselines: Path | None = None

    @property
    def make(self) -> str:
        """The command that makes the baseline, to be copied."""
        return self.command("baseline")

    def command(self, name: str) -> str:
        """``baseline`` or ``regress`` on this, to be copied."""
        return typed(
            *(name, self.retriever),
            dataset=self.dataset,
            split=self.split,
            k=self.k,
            set=self.overrides,
            policy=self.policy,
            baselines=self.baselines,
        )

    @property
    def relative_retriever(self) -> str:
        """A file of the repository as it is called from where the user stands: in another revision
        it is another file."""
        path = Path(self.retriever)
        if not path.is_absolute():
            return self.retriever
        here = Path.cwd()
        try:
            top = Repository.around(here).root
        except ConfigError:
            top = here
        real = path.resolve()
        return os.path.relpath(real, here) if real.is_relative_to(top) else self.retriever

    def prepared(self, metrics: Sequence[str] = ()) -> Experiment:
        """Prepare the measurement, built and checked.

        Raises:
            HarnessError: all that is wrong with it.
        """
        experiment = prepare(
            [self.relative_retriever],
            self.dataset,
            split=self.split,
            k=self.k,
            metrics=metrics,
            overrides=self.overrides,
            save=False,
        )
        try:
            require_judged(
                experiment.dataset,
                "the quality gate",
                instead="for time alone, duet puts two revisions side by side",
            )
            require_all_judged(experiment.dataset, "the quality gate")
        except HarnessError:
            experiment.close()
            raise
        return experiment

    def today(self, metrics: Sequence[str] = ()) -> Session:
        """The same beside its baselines and limits, not yet measured.

        Raises:
            HarnessError: all that is wrong with what was given.
        """
        problems = Problems()
        policies: list[Policy] = []
        experiments: list[Experiment] = []
        with problems.kept():
            policies.append(load_policy(self.policy, k=self.k))
        with problems.kept():
            experiments.append(self.prepared(metrics))
        try:
            problems.raise_if_any()
            policies[0].require(policies[0].quality, policies[0].latency, of="quality or latency")
        except HarnessError:
            for experiment in experiments:
                experiment.close()
            raise
        (policy,), (experiment,) = policies, experiments
        folder = self.baselines or FOLDER
        name, data = experiment.candidates[0].name, experiment.dataset.name
        places = Places(folder, name, data, str(machine()["fingerprint"]))
        given = Given(self.relative_retriever, list(self.overrides), git_revision(besides=folder))
        return Session(experiment, places, policy, given, self.make)


@dataclass(frozen=True, slots=True)
class BaselineResult(Documented):
    """Result of ``baseline``.

    Attributes:
        subject: retriever, dataset and k; what was measured.
        stored: the files, and what they change.
        run: folder in which the measurement is saved; None where it could not be.
        next: the command that judges by this baseline.
        notes: what to know of this baseline.
        warnings: of the measurement.
        not_kept: why the run is not in the history.
        schema_version: of the document.
    """

    KEYS = "schema_version *subject *stored run next notes warnings"

    schema_version: ClassVar[int] = SCHEMA_VERSION
    subject: Subject
    stored: Stored
    run: str | None
    next: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    not_kept: tuple[str, ...]


def make_baseline(
    request: Request,
    *,
    metrics: Sequence[str] = (),
    protocol: Mapping[str, Any] | None = None,
    force: bool = False,
    as_before: bool = False,
    reporter: Reporter | None = None,
) -> BaselineResult:
    """Measure, and keep the figures to be compared with later.

    Args:
        metrics: further ones than those of the policy and the usual ones.
        protocol: fields of :class:`.Protocol` that are to be other than usual.
        force: replace a baseline that is there.
        as_before: replace it by what is measured as it was.

    Raises:
        HarnessError: all that is wrong with what was given; nothing was written.
        NothingToKeepError: nothing could be judged by what was measured.
        Interrupted: the measurement was.
    """
    force = force or as_before
    given = dict(protocol or {})
    today = request.today(metrics)
    with closing(today.experiment):
        check_free(today.places, force=force)
        quality_before = today.quality().there if as_before else None
        latency_before = today.latency().usable if as_before else None
        today = today.with_metrics(quality_before, metrics)
        today = today.with_protocol(latency_before, times=True, **given)
        run = _whole(today.experiment, reporter)
    longer = today.longer(run) if latency_before is None and "min_calls" not in given else None
    if longer is not None:  # a moment's noise would be the whole of it
        again = request.prepared(metrics)
        again = replace(again, metrics=today.experiment.metrics, protocol=longer)
        run = _whole(again, reporter)
    quality, latency = quality_of(run, today.given), latency_of(run, today.given)
    warnings = tuple(run.summary.warnings)
    if why := why_not_kept(run, quality):
        raise NothingToKeepError(why, warnings)
    stored = store(today.places, quality, latency, force=force)
    not_kept: list[str] = []
    return BaselineResult(
        today.subject,
        stored,
        _kept(run, not_kept),
        request.command("regress"),
        tuple(today.notes(latency)),
        warnings,
        tuple(not_kept),
    )


def regress(
    request: Request,
    *,
    duet: str = When.SUSPICION,
    setup: Setup | None = None,
    reporter: Reporter | None = None,
) -> Regression:
    """Measure, and judge by the baseline and the limits of the policy.

    Args:
        duet: when the baseline's revision and today's files are measured side by side; a word of
            :class:`.When`.
        setup: how the code of that revision gets the packages it needs.

    Raises:
        HarnessError: all that is wrong with what was given.
        Interrupted: the measurement was.
    """
    check_known(duet, When, f"duet {duet!r}")
    when, not_kept = When(duet), list[str]()
    today = request.today()
    with closing(today.experiment):
        if when is When.ALWAYS and not today.policy.latency:
            raise ConfigError(
                "a duet, and no limit on latency that it could be judged by",
                where=today.policy.source,
                accepted=f"limits on {', '.join(GATES)} in the policy",
                fix="name another --policy, or leave --duet out",
            )
        of_quality, of_latency = today.quality(), today.latency()
        judged = bool(today.policy.quality) and of_quality.usable is not None
        timed = bool(today.policy.latency) and of_latency.usable is not None
        times = timed and when is not When.ALWAYS
        run = None
        if judged or times:
            today = today.with_metrics(of_quality.there).with_protocol(
                of_latency.usable, times=times
            )
            run = _whole(today.experiment, reporter)
    folder = None if run is None else _kept(run, not_kept)
    result = today.judged(
        run,
        of_quality,
        of_latency,
        duet=lambda code: duet_against(
            code, request, today, setup=setup, not_kept=not_kept, reporter=reporter
        ),
        when=when,
    )
    return replace(result, run=folder, not_kept=tuple(not_kept))


def duet_against(
    code: Code,
    request: Request,
    today: Session,
    *,
    setup: Setup | None,
    not_kept: list[str],
    reporter: Reporter | None,
) -> Duet:
    """A duet of the code of the baseline and that of today; where its record cannot be written,
    ``not_kept`` gets a sentence."""

    def duet() -> DuetResult:
        check_there(code.commit, today.make)
        then = place_of(code.commit, setup=setup, reporter=reporter)
        now = place_of(WORKTREE, setup=setup, reporter=reporter)
        result = controller.duet(
            Side(code.retriever, then, code.overrides),
            Side(today.given.retriever, now, tuple(today.given.overrides)),
            pinned(request.dataset),
            split=request.split,
            k=request.k,
            protocol=controller.DuetProtocol(limits=today.policy.latency, **code.protocol),
            reporter=reporter,
        )
        try:
            if result.launched:
                write_duet(result)
        except RecordError as problem:  # the verdict does not need it
            not_kept.append(f"the duet is not kept: {problem.render()}")
        return result

    return duet


def _whole(experiment: Experiment, reporter: Reporter | None) -> Run:
    """The run of the one retriever.

    Raises:
        Interrupted: it would be a part only.
    """
    (run,) = experiment.run(reporter, save=False)
    if run.interrupted:
        raise Interrupted("interrupted: nothing was judged, and every baseline is as it was")
    return run


def _kept(run: Run, not_kept: list[str]) -> str | None:
    """Save ``run`` beside those of ``bench``, for ``history``; where it lies, None where it cannot
    be saved, which no verdict and no baseline needs."""
    try:
        return relative_folder(write_run(run))
    except RecordError as problem:
        not_kept.append(f"the run is not kept: {problem.render()}")
        return None
