"""The command ``tune``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from retrieval_bench.cli.console import OK, say, show, working
from retrieval_bench.cli.options import LANGUAGE, SELF_HITS, command, values

_TUNE = f"""
retriever, --retriever RETRIEVER [needed]  whose parameters to choose: a name or a YAML file
runs RUN *  behind a saved run further ones on the same dataset: their fusion is tuned
--dataset NAME_OR_PATH  name or folder (default: science-mini; of saved runs: where they found it)
--split SPLIT  split that is reported on (default: test)
{LANGUAGE}
{SELF_HITS}
--k K [10]  hits per query (default: 10)
--metric METRIC  metric to maximise (default: nDCG@10)
--set KEY=VALUE ...  parameters that are the same in every setting
--grid KEY=[V1,V2] ...  parameters and the values to try (default: what the retriever says)
--sample N  try N settings of the grid only, drawn at random
--dev-split SPLIT  choose on this split, instead of cross-validation
--folds N  parts of the cross-validation (default: 5)
--repeats N  cross-validations to average (default: 10)
--seed N  of the folds and of --sample (default: fixed)
--margin D  largest difference that does not matter to you (default: 0.01)
--no-price [price]  do not time the best setting beside the default, which calls each up to 200
    times
--out YAML  write the recommended setting as a config
"""


@command(_TUNE)
def run_tune(options: argparse.Namespace) -> int:
    """Choose parameters on some queries, and report them on others."""
    from retrieval_bench.core.errors import ConfigError, RecordError
    from retrieval_bench.core.types import Verdict
    from retrieval_bench_tune.tables.tuning import tuning_brief, tuning_tables
    from retrieval_bench_tune.tune import tune

    if options.dev_split is not None and (options.folds or options.repeats) is not None:
        raise ConfigError(
            "--dev-split with --folds or --repeats",
            accepted="one of them: a split to choose on, or cross-validation",
            fix="leave the other out",
        )
    names = "k metric folds repeats seed sample margin price"
    given = {name: value for name, value in values(options, names).items() if value is not None}
    subject, dataset = _subject(options)
    try:
        with working(options) as bars:
            result = tune(
                subject,
                dataset,
                **given,
                **values(options, "language self_hits grid out"),
                split=options.split or "test",
                dev=options.dev_split,
                overrides=options.set,
                reporter=bars,
            )
    except RecordError as problem:
        for unsaved in problem.runs:
            show(options, unsaved, partial(tuning_tables, unsaved))
        raise
    show(options, result, lambda: tuning_tables(result), lambda: tuning_brief(result))
    if options.out is not None:
        what = "the setting that was best on the tuning queries"
        doubt = "" if result.delta.verdict is Verdict.BETTER else "; no gain from it is shown"
        say(f"retrieval-bench: {what} is in {options.out}{doubt}")
    return OK


def _subject(options: argparse.Namespace) -> tuple[Any, Any]:
    """Name the subject of the tuning and its dataset: a retriever as it is named, or the fusion of
    saved runs on theirs."""
    from retrieval_bench.core.config import retriever_names
    from retrieval_bench.core.errors import ConfigError, counted
    from retrieval_bench.runs.dataset import dataset_of
    from retrieval_bench.runs.find import find_runs, is_run
    from retrieval_bench.runs.records import read_runs
    from retrieval_bench_tune.fusing import fusion_config

    given = [options.retriever, *options.runs]
    others = [name for name in given if not is_run(name)]
    if not options.runs and (others or options.retriever in retriever_names()):
        return options.retriever, options.dataset or "science-mini"
    if others:
        raise ConfigError(
            f"{others[0]!r} and {counted(len(given) - 1, 'other name')} to tune",
            accepted="one retriever, or saved runs to fuse: tune bm25@latest dense@latest",
            fix="leave one kind out",
        )
    for what in ("split", "language", "self_hits"):
        if getattr(options, what) is not None:
            raise ConfigError(
                f"--{what.replace('_', '-')} of saved runs",
                accepted=f"the {what} that they were measured on",
                fix="leave it out",
            )
    runs = read_runs([folder for name in given for folder in find_runs(name)])
    return fusion_config(runs), dataset_of(runs, options.dataset)
