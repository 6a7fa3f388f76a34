"""Studies of sharded work: exact lists at size, and processes that are killed while they encode.

``python -m tests.benchmarks.shards exact 1000000 384 1000 100`` and ``... kill 20 [CONFIG]``.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path

import numpy as np

from retrieval_bench_scale.cluster import facts
from retrieval_bench_scale.shards.blocks import SIZE, BlockFolder, Corpus
from retrieval_bench_scale.shards.encode import encode_corpus
from retrieval_bench_scale.shards.exact import Search
from retrieval_bench_scale.shards.executors import executor
from tests.builders.fake_encoder import many
from tests.builders.files import json_lines, save_all


class Watch(threading.Thread):
    """The highest sum of memory that belongs to no file (KiB), of this process's children."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            self.most = max(self.most, sum(_anonymous(one.pid) for one in active_children()))


def _anonymous(pid: int | None) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def exact(n: int = 1_000_000, dimension: int = 384, queries: int = 1_000, k: int = 100) -> None:
    """Seconds and memory of the exact lists of random unit vectors in 2,000 clusters."""
    chance = np.random.default_rng(5)
    centres = chance.standard_normal((2_000, dimension)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        place = BlockFolder(Path(folder), {}, dimension)
        for number in range(-(-n // SIZE)):
            size = min(SIZE, n - number * SIZE)
            noise = chance.standard_normal((size, dimension)).astype(np.float32)
            place.write(number, [], centres[chance.integers(0, 2_000, size)] + noise)
        noise = chance.standard_normal((queries, dimension)).astype(np.float32)
        asked = centres[chance.integers(0, 2_000, queries)] + noise
        blocks = [""] * -(-n // SIZE)
        corpus = Corpus([f"d{at}" for at in range(n)], blocks, np.arange(n))
        search = Search(place, facts(), None, True, k)
        found = []
        for on in ("local:2", "local:1"):
            with executor(on, Path(folder)) as (pool, workers):
                watch = Watch()
                watch.start()
                begin = time.perf_counter()
                named = {f"q{at}": one for at, one in enumerate(asked)}
                found.append(search.lists(named, corpus, pool, 2 * workers, lambda *_: None))
                seconds = time.perf_counter() - begin
                watch.over.set()
            print(f"{on}: {seconds:.1f} s, {watch.most / 1024:,.0f} MiB beside the vectors")
        print("equal to the bit:", found[0] == found[1], flush=True)


def kill(times: int = 20, config: str = "") -> None:
    """Kill one of two processes at random moments while they encode; what it cost."""
    chance = random.Random(3)
    blocks = 40 if not config else 3
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        save_all(
            here / "data",
            {
                "corpus.jsonl": json_lines(many(blocks * SIZE)),
                "queries.jsonl": json_lines([{"_id": "q", "text": "text 1"}]),
                "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td000000\t1\n",
            },
        )
        fake = {"target": "tests.builders.fake_encoder:Hashed"}
        params = {"folder": str(here), "takes_s": 0.001}
        given = config or {**fake, "params": params}
        os.environ["RETRIEVAL_BENCH_CACHE"] = str(here / "cache")
        over = threading.Event()
        killed: list[int | None] = []

        def killing() -> None:
            while len(killed) < times and not over.wait(chance.random() * 4):
                if children := active_children():
                    killed.append(chance.choice(children).pid)
                    os.kill(killed[-1] or 0, signal.SIGKILL)

        thread = threading.Thread(target=killing)
        thread.start()
        encode_corpus(given, here / "data", out=here / "a")
        over.set()
        thread.join()
        calls = (here / "calls").read_text("utf-8").count("\n") if not config else -1
        encode_corpus(given, here / "data", out=here / "b")
        equal = all(
            path.read_bytes() == (here / "b" / path.name).read_bytes()
            for path in (here / "a").glob("*.npy")
        )
        print(f"{len(killed)} killed, {blocks} blocks, {calls} begun; equal to the bit: {equal}")


STUDIES: dict[str, Callable[..., None]] = {"exact": exact, "kill": kill}

if __name__ == "__main__":
    STUDIES[sys.argv[1]](*(int(word) if word.isdigit() else word for word in sys.argv[2:]))
