"""Functions for Python users: baselines, gates and the history of saved runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.api.results import Result

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench.core.progress import Reporter
    from retrieval_bench.reports.render.table import Table
    from retrieval_bench_duet.revisions.environments import Setup
    from retrieval_bench_regress.gate import Regression
    from retrieval_bench_regress.history.history import History
    from retrieval_bench_regress.regress import BaselineResult


def baseline(
    retriever: str | Path,
    dataset: str | Path = "science-mini",
    *,
    split: str = "test",
    k: int = 10,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protocol: Mapping[str, Any] | None = None,
    policy: str | Path | None = None,
    baselines: str | Path | None = None,
    force: bool = False,
    as_before: bool = False,
    reporter: Reporter | None = None,
) -> Result[BaselineResult]:
    """Measure one retriever and keep the figures, for :func:`regress`.

    Args:
        retriever, dataset: by name or file, since they are looked for again.
        split, k, overrides, reporter: as in :func:`bench`.
        metrics: further ones than those of the policy and the usual ones.
        protocol: what is to be other than usual, such as ``{"min_calls": 1000, "threads": 2}``.
        policy: file of the limits; None = ``configs/policy.yaml``.
        baselines: folder of the baselines; None = ``results/baselines``.
        force: replace a baseline that is there.
        as_before: replace it by what is measured as it was; ``regress --accept``.

    Raises:
        HarnessError: everything that is wrong with the input, a baseline that is there, or nothing
            that could be judged.
        KeyboardInterrupt: interrupted; every baseline is as it was.
    """
    from retrieval_bench.reports.progress_bar import in_notebook
    from retrieval_bench_regress import regress as regression
    from retrieval_bench_regress.tables.regress import baseline_tables

    request = regression.Request(
        str(retriever), str(dataset), split, k, overrides, _path(policy), _path(baselines)
    )
    value = regression.make_baseline(
        request,
        metrics=metrics,
        protocol=protocol,
        force=force,
        as_before=as_before,
        reporter=in_notebook(reporter),
    )
    return Result(value, value.as_dict, lambda: baseline_tables(value.as_dict()))


def regress(
    retriever: str | Path,
    dataset: str | Path = "science-mini",
    *,
    split: str = "test",
    k: int = 10,
    overrides: Sequence[str] = (),
    policy: str | Path | None = None,
    baselines: str | Path | None = None,
    duet: str = "suspicion",
    setup: Setup | None = None,
    reporter: Reporter | None = None,
) -> Result[Regression]:
    """Say whether one retriever got worse or slower than its baseline.

    Args:
        retriever, dataset, split, k, overrides, policy, baselines, reporter: as in
            :func:`baseline`.
        duet: measure the baseline's revision and today's files side by side: "suspicion" (when
            stored times look slower), "always", "never".
        setup: how the code of that revision gets the packages it needs.

    Returns:
        The verdict with each gate: ``value.verdict``, ``value.quality``, ``value.latency``; and
        ``value.code``, the exit code of the command.

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
        KeyboardInterrupt: interrupted; nothing was judged.
    """
    from retrieval_bench.reports.progress_bar import in_notebook
    from retrieval_bench_regress import regress as regression
    from retrieval_bench_regress.tables.regress import regress_tables

    request = regression.Request(
        str(retriever), str(dataset), split, k, overrides, _path(policy), _path(baselines)
    )
    value = regression.regress(request, duet=duet, setup=setup, reporter=in_notebook(reporter))
    return Result(value, value.as_dict, lambda: regress_tables(value))


def history(
    retriever: str | None = None,
    dataset: str | None = None,
    *,
    metrics: Sequence[str] = (),
    folders: Sequence[str | Path] = (),
    last: int | None = 30,
    out: str | Path | None = None,
) -> Result[History]:
    """Show saved runs and duets over time and revisions.

    Args:
        retriever, dataset: by name or file; None = all.
        metrics: none = the first of the newest run.
        folders: that hold runs or duets; none = ``results/runs`` and ``results/duets``.
        last: so many of the newest of each; None = all.
        out: file for the picture of one retriever on one dataset, replaced when it is there.

    Raises:
        HarnessError: what was given cannot be used, or the picture cannot be written.
    """
    from retrieval_bench.reports.file import check_place, write_page
    from retrieval_bench.reports.render.table import Table
    from retrieval_bench_pictures.draw import svg
    from retrieval_bench_regress.history.history import history as read_history
    from retrieval_bench_regress.pictures.history import history_picture
    from retrieval_bench_regress.tables.history import history_tables

    value = read_history(
        retriever=retriever,
        dataset=dataset,
        metrics=metrics,
        folders=[Path(folder) for folder in folders],
        last=last,
    )
    if out is not None:
        check_place(Path(out), "picture")
        write_page(Path(out), svg(history_picture(value.subject)), "picture")

    def tables() -> list[Table]:
        if value.subjects:
            return history_tables(value.subjects, value.records)
        first, *rest = value.nothing_there
        return [Table(first, (), (), notes=rest)]

    return Result(value, value.as_dict, tables)


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
