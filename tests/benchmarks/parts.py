"""What the ledger says of parts whose worth is known, because it was planted.

``python -m tests.benchmarks.parts`` prints the table of the guide: 300 queries, parts that are dead
by structure, or harm or help by at least a quarter of a standard deviation of the paired
difference; a few minutes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_explain.ledger import ledger
from tests.builders.planted_parts import DEAD, HARMFUL, HELPING, MIXED, collection, planted

SEEDS = 34


def named(kind: str, seeds: Sequence[int]) -> Iterator[tuple[str, str]]:
    """What was planted, and what the ledger says of it, part by part."""
    data = collection()
    protocol = Protocol(rounds=1, warm_up_s=0.0)
    for seed in seeds:
        made = planted(kind, seed)
        experiment = prepare([made.make()], data, protocol=protocol, save=False)
        (run,) = replace(experiment, ablate=True).run(save=False)
        found = ledger(run, data)
        assert found is not None
        said = {row.name: row.worth.value for row in found.rows}
        for part, worth in made.worth.items():
            yield worth, said[part]


def main(seeds: int = SEEDS) -> None:
    """Print how often each kind got which word."""
    for kind in (*DEAD, *HARMFUL, *HELPING, MIXED):
        counts = Counter(said for _, said in named(kind, range(seeds)))
        told = ", ".join(f"{word} {n}" for word, n in counts.most_common())
        print(f"{kind:<18} {told}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
