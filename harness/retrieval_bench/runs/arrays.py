"""The two files of arrays in the folder of a run: rankings, and raw times."""

from __future__ import annotations

import csv
import json
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from retrieval_bench.core.calls.usage import FIELDS
from retrieval_bench.core.figures import visible
from retrieval_bench.measure.calls import Timings
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.run import Rankings

RANKINGS = "rankings.npz"
TIMINGS = "timings.npz"

DAMAGED = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, EOFError),
    *(MemoryError, OverflowError, BadZipFile, zlib.error, csv.Error),
)
"""What reading the files of a run may raise where something changed them."""

_BY_NAME = (
    *("leg_ranks", "leg_scores", "leg_lists", "leg_list_scores"),
    *("step_lists", "step_list_scores", "without"),
)
"""Arrays of rankings that there is one of for each leg, step or part."""


def load_rankings(folder: Path) -> Rankings:
    """The rankings in the folder of a run.

    Raises:
        DAMAGED: missing or damaged.
    """
    with (folder / RANKINGS).open("rb") as file, np.load(file) as arrays:
        rankings = Rankings(
            _texts(arrays["query_ids"]),
            _texts(arrays["doc_ids"]),
            arrays["ranking"],
            arrays["scores"],
            **{kind: _named(arrays, kind) for kind in _BY_NAME},
            step_texts={
                name: tuple(tuple(json.loads(text)) for text in _texts(texts))
                for name, texts in _named(arrays, "step_texts").items()
            },
            clusters=_texts(arrays["clusters"]) if "clusters" in arrays.files else (),
        )
    _check_rankings(rankings)
    return rankings


def _texts(array: Any) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind != "U":
        raise ValueError(f"{RANKINGS} has ids or texts of type {array.dtype}, {array.ndim}-D")
    return tuple(array.tolist())


def _check_rankings(rankings: Rankings) -> None:
    """Refuse arrays of other shapes and types than :class:`Rankings` says, and positions of
    documents that there are none of.

    Raises:
        ValueError: one is found.
    """
    n_queries, n_documents = len(rankings.query_ids), len(rankings.doc_ids)
    positions = {"ranking": rankings.ranking} | {
        f"{kind}:{name}": rows
        for kind in ("leg_lists", "step_lists", "without")
        for name, rows in getattr(rankings, kind).items()
    }
    numbers = {"scores": rankings.scores} | {
        f"{kind}:{name}": rows
        for kind in ("leg_scores", "leg_list_scores", "step_list_scores", "leg_ranks")
        for name, rows in getattr(rankings, kind).items()
    }
    for name, rows in (positions | numbers).items():
        kinds = "i" if name in positions or name.startswith("leg_ranks") else "f"
        if rows.ndim != 2 or len(rows) != n_queries or rows.dtype.kind not in kinds:
            raise ValueError(
                f"{RANKINGS}: {visible(name)} is {rows.dtype} {rows.shape} for {n_queries} queries"
            )
    if len(rankings.clusters) not in (0, n_queries):
        raise ValueError(f"{RANKINGS}: clusters of other queries")
    ranking = rankings.ranking
    if ranking.size and (ranking.max() >= n_documents or ranking.min() < NONE):
        raise ValueError(f"{RANKINGS}: a ranking has a position without a document")
    like = dict.fromkeys(("leg_ranks", "leg_scores"), rankings.ranking)
    pairs = [("scores", rankings.scores, rankings.ranking)]
    pairs += [
        (f"{kind}:{name}", rows, ranking)
        for kind, ranking in like.items()
        for name, rows in getattr(rankings, kind).items()
    ]
    for kind in ("leg", "step"):
        lists = getattr(rankings, f"{kind}_lists")
        scores = getattr(rankings, f"{kind}_list_scores")
        pairs += [(f"{kind}:{name}", scores[name], lists[name]) for name in scores if name in lists]
    for name, rows, other in pairs:
        if rows.shape != other.shape:
            raise ValueError(f"{RANKINGS}: {visible(name)} is {rows.shape}, not {other.shape}")
    if any(len(texts) != n_queries for texts in rankings.step_texts.values()):
        raise ValueError(f"{RANKINGS}: texts of a step for other queries")


def _named(arrays: Any, kind: str) -> dict[str, Any]:
    """The arrays of one kind, by name."""
    prefix = f"{kind}:"
    return {n[len(prefix) :]: arrays[n] for n in arrays.files if n.startswith(prefix)}


def load_timings(folder: Path) -> Timings:
    """The times in the folder of a run.

    Raises:
        DAMAGED: missing or damaged.
    """
    with (folder / TIMINGS).open("rb") as file, np.load(file) as arrays:
        timings = Timings(
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
    _check_timings(timings)
    return timings


def _check_timings(timings: Timings) -> None:
    """Refuse arrays of other shapes and types than :class:`Timings` says.

    Raises:
        ValueError: one is found.
    """
    n_calls = (len(timings.wall_ns) if timings.wall_ns.ndim else -1,)
    by_call = {
        **{name: getattr(timings, name) for name in ("wall_ns", "round", "position", "query")},
        "launch": timings.launch,
        **{f"stage:{name}": values for name, values in timings.stages.items()},
    }
    wrong = [
        name
        for name, values in by_call.items()
        if values.shape != n_calls or values.dtype.kind != "i"
    ]
    wrong += ["failed"] * (timings.failed.shape != n_calls or timings.failed.dtype.kind != "b")
    wrong += [
        f"usage:{name}"
        for name, values in timings.usage.items()
        if values.shape != (*n_calls, len(FIELDS)) or values.dtype.kind != "f"
    ]
    if timings.first_ns.ndim != 2 or timings.first_ns.dtype.kind != "i":
        wrong.append("first_ns")
    if not wrong and timings.query.size and timings.query.min() < 0:
        wrong.append("query")
    if wrong:
        raise ValueError(f"{TIMINGS} has other arrays than calls need: {visible(wrong[0])}")


def write_arrays(folder: Path, rankings: Rankings, timings: Timings) -> None:
    """Write both files of arrays into ``folder``."""
    arrays: dict[str, Any] = {
        "query_ids": np.array(rankings.query_ids, dtype=np.str_),
        "doc_ids": np.array(rankings.doc_ids, dtype=np.str_),
        "ranking": rankings.ranking,
        "scores": rankings.scores,
        **({"clusters": np.array(rankings.clusters)} if rankings.clusters else {}),
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
