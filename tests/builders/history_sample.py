"""Folders of runs and duets as they are saved, with what a test wants to be otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from retrieval_bench_regress.history import Subject
from retrieval_bench_regress.history.facts import Figure, Same, SavedRun

COMMITS = [f"{at:x}" * 40 for at in range(1, 16)]

MACHINE = {"fingerprint": "aaaa11112222", "processor": "Tester", "usable_cores": 2}


def save_run(root: Path, day: int, **other: Any) -> Path:
    """One run of day ``day``.

    Args:
        other: ``commit`` (a number of :data:`COMMITS`, or None), ``dirty``, ``config``, ``params``,
            ``p50``, ``mean``, ``retriever``, ``dataset``, ``fingerprint``, ``k``, ``machine``,
            ``protocol``, ``beside``, ``status``, ``run_id``, ``source``,
            ``overrides``, ``threads``, ``chunk``, ``target``, ``split``, ``convention``,
            ``metrics_version``,
            ``data`` (where the dataset was found).
    """
    get = other.get
    name, run_id = get("retriever", "bm25"), get("run_id", f"run-{day:03}")
    commit = get("commit", 0)
    p50 = get("p50", 2.0)
    summary = {
        "schema_version": 1,
        "status": get("status", "complete"),
        "run_id": run_id,
        "retriever": name,
        "dataset": {
            "name": get("dataset", "tiny"),
            "split": get("split", "test"),
            "fingerprint": get("fingerprint", "f" * 32),
        },
        "k": get("k", 10),
        "convention": get("convention", "trec"),
        "metrics_version": get("metrics_version", 1),
        "metrics": {
            "nDCG@10": {"mean": get("mean", 0.5), "ci95": [0.4, 0.6], "n": 9},
            "R@10": {"mean": 0.25, "ci95": None, "n": 9},
        },
        "latency_ms": {
            "mean": p50,
            "p50": {"value": p50, "ci95": None if p50 is None else [0.9 * p50, 1.2 * p50]},
            "p95": {"value": None, "ci95": None, "reason": "too few calls"},
            "mix": {"p50": {"value": 77.0, "ci95": None}},
        },
        "n_failed": 0,
    }
    git = None if commit is None else {"commit": COMMITS[commit], "dirty": get("dirty", False)}
    manifest = {
        "run_id": run_id,
        "created": f"2026-01-{1 + day // 24:02}T{day % 24:02}:00:00+00:00",
        "retriever": {
            "name": name,
            "target": get("target", "bm25"),
            "source": get("source", f"/somewhere/configs/retrievers/{name}.yaml"),
            "params": get("params", {"k1": 0.9}),
            "hash": get("config", "c1c1c1c1"),
            "overrides": get("overrides", []),
            "chunk": get("chunk"),
        },
        "dataset": {"name": get("dataset", "tiny"), "source": get("data")},
        "protocol": {"profile": "default", "levels": [50.0], "rounds": 7, **get("protocol", {})},
        "environment": {
            "machine": MACHINE | get("machine", {}),
            "threads": get("threads", 1),
            "git": git,
        },
        "beside": get("beside", []),
    }
    return _save(root / run_id, {"summary.json": summary, "manifest.json": manifest})


def save_duet(root: Path, day: int, **other: Any) -> Path:
    """One duet: ``ratio``, ``verdict``, ``retriever``, ``pinned`` and ``commit`` (numbers of
    :data:`COMMITS`, or None)."""
    get = other.get
    name = get("retriever", "bm25")
    pinned, commit, ratio = get("pinned", 0), get("commit", 1), get("ratio", 1.0)
    sides: list[dict[str, Any]] = [
        {
            "name": f"{name} at {label}",
            "retriever": name,
            "place": label,
            "commit": None if at is None else COMMITS[at],
            "overrides": [],
            "config": {},
        }
        for label, at in (("main", pinned), ("WORKTREE" if commit is None else "topic", commit))
    ]
    document = {
        "schema_version": 1,
        "duet_id": f"duet-{day:03}",
        "created": f"2026-02-01T{day:02}:00:00+00:00",
        "verdict": get("verdict", "PASS"),
        "a": sides[0],
        "b": sides[1],
        "dataset": {"name": "tiny", "fingerprint": "f" * 32, "split": "test", "k": 10},
        "gates": [
            {"gate": "p50", "ratio": ratio, "interval": [ratio - 0.01, ratio + 0.01]},
            {"gate": "p95", "ratio": None, "interval": None},
        ],
        "environment": {"machine": MACHINE, "threads": 1},
    }
    return _save(root / f"duet-{day:03}", {"duet.json": document})


def _save(folder: Path, files: dict[str, Any]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return folder


def many(n: int = 3, *, name: str = "bm25", alone: int = 0) -> Subject:
    """Runs that have a p50, the last ``alone`` of them each with a key of its own."""
    runs = tuple(
        SavedRun(
            id=f"run-{at:03}",
            folder=Path(f"run-{at:03}"),
            created=f"2026-01-{1 + at % 28:02}T00:00:00+00:00",
            retriever=name,
            source=name,
            dataset="tiny",
            data="tiny",
            status="complete",
            failed=0,
            commit=f"{at:07x}" * 5,
            dirty=False,
            revision=f"{at:07x}",
            config=None,
            params={},
            machine="a machine",
            metrics={},
            latency={"p50": Figure(2.0 + at / n, (1.9, 3.1))},
            same_quality=None,
            same_times=Same({"line": at if at >= n - alone else -1}),
        )
        for at in range(n)
    )
    return Subject(name, "tiny", runs, (), (), n, 0)
