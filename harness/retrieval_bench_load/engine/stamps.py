"""Every call of a level: three stamps, who made it, and what came of it, in files of integers.

A file is written while the calls are made, so that what a killed process has made is there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("due", "sent", "done", "query", "worker", "status", "answer", "refused", "why", "waited")
DUE, SENT, DONE, QUERY, WORKER, STATUS, ANSWER, REFUSED, WHY, WAITED = range(len(COLUMNS))

NEVER = -1
"""In a stamp: it did not happen. In ``answer``: there is none."""

OPEN, ANSWERED, FAILED = 0, 1, 2
"""Values of ``status``: no end was seen; answered; the first number of a failure, to which the
number of its kind is added."""

_ROW = len(COLUMNS) * 8
_BLOCK = 32_768
"""Rows that room is made for at once: so many, whatever a row has, are whole pages. Each block
keeps a file open, of which a process may often have no more than 256; more rows would take so long
that calls wait for them."""


class CallFile:
    """Rows of one process in a file that grows by blocks; room is made before it is needed, so that
    a full disk is an error and not the end of the process."""

    def __init__(self, path: Path, n: int = 0) -> None:
        self._file = path.open("w+b")
        self._blocks: list[NDArray[np.int64]] = []
        self.make_room(n)

    def make_room(self, n: int) -> None:
        """For ``n`` rows in all.

        Raises:
            OSError: the disk is full.
        """
        while len(self._blocks) * _BLOCK < n:
            begin, size = len(self._blocks) * _BLOCK * _ROW, _BLOCK * _ROW
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), begin, size)
            else:  # macOS, Windows
                self._file.seek(begin)
                self._file.write(bytes(size))
                self._file.flush()
            block = np.memmap(self._file, np.int64, "r+", begin, (_BLOCK, len(COLUMNS)))
            block[:, [DUE, SENT, DONE, ANSWER]] = NEVER
            self._blocks.append(block)

    def fill(self, due: NDArray[np.int64], query: NDArray[np.int64]) -> None:
        """When calls are due, and what each asks: one row each, from the first."""
        for at, block in enumerate(self._blocks):
            part = slice(at * _BLOCK, (at + 1) * _BLOCK)
            block[: len(due[part]), DUE] = due[part]
            block[: len(query[part]), QUERY] = query[part]

    def row(self, i: int) -> NDArray[np.int64]:
        """The ``i``-th row, to be written to."""
        row: NDArray[np.int64] = self._blocks[i // _BLOCK][i % _BLOCK]
        return row

    def close(self) -> None:
        """Write what is still in memory."""
        for block in self._blocks:
            block.flush()  # type: ignore[attr-defined]
        self._file.close()


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls in the order due. int64 arrays of one length.

    Attributes:
        due: nanoseconds after the level's start at which a call was meant to be made.
        sent: when it was made; -1 = never.
        done: when its answer was there, or its failure; -1 = not seen.
        query: number of the query.
        worker: number of the slot that made it, over all processes; a slot makes one at a time.
        status: :data:`OPEN`, :data:`ANSWERED`, or :data:`FAILED` and more.
        answer: number of the distinct answer; -1 = none.
        refused: requests for it that failed, the last one of a failed call included.
        why: of the last of these, as a ``status``; 0 = there was none.
        waited: nanoseconds before requests were repeated, with nothing under way.
    """

    due: NDArray[np.int64]
    sent: NDArray[np.int64]
    done: NDArray[np.int64]
    query: NDArray[np.int64]
    worker: NDArray[np.int64]
    status: NDArray[np.int64]
    answer: NDArray[np.int64]
    refused: NDArray[np.int64]
    why: NDArray[np.int64]
    waited: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.due)

    def __getitem__(self, rows: NDArray[np.generic]) -> Calls:
        return Calls(*(getattr(self, name)[rows] for name in COLUMNS))

    def stacked(self) -> NDArray[np.int64]:
        """As one array (calls, columns), for a file."""
        return np.stack([getattr(self, name) for name in COLUMNS], axis=1)


def read_calls(paths: Sequence[Path], slots: int, zeros: Sequence[int] = ()) -> Calls:
    """The calls that processes have written, in the order due.

    Args:
        paths: one for each process; what is not there or cut off has no calls.
        slots: of each process; its slots get numbers of their own.
        zeros: of each process's clock, which are added to its stamps; none = 0.
    """
    parts = []
    for number, (path, zero) in enumerate(zip(paths, zeros or [0] * len(paths), strict=True)):
        raw = np.fromfile(path, np.int64) if path.exists() else np.empty(0, np.int64)
        rows = raw[: len(raw) // len(COLUMNS) * len(COLUMNS)].reshape(-1, len(COLUMNS))
        rows = rows[rows[:, DUE] != NEVER]
        rows[:, WORKER] += number * slots
        stamps = rows[:, [DUE, SENT, DONE]]
        rows[:, [DUE, SENT, DONE]] = np.where(stamps == NEVER, NEVER, stamps + zero)
        parts.append(rows)
    rows = np.concatenate([np.empty((0, len(COLUMNS)), np.int64), *parts])
    rows = rows[np.argsort(rows[:, DUE], kind="stable")]
    return Calls(*(np.ascontiguousarray(column) for column in rows.T))
