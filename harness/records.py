"""What a run leaves on disk: one folder, written once, complete or not at all.

The layout is versioned by ``schema_version`` (see :mod:`harness.summary`); a folder of a newer
version is refused with a clear message, never half understood.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from harness import secrets, trec
from harness.errors import ConfigError, RecordError
from harness.evaluation import Evaluation, Mean
from harness.measure.runner import Timings
from harness.metrics import parse_metrics
from harness.run import Rankings, Run
from harness.summary import SCHEMA_VERSION

SUMMARY = "summary.json"
MANIFEST = "manifest.json"
TREC_RUN = "run.trec"
RANKINGS = "rankings.npz"
PER_QUERY = "per_query.csv"
TIMINGS = "timings.npz"

DEFAULT_ROOT = Path("results") / "runs"


def check_destination(out: Path | None) -> None:
    """Find out before the measurement whether a run can be written.

    Raises:
        RecordError: ``out`` already holds something, or its parent cannot be written to.
    """
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        what = "already holds a run" if (out / SUMMARY).exists() else "is not empty"
        raise RecordError(
            f"output folder {what}",
            where=str(out),
            accepted="a folder that does not exist yet, or an empty one",
            fix="name another folder with --out, or leave it out for a new one in results/runs",
        )
    parent = DEFAULT_ROOT if out is None else out.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(tempfile.mkdtemp(prefix=".probe-", dir=parent))
    except OSError as problem:
        raise _cannot_write(parent, problem) from None


def write_run(run: Run, out: Path | None = None) -> Run:
    """Save ``run`` as one folder, atomically; gives it with ``run_id`` and ``folder`` filled.

    Args:
        out: exactly this folder; None = a new one under ``results/runs``, named after time,
            retriever, dataset and a hash of the content.

    Raises:
        RecordError: nothing was written; disk full, read-only, or the folder is taken.
    """
    check_destination(out)
    created = datetime.now(UTC)
    run_id = "-".join(
        (
            created.strftime("%Y%m%dT%H%M%SZ"),
            _slug(run.name),
            _slug(str(run.summary["dataset"]["name"])),
            _content_hash(run),
        )
    )
    target = out.absolute() if out is not None else (DEFAULT_ROOT / run_id).absolute()
    summary = secrets.redact({"run_id": run_id, **run.summary})
    manifest = secrets.redact(
        {"run_id": run_id, "created": created.isoformat(timespec="seconds"), **run.manifest}
    )
    temporary = target.parent / f".tmp-{os.getpid()}-{run_id}"
    try:
        temporary.mkdir()
        _write_files(temporary, run, summary, manifest)
        temporary.replace(target)
    except OSError as problem:
        raise _cannot_write(target, problem) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Run(summary, manifest, run.rankings, run.status, run.timings, run.evaluation, target)


def read_run(folder: Path) -> Run:
    """The run in ``folder``.

    Raises:
        RecordError: no run there, written by a newer version, or damaged (which file, and how).
    """
    summary = _read_json(folder / SUMMARY)
    version = summary.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RecordError(
            f"run of schema version {version}",
            where=str(folder / SUMMARY),
            accepted=f"versions up to {SCHEMA_VERSION}",
            fix="read it with the version of retrieval-bench that wrote it, or a newer one",
        )
    try:
        with (folder / RANKINGS).open("rb") as file, np.load(file) as arrays:
            rankings = Rankings(
                tuple(arrays["query_ids"].tolist()),
                tuple(arrays["doc_ids"].tolist()),
                arrays["ranking"],
                arrays["scores"],
                {n[10:]: arrays[n] for n in arrays.files if n.startswith("leg_ranks:")},
                {n[11:]: arrays[n] for n in arrays.files if n.startswith("leg_scores:")},
            )
        with (folder / TIMINGS).open("rb") as file, np.load(file) as arrays:
            timings = Timings(
                arrays["wall_ns"],
                arrays["round"],
                arrays["position"],
                arrays["query"],
                arrays["failed"],
                {n[6:]: arrays[n] for n in arrays.files if n.startswith("stage:")},
            )
        status, evaluation = _read_per_query(folder / PER_QUERY, summary, rankings.query_ids)
    except ConfigError as problem:
        raise RecordError(
            f"run with a metric that is not known here: {problem.given}",
            where=str(folder),
            fix="install the package that registers this metric",
        ) from None
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as problem:
        raise RecordError(
            f"run folder is damaged: {type(problem).__name__}: {problem}",
            where=str(folder),
            fix="measure again; a folder is written completely or not at all, so something "
            "changed it afterwards",
        ) from None
    return Run(
        summary, _read_json(folder / MANIFEST), rankings, status, timings, evaluation, folder
    )


def _write_files(
    folder: Path, run: Run, summary: Mapping[str, Any], manifest: Mapping[str, Any]
) -> None:
    rankings, timings = run.rankings, run.timings
    _write_json(folder / MANIFEST, manifest)
    trec.write_run(
        folder / TREC_RUN,
        {query_id: rankings.row(at) for at, query_id in enumerate(rankings.query_ids)},
        _slug(run.name),
    )
    arrays: dict[str, Any] = {
        "query_ids": np.array(rankings.query_ids, dtype=np.str_),
        "doc_ids": np.array(rankings.doc_ids, dtype=np.str_),
        "ranking": rankings.ranking,
        "scores": rankings.scores,
        **{f"leg_ranks:{leg}": values for leg, values in rankings.leg_ranks.items()},
        **{f"leg_scores:{leg}": values for leg, values in rankings.leg_scores.items()},
    }
    np.savez_compressed(folder / RANKINGS, **arrays)
    calls: dict[str, Any] = {
        "wall_ns": timings.wall_ns,
        "launch": np.zeros(len(timings.wall_ns), dtype=np.int32),
        "round": timings.round,
        "position": timings.position,
        "query": timings.query,
        "failed": timings.failed,
        **{f"stage:{stage}": values for stage, values in timings.stages.items()},
    }
    np.savez_compressed(folder / TIMINGS, **calls)
    _write_per_query(folder / PER_QUERY, run)
    _write_json(folder / SUMMARY, summary)


def _write_per_query(path: Path, run: Run) -> None:
    evaluated = {query_id: at for at, query_id in enumerate(run.evaluation.query_ids)}
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("query_id", "status", "metric", "value"))
        for query_id, status in zip(run.rankings.query_ids, run.status, strict=True):
            at = evaluated.get(query_id)
            shown = secrets.redact(status)
            if at is None:
                rows.writerow((query_id, shown, "", ""))
                continue
            for metric, value in zip(
                run.evaluation.metrics, run.evaluation.per_query[at].tolist(), strict=True
            ):
                rows.writerow((query_id, shown, metric, repr(value)))


def _read_per_query(
    path: Path, summary: Mapping[str, Any], query_ids: Sequence[str]
) -> tuple[tuple[str, ...], Evaluation]:
    status: dict[str, str] = {}
    values: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            status[row["query_id"]] = row["status"]
            if row["metric"]:
                values.setdefault(row["query_id"], {})[row["metric"]] = float(row["value"])
    names = list(summary["metrics"])
    means = tuple(
        Mean(
            float("nan") if entry["mean"] is None else entry["mean"],
            None if entry["ci95"] is None else (entry["ci95"][0], entry["ci95"][1]),
            entry["n"],
        )
        for entry in summary["metrics"].values()
    )
    per_query = np.array(
        [[row[name] for name in names] for row in values.values()], dtype=np.float64
    ).reshape(len(values), len(names))
    evaluation = Evaluation(tuple(values), parse_metrics(names), per_query, means)
    return tuple(status[query_id] for query_id in query_ids), evaluation


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(_finite(content), ensure_ascii=False, indent=2, default=str)
    path.write_text(text + "\n", encoding="utf-8")


def _finite(value: Any) -> Any:
    """JSON has no word for NaN and infinity: they become text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(
            f"no {path.name} in the folder",
            where=str(path.parent),
            accepted="a run folder, as `retrieval-bench bench` writes it",
            fix="check the path; runs lie in results/runs",
        ) from None
    except (OSError, ValueError) as problem:
        raise RecordError(f"unreadable: {problem}", where=str(path)) from None
    if not isinstance(content, dict):
        raise RecordError("not a JSON object", where=str(path))
    return content


def _cannot_write(path: Path, problem: OSError) -> RecordError:
    return RecordError(
        f"cannot write the run: {problem.strerror or problem}",
        where=str(path),
        accepted="a folder with free space that you may write to",
        fix="free some space, or name another place with --out",
    )


def _content_hash(run: Run) -> str:
    digest = hashlib.sha256(json.dumps(run.manifest, sort_keys=True, default=str).encode())
    digest.update(run.rankings.ranking.tobytes())
    digest.update(run.timings.wall_ns.tobytes())
    return digest.hexdigest()[:8]


def _slug(name: str) -> str:
    return re.sub(r"[^\w.+-]+", "_", name).strip("._") or "run"
