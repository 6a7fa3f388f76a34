"""The latency measurement that tutorials use, as they do it, to show what it gives.

One pass over a list of queries: the first two are spent on warming up, each of the others is timed
once by the wall clock, and four figures are taken over what is left. No round, no check of the
sample, no interval. For figures to rely on use the harness's own protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import foreign_code
from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.progress import Phase, Reporter, Step
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.reports.render.cells import MILLISECONDS
from retrieval_bench.reports.render.table import Table, warning
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.stats.percentiles import needs, quantiles

Asked = TypeVar("Asked")

WARM_UP = 2
"""Queries that a tutorial spends on warming up."""

LEVELS = (50.0, 95.0, 99.0)

_MS_PER_S = 1_000.0


@dataclass(frozen=True, slots=True)
class TutorialLatency(Documented):
    """The four figures in milliseconds, and what they stand on.

    Attributes:
        mean, p50, p95, p99: over the timed calls; 0.0 where there are none, as in the tutorial.
        n: timed calls, one for each query that warming up left over.
        warmup: queries that warming up took.
        warnings: what keeps these figures from being relied on, in plain words.
        protocol: its name.
    """

    KEYS = "protocol mean p50 p95 p99 n warmup warnings"

    protocol: ClassVar[str] = "tutorial"
    mean: float
    p50: float
    p95: float
    p99: float
    n: int
    warmup: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tutorial(Documented):
    """Times as the usual notebook works them out.

    Attributes:
        retriever, dataset, k: what was timed.
        latency_ms: milliseconds, and in words what that hides.
    """

    retriever: str
    dataset: str
    k: int
    latency_ms: TutorialLatency


def timed(experiment: Experiment, reporter: Reporter) -> Tutorial:
    """Time the first retriever as the usual notebook does; nothing is evaluated or saved.

    Raises:
        RetrieverError: a search fails, at which the notebook's loop stops.
    """
    candidate = experiment.candidates[0]
    failed = candidate.failing(
        "a search",
        accepted="an answer to every query: the notebook's loop stops at the first failure",
        fix="measure without --protocol tutorial, which counts failures",
    )
    with (
        experiment.ready(reporter),
        reporter.phase(Phase(Step.SEARCHING, candidate.name)),
        foreign_code(failed),
    ):
        search, k = candidate.retriever.search, experiment.k
        latency = tutorial_latency(lambda query: search(query, k), experiment.queries)
    return Tutorial(candidate.name, experiment.dataset.name, k, latency)


def tutorial_latency(
    search: Callable[[Asked], object],
    queries: Sequence[Asked],
    warmup: int = WARM_UP,
    clock: Callable[[], float] = time.time,
) -> TutorialLatency:
    """Time ``search`` once for each of ``queries`` but the first ``warmup``, in their order.

    Args:
        search: called with one query; what it raises ends the measurement, as in the tutorial.
        queries: what ``search`` takes.
        warmup: how many of them are asked without being timed, and are lost to the figures.
        clock: seconds; by default the wall clock, which the system may set forward or back.

    Raises:
        ConfigError: ``warmup`` is no whole number of at least 0.

    Percentiles by linear interpolation (Hyndman & Fan's type 7), whatever the number of calls.
    """
    if isinstance(warmup, bool) or not isinstance(warmup, int) or warmup < 0:
        raise ConfigError(
            f"warmup = {warmup!r}",
            where="protocol tutorial",
            accepted="a whole number of at least 0",
            fix=f"the tutorial's own is {WARM_UP}",
        )
    for query in queries[:warmup]:
        search(query)
    seconds = []
    for query in queries[warmup:]:
        start = clock()
        search(query)
        seconds.append(clock() - start)
    lost = min(warmup, len(queries))
    if not seconds:
        nothing = f"no query is left to time: warming up took all {lost}" if lost else "no queries"
        return TutorialLatency(
            *(0.0,) * 4, n=0, warmup=lost, warnings=(f"{nothing}; the zeros are no times",)
        )
    ms = np.asarray(seconds) * _MS_PER_S
    p50, p95, p99 = (float(value) for value in quantiles(ms, [level / 100 for level in LEVELS]))
    return TutorialLatency(
        float(ms.mean()), p50, p95, p99, n=len(ms), warmup=lost, warnings=tuple(_warnings(ms))
    )


def _warnings(ms: NDArray[np.float64]) -> list[str]:
    n = len(ms)
    weak = [level for level in LEVELS if n < needs(level).printed]
    warnings = []
    if weak:
        names = ", ".join(f"p{level:g}" for level in weak)
        least = ", ".join(f"{needs(level).printed:,}" for level in weak)
        warnings.append(f"{names} of {counted(n, 'call')}: this takes at least {least} calls")
    backwards = int(np.count_nonzero(ms < 0))
    if backwards:
        warnings.append(
            f"the wall clock was set back in {counted(backwards, 'call')}: negative times are in "
            "the figures"
        )
    return warnings


def tutorial_table(tutorial: Tutorial) -> Table:
    """Show the four figures, and what keeps them from being relied on."""
    latency, of = tutorial.latency_ms, on_dataset(tutorial.dataset)
    how = f"timed once by the wall clock, after {latency.warmup} spent on warming up"
    return Table(
        f"{tutorial.retriever} {of}, k = {tutorial.k}, timed as in a tutorial",
        ("", "ms"),
        [(level, MILLISECONDS(getattr(latency, level))) for level in ("mean", "p50", "p95", "p99")],
        notes=[
            f"{counted(latency.n, 'query')} {how}; no quality, no interval, nothing saved.",
            *map(warning, latency.warnings),
        ],
    )
