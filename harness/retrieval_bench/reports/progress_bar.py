"""Progress: on a terminal a bar per phase, redrawn at most ten times a second, else lines."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from retrieval_bench.core.progress import Phase, Reporter, Task, forward

_SECONDS_BETWEEN, _SECONDS_BETWEEN_LINES = 0.1, 30.0


class Bars:
    """A reporter for :meth:`retrieval_bench.experiment.experiment.Experiment.run`.

    It draws only when it is told of progress, between two calls: a thread that redraws by itself
    would take the interpreter away from the call that is being timed.
    """

    def __init__(self, file: IO[str]) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(file=file),
            auto_refresh=False,
            transient=True,
        )

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Callable[[int, int], None]]:
        """A bar for one phase; gone when the phase ends."""
        task = self._progress.add_task(phase.text, total=None)
        self._progress.refresh()
        drawn = time.monotonic()

        def advance(done: int, total: int) -> None:
            nonlocal drawn
            now = time.monotonic()
            if now - drawn >= _SECONDS_BETWEEN or done >= total:
                drawn = now
                self._progress.update(task, completed=done, total=total)
                self._progress.refresh()

        try:
            yield forward(advance)
        finally:
            self._progress.remove_task(task)
            self._progress.refresh()


class Lines:
    """Without a terminal: a line when the first phase begins, then at most one each half minute.

    Args:
        say: prints a line.
        clock: seconds.
    """

    def __init__(
        self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._said = -math.inf

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Task]:
        """Say that ``phase`` begins; its task says how far it is, and for how much longer."""
        began, before = self._clock(), 0
        if self._due(began):
            self._say(f"retrieval-bench: {phase.text} ...")

        def advance(done: int, total: int) -> None:
            nonlocal began, before
            now = self._clock()
            if not before and 4 * done < total:  # a first call may load a model
                began, before = now, done
            if before < done < total and self._due(now):
                left = (now - began) * (total - done) / (done - before)
                about = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
                self._say(f"retrieval-bench: {phase.text}: {done:,} of {total:,}, {about} left")

        yield forward(advance)

    def _due(self, now: float) -> bool:
        """Say whether a line may be said now, which then is."""
        if due := now - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = now
        return due


def in_notebook(reporter: Reporter | None) -> Reporter | None:
    """``reporter``; without one, in Jupyter, a line for each phase on stderr, as commands have it
    where there is no terminal. Scripts stay silent."""
    if reporter is not None or "ipykernel" not in sys.modules:
        return reporter
    return Lines(lambda text: sys.stderr.write(f"{text}\n"))
