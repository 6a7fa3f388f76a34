"""The command ``export``: a dataset in the format of another tool, or a saved run sent to one."""

from __future__ import annotations

import argparse
from typing import Any

from retrieval_bench.cli.console import OK, output_kept_clean, show
from retrieval_bench.cli.options import SPLIT, command

_EXPORT = f"""
dataset NAME_OR_PATH  name or folder of a dataset; or a saved run
--to FORMAT [required]  beir, trec, plain, squad, scienceqa, quotes, ragas, langsmith, quepid,
    rank_eval or spans; ir_metadata writes a saved run as TREC text, with how it was made in its
    first lines; mlflow and otlp send its figures to a tracker
! --out FOLDER  made here; holds all files; of ir_metadata a new file
! --into ADDRESS  of mlflow or otlp, such as sqlite:///mlflow.db or http://localhost:4318;
    ${{NAME}} is filled in
{SPLIT}
--set KEY=VALUE ...  settings of rank_eval: index, fields, metric, such as
    'metric={{precision: {{k: 10}}}}'; of ir_metadata what the run does not know, such as
    actor.name=Kim; of mlflow experiment=NAME; of otlp texts=true, to send texts of queries, too
"""


@command(_EXPORT)
def run_export(options: argparse.Namespace) -> int:
    """Write judgements, queries and, where the format holds them, documents; or send a run."""
    from retrieval_bench.core.config import inline_config
    from retrieval_bench_exchange.export import export_dataset
    from retrieval_bench_exchange.tables.export import export_tables

    settings = inline_config({"target": options.to}, options.set).params
    if _is_sent(options):
        return _send_run(options, settings)
    if options.to == IR_METADATA:
        return _export_run(options, settings)
    with output_kept_clean():
        made = export_dataset(
            options.dataset, options.to, options.out, split=options.split, settings=settings
        )
    show(options, made, lambda: export_tables(made))
    return OK


IR_METADATA = "ir_metadata"


def _is_sent(options: argparse.Namespace) -> bool:
    """Say whether a tracker gets a run.

    Raises:
        ConfigError: files without --out, or a tracker without --into.
    """
    from retrieval_bench.cli.options import refuse
    from retrieval_bench_exchange.trackers.sent import EXAMPLES, TRACKERS

    if options.to in TRACKERS:
        fix = f"write --into {EXAMPLES[options.to]}"
        refuse(options, "out", f"with --to {options.to}", accepted="--into ADDRESS", fix=fix)
        return True
    refuse(options, "into", f"with --to {options.to}", accepted="--out FOLDER", fix="name a folder")
    return False


def _send_run(options: argparse.Namespace, settings: dict[str, Any]) -> int:
    from retrieval_bench_exchange.tables.export import sent_table
    from retrieval_bench_exchange.trackers.sent import export_run

    with output_kept_clean():
        made = export_run(options.dataset, options.to, options.into, settings=settings)
    show(options, made, lambda: [sent_table(made)])
    return OK


def _export_run(options: argparse.Namespace, settings: dict[str, Any]) -> int:
    from retrieval_bench.runs.find import find_run
    from retrieval_bench.runs.records import read_run
    from retrieval_bench_exchange.export import ExportedRun
    from retrieval_bench_exchange.ir_metadata import write_annotated
    from retrieval_bench_exchange.tables.export import run_table

    run = read_run(find_run(options.dataset))
    write_annotated(options.out, run, settings)
    document = ExportedRun(run.summary.run_id, options.to, str(options.out))
    show(options, document, lambda: [run_table(run, options.out)])
    return OK
