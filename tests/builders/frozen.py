"""The documents that are kept frozen: the commands that print them, and their keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1] / "golden" / "frozen"

READING: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "bm25", "words", "hybrid", "--tests", "t", "wilcoxon"),
    "compare-failed": ("compare", "bm25", "flaky", "--margin", "0.05"),
    "compare-unlike": ("compare", "bm25", "launches"),
    "compare-baseline": ("compare", "bm25", "words", "other", "hybrid", "--baseline", "words"),
    "compare-slices": ("compare", "bm25", "words", "--slices", "length", "relevant"),
    "diff": ("diff", "bm25", "words"),
    "diff-hybrid": ("diff", "hybrid", "--queries", "5"),
    "diff-other": ("diff", "words", "hybrid", "--sort", "better", "--queries", "all"),
    "evaluate": ("evaluate", "--run", "hybrid", "--dataset", "science-ko-mini", "--per-query",
                 "--metrics", "nDCG@10", "AP", "RR", "RBP(p=0.8)", "Judged@10"),
    "evaluate-scienceqa": ("evaluate", "--run", "bm25/run.trec", "--dataset", "science-ko-mini",
                           "--convention", "scienceqa"),
    "audit": ("audit", "--dataset", "science-ko-mini", "bm25/run.trec", "words/run.trec",
              "hybrid/run.trec", "--k", "5"),
    "reader": ("reader", "--gold", "gold.json", "--predictions", "answers.json", "--per-question"),
    "outcomes": ("outcomes", "--records", "labels.jsonl"),
    "history": ("history", "--no-pictures"),
    "history-one": ("history", "--retriever", "bm25", "--no-pictures"),
}  # fmt: skip

QUICK = ("--dataset", "science-ko-mini", "--k", "5")
ONCE = ("--rounds", "1", "--warm-up", "0", "--no-pictures")
MEASURING: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "bench": ("bench", "--retriever", "hybrid.yaml", *QUICK, *ONCE),
    "bench-dry": ("bench", "--retriever", "bm25", *QUICK, "--dry-run"),
    "bench-launches": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--launches", "1"),
    "bench-cold": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--cold", "1"),
    "bench-tutorial": ("bench", "--retriever", "bm25", *QUICK, "--protocol", "tutorial"),
    "compare": ("compare", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE),
    "report": ("report", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE),
    "tune": ("tune", "--retriever", "bm25", "--grid", "k1=[0.9,1.5]", "--folds", "2", *QUICK),
    "baseline": (
        "baseline",
        "--retriever",
        "bm25",
        *QUICK,
        "--min-calls",
        "40",
        "--policy",
        "policy.yaml",
    ),
    "regress": (
        "regress",
        "--retriever",
        "bm25",
        *QUICK,
        "--duet",
        "never",
        "--policy",
        "policy.yaml",
    ),
    "submit": ("submit", "--retriever", "bm25", *QUICK),
    "qa": ("qa", "--retriever", "bm25", "--reader", "answers.json", "--dataset", "squad"),
}

_MAPS = ("metrics", "queries", "packages", "memory_limits", "values", "parameters", "params")
"""Keys below which names are data."""


NULL = "null"


def paths_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every key of a document with the type of its value, however deep."""
    if isinstance(value, dict):
        inner = path.rpartition(".")[2]  # of a list of records the keys are ours
        for key, item in value.items():
            yield from paths_of(item, f"{path}.{'*' if inner in _MAPS else key}".lstrip("."))
    elif isinstance(value, list):
        yield path, "list"
        if path.rpartition(".")[2] == "warnings":  # there may be none the next time
            assert all(set(item) == {"code", "text"} for item in value)
            return
        for item in value:  # of one of plain values it may be empty the next time
            if isinstance(item, dict | list):
                yield from paths_of(item, f"{path}[]")
    elif value is None:
        yield path, NULL
    else:
        kinds = {str: "text", bool: "truth"}
        yield path, kinds.get(type(value), "number")
