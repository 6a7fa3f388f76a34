"""The options of ``duet`` and ``regress`` on the packages of a revision."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval_bench.duets.revisions.environments import Setup


def add_environments(parser: argparse.ArgumentParser) -> None:
    """How the code of a revision gets the packages it needs."""
    prepared = parser.add_argument_group("environments of revisions whose dependencies differ")
    prepared.add_argument(
        "--extras",
        nargs="*",
        metavar="NAME",
        help="optional dependencies to install (default: those that are installed now)",
    )
    prepared.add_argument(
        "--setup",
        default="",
        metavar="COMMAND",
        help="run this once in the folder of each revision instead of installing",
    )


def setup_of(options: argparse.Namespace) -> Setup:
    """What the options of :func:`add_environments` say."""
    from retrieval_bench.duets.revisions.environments import Setup

    return Setup(None if options.extras is None else tuple(options.extras), options.setup)
