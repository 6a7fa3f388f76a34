"""The commands ``baseline`` and ``regress``."""

from __future__ import annotations

import argparse
import os
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import (
    INTERRUPTED,
    NOT_MEASURED,
    OK,
    add_format,
    output_kept_clean,
    reporter,
    say,
    show,
)
from retrieval_bench.cli.environments import add_environments, setup_of
from retrieval_bench.cli.measuring import add_dataset, add_retriever

if TYPE_CHECKING:
    from retrieval_bench.duets.result import DuetResult
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.regression.code import Code
    from retrieval_bench.regression.latency import Duet
    from retrieval_bench.regression.policy import Policy
    from retrieval_bench.regression.session import Today
    from retrieval_bench.runs.run import Run


def add_baseline(commands: Any) -> None:
    """Keep what is measured now, to be compared with later."""
    baseline = commands.add_parser(
        "baseline", help="measure one retriever and keep the figures, for regress"
    )
    _add_subject(baseline)
    baseline.add_argument(
        "--metrics",
        nargs="+",
        action="extend",
        default=[],
        metavar="METRIC",
        help="further ones than those of the policy and the usual ones",
    )
    baseline.add_argument(
        "--min-calls", type=int, metavar="N", help="measured calls in all (default: 400)"
    )
    baseline.add_argument(
        "--timeout", type=float, metavar="S", help="seconds per call (default: 60)"
    )
    baseline.add_argument(
        "--threads", type=int, metavar="N", help="threads while searching (default: 1)"
    )
    baseline.add_argument(
        "--force", action="store_true", help="replace a baseline, and say what that changes"
    )
    add_format(baseline)
    baseline.set_defaults(run=_baseline)


def add_regress(commands: Any) -> None:
    """Did it get worse?"""
    regress = commands.add_parser(
        "regress", help="did one retriever get worse or slower than its baseline?"
    )
    _add_subject(regress)
    regress.add_argument(
        "--duet",
        choices=("suspicion", "always", "never"),
        default="suspicion",
        help="measure the baseline's revision and today's files side by side: when stored times "
        "look slower (default), always, never",
    )
    regress.add_argument(
        "--accept",
        action="store_true",
        help="replace the baseline by what is measured now, and say what that changes",
    )
    add_environments(regress)
    add_format(regress)
    regress.set_defaults(run=_regress)


def _add_subject(parser: argparse.ArgumentParser) -> None:
    """What is measured, and where its baselines and limits are."""
    add_retriever(parser)
    add_dataset(parser)
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="limits (default: configs/policy.yaml)"
    )
    parser.add_argument(
        "--baselines",
        type=Path,
        metavar="DIR",
        help="folder of the baselines (default: results/baselines)",
    )


