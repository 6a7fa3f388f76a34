"""Functions for Python users: two sides beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval_bench.api.results import Result

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench.core.progress import Reporter
    from retrieval_bench_duet.controller import DuetProtocol
    from retrieval_bench_duet.result import DuetResult
    from retrieval_bench_duet.revisions.environments import Setup


def duet(
    retriever: str | None = None,
    dataset: str | Path = "science-mini",
    *,
    a: str | None = None,
    b: str | None = None,
    rev_a: str | None = None,
    rev_b: str | None = None,
    set_a: Sequence[str] = (),
    set_b: Sequence[str] = (),
    overrides: Sequence[str] = (),
    split: str = "test",
    k: int = 10,
    protocol: DuetProtocol | None = None,
    setup: Setup | None = None,
    out: str | Path | None = None,
    reporter: Reporter | None = None,
) -> Result[DuetResult]:
    """Say whether side b is slower than side a, from calls made side by side.

    Args:
        retriever: of both sides, by name or file.
        dataset, split, k, reporter: as in :func:`baseline`.
        a, b: retrievers, one for each side, instead.
        rev_a, rev_b: git revisions; None = the files as they are.
        set_a, set_b, overrides: ``dotted.path=value`` into the parameters of one side, and of both.
        protocol: how long, and the ``limits`` of each gate.
        setup: how the code of a revision gets the packages it needs.
        out: folder of the record; None = a new one under ``results/duets``.

    Raises:
        HarnessError: everything that is wrong with the input, or the result cannot be saved.
    """
    from retrieval_bench.reports.progress_bar import in_notebook
    from retrieval_bench_duet import duet as duets
    from retrieval_bench_duet.result import PrintedDuet
    from retrieval_bench_duet.tables.duet import duet_tables

    request = duets.Request(retriever, a, b, rev_a, rev_b, set_a, set_b, overrides, setup)
    value = duets.duet(
        request,
        dataset,
        split=split,
        k=k,
        protocol=protocol,
        out=None if out is None else Path(out),
        reporter=in_notebook(reporter),
    )
    return Result(value, PrintedDuet(value).as_dict, lambda: duet_tables(value))
