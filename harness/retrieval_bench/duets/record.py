"""What a duet leaves on disk: one folder, written once, completely or not at all."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import RecordError
from retrieval_bench.duets.result import SCHEMA_VERSION, DuetResult
from retrieval_bench.runs.records import (
    DUET,
    TIMINGS,
    cannot_write,
    check_destination,
    new_folder,
    read_json,
    slug,
    to_json,
)

ROOT = Path("results") / "duets"
DOCUMENT = DUET


def check_place(out: Path | None) -> None:
    """Find out before the measurement whether a duet can be written; leaves no trace.

    Raises:
        RecordError: ``out`` is a file, already holds something, or cannot be written to.
    """
    check_destination(out, ROOT, "duet")


def write_duet(result: DuetResult, out: Path | None = None) -> Path:
    """Save the verdict and every time; gives the folder.

    Args:
        out: exactly this folder, new or empty; None = a new one under ``results/duets``.

    Raises:
        RecordError: nothing was written; disk full, read-only, or the folder is taken.
    """
    created = datetime.now(UTC)
    arrays = _arrays(result)
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays.values())).hexdigest()[:8]
    parts = (created.strftime("%Y%m%dT%H%M%SZ"), slug(str(result.b.get("retriever"))), digest)
    duet_id = "-".join(parts)
    check_place(out)
    folder = (out if out is not None else ROOT / duet_id).absolute()
    document = {"duet_id": duet_id, "created": created.isoformat(timespec="seconds")}
    document |= secrets.redact(json.loads(to_json(result.as_dict())))
    try:
        with new_folder(folder, duet_id) as new:
            np.savez_compressed(new / TIMINGS, **arrays)
            (new / DOCUMENT).write_text(to_json(document) + "\n", encoding="utf-8")
    except OSError as problem:
        raise cannot_write(folder, problem, "duet") from None
    return folder


def read_duet(folder: Path) -> dict[str, Any]:
    """The document of a saved duet.

    Raises:
        RecordError: missing, cut off, or written by a later version.
    """
    document = read_json(folder / DOCUMENT, "a folder of a duet, as `retrieval-bench duet`")
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise RecordError(
            f"schema_version {version}",
            where=str(folder / DOCUMENT),
            accepted=f"schema_version {SCHEMA_VERSION}",
            fix="read it with the version of retrieval-bench that wrote it",
        )
    return document


def _arrays(result: DuetResult) -> dict[str, Any]:
    """One row for each pair of calls: int64 nanoseconds of both sides, -1 where a call failed."""
    launched = result.launched
    if not launched:
        return {"wall_ns": np.zeros((2, 0), dtype=np.int64)}
    sizes = [one.wall_ns.shape[1] for one in launched]
    return {
        "wall_ns": np.concatenate([one.wall_ns for one in launched], axis=1),
        "launch": np.repeat(np.arange(len(launched), dtype=np.int32), sizes),
        "round": np.concatenate([one.round for one in launched]),
        "query": np.concatenate([one.query for one in launched]),
        "first": np.concatenate([one.first for one in launched]),
    }
