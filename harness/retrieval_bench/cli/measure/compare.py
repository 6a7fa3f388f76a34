"""The command ``compare``, and how commands on several systems get their runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from retrieval_bench.capabilities import service
from retrieval_bench.cli.console import NOT_MEASURED, OK, output_kept_clean, say, show, working
from retrieval_bench.cli.measure.common import draw, dry_run, exit_code, measured
from retrieval_bench.cli.options import (
    DEPTH,
    MEASURING,
    command,
    defaults,
    protocol_of,
    refuse,
    values,
)

if TYPE_CHECKING:
    from retrieval_bench.comparison.comparison import Comparison
    from retrieval_bench.core.as_json.document import Documented
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.reports.finish import Finished
    from retrieval_bench.reports.frames import Row
    from retrieval_bench.reports.render.table import Table
    from retrieval_bench.runs.run import Run


DECIDING = """
--margin D  largest difference that does not matter to you (default: 0.01)
--baseline NAME  compare all others with this system only (default: every pair)
"""
_MEASURED = f"""
--dataset NAME_OR_PATH +  names or folders; with saved runs only for --slices and --fuse, where
    their dataset moved (default: science-mini)
{DEPTH.format(k=10)}
{MEASURING}
"""
SYSTEMS = f"""
systems SYSTEM *  retrievers to measure, also run files; or saved runs: a folder, @last,
    NAME@latest, start of an id; or two saved loads: a folder, @load, NAME@load
--retrievers SYSTEM + []  {argparse.SUPPRESS}
{_MEASURED}
"""
_COMPARE = f"""
{DECIDING}
--equivalence {{bound,tost}} [bound]  bound (default) assumes nothing but the range of the metric;
    tost: two one-sided t tests, which assume normal means and need fewer queries
