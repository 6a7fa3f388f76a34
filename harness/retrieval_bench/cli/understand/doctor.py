"""The command ``doctor``."""

from __future__ import annotations

import argparse
from typing import Any

from retrieval_bench.cli.console import NOT_MEASURED, OK, show, working
from retrieval_bench.cli.guard.selftest import run_selftest
from retrieval_bench.cli.options import (
    add_dataset,
    add_format,
    add_language,
    add_retriever,
    add_self_hits,
)


def add_doctor(commands: Any, name: str, **texts: str) -> None:
    """Look at everything before a measurement."""
    parser = commands.add_parser(name, **texts)
    add_retriever(parser)
    add_dataset(parser)
    add_language(parser)
    add_self_hits(parser)
    parser.add_argument(
        "--ask",
        type=int,
        metavar="N",
        help="evaluated queries to ask (default: up to 200 within 20 s; 5 of an external or "
        "priced retriever)",
    )
    parser.add_argument(
        "--selftest",
        action="store_true",
        help="also play duets of equal and of slowed sides, to see what this machine can show",
    )
    parser.add_argument(
        "--time", type=float, default=120.0, metavar="S", help="seconds for that (default: 120)"
    )
    add_format(parser)
    parser.set_defaults(run=_doctor, needs=None)


def _doctor(options: argparse.Namespace) -> int:
    from retrieval_bench.experiment.doctor.doctor import doctor
    from retrieval_bench.reports.tables.understand.doctor import doctor_tables

    if options.selftest:
        return run_selftest(options)
    with working(options) as bars:
        diagnosis = doctor(
            options.retriever or "bm25",
            options.dataset,
            split=options.split,
            language=options.language,
            self_hits=options.self_hits,
            k=options.k,
            overrides=options.set,
            ask=options.ask,
            reporter=bars,
        )
    show(options, diagnosis, lambda: doctor_tables(diagnosis))
    return OK if diagnosis.answered else NOT_MEASURED
