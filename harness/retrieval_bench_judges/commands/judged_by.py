"""``compare --judged-by``: verdicts of people's labels, and of these with a model's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import Added, refuse

if TYPE_CHECKING:
    from retrieval_bench.runs.run import Run
    from retrieval_bench_judges.judged_by import JudgedComparison
    from retrieval_bench_labels.store import Store


def run_judged_by(options: argparse.Namespace) -> int:
    """Compare by a file of labels in place of the dataset's judgements."""
    from retrieval_bench.cli.measure.compare import code_of, name_systems, runs_asked_for
    from retrieval_bench.stats.defaults import MARGIN
    from retrieval_bench_judges.judged_by import compare_judged
    from retrieval_bench_judges.tables.judged_by import judged_tables
    from retrieval_bench_labels.store import Store

    refuse(
        options,
        "tests equivalence fuse until_decided",
        "with --judged-by",
        accepted="--margin and --baseline: tests are those of people's labels, and of both",
        fix="leave it out",
    )
    store = Store(Path(options.judged_by))

    def print_runs(runs: Sequence[Run]) -> JudgedComparison:
        made = compare_judged(
            runs,
            store,
            judge=options.judge,
            margin=MARGIN if options.margin is None else options.margin,
            baseline=options.baseline,
            strata=_strata(store, options.strata) if options.strata else None,
        )
        show(options, made, lambda: judged_tables(made), lambda: judged_tables(made, verbose=False))
        return made

    name_systems(options)
    runs = runs_asked_for(options, print_runs)
    if runs is None:
        return OK
    return code_of(options, runs, print_runs(runs).why_nothing)


def _strata(store: Store, key: str) -> dict[str, str]:
    """Query -> what its metadata have under ``key``.

    Raises:
        ConfigError: no query has it.
    """
    from retrieval_bench.core.errors import ConfigError, near_names
    from retrieval_bench.data import load_dataset

    pool = store.pool()
    queries = load_dataset(pool.source or pool.dataset, pool.split).queries
    if not any(key in query.metadata for query in queries):
        known = {name for query in queries for name in query.metadata}
        raise ConfigError(
            f"no query has {key!r} in its metadata",
            where="--strata",
            accepted=near_names(key, sorted(known)) if known else "a dataset with such metadata",
            fix="name a key of the queries' metadata, or leave it out",
        )
    return {query.id: str(query.metadata.get(key, "")) for query in queries}


JUDGED_BY = Added(
    "--judged-by FILE  decide by a file of labels: by people's, and by a model's with them\n"
    "--judge NAME  the model (default: the only one whose labels are there)\n"
    "--strata KEY  with --judged-by: metadata key of queries; people judged some of each kind, at\n"
    "    random, and each counts by its share",
    "judged_by",
    run_judged_by,
    accepted="--judged-by FILE, a file of labels of people and of a model",
    fix="add --judged-by results/labels/DATASET.sqlite",
)
