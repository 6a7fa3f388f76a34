"""Somebody who judges: ``judge.py NAME N`` finishes the next N questions by the truth."""

import sys
from pathlib import Path

from retrieval_bench.data import read_qrels
from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.queue import next_task
from retrieval_bench_labels.store import Store

who, n = sys.argv[1], int(sys.argv[2])
store = Store(Path("results/labels/mine.sqlite"))
pool, truth = store.pool(), read_qrels("truth.tsv")
digests = pool.digests()
for _ in range(n):
    task = next_task(pool, store, who)
    if task is None:
        break
    grades = truth.get(task.query.id, {})
    for doc in task.left:
        pair = Pair(task.query.id, doc)
        store.add(Label(pair, who, min(grades.get(doc, 0), 3), digest=digests[pair]))
