"""``compare --slices``: means by groups of queries."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from retrieval_bench.cli.measure.compare import Further, compared, moved
from retrieval_bench.cli.options import Added

if TYPE_CHECKING:
    from retrieval_bench.comparison.comparison import Comparison
    from retrieval_bench.experiment.experiment import Experiment


def run_slices(options: argparse.Namespace) -> int:
    """Compare, also on groups of queries."""
    from retrieval_bench.data.needs_judgements import require_judged, unjudged
    from retrieval_bench.runs.dataset import datasets_of
    from retrieval_bench_explain.groupings import check_names
    from retrieval_bench_explain.slices import Sliced, slicings_of
    from retrieval_bench_explain.tables.slice import slice_rows, slice_tables

    def check(experiment: Experiment) -> None:
        require_judged(experiment.dataset, "--slices")
        check_names(options.slices, experiment.dataset)

    def sliced(comparison: Comparison) -> Further:
        for group in comparison.unjudged:
            split = str(group.runs[0].summary.dataset.split)
            raise unjudged(group.dataset, split, "--slices")
        sources = datasets_of([group.runs for group in comparison.groups], moved(options))
        slicings = slicings_of(comparison, sources, options.slices)
        rows = [row for slicing in slicings for row in slice_rows(slicing)]
        return Further([Sliced(slicings)], slice_tables(slicings), rows)

    return compared(options, check, sliced)


SLICES = Added(
    """
--slices BY *  means by groups of queries: tags source length relevant, a metadata key; alone: all
    that there are
""",
    "slices",
    run_slices,
)
