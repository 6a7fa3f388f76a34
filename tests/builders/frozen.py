"""The commands that print JSON documents: those frozen to the byte, and those that measure.

A case carries the name of its document, some with a hyphen and what is special about them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from retrieval_bench.cli import main
from tests.builders.files import save_all
from tests.builders.memory_store import add_memory_store
from tests.builders.own_irds import own_irds

HERE = Path(__file__).parents[1] / "golden" / "frozen"

READING: dict[str, tuple[str, ...]] = {
    "compare": ("compare", "bm25", "words", "hybrid", "--tests", "t", "wilcoxon"),
    "compare-failed": ("compare", "bm25", "flaky", "--margin", "0.05"),
    "diff": ("explain", "bm25", "words", "--queries", "5"),
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
        *("bench", "failing.yaml", "--dataset", "filtered", "--k", "2"),
        *("--warm-up", "0", "--rounds", "2", "--no-pictures"),
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
    "bench-spans": ("bench", "bm25+sentences-40", "--dataset", "spans", "--k", "2", *ONCE),
    "spans": ("explain", "@last", "--spans", "--token-price", "2"),
    "bench-ties": ("bench", "constant.yaml", "--dataset", "filtered", "--k", "2", *ONCE),
    "bench-launches": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--launches", "1"),
    "cold": ("bench", "--retriever", "bm25", *QUICK, *ONCE, "--cold", "1"),
    "writes": (
        *("bench", "writable.py:Writable", "--dataset", "filtered", "--k", "2"),
        *("--writes", "500", "--write-count", "30"),
    ),
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
        *("compare", "--retrievers", "bm25", "hybrid.yaml", *QUICK),
        *("--no-pictures", "--until-decided"),
    ),
    "report": ("report", "--retrievers", "bm25", "hybrid.yaml", *QUICK, *ONCE),
    "verify": ("report", "--verify", "results/report.html"),
    "tune": ("tune", "--retriever", "bm25", "--grid", "k1=[0.9,1.5]", "--folds", "2", *QUICK),
    "tune-words": (
        *("tune", "--retriever", "bm25", "--grid", "tokenizer=[word,whitespace]"),
        *("--folds", "2", *QUICK),
    ),
    "baseline": (
        *("baseline", "--retriever", "bm25", *QUICK),
        *("--min-calls", "40", "--policy", "policy.yaml"),
    ),
    "regress": (
        *("regress", "--retriever", "bm25", *QUICK),
        *("--duet", "never", "--policy", "policy.yaml"),
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
    "asked": ("label", "judge", "judge.py:grade", "--who", "gpt"),
    "judged_by": (
        *("compare", "hybrid.yaml", "whitespace.yaml", "--dataset", "unjudged", "--k", "2"),
        *("--judged-by", "results/labels/unjudged.sqlite", *ONCE),
    ),
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

RUNS = ("bm25", "words", "hybrid", "flaky", "launches", "other")
HYBRID = """
name: hybrid
target: hybrid
params:
  legs: [{name: bigrams, target: bm25}, {name: words, target: bm25, params: {k1: 0.9}}]
  depth: 20
"""
SPANS = {
    "documents.csv": "id,text\nd,The first sentence is here. The second sentence is there.\n",
    "spans.csv": "id,text,document,quote\nq,the second,d,second sentence is there\n",
}
POLICY = "limits: {p50: 5%, nDCG@5: -0.01}\n"


def put_files(folder: Path) -> None:
    """Copy saved runs, also to where `history` looks for them, and files that commands read."""
    for name in RUNS:
        shutil.copytree(HERE / "runs" / name, folder / name)
        shutil.copytree(HERE / "runs" / name, folder / "results" / "runs" / name)
    shutil.copytree(HERE / "files", folder, dirs_exist_ok=True)


@contextmanager
def prepared(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a command needs besides, while it works."""
    (folder / "hybrid.yaml").write_text(HYBRID, encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "squad").mkdir()
    (folder / "gold.json").rename(folder / "squad" / "test.json")
    save_all(folder / "spans", SPANS)
    if name == "spans":
        main([*MEASURING["bench-spans"]])
    if name == "loads":
        for words in (MEASURING["load"], (*MEASURING["load"], "--set", "k1=1.5")):
            main([*words])
    first = {"regress": MEASURING["baseline"], "verify": ("report", "bm25", "words")}.get(name)
    if first is not None:
        main([*first])
    if name in ("pool", "status", "started", "imported", "exported", "judged_by", "asked"):
        main([*MEASURING["pool"]])
        main(["label", "import", "anna.txt", "--who", "anna"])
    if name in ("pool", "status", "exported"):
        main([*MEASURING["imported"]])
    if name == "asked":
        (folder / "judge.py").write_text("def grade(query, document):\n    return 1\n", "utf-8")
    if name == "judged_by":
        main(["label", "import", "ben.txt", "--who", "gpt", "--kind", "model"])
    if name == "verify":  # of a page on which a figure was changed
        page = folder / "results" / "report.html"
        text = page.read_text("utf-8").replace('<td class="n">0.', '<td class="n">1.', 1)
        page.write_text(text, encoding="utf-8")
    if name == "selftest":  # half a minute of real processes
        from retrieval_bench_duet import controller
        from tests.builders.fake_sides import FakeSides

        monkeypatch.setattr(controller, "SideProcess", FakeSides())
        short = partial(controller.DuetProtocol, seconds=1e-9, warm_up_s=1e-9)
        monkeypatch.setattr("retrieval_bench_duet.selftest.DuetProtocol", short)
        monkeypatch.setattr("retrieval_bench_duet.selftest.REPLAYS", 20)
    if name.startswith("loaded"):
        add_memory_store(monkeypatch)
    with own_irds(folder, monkeypatch) if name.startswith("fetch") else nullcontext():
        yield
