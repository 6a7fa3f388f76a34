"""Is everything ready to be measured? The data, the retriever and the machine, each looked at."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.document import document
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, Notice, coded
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.experiment.warnings import without_relevant
from retrieval_bench.measure.calls import OK
from retrieval_bench.measure.disturbances import disturbances
from retrieval_bench.measure.environment import machine
from retrieval_bench.measure.noise import NoiseRecorder
from retrieval_bench.measure.protocol import Protocol

PROBED = 5
"""Queries that a retriever is asked."""

_WATCHED_S = 1.0
"""Seconds for which the machine is watched."""

_FEW = 50
"""Below so many queries only large differences can be shown."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        subject: "data", "retriever" or "machine".
        facts: what it is, in sentences.
        warnings: what would make figures less than they seem, with what to do.
    """

    subject: str
    facts: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return document(self)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What :func:`doctor` gives.

    Attributes:
        checks: data, retriever, machine.
        answered: whether the retriever answered any query.
        next: the command to run next.
    """

    checks: tuple[Check, ...]
    answered: bool
    next: str

    @property
    def n_warnings(self) -> int:
        """Of all checks."""
        return sum(len(check.warnings) for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """The document of ``doctor --format json``."""
        return {
            "checks": [check.as_dict() for check in self.checks],
            **document(self, "answered next"),
        }


def doctor(
    retriever: Any,
    dataset: str | Path = "science-mini",
    *,
    split: str = "test",
    language: str | None = None,
    k: int = 10,
    overrides: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> Diagnosis:
    """Load the data, build and index the retriever, ask it some queries, and watch the machine.

    Raises:
        HarnessError: what is wrong with the data or the retriever, all at once.
    """
    protocol = Protocol(rounds=1, warm_up_s=0.0)
    experiment = prepare(
        [retriever],
        dataset,
        split=split,
        language=language,
        k=k,
        overrides=overrides,
        protocol=protocol,
        save=False,
    )
    data = experiment.dataset
    start = time.perf_counter()
    answers = experiment.search(reporter, first=PROBED)
    seconds = time.perf_counter() - start
    n_answered = sum(status == OK for status in answers.status)
    hits = sum(len(ranking or ()) for ranking in answers.rankings)
    about_data = set(data.warnings)
    took = f"{seconds:.1f}" if seconds >= 0.1 else "under 0.1"
    probe = f"{answers.name} was ready in {took} s and answered {n_answered:,} of "
    probe += f"{counted(len(answers.status), 'query')} with {counted(hits, 'hit')}."
    nothing = []
    if n_answered and not hits:
        nothing = [Notice("It found nothing for any of them: look at its index and its analyzer.")]
    command = ["retrieval-bench", "bench", str(retriever)]
    command += [] if str(dataset) == "science-mini" else ["--dataset", str(dataset)]
    command += [] if language is None else ["--language", language]
    return Diagnosis(
        (
            _data(data),
            Check(
                "retriever",
                (probe,),
                (*nothing, *(text for text in answers.warnings if text not in about_data)),
            ),
            _machine(),
        ),
        n_answered > 0,
        shlex.join(command),
    )


def _data(data: Dataset) -> Check:
    n, unanswerable = len(data.evaluated), len(data.unanswerable)
    grades = [grade for query in data.evaluated for grade in data.qrels.get(query.id, {}).values()]
    relevant = sum(grade > 0 for grade in grades)
    queries = f"{counted(n, 'evaluated query')}, {counted(unanswerable, 'unanswerable query')}"
    facts = [f"{data.name} ({data.split}): {counted(data.n_documents, 'document')}, {queries}."]
    if n:
        facts.append(
            f"{counted(len(grades), 'judgement')}, {relevant / n:.1f} relevant documents a query."
        )
    few = [
        f"With {counted(n, 'query')} only large differences can be shown: judge more if you can."
    ]
    warnings = (*data.warnings, *without_relevant(data), *(few if 0 < n < _FEW else ()))
    return Check("data", tuple(facts), warnings)


def _machine() -> Check:
    """Watched for a second, in which this process does nothing."""
    facts = machine()
    with NoiseRecorder() as noise:
        time.sleep(_WATCHED_S)
    memory = facts.get("memory_gib")
    ram = "" if memory is None else f", {memory} GiB of memory"
    return Check(
        "machine",
        (f"{facts['processor']}, {facts['usable_cores']} cores{ram}, {facts['python']}.",),
        tuple(
            coded(
                disturbances(noise.record, facts, during="in the second it was watched"), Code.BUSY
            )
        ),
    )
