"""The command ``outcomes``: figures of answers that people labelled."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import add_format, add_named


def add_outcomes(commands: Any, name: str, **texts: str) -> None:
    """Rates of labelled answers."""
    outcomes = commands.add_parser(name, **texts)
    text = 'JSON lines: {"id", "source", "outcomes": {"NAME": "correct"}}; labels: correct, '
    add_named(outcomes, "records", "FILE", f"{text}hallucinated, rejected", kind=Path)
    outcomes.add_argument(
        "--by",
        nargs="+",
        action="extend",
        metavar="FIELD",
        help="also in groups, by these fields of the records (default: source, if there is one)",
    )
    add_format(outcomes)
    outcomes.set_defaults(run=_outcomes)


def _outcomes(options: argparse.Namespace) -> int:
    from retrieval_bench.reports.tables.judge.outcome import outcome_tables
    from retrieval_bench.scoring.answers.outcomes import Outcomes, outcome_report, read_outcomes

    report = outcome_report(read_outcomes(options.records), options.by)
    document = Outcomes(str(options.records), report)
    show(options, document, lambda: outcome_tables(report, options.records.name))
    return OK
