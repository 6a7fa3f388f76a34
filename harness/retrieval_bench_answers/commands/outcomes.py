"""The command ``outcomes``: figures of answers that people labelled."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import OK, show
from retrieval_bench.cli.options import command

_OUTCOMES = """
records, --records FILE [needed]  JSON lines: {"id", "source", "outcomes": {"NAME": "correct"}};
    labels: correct, hallucinated, rejected
--by FIELD ...  also in groups, by these fields of the records (default: source, if there is one)
"""


@command(_OUTCOMES, by={"default": None})
def run_outcomes(options: argparse.Namespace) -> int:
    """Show rates of labelled answers."""
    from retrieval_bench_answers.outcomes import Outcomes, outcome_report, read_outcomes
    from retrieval_bench_answers.tables.outcome import outcome_brief, outcome_tables

    report = outcome_report(read_outcomes(options.records), options.by)
    document = Outcomes(str(options.records), report)
    name = options.records.name
    show(
        options, document, lambda: outcome_tables(report, name), lambda: outcome_brief(report, name)
    )
    return OK
