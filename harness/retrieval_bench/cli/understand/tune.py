"""The command ``tune``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from retrieval_bench.cli.console import OK, say, show, working
from retrieval_bench.cli.options import (
    add_format,
    add_language,
    add_named,
    add_self_hits,
    add_several,
)


def add_tune(commands: Any, name: str, **texts: str) -> None:
    """Choose parameters on some queries, and report them on others."""
    tune = commands.add_parser(name, **texts)
    add_named(tune, "retriever", "RETRIEVER", "whose parameters to choose: a name or a YAML file")
    tune.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="behind a saved run further ones on the same dataset: their fusion is tuned",
    )
    tune.add_argument(
        "--dataset",
        metavar="NAME_OR_PATH",
        help="name or folder (default: science-mini; of saved runs: where they found it)",
    )
    tune.add_argument("--split", help="split that is reported on (default: test)")
    add_language(tune)
    add_self_hits(tune)
    tune.add_argument("--k", type=int, default=10, help="hits per query (default: 10)")
    tune.add_argument("--metric", help="what to have most of (default: nDCG@10)")
    add_several(tune, "--set", "KEY=VALUE", "parameters that are the same in every setting")
    add_several(
        tune,
        "--grid",
        "KEY=[V1,V2]",
        "parameters and the values to try (default: what the retriever says)",
    )
    tune.add_argument(
        "--sample", type=int, metavar="N", help="try N settings of the grid only, drawn at random"
    )
    tune.add_argument(
        "--dev-split", metavar="SPLIT", help="choose on this split, instead of cross-validation"
    )
    tune.add_argument(
        "--folds", type=int, metavar="N", help="parts of the cross-validation (default: 5)"
    )
    tune.add_argument(
        "--repeats", type=int, metavar="N", help="cross-validations to average (default: 10)"
    )
    tune.add_argument(
        "--seed", type=int, metavar="N", help="of the folds and of --sample (default: fixed)"
    )
    tune.add_argument(
        "--margin",
        type=float,
        metavar="D",
        help="largest difference that does not matter to you (default: 0.01)",
    )
    tune.add_argument(
        "--no-price",
        action="store_false",
        dest="price",
        help="do not time the best setting beside the default, which calls each up to 200 times",
    )
    tune.add_argument(
        "--out", type=Path, metavar="YAML", help="write the recommended setting as a config"
    )
    add_format(tune)
    tune.set_defaults(run=_tune)


def _tune(options: argparse.Namespace) -> int:
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.core.types import Verdict
    from retrieval_bench.reports.tables.understand.tuning import tuning_tables
    from retrieval_bench.tuning.tune import Options, tuned
    from retrieval_bench.tuning.tuned import write_config

    if options.dev_split is not None and (options.folds or options.repeats) is not None:
        raise ConfigError(
            "--dev-split with --folds or --repeats",
            accepted="one of them: a split to choose on, or cross-validation",
            fix="leave the other out",
        )
    names = ("k", "metric", "folds", "repeats", "seed", "sample", "margin", "price")
    given = {name: getattr(options, name) for name in names}
    chosen = Options(**{name: value for name, value in given.items() if value is not None})
    subject, dataset = _subject(options)
    with working(options) as bars:
        result = tuned(
            subject,
            dataset,
            chosen,
            split=options.split or "test",
            language=options.language,
            self_hits=options.self_hits,
            dev=options.dev_split,
            grid=options.grid,
            overrides=options.set,
            out=options.out,
            reporter=bars,
        )
    show(options, result, lambda: tuning_tables(result))
    if options.out is not None:
        write_config(options.out, result)
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
    from retrieval_bench.tuning.fusing import fusion_config

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
