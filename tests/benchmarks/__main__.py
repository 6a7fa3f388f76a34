"""``python -m tests.benchmarks``: measures and prints; ends with 0 whatever the figures are."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from retrieval_bench.measure.environment import machine, packages
from retrieval_bench.reports.render import terminal
from tests.benchmarks.report import Group, Options, Row

GROUPS = (
    "startup",
    "search",
    "build",
    "dense",
    "overhead",
    "scoring",
    "compare",
    "programs",
    "mcp",
    "plugin",
    "judged",
    "chunks",
)
"""Modules beside this one, each with ``measure(options)``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the groups that were asked for, printing each as soon as it is done."""
    asked = _parser().parse_args(arguments)
    options = Options(quick=asked.quick, full=asked.full)
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 120)
    record: dict[str, Any] = {"quick": options.quick, "full": options.full} | _surroundings()
    facts = record["machine"]
    console.print(f"{facts['processor']}, {facts['usable_cores']} cores, {facts['python']}")
    if options.quick:
        console.print("quick: sizes of a smoke run, the figures mean nothing, no target is judged")
    record["groups"] = {}
    judged: list[tuple[str, Row]] = []
    for name in dict.fromkeys(asked.only):
        start, load = time.perf_counter(), _load()
        group: Group = importlib.import_module(f"tests.benchmarks.{name}").measure(options)
        group = group.without_targets() if options.quick else group
        terminal.to_console([group.table()], console)
        seconds = time.perf_counter() - start
        console.print(f"{name}: {seconds:.0f} s; load of the machine {load} -> {_load()}\n")
        record["groups"][name] = group.as_dict() | {"seconds": seconds}
        judged += [(name, row) for row in group.rows if row.met is not None]
    console.print(_conclusion(judged))
    if asked.json is not None:
        text = json.dumps(record, indent=2, ensure_ascii=False)
        asked.json.write_text(text + "\n", encoding="utf-8")
    return 0


def _conclusion(judged: Sequence[tuple[str, Row]]) -> str:
    missed = [
        f"{name}: {row.what}" + (f" (beside {row.beside})" if row.beside else "")
        for name, row in judged
        if not row.met
    ]
    kept = f"{len(judged) - len(missed)} of {len(judged)} targets met"
    return "\n  MISSED ".join([kept, *missed])


def _surroundings() -> dict[str, Any]:
    return {"machine": machine(), "packages": packages(), "load": _load()}


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="NAME", help=", ".join(GROUPS)
    )
    parser.add_argument("--quick", action="store_true", help="smallest sizes: does it still run?")
    parser.add_argument(
        "--full", action="store_true", help="dense on all of scifact (minutes; needs BENCH_DATA)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