def _baseline(options: argparse.Namespace) -> int:
    from retrieval_bench.regression.storing import check_free

    asked = {
        "min_calls": options.min_calls,
        "timeout_s": options.timeout,
        "threads": options.threads,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    today = _today(options)
    with closing(today.experiment):
        check_free(today.places, force=options.force)
        today.measure_metrics(None, options.metrics)
        today.measure_as(None, times=True, **given)
        run = _run(today.experiment)
    if options.min_calls is None:
        run = _longer(today, run, options)
    return _stored(today, run, options, force=options.force)


def _regress(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.regression.latency import When
    from retrieval_bench.regression.storing import check_free
    from retrieval_bench.reports.tables.regress import regress_tables

    when = When(options.duet)
    if options.accept and when is not When.SUSPICION:
        raise ConfigError(
            f"--accept with --duet {when}",
            accepted="one of them: what is accepted is not judged",
            fix="leave one out",
        )
    today = _today(options)
    with closing(today.experiment):
        if options.accept:
            check_free(today.places, force=True)
        of_quality, of_latency = today.quality(), today.latency()
        judged = bool(today.policy.quality) and of_quality.usable is not None
        timed = bool(today.policy.latency) and of_latency.usable is not None
        times = options.accept or (timed and when is not When.ALWAYS)
        run = None
        if judged or times:
            today.measure_metrics(of_quality.there)
            today.measure_as(of_latency.usable, times=times)
            run = _run(today.experiment)
    if run is not None and run.summary["status"] == "partial":
        return _interrupted()
    if options.accept and run is not None:
        if of_latency.usable is None:
            run = _longer(today, run, options)
        return _stored(today, run, options, force=True)
    kept = None if run is None else _kept(run)
    found = today.judged(
        run,
        of_quality,
        of_latency,
        duet=lambda code: _duet_against(code, today, options),
        when=when,
    )
    found = found.saved_as(kept)
    show(options, found.as_dict(), lambda: regress_tables(found))
    if found.interrupted:
        say("retrieval-bench: interrupted: latency was not judged")
    return found.code


def _today(options: argparse.Namespace) -> Today:
    """What is measured now, prepared and not run.

    Raises:
        HarnessError: all that is wrong with what was given.
    """
    from retrieval_bench.core.errors import HarnessError
    from retrieval_bench.experiment.preparation import Problems
    from retrieval_bench.measure.environment import git_revision, machine
    from retrieval_bench.regression.baseline import Given
    from retrieval_bench.regression.files import FOLDER, Places
    from retrieval_bench.regression.policy import load_policy
    from retrieval_bench.regression.session import Today

    folder = options.baselines or FOLDER
    problems = Problems()
    policies: list[Policy] = []
    experiments: list[Experiment] = []
    with problems.kept():
        policies.append(load_policy(options.policy, k=options.k))
    with problems.kept():
        experiments.append(_prepared(options))
    try:
        problems.raise_if_any()
    except HarnessError:
        for experiment in experiments:
            experiment.close()
        raise
    (policy,), (experiment,) = policies, experiments
    name, data = experiment.candidates[0].name, experiment.dataset.name
    places = Places(folder, name, data, str(machine()["fingerprint"]))
    given = Given(_relative(options.retriever), options.set, git_revision(besides=folder))
    return Today(experiment, places, policy, given, _command("baseline", options))


def _prepared(options: argparse.Namespace) -> Experiment:
    from retrieval_bench.experiment.sessions import prepared

    with output_kept_clean():
        return prepared(
            [_relative(options.retriever)],
            options.dataset,
            split=options.split,
            k=options.k,
            metrics=getattr(options, "metrics", []),
            overrides=options.set,
            save=False,
        )


def _run(experiment: Experiment) -> Run:
    with output_kept_clean(), reporter() as told:
        (run,) = experiment.run(told, save=False)
    return run


def _longer(today: Today, run: Run, options: argparse.Namespace) -> Run:
    """``run`` with more calls where they are short: a moment's noise would be the whole of it."""
    protocol = today.longer(run)
    if protocol is None or run.summary["status"] == "partial":
        return run
    experiment = _prepared(options)
    with closing(experiment):
        experiment.metrics, experiment.protocol = today.experiment.metrics, protocol
        return _run(experiment)


def _kept(run: Run) -> str | None:
    """Save ``run`` beside those of ``bench``, for ``history``; where it lies, None where it cannot
    be saved, which no verdict and no baseline needs."""
    from retrieval_bench.core.errors import RecordError
    from retrieval_bench.reports.tables.run_facts import relative_folder
    from retrieval_bench.runs.records import write_run

    try:
        return relative_folder(write_run(run))
    except RecordError as problem:
        say(f"retrieval-bench: the run is not kept: {problem.render()}")
        return None


def _stored(today: Today, run: Run, options: argparse.Namespace, *, force: bool) -> int:
    """Write the baseline and show what it changes."""
    from retrieval_bench.comparison.comparability import nothing_is_relevant
    from retrieval_bench.regression.baseline import latency_of, quality_of
    from retrieval_bench.regression.quality import why_failing
    from retrieval_bench.regression.storing import store
    from retrieval_bench.reports.tables.regress import baseline_tables

    if run.summary["status"] == "partial":
        return _interrupted()
    quality, latency = quality_of(run, today.given), latency_of(run, today.given)
    irrelevant = "no judged query has a relevant document" if nothing_is_relevant(run) else ""
    if why := why_failing(quality) or irrelevant:
        say(
            f"retrieval-bench: {why}: there is nothing to keep, since nothing could be judged by it"
        )
        for warning in run.summary["warnings"]:
            say(f"  warning: {warning}")
        return NOT_MEASURED
    stored = store(today.places, quality, latency, force=force)
    document = {
        "schema_version": 1,
        **today.subject,
        **stored.as_dict(),
        "run": _kept(run),
        "notes": today.notes(latency),
        "warnings": list(run.summary["warnings"]),
    }
    show(options, document, lambda: baseline_tables(document))
    return OK


def _duet_against(code: Code, today: Today, options: argparse.Namespace) -> Duet:
    """A duet of the code of the baseline and that of today."""

    def duet() -> DuetResult:
        from retrieval_bench.core.errors import RecordError
        from retrieval_bench.data import pinned
        from retrieval_bench.duets import controller
        from retrieval_bench.duets.result import write_duet
        from retrieval_bench.duets.revisions.revisions import WORKTREE, place_of
        from retrieval_bench.duets.sides import Side

        _check_there(code.commit, today.make)
        setup = setup_of(options)
        with output_kept_clean(), reporter() as told:
            then = place_of(code.commit, setup=setup, reporter=told)
            now = place_of(WORKTREE, setup=setup, reporter=told)
            result = controller.duet(
                Side(code.retriever, then, code.overrides),
                Side(today.given.retriever, now, tuple(today.given.overrides)),
                pinned(options.dataset),
                split=options.split,
                k=options.k,
                protocol=controller.DuetProtocol(limits=today.policy.latency, **code.protocol),
                reporter=told,
            )
        try:
            if result.launched:
                write_duet(result)
        except RecordError as problem:  # the verdict does not need it
            say(f"retrieval-bench: the duet is not kept: {problem.render()}")
        return result

    return duet


def _check_there(commit: str, make: str) -> None:
    """Raises:
    ConfigError: no repository that git can read, or it does not have the commit of the baseline.
    """
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.duets.revisions.trees import Repository

    try:
        repository = Repository.around(Path.cwd())
    except ConfigError as problem:
        raise ConfigError(
            f"no commit {commit[:10]} of the baseline: {problem.given}",
            where=problem.where,
            accepted="the repository of the baseline, which git can read",
            fix="go there, or let git read it; or judge by the stored times alone: --duet never",
        ) from None
    fix = f"make the baseline anew: {make} --force"
    try:
        repository.commit(commit)
    except ConfigError:
        raise ConfigError(
            f"the commit that the baseline was made of is not here: {commit[:10]}",
            where=str(repository.root),
            accepted="a commit of this repository; a squash or a rebase leaves the old ones behind",
            fix=f"git fetch --unshallow; or {fix}" if repository.shallow else fix,
        ) from None


def _interrupted() -> int:
    say("retrieval-bench: interrupted: nothing was judged, and every baseline is as it was")
    return INTERRUPTED


def _relative(retriever: str) -> str:
    """A file of the repository as it is called from where the user stands: in another revision it
    is another file."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.duets.revisions.trees import Repository

    path = Path(retriever)
    if not path.is_absolute():
        return retriever
    here = Path.cwd()
    try:
        top = Repository.around(here).root
    except ConfigError:
        top = here
    real = path.resolve()
    return os.path.relpath(real, here) if real.is_relative_to(top) else retriever


def _command(name: str, options: argparse.Namespace) -> str:
    """The command that does ``name`` to the same thing, to be copied."""
    words = ["retrieval-bench", name, "--retriever", options.retriever]
    usual = {"dataset": "science-mini", "split": "test", "k": 10}
    words += [
        word
        for option, value in usual.items()
        if getattr(options, option) != value
        for word in (f"--{option}", str(getattr(options, option)))
    ]
    words += ["--set", *options.set] if options.set else []
    for option in ("policy", "baselines"):
        if getattr(options, option) is not None:
            words += [f"--{option}", str(getattr(options, option))]
    return shlex.join(words)
