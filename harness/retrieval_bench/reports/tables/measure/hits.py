"""Hits of runs on a dataset where nothing is judged, and how to judge some."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import join

from retrieval_bench.core.errors import counted
from retrieval_bench.data.needs_judgements import TO_JUDGE
from retrieval_bench.reports.render.cells import Cell, Form
from retrieval_bench.reports.render.table import Note, next_step, result
from retrieval_bench.reports.tables.again import named_again
from retrieval_bench.runs.run import Run, relative_folder
from retrieval_bench.runs.summary import HitFacts

HITS = Form(lambda value: f"{value:.1f}")
"""How many a query got, on average."""

NOTHING_JUDGED = (
    "Nothing is judged yet: these figures say how much it finds and how fast, not how well."
)


def hits_text(run: Run) -> str:
    """Return how many hits the queries got."""
    mean, rest = hits_cells(run)
    return f"{mean.text} {rest}" if hits_of(run).n else rest


def hits_cells(run: Run) -> tuple[Cell, str]:
    """The mean, and what is behind it."""
    hits, k = hits_of(run), run.summary.k
    mean, few, none = HITS(hits.mean), hits.fewer_than_k, hits.none
    text = f"of {k:,} on average, over {counted(hits.n, 'query')}"
    if not hits.n:
        return mean, "no query was answered"
    if not few:
        return mean, f"{text}; none got fewer"
    return (
        mean,
        f"{text}; {few:,} got fewer, {f'{none:,} of them none' if none else 'all at least one'}",
    )


def hits_of(run: Run) -> HitFacts:
    """The hits of ``run``, where nothing is judged."""
    assert run.summary.hits is not None  # nothing is judged
    return run.summary.hits


def nothing_judged(run: Run) -> list[Note]:
    """Note how to read the figures of ``run``, where nothing is judged."""
    return [] if run.judged else [result(NOTHING_JUDGED)]


def next_to_judge(runs: Sequence[Run], *, measured: bool) -> list[Note]:
    """The command that makes judgements of what ``runs`` found; none where one is not saved.

    Args:
        measured: whether they were measured now, and are all of the last ones.
    """
    if any(run.folder is None for run in runs):
        return []
    named = named_again(runs) if measured else join(map(relative_folder, runs))
    return [next_step(f"next:  {TO_JUDGE.removesuffix('@last')}{named}")]
