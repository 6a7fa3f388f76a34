"""What five engines take on this machine, the table of the guide's page on load: ``python -m
tests.benchmarks.load_engines FOLDER [ENGINE...]``, FOLDER in BEIR's layout. ``pgvector`` takes the
extra of PostgreSQL, ``chroma`` its command. Nothing else may run meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrieval_bench_load.engine.capacity import Limit
from retrieval_bench_load.engine.levels import LevelResult
from retrieval_bench_load.engine.load import Plan, load
from retrieval_bench_retrievers.dense.dense import Dense
from tests.builders.service import free_port

MODEL = "bge-small-en-v1.5-int8"
ENGINES = ("pgvector", "chroma", "service", "bm25", "hybrid-light")
CLIENTS = (1, 4, 16)
LIMIT = "p99<200ms"


@contextmanager
def started(engine: str, folder: Path, work: Path) -> Iterator[str | Mapping[str, Any]]:
    """What ``load`` takes for the engine, while its server is up."""
    port = free_port()
    if engine == "pgvector":
        params: dict[str, Any] = {"encoder": {"model": MODEL}, "load": {"index": "hnsw"}}
        yield {"target": "postgres", "name": engine, "params": params}
    elif engine == "chroma":
        command = [shutil.which("chroma") or "chroma", "run", "--path", str(work), "--port"]
        with server([*command, str(port)], f"http://localhost:{port}/api/v2/heartbeat"):
            yield {"target": "http", "name": engine, "params": chroma(port, folder)}
    elif engine == "service":
        script = Path(__file__).parents[1] / "builders" / "search_service.py"
        command = [sys.executable, "-P", str(script), str(folder / "corpus.jsonl"), str(port)]
        with server(command, f"http://localhost:{port}/", {"query": "a", "k": 1}):
            params = {"url": f"http://localhost:{port}/", "body": {"query": "{text}", "k": "{k}"}}
            params |= {"ids": "hits[*].id", "scores": "hits[*].score"}
            yield {"target": "http", "name": engine, "params": params}
    else:
        yield engine


@contextmanager
def server(command: list[str], url: str, body: object = None) -> Iterator[None]:
    """A server that answers at ``url``."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(120):
                time.sleep(0.5)
                try:
                    asked(url, body)
                    break
                except OSError:
                    continue
            yield
        finally:
            process.terminate()


def asked(url: str, body: object = None) -> Any:
    """The answer of a service to some JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def chroma(port: int, folder: Path) -> dict[str, Any]:
    """Fill a collection; the parameters of the adapter that asks it."""
    where = f"http://localhost:{port}/api/v2/tenants/default_tenant/databases/default_database"
    lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    encoder = Dense(model=MODEL).document_encoder()
    encoder.load()
    made = asked(
        f"{where}/collections", {"name": "docs", "configuration": {"hnsw": {"space": "cosine"}}}
    )
    texts = [f"{row['title']} {row['text']}".strip() for row in rows]
    for at in range(0, len(rows), 256):
        vectors = encoder.documents(texts[at : at + 256])
        ids = [row["_id"] for row in rows[at : at + 256]]
        batch = {"ids": ids, "embeddings": vectors.tolist()}
        asked(f"{where}/collections/{made['id']}/add", batch)
    return {
        "url": f"{where}/collections/{made['id']}/query",
        "encoder": {"model": MODEL},
        "body": {"query_embeddings": ["{embedding}"], "n_results": "{k}", "include": ["distances"]},
        "missing": "drop",
        "ids": "ids[0]",
        "scores": "distances[0]",
        "order": "ascending",
    }


def cell(level: LevelResult) -> str:
    """Answers a second and p50; why not, where there is none."""
    if not level.latency:
        return f"{level.state.value}: {'; '.join(level.reasons)}"
    return f"{level.answered_rate:,.0f}; {level.latency[0].ms:.3g} ms"


def main(folder: Path, engines: list[str]) -> None:
    """A line of the table for each engine, as it comes."""
    for engine in engines or ENGINES:
        with tempfile.TemporaryDirectory() as name, started(engine, folder, Path(name)) as what:
            plan = Plan(clients=CLIENTS, seconds=10.0, limit=Limit.parse(LIMIT), max_minutes=4.0)
            result = load(what, folder, plan, out=Path(name) / "load")
        cells = [cell(level.result) for level in result.levels[: len(CLIENTS)]]
        if (found := result.capacity) is not None:
            cells.append(
                f"{found.keeps} to {found.breaks}{' (rough)' * found.rough} {found.reason}"
            )
        print(f"| {engine} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
