"""Engines over a large corpus: time and memory of a build, bytes of the index, p50 and p95.

``python -m tests.benchmarks.million --documents 10000 100000 --engines bm25 bm25s tantivy``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from retrieval_bench_pictures import vega
from retrieval_bench_pictures.draw import svg
from tests.benchmarks import one_engine, zipf_files

ENGINES = ("bm25", "bm25s", "turbo", "tantivy", "pisa")
_CURVES = {
    "build_s": ("build (s)", 1),
    "peak_bytes": ("peak memory of the build (MB)", 1e-6),
    "index_bytes": ("index (MB)", 1e-6),
    "p50_s": ("p50 of a search (ms)", 1e3),
    "p95_s": ("p95 of a search (ms)", 1e3),
}
_HEADER = (
    "documents",
    "engine",
    "build s",
    "cpu s",
    "peak MB",
    "index MB",
    "p50 ms",
    "p95 ms",
    "rankings",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each size and engine."""
    asked = _parser().parse_args(arguments)
    if asked.svg:
        lines = asked.json.read_text(encoding="utf-8").splitlines()
        asked.svg.write_text(picture([json.loads(line) for line in lines]), encoding="utf-8")
        return
    print("  ".join(f"{word:>16}" for word in _HEADER), flush=True)
    for n in asked.documents:
        for engine in asked.engines:
            python = {"other": asked.other}.get(engine, sys.executable)
            row = {"documents": n, "engine": engine}
            row |= measured(engine, n, asked.folder, str(python), asked.k)
            print("  ".join(f"{_shown(value):>16}" for value in row.values()), flush=True)
            if asked.json:
                with asked.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def measured(engine: str, n: int, folder: Path, python: str, k: int) -> dict[str, Any]:
    """One engine in a fresh process; times in seconds, sizes in bytes."""
    corpus = zipf_files.documents(folder, n)
    asked = [query.text for query in zipf_files.queries()]
    with tempfile.TemporaryDirectory() as work:
        spec = {
            "engine": "bm25" if engine == "other" else engine,
            "documents": str(corpus.path),
            "n": n,
            "queries": asked,
            "k": k,
            "folder": work,
        }
        command = [python, "-P", one_engine.__file__, json.dumps(spec)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=work) as process:
            watch = Watch(process.pid)
            watch.start()
            said: list[dict[str, Any]] = []
            for line in process.stdout or ():
                with suppress(ValueError):
                    said.append(json.loads(line))
                    watch.over.set()
            watch.over.set()
    if len(said) < 2:
        raise SystemExit(f"{engine} over {n:,} documents ended with {process.returncode}")
    built, searched = said[0], said[-1]
    return {
        "build_s": built["build_s"],
        "cpu_s": built["cpu_s"],
        "peak_bytes": watch.most,
        "index_bytes": built["bytes"],
        "p50_s": searched["p50_s"],
        "p95_s": searched["p95_s"],
        "rankings": searched["rankings"],
    }


class Watch(threading.Thread):
    """The highest sum of the proportional set sizes (bytes) of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.over = threading.Event()
        self._pid = pid

    def run(self) -> None:
        """Look ten times a second until it is over."""
        while not self.over.wait(0.1):
            self.most = max(self.most, sum(map(_pss, _family(self._pid))))


def _family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text(encoding="ascii").split():
                found += _family(int(child))
    return found


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def picture(rows: Sequence[dict[str, Any]]) -> str:
    """SVG: build, memory, bytes, p50 and p95 against the number of documents, both axes
    logarithmic; the last line of an engine and size counts."""
    latest = {(row["engine"], row["documents"]): row for row in rows}
    engines = list(dict.fromkeys(engine for engine, _ in latest))
    color, dash, shape = vega.told_apart(engines, key={})
    sizes = [n for _, n in latest]
    across = _log(sizes)
    views = []
    for key, (what, factor) in _CURVES.items():
        points = [
            {"system": engine, "documents": n, "value": row[key] * factor}
            for (engine, n), row in sorted(latest.items(), key=lambda item: item[0][1])
            if row[key] == row[key]
        ]
        encoding = {
            "x": vega.axis(
                "documents", across, "documents", values=sorted(set(sizes)), labelOverlap=False
            ),
            "y": vega.axis("value", _log([point["value"] for point in points]), what),
        }
        lines = vega.mark("line", None, {"color": color, "strokeDash": dash})
        marks = vega.mark("point", None, {"color": color, "shape": shape}, size=25)
        views.append(
            {
                "width": 270,
                "height": 170,
                "data": {"values": points},
                "encoding": encoding,
                "layer": [lines, marks],
            }
        )
    said = [f"Cost of an index against its size: {', '.join(engines)}."]
    content = {"concat": views, "columns": 2}
    return svg(vega.picture(content, title="Cost against size", said=said, width=820))


def _log(values: Sequence[float]) -> vega.Spec:
    return {"type": "log", "domain": [min(values) / 1.3, max(values) * 1.3]}


def _shown(value: Any) -> str:
    if not isinstance(value, float):
        return f"{value / 1e6:,.0f}" if isinstance(value, int) and value > 10**7 else str(value)
    return f"{value:.1f}" if value > 1 else f"{value * 1e3:.3f}m"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.million", description=__doc__)
    parser.add_argument("--documents", nargs="+", type=int, default=[10_000, 100_000])
    parser.add_argument("--engines", nargs="+", choices=(*ENGINES, "other"), default=["bm25"])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument(
        "--other", type=Path, help="the interpreter of another revision, for the engine 'other'"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "zipf-files",
        help="where the corpora are kept",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="add each line there, too")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw what --json holds, and end")
    return parser


if __name__ == "__main__":
    main()