--tests TEST ...  further tests beside the randomisation test: t wilcoxon
+
{SYSTEMS}
"""


def _name(options: argparse.Namespace) -> str:
    return str(options.parser.prog).rpartition(" ")[2]


def only_when_measuring(options: argparse.Namespace) -> str:
    """The options that say nothing of saved runs."""
    of_saved = {"dataset"}
    if _name(options) == "report":
        of_saved.add("metrics")  # it chooses among those they have
    return " ".join(["retrievers", *(name for name in defaults(_MEASURED) if name not in of_saved)])


def decided(options: argparse.Namespace, runs: Sequence[Run]) -> Comparison:
    """The comparison of ``runs`` by the options of :data:`DECIDING`."""
    from retrieval_bench.comparison.comparison import compare_runs

    return compare_runs(runs, **_rules(options))


def _rules(options: argparse.Namespace) -> dict[str, Any]:
    from retrieval_bench.stats.defaults import MARGIN

    return {
        "margin": MARGIN if options.margin is None else options.margin,
        "baseline": options.baseline,
        "tests": tuple(getattr(options, "tests", ())),
        "equivalence": getattr(options, "equivalence", "bound"),
    }


@command(_COMPARE)
def run_compare(options: argparse.Namespace) -> int:
    """Put runs or retrievers side by side."""
    return compared(options)


Check = Callable[["Experiment"], None]
"""Refuses what cannot be worked out of an experiment, before anything is measured."""


class Further(NamedTuple):
    """What is worked out of a comparison besides: for the document, the screen and CSV."""

    records: Sequence[Documented] = ()
    tables: Sequence[Table] = ()
    rows: Sequence[Row] = ()


def compared(
    options: argparse.Namespace,
    check: Check | None = None,
    further: Callable[[Comparison], Further] | None = None,
) -> int:
    """Measure or read, judge and print; gives the exit code."""
    from retrieval_bench.comparison.compared import Compared, with_texts
    from retrieval_bench.reports import frames
    from retrieval_bench.reports.tables.brief import comparison_brief
    from retrieval_bench.reports.tables.understand.comparison import comparison_tables
    from retrieval_bench.runs.find import is_load

    def print_runs(runs: Sequence[Run]) -> Comparison:
        comparison = with_texts(decided(options, runs), moved(options))
        more = Further() if further is None else further(comparison)
        letters = options.format == "latex"
        show(
            options,
            Compared(comparison, more.records),
            lambda: comparison_tables(comparison, more.tables, letters=letters),
            lambda: [*comparison_brief(comparison, measured=not options.runs), *more.tables],
            lambda: frames.compared(comparison.groups, more.rows),
        )
        return comparison

    if any(map(is_load, options.systems)):
        return int(service("compare loads")(options, only_when_measuring(options)))
    name_systems(options)
    fuse = getattr(options, "fuse", None)
    if options.runs and further is None and fuse is None:
        refuse_settled(options, "dataset")
    if fuse is not None:
        fuse = service("check fusions")(fuse)
    if getattr(options, "until_decided", None) is not None:
        service("check options of measuring until decided")(options)
    runs = runs_asked_for(options, print_runs, check)
    if runs is not None and fuse is not None and not any(run.interrupted for run in runs):
        with working(options) as bars:
            runs = service("fuse")(runs, fuse, moved(options), bars)
    return OK if runs is None else code_of(options, runs, print_runs(runs).why_nothing)


def name_systems(options: argparse.Namespace) -> None:
    """Tell saved runs and retrievers apart: ``runs`` and ``retrievers`` of the options.

    Raises:
        ConfigError: some of both, or a run that is not there.
    """
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.runs.find import find_runs, is_run

    given = [name for text in options.systems for name in text.split(",") if name]
    options.runs = [run for name in given if is_run(name) for run in find_runs(name)]
    retrievers = [name for name in given if not is_run(name)]
    if options.runs and (retrievers or options.retrievers):
        raise ConfigError(
            f"saved runs beside a retriever: {(retrievers or options.retrievers)[0]}",
            accepted="saved runs, or retrievers to measure now: times of both cannot be compared",
            fix="measure all of them, or leave one kind out",
        )
    options.retrievers = [*options.retrievers, *retrievers]


def moved(options: argparse.Namespace) -> Sequence[str]:
    """Where datasets of saved runs are now."""
    return options.dataset or [] if options.runs else []


def code_of(options: argparse.Namespace, runs: Sequence[Run], why: str | None) -> int:
    """The exit code of what was measured and judged; draws it, and says what is wrong with it.

    Args:
        why: no run can be compared with another; None where one can.
    """
    if not options.runs:
        draw(runs, options)
    code = OK if options.runs else exit_code(runs, no_leaks=options.no_leaks)
    if code != OK:  # an interruption may also leave runs that cannot be compared
        return code
    if why is None:
        return OK
    say(f"retrieval-bench: none of these runs can be compared with another: {why}")
    return NOT_MEASURED


def runs_asked_for(
    options: argparse.Namespace,
    print_runs: Callable[[Sequence[Run]], Any],
    check: Check | None = None,
) -> list[Run] | None:
    """The runs that a command is about: read, or measured now; None after a dry run.

    Args:
        print_runs: shows what was measured and cannot be saved.
        check: of each experiment.

    Raises:
        HarnessError: everything that is wrong with them.
    """
    from retrieval_bench.runs.records import read_runs

    if options.runs:
        refuse_settled(options, only_when_measuring(options))
        return read_runs(options.runs)
    experiments = _prepared(options, check)
    if options.dry_run:
        dry_run(experiments, options)
        return None

    def show_runs(done: Sequence[Finished]) -> None:
        print_runs([one.run for one in done])

    return [one.run for one in measured(experiments, options, show_runs)]


def _prepared(options: argparse.Namespace, further: Check | None) -> list[Experiment]:
    from retrieval_bench.comparison.comparison import check_asked
    from retrieval_bench.core.errors import ConfigError, counted
    from retrieval_bench.experiment.several import prepare_several

    if len(options.retrievers) < 2:
        raise ConfigError(
            f"{counted(len(options.retrievers), 'retriever')} and no runs to compare",
            accepted=f"{_name(options)} RUN RUN ..., or {_name(options)} A B --dataset D",
            fix="give two or more; use bench for one",
        )

    rules, until = _rules(options), getattr(options, "until_decided", None)

    def check(experiment: Experiment) -> None:
        check_asked(experiment.names, judged=experiment.dataset.judged, **rules)
        if further is not None:
            further(experiment)

    prepare = prepare_several
    if until is not None:
        of = {name: rules[name] for name in ("margin", "baseline")}
        prepare = partial(service("measure until decided"), until, **of)
    with output_kept_clean():
        return prepare(
            options.retrievers,
            options.dataset or ["science-mini"],
            check,
            **values(options, "split language self_hits k metrics"),
            protocol=protocol_of(options),
            save=not options.dry_run,
        )


def refuse_settled(options: argparse.Namespace, names: str) -> None:
    """Refuse options that say nothing of saved runs."""
    refuse(
        options,
        names,
        "beside saved runs",
        accepted="saved runs as they were measured, or names of retrievers, to measure them now",
        fix="leave the option out, or name retrievers in place of saved runs",
    )
