"""``explain --by stage``: what each part of a retriever buys and takes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, output_kept_clean, say, show, working
from retrieval_bench.cli.options import refuse

if TYPE_CHECKING:
    from retrieval_bench.experiment.experiment import Experiment


MEASURING = "split k set rounds max_cost"


LEDGER = """
--by stage, --by loss:
--margin M  a part whose gain, or a step whose loss, is below this does nothing (default: 0.01)
--split SPLIT [test]  of a retriever: split of the judgements
--k K [10]  of a retriever: hits per query
--set KEY=VALUE ...  of a retriever: parameters by dotted path
--rounds N  of a retriever: measured rounds
--max-cost MONEY  of a retriever: spend no more than this
--token-price MONEY  of truth by spans: money for a million tokens that a reader gets
"""


def refuse_of_queries(options: argparse.Namespace) -> None:
    """Raise where options of single queries would silently do nothing.

    Raises:
        ConfigError: they are given with ``--by stage`` or ``--by loss``.
    """
    refuse(
        options,
        "queries query group sort texts",
        f"with --by {options.by}",
        accepted="options of single queries without it",
        fix="leave one of the two out",
    )


def by_stage(options: argparse.Namespace) -> int:
    """Show the ledger of a saved run, or of a retriever that is measured now, asked once more
    without the parts that its lists do not tell of, and saved."""
    from retrieval_bench.cli.measure.common import as_it_can_be
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.data.needs_judgements import require_judged
    from retrieval_bench.metrics import one_metric
    from retrieval_bench.runs.dataset import dataset_of
    from retrieval_bench.runs.find import find_run, is_run
    from retrieval_bench.runs.records import read_run
    from retrieval_bench.stats.defaults import MARGIN
    from retrieval_bench_explain.ledger import ledger
    from retrieval_bench_explain.pictures.ledger import keep_parts
    from retrieval_bench_explain.tables.ledger import ledger_table, part_rows

    if len(options.runs) != 1:
        raise ConfigError(
            f"{len(options.runs)} names with --by stage",
            accepted="one saved run, or one retriever",
            fix="name one; `compare` puts several side by side",
        )
    metric = None if options.metric is None else one_metric(options.metric)
    given, saved = options.runs[0], is_run(options.runs[0])
    refuse_of_queries(options)
    if saved:
        refuse(
            options,
            MEASURING,
            "with a saved run, which was measured as it was",
            accepted="--margin, --metric and --token-price; the others with a retriever to measure",
            fix="leave them out, or name the retriever",
        )
        run = read_run(find_run(Path(given)))
        data = dataset_of([run], options.dataset)
        require_judged(data, "explain --by stage")
    else:
        run, data = _measured(options, str(given), metric)
    margin = MARGIN if options.margin is None else options.margin
    parts_ledger = ledger(run, data, metric, margin=margin, token_price=options.token_price)
    if parts_ledger is None:
        raise ConfigError(
            f"{run.name} does not say what it is made of",
            where=str(run.folder or given),
            accepted="a pipeline, a hybrid, or a retriever with parts(); a run of one that was "
            "measured by this version",
            fix="measure it again" if saved else "use bench",
        )
    show(
        options,
        parts_ledger,
        lambda: [ledger_table(parts_ledger, again=saved)],
        rows=lambda: list(part_rows(parts_ledger)),
    )
    with as_it_can_be(options, "picture"):
        keep_parts(parts_ledger)
    if not parts_ledger.n:
        say("retrieval-bench: nothing could be judged: no evaluated query was answered")
        return NOT_MEASURED
    return OK


def _measured(options: argparse.Namespace, retriever: str, metric: Any) -> tuple[Any, Any]:
    from dataclasses import replace

    metrics = () if metric is None else [str(metric)]
    experiment = prepared(options, retriever, metrics, "stage")
    with closing(experiment), working(options) as bars:
        (run,) = replace(experiment, ablate=True).run(bars)
    return run, experiment.dataset


def prepared(
    options: argparse.Namespace, retriever: str, metrics: Sequence[str], by: str
) -> Experiment:
    """The experiment of one retriever as the options say.

    Raises:
        HarnessError: it cannot be had, or its dataset has no judgement.
    """
    from retrieval_bench.data.needs_judgements import require_judged
    from retrieval_bench.experiment.preparation import prepare
    from retrieval_bench.measure.protocol import Protocol

    with output_kept_clean():
        experiment = prepare(
            [retriever],
            options.dataset or "science-mini",
            split=options.split,
            k=options.k,
            metrics=metrics,
            overrides=options.set,
            protocol=Protocol.of(rounds=options.rounds, max_cost=options.max_cost),
        )
    try:
        require_judged(experiment.dataset, f"explain --by {by}")
    except BaseException:
        experiment.close()
        raise
    return experiment
