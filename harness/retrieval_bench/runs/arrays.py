"""The two files of arrays in the folder of a run: rankings, and raw times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core.figures import visible
from retrieval_bench.measure.calls import Timings
from retrieval_bench.runs.run import Rankings

RANKINGS = "rankings.npz"
TIMINGS = "timings.npz"

_BY_NAME = (
    *("leg_ranks", "leg_scores", "leg_lists", "leg_list_scores"),
    *("step_lists", "step_list_scores", "without"),
)
"""Arrays of rankings that there is one of for each leg, step or part."""


def load_rankings(folder: Path) -> Rankings:
    """The rankings in the folder of a run.

    Raises:
        OSError, ValueError, LookupError, BadZipFile and others: missing or damaged.
    """
    with (folder / RANKINGS).open("rb") as file, np.load(file) as arrays:
        return Rankings(
            tuple(arrays["query_ids"].tolist()),
            tuple(arrays["doc_ids"].tolist()),
            arrays["ranking"],
            arrays["scores"],
            **{kind: _named(arrays, kind) for kind in _BY_NAME},
            step_texts={
                name: tuple(tuple(json.loads(one)) for one in texts.tolist())
                for name, texts in _named(arrays, "step_texts").items()
            },
        )


def _named(arrays: Any, kind: str) -> dict[str, Any]:
    """The arrays of one kind, by name."""
    prefix = f"{kind}:"
    return {n[len(prefix) :]: arrays[n] for n in arrays.files if n.startswith(prefix)}


def load_timings(folder: Path) -> Timings:
    """The times in the folder of a run.

    Raises:
        OSError, ValueError, LookupError, BadZipFile and others: missing or damaged.
    """
    with (folder / TIMINGS).open("rb") as file, np.load(file) as arrays:
        if flat := [name for name in arrays.files if arrays[name].ndim == 0]:
            raise ValueError(f"{TIMINGS} has single values in {', '.join(flat)}")
        return Timings(
            arrays["wall_ns"],
            arrays["round"],
            arrays["position"],
            arrays["query"],
            arrays["failed"],
            _named(arrays, "stage"),
            arrays["launch"],
            arrays["first_ns"] if "first_ns" in arrays.files else np.zeros((0, 0), np.int64),
            _named(arrays, "usage"),
        )


def write_arrays(folder: Path, rankings: Rankings, timings: Timings) -> None:
    """Write both files of arrays into ``folder``."""
    arrays: dict[str, Any] = {
        "query_ids": np.array(rankings.query_ids, dtype=np.str_),
        "doc_ids": np.array(rankings.doc_ids, dtype=np.str_),
        "ranking": rankings.ranking,
        "scores": rankings.scores,
        **{
            f"{kind}:{visible(name)}": values
            for kind in _BY_NAME
            for name, values in getattr(rankings, kind).items()
        },
        **{
            f"step_texts:{visible(name)}": np.array([json.dumps(each) for each in texts])
            for name, texts in rankings.step_texts.items()
        },
    }
    np.savez_compressed(folder / RANKINGS, **arrays)
    calls: dict[str, Any] = {
        "wall_ns": timings.wall_ns,
        "launch": timings.launch,
        "round": timings.round,
        "position": timings.position,
        "query": timings.query,
        "failed": timings.failed,
        "first_ns": timings.first_ns,
        **{f"stage:{visible(stage)}": values for stage, values in timings.stages.items()},
        **{f"usage:{visible(stage)}": values for stage, values in timings.usage.items()},
    }
    np.savez_compressed(folder / TIMINGS, **calls)
