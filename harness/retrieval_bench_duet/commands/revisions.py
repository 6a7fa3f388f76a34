"""Options of commands that measure revisions and judge by gates, and the report of the gates."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrieval_bench_duet.revisions.environments import Setup

JUNIT = "--junit FILE  also write the gates as a JUnit report"

ENVIRONMENTS = """
environments of revisions whose dependencies differ:
--extras NAME *  optional dependencies to install (default: those that are installed now)
--setup COMMAND []  run this once in the folder of each revision instead of installing
"""


def setup_of(options: argparse.Namespace) -> Setup:
    """Read the options of :data:`ENVIRONMENTS`."""
    from retrieval_bench_duet.revisions.environments import Setup

    return Setup(None if options.extras is None else tuple(options.extras), options.setup)


def write_junit(options: argparse.Namespace, suite: str, gates: Sequence[tuple[str, Any]]) -> None:
    """Write the gates where ``--junit`` says, if it does."""
    if options.junit is not None:
        from retrieval_bench.reports.file import write_page
        from retrieval_bench_duet import junit

        write_page(options.junit, junit.render(suite, gates), "JUnit report")
