"""``compare --fuse``: the fusions of what is compared, too."""

from retrieval_bench.cli.options import Added

FUSE = Added(
    """
--fuse HOW *  also fuse the runs and save that as a run: rrf (default), convex, tuned-rrf,
    tuned-convex; tuned: each query by the parameters that are best on other queries
"""
)
