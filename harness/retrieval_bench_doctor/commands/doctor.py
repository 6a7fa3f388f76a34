"""The command ``doctor``."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.console import NOT_MEASURED, OK, show, working
from retrieval_bench.cli.options import LANGUAGE, RETRIEVER, SELF_HITS, command, dataset, values

_DOCTOR = f"""
{RETRIEVER.replace(" [needed]", "")}
{dataset()}
{LANGUAGE}
{SELF_HITS}
--ask N  evaluated queries to ask (default: up to 200 within 20 s; 5 of an external or priced
    retriever)
+
"""


@command(_DOCTOR)
def run_doctor(options: argparse.Namespace) -> int:
    """Look at everything before a measurement."""
    from retrieval_bench_doctor.doctor import doctor
    from retrieval_bench_doctor.tables.doctor import doctor_tables

    with working(options) as bars:
        diagnosis = doctor(
            options.retriever or "bm25",
            options.dataset,
            **values(options, "split language self_hits k ask"),
            overrides=options.set,
            reporter=bars,
        )
    show(options, diagnosis, lambda: doctor_tables(diagnosis))
    return OK if diagnosis.answered else NOT_MEASURED
