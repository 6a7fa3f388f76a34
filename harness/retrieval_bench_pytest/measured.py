"""What a test asks about a retriever, and three answers: yes, no, can't tell.

The commands ``regress`` and ``bench`` measure, each in a process of its own: neither the signals,
threads and imports of a retriever reach the tests, nor those of the tests its times. What they said
is kept for the session, so that the other workers of xdist read it.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from shlex import split
from tempfile import mkdtemp
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.installation import typed

LINES = 20
"""Of a message at most."""

_HOLDS: Mapping[int, bool | None] = {0: True, 1: False, 3: None}
"""What exit codes of ``regress`` say; with others nothing was judged."""

_STOPPED = (130, -2)
"""Exit codes of a command that Ctrl-C ended."""

_SIGNATURE = (
    '@pytest.mark.retrieval("my.yaml", dataset="my/folder"), and of split, k, overrides, policy, '
    "baselines and undecided what is not as usual"
)


class UndecidedRetrievalWarning(UserWarning):
    """A test of retrieval can't tell."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured, in the user's words; see :func:`retrieval_bench.regress`.

    Attributes:
        policy: "quality": times are not judged, for tests run beside others.
        undecided: "warn" or "fail"; empty = as the option says.
    """

    retriever: str
    dataset: str = "science-mini"
    split: str = "test"
    k: int = 10
    overrides: tuple[str, ...] = ()
    policy: str = "quality"
    baselines: str | None = None
    undecided: str = ""

    @classmethod
    def of(cls, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None) -> Subject:
        """The subject that a marker names; without one, or with another, the test fails."""
        try:
            given = inspect.signature(cls).bind(*(args or ()), **(kwargs or {})).arguments
            if given.get("undecided", "") not in ("", "warn", "fail"):
                raise TypeError(f"undecided = {given['undecided']!r} is neither warn nor fail")
            paths = ("retriever", "dataset", "policy", "baselines")
            texts = {name: str(given[name]) for name in paths if given.get(name) is not None}
            overrides = given.get("overrides", ())
            overrides = (overrides,) if isinstance(overrides, str) else tuple(map(str, overrides))
        except TypeError as problem:
            why = ConfigError(
                f"the fixture `retrieval` without a marker that fits: {problem}",
                where="@pytest.mark.retrieval",
                accepted=_SIGNATURE,
                fix="write it above the test, the class, or as `pytestmark` of the module",
            )
            pytest.fail(why.render(), pytrace=False)
        return cls(**{**given, **texts, "overrides": overrides})


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question about a retriever.

    Attributes:
        holds: whether it does; None where that can't be told.
        text: the reason, as the command says it.
    """

    holds: bool | None
    text: str


