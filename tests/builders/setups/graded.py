"""A model that judges: ``graded.py FILE KAPPA`` writes its labels of the whole pool, which agree
with the truth but for chance."""

import random
import sys
from pathlib import Path

from retrieval_bench.data import read_qrels
from retrieval_bench_labels.store import Store

file, kappa = Path(sys.argv[1]), float(sys.argv[2])
pool, truth = Store(Path("results/labels/mine.sqlite")).pool(), read_qrels("truth.tsv")
grades = [min(truth.get(q, {}).get(doc, 0), 3) for q, doc in pool.pairs]
rng = random.Random(4)
lines = [
    f"{pair.query_id} 0 {pair.doc_id} {grade if rng.random() < kappa else rng.choice(grades)}\n"
    for pair, grade in zip(pool.pairs, grades, strict=True)
]
file.write_text("".join(lines), encoding="utf-8")
