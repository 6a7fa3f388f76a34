"""Arrays of a run folder that something changed: a clear word, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.measure.calls import Timings
from retrieval_bench.runs.arrays import (
    DAMAGED,
    RANKINGS,
    TIMINGS,
    load_rankings,
    load_timings,
    write_arrays,
)
from retrieval_bench.runs.run import Rankings

CALLS = np.zeros(3, dtype=np.int32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rankings = Rankings(
        ("q1", "q2"),
        ("d1", "d2"),
        np.array([[0, 1], [1, -1]], dtype=np.int32),
        np.array([[2.0, 1.0], [1.0, np.nan]]),
        leg_lists={"b": np.array([[0], [1]], dtype=np.int32)},
        leg_list_scores={"b": np.array([[1.0], [1.0]])},
    )
    wall = np.array([5, 6, 7], dtype=np.int64)
    failed = np.zeros(3, dtype=np.bool_)
    timings = Timings(wall, CALLS, CALLS, CALLS, failed, {"encode": wall}, CALLS)
    write_arrays(tmp_path, rankings, timings)
    return tmp_path


def change(path: Path, name: str, by: Callable[[Any], Any]) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    arrays[name] = by(arrays[name])
    np.savez_compressed(path, **arrays)


def test_whole_arrays_are_read_back(folder: Path) -> None:
    assert load_rankings(folder).row(0).doc_ids == ["d1", "d2"]
    assert load_timings(folder).wall_ns.tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("ranking", lambda a: a.astype(float)),
        ("ranking", lambda a: a[:1]),
        ("ranking", lambda a: a + 7),
        ("ranking", lambda a: a - 7),
        ("ranking", lambda a: a[None]),
        ("scores", lambda a: a[:, :1]),
        ("scores", lambda a: a.astype(str)),
        ("leg_lists:b", lambda a: a.astype(float)),
        ("leg_list_scores:b", lambda a: np.concatenate([a, a], axis=1)),
        ("query_ids", lambda a: np.arange(len(a))),
        ("doc_ids", lambda a: np.float64(3)),
    ],
)
def test_rankings_of_another_kind_are_refused(
    folder: Path, name: str, by: Callable[[Any], Any]
) -> None:
    change(folder / RANKINGS, name, by)
    with pytest.raises(ValueError, match=r"rankings\.npz"):
        load_rankings(folder)


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("wall_ns", lambda a: np.concatenate([a, a])),
        ("query", lambda a: a - 1),
        ("round", lambda a: a.astype(complex)),
        ("failed", lambda a: a.astype(int)),
        ("stage:encode", lambda a: a[:-1]),
        ("first_ns", lambda a: a.reshape(-1)),
    ],
)
def test_times_of_another_kind_are_refused(
    folder: Path, name: str, by: Callable[[Any], Any]
) -> None:
    change(folder / TIMINGS, name, by)
    with pytest.raises(ValueError, match=r"timings\.npz has other arrays than calls need"):
        load_timings(folder)


@pytest.mark.parametrize("at", [(6, 8), (8, 10)])
def test_an_archive_that_is_encrypted_or_of_an_unknown_kind_is_damage(
    folder: Path, at: tuple[int, int]
) -> None:
    path = folder / RANKINGS
    data = bytearray(path.read_bytes())
    for mark, offset, value in ((b"PK\x03\x04", at[0], 1), (b"PK\x01\x02", at[1], 1)):
        start = 0
        while (start := data.find(mark, start)) >= 0:
            data[start + offset] = 97 if at[0] == 8 else data[start + offset] | value
            start += 4
    path.write_bytes(bytes(data))
    with pytest.raises(DAMAGED):
        load_rankings(folder)