class Retrieval:
    """A retriever in a test. What is asked fails the test where it does not hold, and warns, or
    fails as well, where nobody can tell.

    Args:
        subject: the retriever, its dataset, and how it is judged.
        folder: that relative paths start at.
        records: folder that all processes of the session have in common.
        fails: a test that can't tell fails.
    """

    def __init__(
        self, subject: Subject, folder: Path, records: Path, *, fails: bool = False
    ) -> None:
        self.subject, self._folder, self._records, self._fails = subject, folder, records, fails

    def not_worse(self) -> Answer:
        """Ask whether it is not worse than its baseline, as ``retrieval-bench regress`` does."""
        __tracebackhide__ = True
        of = self.subject
        how = {"policy": of.policy, "baselines": of.baselines, "duet": "never"}
        words = self._command("regress", **how)
        code, text, errors = self._once(words)
        if code not in _HOLDS:
            pytest.fail(_shortened(_of_marker(text or errors), words), pytrace=False)
        return self._told(Answer(_HOLDS[code], _shortened(text, words)))

    def at_least(self, metric: str, least: float) -> Answer:
        """Ask whether the mean of a metric is so large: it is where its 95 % interval is above, and
        is not where that is below.

        Args:
            metric: such as ``nDCG@10``, cut at the ``k`` of the marker or before.
            least: on the scale of the metric.
        """
        __tracebackhide__ = True
        try:
            number = float(least)
        except (TypeError, ValueError):
            number = nan
        if isnan(number):
            pytest.fail(f"at least {least!r} of {metric}: give a number", pytrace=False)
        least = number
        mean, low, high = self.mean(metric)
        text = f"{metric} of {self.subject.retriever} is {mean:.3f} [{low:.3f}, {high:.3f}]"
        if low >= least:
            return self._told(Answer(True, f"{text}: at least {least:g}"))
        if high < least:
            return self._told(Answer(False, f"{text}: below {least:g}"))
        why = f"can't tell whether it is at least {least:g}: more questions would"
        return self._told(Answer(None, f"{text}: {why}"))

    def mean(self, metric: str) -> tuple[float, float, float]:
        """The mean of a metric over the queries, and the ends of its 95 % interval."""
        __tracebackhide__ = True
        row = self._rows().get(metric) or next(iter(self._rows(metric).values()))
        if not row["low"]:
            pytest.fail(f"{metric} has no interval: it takes two judged queries", pytrace=False)
        return float(row["mean"]), float(row["low"]), float(row["high"])

    def _rows(self, *metrics: str) -> dict[str, dict[str, str]]:
        """The means of these metrics, or of those that every run has, and no time."""
        __tracebackhide__ = True
        words = self._command("bench", metrics=metrics, rounds=1, warm_up=0, format="csv")
        code, text, errors = self._once(words, "--out", mkdtemp(dir=self._records))
        if code != 0:
            pytest.fail(_shortened(_of_marker(errors or text), words), pytrace=False)
        rows = csv.DictReader(text.splitlines())
        return {row["metric"]: row for row in rows if not row["metric"].endswith(" ms")}

    def _command(self, name: str, **options: object) -> str:
        of = self.subject
        usual = {"dataset": of.dataset, "split": of.split, "k": of.k, "set": of.overrides}
        return typed(name, of.retriever, **usual, **options)

    def _told(self, answer: Answer) -> Answer:
        __tracebackhide__ = True
        if answer.holds is False or (answer.holds is None and self._fails):
            pytest.fail(answer.text, pytrace=False)
        if answer.holds is None:
            warnings.warn(UndecidedRetrievalWarning(answer.text), stacklevel=3)
        return answer

    def _once(self, words: str, *more: str) -> tuple[int, str, str]:
        """Exit code and output of a command, which the first process that asks runs while the
        others wait; what was not judged, as by a service that is not up yet, is asked again."""
        of = f"{self._folder}\n{words}".encode(errors="backslashreplace")
        file = self._records / f"retrieval-{hashlib.sha256(of).hexdigest()[:16]}.json"
        with _alone(file.with_suffix(".lock")):
            if file.is_file():
                return tuple(json.loads(file.read_text(encoding="utf-8")))
            command = [sys.executable, "-m", "retrieval_bench", *split(words)[1:], *more]
            done = subprocess.run(command, cwd=self._folder, capture_output=True, check=False)
            if (code := done.returncode) in _STOPPED:
                raise KeyboardInterrupt
            text, errors = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
            if code in _HOLDS:
                whole = file.with_suffix(".part")
                whole.write_text(json.dumps([code, text, errors]), encoding="utf-8")
                whole.replace(file)
        return code, text, errors


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    with lock.open("a", encoding="utf-8") as file:
        try:
            import fcntl
        except ImportError:  # Windows: each worker measures for itself
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_OPTION = re.compile(r"(?:(?<=  where: )|(?<=raise ))--(dataset|split|k|set|policy|metrics)\b(?!-)")
_CALLED = {"set": "overrides of the marker", "metrics": "the metric of the test"}


def _of_marker(text: str) -> str:
    """An error of a command in the words of a test; commands to copy stay as they are."""
    return "\n".join(
        line
        if "retrieval-bench " in line
        else _OPTION.sub(lambda option: _CALLED.get(option[1], f"{option[1]} of the marker"), line)
        for line in text.splitlines()
    )


def _shortened(text: str, words: str) -> str:
    lines = text.rstrip().splitlines()
    if len(lines) > LINES:
        lines[LINES - 1 :] = [f"... all of it: {words}"]
    return "\n".join(lines)
