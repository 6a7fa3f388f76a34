"""The commands that print JSON documents: those frozen to the byte, and those that measure.

A case carries the name of its document, some with a hyphen and what is special about them.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parents[1] / "golden" / "frozen"

READING: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "bm25", "words", "hybrid", "--tests", "t", "wilcoxon"),
    "compare-failed": ("compare", "bm25", "flaky", "--margin", "0.05"),
    "diff": ("explain", "bm25", "words"),
    "diff-hybrid": ("explain", "hybrid", "--queries", "2"),
    "evaluate": ("score", "run", "--run", "hybrid", "--dataset", "science-ko-mini", "--per-query",
                 "--metrics", "nDCG@10", "AP", "RR", "RBP(p=0.8)", "Judged@10"),
    "audit": ("score", "audit", "--dataset", "science-ko-mini", "bm25/run.trec", "words/run.trec",
              "hybrid/run.trec", "--k", "5"),
    "scorer": ("score", "audit", "--scorer", "scorers.py:share_found"),
    "table": ("score", "audit", "--table", "published.csv", "--sd", "nDCG@10=0.3"),
    "export": ("data", "export", "science-ko-mini", "--to", "quepid", "--out", "out"),
    "export-run": ("data", "export", "bm25", "--to", "ir_metadata", "--out", "bm25.trec"),
    "reproduce": ("lab", "reproduce", "--paper", "paper.yaml"),
    "reader": ("score", "reader", "--gold", "gold.json", "--predictions", "answers.json",
               "--per-question"),
    "outcomes": ("score", "outcomes", "--records", "labels.jsonl"),
    "history": ("data", "history", "--no-pictures"),
}  # fmt: skip

ALSO_CSV = ("compare", "diff", "evaluate")
"""Reading commands of which CSV is frozen, too: means, differences, and queries."""

QUICK = ("--dataset", "science-ko-mini", "--k", "5")
SEVERAL = ("--retrievers", "bm25", "hybrid.yaml", "--dataset", "science-ko-mini", "tiny")
ONCE = ("--rounds", "1", "--warm-up", "0", "--no-pictures")
MEASURING: dict[str, tuple[str, ...]] = {
    "list": ("data", "list"),
    "target": ("data", "list", "pipeline"),
    "schemas": ("data", "schema"),
    "bench": ("bench", "--retriever", "hybrid.yaml", *QUICK, *ONCE),
    "bench-filters": ("bench", "--retriever", "bm25", "--dataset", "filtered", "--k", "2", *ONCE),
    "bench-failing": (
        "bench",
        "failing.yaml",
        "--dataset",
        "filtered",
        "--k",
        "2",
        "--warm-up",
        "0",
        "--rounds",
        "2",
        "--no-pictures",
    ),
    "bench-parts": ("bench", "paid.yaml", "--dataset", "filtered", "--k", "2", *ONCE),
    "bench-selves": (
        *("bench", "bm25", "--dataset", "selves", "--self-hits", "drop", "--k", "2"),
        *ONCE,
    ),
    "compare-selves": (
        *("compare", "--retrievers", "bm25", "whitespace.yaml", "--dataset", "selves"),
        *("--self-hits", "drop", "--k", "2"),
        *ONCE,
    ),
    "bench-unjudged": ("bench", "bm25", "--dataset", "unjudged", "--k", "2", *ONCE),
    "parts": (
        *("explain", "paid.yaml", "--by", "stage", "--dataset", "filtered"),
        *("--k", "2", "--rounds", "1"),
    ),
    "losses": (
        *("explain", "shrunk.py:Shrunk", "--by", "loss", "--dataset", "filtered"),
        *("--k", "2", "--rounds", "1"),
    ),
    "sweep": (
        *("bench", "partly.py:Partly", "--sweep", "eighths=2,8", "--dataset", "filtered"),
        *("--k", "2", "--filters", "100", *ONCE),
    ),
    "bench-ties": ("bench", "constant.yaml", "--dataset", "filtered", "--k", "2", *ONCE),
    "bench-launches": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--launches", "1"),
    "cold": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--cold", "1"),
    "load": (
        *("load", "bm25", "--dataset", "filtered", "--k", "2", "--rate", "20", "--clients", "1"),
        *("--duration", "0.5", "--warm-up", "0"),
    ),
    "load-soak": (
        *("load", "bm25", "--dataset", "filtered", "--k", "2", "--clients", "1", "--soak"),
        *("--duration", "0.5", "--warm-up", "0"),
    ),
    "loads": ("compare", "bm25@load", "@load"),
    "plan": ("bench", "--retriever", "bm25", *QUICK, "--dry-run"),
    "probe": ("bench", "--retriever", "bm25", "--dataset", "filtered", "--probe", "2"),
    "plan-several": ("compare", *SEVERAL, "--dry-run"),
    "tutorial": ("bench", "--retriever", "bm25", *QUICK, "--protocol", "tutorial"),
    "compare": ("compare", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE),
    "compare-slices": ("compare", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE, "--slices"),
    "compare-datasets": ("compare", *SEVERAL, "--k", "5", *ONCE),
    "compare-unjudged": (
        *("compare", "--retrievers", "bm25", "whitespace.yaml", "--dataset", "unjudged"),
        *("--k", "2"),
        *ONCE,
    ),
    "compare-until": (
        "compare",
        "--retrievers",
        "bm25",
        "hybrid.yaml",
        *QUICK,
        "--no-pictures",
        "--until-decided",
    ),
    "report": ("report", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE),
    "verify": ("report", "--verify", "results/report.html"),
    "tune": ("tune", "--retriever", "bm25", "--grid", "k1=[0.9,1.5]", "--folds", "2", *QUICK),
    "tune-words": (
        "tune",
        "--retriever",
        "bm25",
        "--grid",
        "tokenizer=[word,whitespace]",
        "--folds",
        "2",
        *QUICK,
    ),
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
    "duet": ("duet", "bm25", "hybrid.yaml", *QUICK, "--seconds", "0.05", "--most", "0.2"),
    "selftest": ("lab", "selftest", "--time", "0.1", "--dataset", "science-ko-mini"),
    "doctor": ("doctor", "bm25", "--dataset", "science-ko-mini"),
    "index": ("data", "index", "bm25", "--dataset", "tiny", "--set", "k1=1.7"),
    "encoded": ("data", "encode", "hashed.yaml", "--dataset", "tiny", "--out", "blocks"),
    "cache": ("data", "cache"),
    "loaded": ("data", "load", "science-ko-mini", "--into", "memory://here"),
    "loaded-vectors": ("data", "load", "tiny", "--into", "memory://here", "--encoder", "any"),
    "pool": ("label", "pool", "hybrid.yaml", "whitespace.yaml", "--dataset", "unjudged"),
    "status": ("label", "status"),
    "started": ("label", "start", "--offline", "ben.html", "--who", "chen"),
    "imported": ("label", "import", "ben.txt", "--who", "ben"),
    "exported": ("label", "export", "--out", "judged"),
    "questions": (
        *("label", "questions", "log.csv", "--dataset", "unjudged", "--n", "2", "--out", "asked"),
    ),
    "fetch": ("data", "fetch", "ir_datasets:rb-own/test"),
    "fetch-missing": ("data", "fetch", "ir_datasets:rb-own/far"),
    "error": ("bench", "nothing", "--dataset", "science-ko-mini"),
    "submit": ("lab", "submit", "--retriever", "bm25", *QUICK),
    "qa": ("score", "qa", "--retriever", "bm25", "--reader", "answers.json", "--dataset", "squad"),
}
