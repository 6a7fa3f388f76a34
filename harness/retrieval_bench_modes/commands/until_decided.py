"""``compare --until-decided``: each query is asked once, until every pair is decided."""

from __future__ import annotations

import argparse

from retrieval_bench.cli.measure.compare import refuse_settled
from retrieval_bench.cli.options import Added, refuse


def check_options(options: argparse.Namespace) -> None:
    """Refuse what says something of times, or of a number of queries fixed beforehand.

    Raises:
        ConfigError: which one.
    """
    from retrieval_bench_modes.asking import target_of

    target_of(options.until_decided)
    if options.runs:
        refuse_settled(options, "until_decided")
    refuse(
        options,
        "profile min_calls rounds max_calls launches warm_up collector percentiles tests slices "
        "equivalence fuse",
        "with --until-decided",
        accepted="each query asked once, judged by the interval that allows a look after each",
        fix="leave one of the two out",
    )


UNTIL_DECIDED = Added(
    """
--until-decided TARGET ?  ask query by query, in a random order, until every pair is decided, by
    the mean of population (default), that of queries like these, or split, that of all these
    queries
""",
    more={"until_decided": {"const": "population"}},
)
