"""What cold starts were: the steps of every process, and the figures over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

INTERPRETER = "interpreter"
FIRST_QUERY = "first query"

STEPS = (
    INTERPRETER,
    "import",
    "build",
    "model load",
    "documents",
    "index load",
    "index build",
    FIRST_QUERY,
    "second query",
)
"""In the order in which they happen; a process has those that apply to its retriever."""

UNTIL_FIRST_ANSWER = "until first answer"

STEADY_SECONDS = 10.0
"""How long a process is searched for steady times."""


@dataclass(frozen=True, slots=True)
class ColdProcess:
    """What one fresh process did.

    Attributes:
        steps_ns: nanoseconds of each of :data:`STEPS` that it went through.
        imports_ns: how much of a step, other than ``import``, went into importing libraries that
            were first needed there.
        index: ``built``, ``loaded``, ``saved`` (built, for others to load) or ``external``.
        peak_rss_bytes: highest resident memory so far, ``after import`` and so on.
        calls: searches, the first one included, until steady or until time was up.
        steady: whether it became steady.
        seconds: from the start of the first query to the end of those calls.
        failed: further searches that failed.
        repeats_ns: later calls of the query that was the first.
    """

    steps_ns: Mapping[str, int]
    imports_ns: Mapping[str, int]
    index: str
    peak_rss_bytes: Mapping[str, int | None]
    disk_bytes: int | None = None
    calls: int = 0
    steady: bool = False
    seconds: float = 0.0
    failed: int = 0
    repeats_ns: Sequence[int] = ()
    facts: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def until_first_answer_ns(self) -> int:
        """All steps up to and with the first query."""
        upto = STEPS[: STEPS.index(FIRST_QUERY) + 1]
        return sum(self.steps_ns.get(step, 0) for step in upto)

    @property
    def same_query_ns(self) -> float | None:
        """Median of later calls of the first query, None where it was not asked again."""
        return median(self.repeats_ns) if self.repeats_ns else None


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Cold starts of one retriever.

    Attributes:
        dataset: name, split, fingerprint and number of documents.
        processes: those that finished, in their order.
        planned: how many were asked for.
        saved: the process that built the index which the others loaded, None where each built it.
        interrupted: the user stopped it.
        problem: why there are fewer than planned, empty where there are not.
        without: steps that have no time, and why.
    """

    retriever: str
    dataset: Mapping[str, Any]
    k: int
    threads: int
    n_queries: int
    planned: int
    processes: tuple[ColdProcess, ...]
    saved: ColdProcess | None = None
    interrupted: bool = False
    problem: str = ""
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether fewer processes finished than were asked for."""
        return len(self.processes) < self.planned

    @property
    def first(self) -> ColdProcess:
        """The first one, which may have found files that were not in memory yet."""
        return self.processes[0]

    @property
    def others(self) -> tuple[ColdProcess, ...]:
        """Those that medians are over: all but the first, or the first where it is alone."""
        return self.processes[1:] or self.processes

    def steps_ms(self) -> dict[str, list[float]]:
        """Milliseconds of every step, one for each process."""
        present = [step for step in STEPS if step in self.first.steps_ns]
        return {step: [p.steps_ns[step] / 1e6 for p in self.processes] for step in present}

    @property
    def documents_per_second(self) -> float | None:
        """Of building the index, without importing libraries; None where none is built."""
        builders = [self.saved] if self.saved else self.others
        step = "index build"
        seconds = [
            (p.steps_ns[step] - p.imports_ns.get(step, 0)) / 1e9
            for p in builders
            if step in p.steps_ns
        ]
        if not seconds or not median(seconds):
            return None
        return float(self.dataset["n_documents"] / median(seconds))

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON. ``first`` is the first process, ``median``, ``min`` and ``max`` are
        over the others, ``values`` are all in order."""
        times = self.steps_ms()
        steps = {
            step: _spread(times.get(step, [])) | {"reason": self.without.get(step)}
            for step in STEPS
            if step in times or step in self.without
        }
        imports = dict.fromkeys(step for p in self.processes for step in p.imports_ns)
        memory = dict.fromkeys(when for p in self.processes for when in p.peak_rss_bytes)
        return {
            "retriever": self.retriever,
            "dataset": dict(self.dataset) | {"n_queries": self.n_queries},
            "k": self.k,
            "threads": self.threads,
            "status": "partial" if self.partial else "complete",
            "problem": self.problem or None,
            "planned": self.planned,
            "processes": len(self.processes),
            "steps_ms": steps,
            "imports_ms": {
                step: _spread([p.imports_ns.get(step, 0) / 1e6 for p in self.processes])
                for step in imports
            },
            "until_first_answer_ms": _spread(
                [p.until_first_answer_ns / 1e6 for p in self.processes]
            ),
            "same_query_warm_ms": _spread(
                [None if (ns := p.same_query_ns) is None else ns / 1e6 for p in self.processes]
            ),
            "steady": [p.steady for p in self.processes],
            "calls_until_steady": _spread([p.calls if p.steady else None for p in self.processes]),
            "seconds_until_steady": _spread(
                [p.seconds if p.steady else None for p in self.processes]
            ),
            "failed_calls": sum(p.failed for p in self.processes),
            "index": {
                "how": self.first.index,
                "build_ms": self.saved.steps_ns["index build"] / 1e6 if self.saved else None,
                "documents_per_second": self.documents_per_second,
                "disk_bytes": self.first.disk_bytes,
            },
            "peak_rss_bytes": {
                when: _spread([p.peak_rss_bytes.get(when) for p in self.processes])
                for when in memory
            },
            "health": self.facts(),
            "warnings": self.warnings(),
        }

    def facts(self) -> list[str]:
        """What the retriever said of itself; what held for the first process only is told so."""
        last = self.processes[-1].facts
        own = [f"first process: {fact}" for fact in self.first.facts if fact not in last]
        return [*last, *own]

    def warnings(self) -> list[str]:
        """Of the thread limits, and of a retriever that could not be closed; each once."""
        return list(dict.fromkeys(text for p in self.processes for text in p.warnings))


def _spread(values: Sequence[float | None]) -> dict[str, Any]:
    known = [value for value in values[1:] or values if value is not None]
    return {
        "first": values[0] if values else None,
        "median": median(known) if known else None,
        "min": min(known, default=None),
        "max": max(known, default=None),
        "values": list(values),
    }
