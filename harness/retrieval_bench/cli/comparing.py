"""The command ``compare``, and how commands on several systems get their runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, output_kept_clean, say, show
from retrieval_bench.cli.measuring import (
    add_measuring,
    draw,
    dry_run,
    exit_code,
    measured,
    protocol_of,
)

if TYPE_CHECKING:
    from retrieval_bench.comparison.comparison import Comparison
    from retrieval_bench.comparison.slices import Slicing
    from retrieval_bench.runs.run import Run


def add_compare(commands: Any) -> None:
    """Put runs or retrievers side by side."""
    compare = commands.add_parser("compare", help="put two or more side by side, with verdicts")
    add_deciding(compare)
    compare.add_argument(
        "--tests",
        nargs="+",
        action="extend",
        default=[],
        metavar="TEST",
        help="further tests beside the randomisation test: t wilcoxon",
    )
    compare.add_argument(
        "--slices",
        nargs="*",
        metavar="BY",
        help="means by groups of queries: tags source length relevant, or a metadata key",
    )
    add_systems(compare)
    compare.set_defaults(run=_compare, command="compare")


def add_deciding(parser: argparse.ArgumentParser) -> None:
    """What verdicts depend on."""
    parser.add_argument(
        "--margin",
        type=float,
        metavar="D",
        help="largest difference that does not matter to you (default: 0.01)",
    )
    parser.add_argument(
        "--baseline", metavar="NAME", help="compare all others with this system only"
    )


def add_systems(parser: argparse.ArgumentParser) -> None:
    """Saved runs, or retrievers to measure on one dataset or several."""
    before = {action.dest for action in parser._actions}
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of saved runs")
    parser.add_argument("--retrievers", nargs="+", default=[], metavar="NAME_OR_YAML")
    add_measuring(parser, several=True)
    kept = before | {"runs", "dataset", "format", "debug"}
    parser.set_defaults(
        only_when_measuring={
            action.dest: action.default for action in parser._actions if action.dest not in kept
        }
    )


def decided(options: argparse.Namespace, runs: Sequence[Run]) -> Comparison:
    """The comparison of ``runs`` by the options of :func:`add_deciding`."""
    from retrieval_bench.comparison.comparison import compare_runs

    return compare_runs(runs, **_asked(options))


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    from retrieval_bench.stats.power import MARGIN

    return {
        "margin": MARGIN if options.margin is None else options.margin,
        "baseline": options.baseline,
        "tests": tuple(getattr(options, "tests", ())),
    }


def _check_asked(experiments: Sequence[Any], options: argparse.Namespace) -> None:
    """What would be refused after the measurement is refused before it.

    Raises:
        ConfigError: baseline, margin, tests or slices that cannot be.
    """
    from retrieval_bench.comparison.comparison import check_asked
    from retrieval_bench.comparison.slices import check_names
    from retrieval_bench.core.errors import distinct_names

    for experiment in experiments:
        names = distinct_names([candidate.name for candidate in experiment.candidates])
        check_asked(names, **_asked(options))
        check_names(getattr(options, "slices", None) or (), experiment.dataset)


def _compare(options: argparse.Namespace) -> int:
    from retrieval_bench.comparison.recommendation import recommend
    from retrieval_bench.reports.tables.comparison import comparison_tables

    def print_runs(runs: Sequence[Run]) -> Comparison:
        comparison = decided(options, runs)
        found = _slicings(options, comparison)
        document = comparison.as_dict()
        document["recommendations"] = [one.as_dict() for one in recommend(comparison)]
        if found:
            document["slices"] = [slicing.as_dict() for slicing in found]
        letters = options.format == "latex"
        show(options, document, lambda: comparison_tables(comparison, found, letters=letters))
        return comparison

    _check_dataset(options)
    runs = runs_asked_for(options, print_runs)
    if runs is None:
        return OK
    comparison = print_runs(runs)
    code = OK if options.runs else exit_code(runs)
    if code != OK:  # an interruption may also leave runs that cannot be compared
        return code
    return judged(comparison)


def judged(comparison: Comparison) -> int:
    """The exit code of what is judged in ``comparison``; says so when nothing is."""
    from retrieval_bench.core.types import Verdict

    unjudged = {Verdict.NOT_COMPARABLE, Verdict.MISSING}
    if all(delta.verdict in unjudged for delta in comparison.deltas):
        why = "; ".join(dict.fromkeys(delta.reason for delta in comparison.deltas if delta.reason))
        say(f"retrieval-bench: none of these runs can be compared with another: {why}")
        return NOT_MEASURED
    return OK


def _slicings(options: argparse.Namespace, comparison: Comparison) -> list[Slicing]:
    """The slices that were asked for, of every dataset."""
    if options.slices is None:
        return []
    from retrieval_bench.comparison.slices import slicings
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.runs.dataset import datasets_of

    named = options.dataset or [] if options.runs else []
    found: list[Slicing] = []
    sources = datasets_of([group.runs for group in comparison.groups], named)
    for group, source in zip(comparison.groups, sources, strict=True):
        if isinstance(source, str):
            raise ConfigError(
                source.rstrip("."),
                where="--slices",
                accepted="the dataset of the runs: tags and texts are not kept in a run",
                fix="say where it is with --dataset",
            )
        found += slicings(group, source, options.slices, baseline=comparison.baseline)
    return found


def runs_asked_for(
    options: argparse.Namespace, show_unsaved: Callable[[Sequence[Run]], Any]
) -> list[Run] | None:
    """The runs that a command is about: read, or measured now; None after a dry run.

    Raises:
        HarnessError: everything that is wrong with them.
    """
    if options.runs:
        return _read_runs(options)
    experiments = _prepared(options)
    if options.dry_run:
        dry_run(experiments, options)
        return None
    runs: list[Run] = []
    waiting = list(experiments)
    try:
        while waiting and not any(run.summary["status"] == "partial" for run in runs):
            made = measured(waiting.pop(0), partial(_with_others, show_unsaved, tuple(runs)))
            draw(made, options)
            runs += made
    finally:
        for experiment in waiting:
            experiment.close()
    return runs


def _with_others(
    show: Callable[[Sequence[Run]], Any], before: Sequence[Run], unsaved: Sequence[Run]
) -> None:
    show([*before, *unsaved])


def _prepared(options: argparse.Namespace) -> list[Any]:
    """One experiment for each dataset; the faults of all of them at once."""
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.data import found_at
    from retrieval_bench.experiment.preparation import Problems
    from retrieval_bench.experiment.sessions import prepared

    if len(options.retrievers) < 2:
        raise ConfigError(
            f"{len(options.retrievers)} retrievers and no runs to compare",
            accepted=f"{options.command} RUN RUN ..., or "
            f"{options.command} --retrievers A B --dataset D",
            fix="give two or more; use bench for one",
        )
    datasets = options.dataset or ["science-mini"]
    _refuse_twice([found_at(dataset) for dataset in datasets], "dataset")
    problems = Problems()
    experiments = []
    with output_kept_clean():
        for dataset in datasets:
            with problems.kept():
                experiments.append(
                    prepared(
                        options.retrievers,
                        dataset,
                        split=options.split,
                        k=options.k,
                        metrics=options.metrics,
                        protocol=protocol_of(options),
                        save=not options.dry_run,
                    )
                )
    try:
        problems.raise_if_any()
        _check_asked(experiments, options)
    except BaseException:
        for experiment in experiments:
            experiment.close()
        raise
    return experiments


def _check_dataset(options: argparse.Namespace) -> None:
    """Refuse ``--dataset`` where it would do nothing.

    Raises:
        ConfigError: saved runs without slices.
    """
    if options.runs and options.dataset and options.slices is None:
        raise _settled("dataset")


def _read_runs(options: argparse.Namespace) -> list[Run]:
    from retrieval_bench.runs.records import read_run

    for name, usual in options.only_when_measuring.items():
        if getattr(options, name) != usual:
            raise _settled(name)
    _refuse_twice([str(folder.absolute().resolve()) for folder in options.runs], "run folder")
    return [read_run(folder) for folder in options.runs]


def _refuse_twice(given: Sequence[str], what: str) -> None:
    """Raises:
    ConfigError: something is there twice: it would only be compared with itself.
    """
    from retrieval_bench.core.errors import ConfigError

    twice = [one for at, one in enumerate(given) if one in given[:at]]
    if twice:
        raise ConfigError(
            f"the {what} {twice[0]} is given twice",
            accepted=f"each {what} once",
            fix="take one of them away",
        )


def _settled(name: str) -> Exception:
    from retrieval_bench.core.errors import ConfigError

    return ConfigError(
        f"--{name.replace('_', '-')} for saved runs",
        accepted="saved runs as they are, or --retrievers to measure",
        fix="leave the option out: it was settled when the runs were made",
    )
