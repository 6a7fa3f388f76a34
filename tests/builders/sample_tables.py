"""Two tables that each format writes."""

from __future__ import annotations

from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY
from retrieval_bench.reports.render.table import Table

SAMPLE = [
    Table(
        "Two & three",
        ("", "n", "bm25", "a_b - bm25"),
        [
            (
                "all",
                COUNT(1204),
                QUALITY(0.7154, (0.576, 0.711), "ab"),
                DIFFERENCE(-0.01, (-0.104, 0.111)),
            ),
            ("한국어", COUNT(9, marks="*"), QUALITY(0.5), DIFFERENCE(None)),
        ],
        rules=[1],
        notes=["p < .05", "100 % of --k"],
    ),
    Table("Take bm25.", (), (), notes=["it is fast"]),
]
