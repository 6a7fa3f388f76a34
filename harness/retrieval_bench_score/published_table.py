"""Tables of means that somebody published: which of their differences these queries could show.

Such a table has no values of queries, so nothing can be tested; but what a paired test could find
follows from the number of queries and from how much differences spread from query to query. That
spread is assumed: given, or as it is between well-known systems on collections of the field.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.data.faults import FileFaults, reporting
from retrieval_bench.data.files.lines import table
from retrieval_bench.metrics import parse_metric
from retrieval_bench.stats.power import Moments, queries_needed

COLUMNS = ("system", "metric", "mean", "n")

ALPHA = 0.05

SPREADS: Mapping[str, float] = {
    "nDCG@10": 0.22,
    "nDCG": 0.20,
    "AP": 0.25,
    "AP@10": 0.25,
    "RR": 0.27,
    "RR@10": 0.27,
    "R@10": 0.27,
    "R@100": 0.16,
    "Success@1": 0.38,
    "Success@5": 0.32,
    "Rprec": 0.36,
}
"""Metric -> standard deviation of paired differences: the median over 20 pairs of systems on five
collections; the guide's page on scoring says which."""

_STEPS = 40


@dataclass(frozen=True, slots=True)
class Published:
    """A mean of a table."""

    system: str
    metric: str
    mean: float
    n: int


@dataclass(frozen=True, slots=True)
class Possible(Documented):
    """Differences of two systems that these queries could show.

    Attributes:
        metric, a, b: by what; the two systems.
        difference: mean of b less mean of a.
        n: queries of both; None where the two differ, so that they cannot be paired.
        sd: assumed of the paired differences.
        smallest: the smallest difference that the test finds with 80 % power, at the level that
            Holm leaves this pair; None without ``n``, and where so few queries show none.
        needed: queries for which this difference is the smallest; None where no number helps.
    """

    KEYS = "metric a b difference n sd smallest needed possible"

    metric: str
    a: str
    b: str
    difference: float
    n: int | None
    sd: float
    smallest: float | None
    needed: int | None

    @property
    def possible(self) -> bool:
        """True if a difference of this size is one that these queries could show."""
        return self.smallest is not None and abs(self.difference) >= self.smallest


@dataclass(frozen=True, slots=True)
class TableAudit(Documented):
    """All pairs of a table, metric by metric.

    Attributes:
        table: the file.
        pairs: for each metric and two systems.
        assumed: metric -> standard deviation of paired differences.
    """

    KEYS = "table pairs"

    table: str
    pairs: tuple[Possible, ...]
    assumed: Mapping[str, float]


def audit_table(path: Path | str, spreads: Sequence[str] = ()) -> TableAudit:
    """Compute the differences that the queries of a published table could show.

    Args:
        path: CSV, or columns separated by tabs, with the header ``system,metric,mean,n``.
        spreads: standard deviations of paired differences: ``0.3`` for all metrics, or
            ``nDCG@10=0.3``; a metric without one has that of :data:`SPREADS`.

    Raises:
        DataError: everything that is wrong in the file.
        ConfigError: a spread that is none, or a metric without one.
    """
    given = _given(spreads)
    rows = _read(user_path(path))
    assumed = {metric: _spread(metric, given) for metric in dict.fromkeys(r.metric for r in rows)}
    pairs: list[Possible] = []
    for metric, sd in assumed.items():
        own = [row for row in rows if row.metric == metric]
        pairs += _pairs(list(combinations(own, 2)), sd)
    return TableAudit(str(path), tuple(pairs), assumed)


def _pairs(pairs: Sequence[tuple[Published, Published]], sd: float) -> Iterator[Possible]:
    from scipy.special import ndtr

    paired = [(a, b) for a, b in pairs if a.n == b.n]
    n = np.array([a.n for a, _ in paired], dtype=np.float64)
    differences = np.array([b.mean - a.mean for a, b in paired])
    p = 2 * ndtr(-np.abs(differences) * np.sqrt(n) / sd)
    levels = _levels(p)
    smallest = _smallest(n, levels, sd).tolist()
    needed = _needed(np.abs(differences), levels, sd).tolist()
    resolution = dict(zip(paired, zip(smallest, needed, strict=True), strict=True))
    for a, b in pairs:
        least, queries = resolution.get((a, b), (None, math.inf))
        yield Possible(
            *(a.metric, a.system, b.system, b.mean - a.mean),
            n=a.n if (a, b) in resolution else None,
            sd=sd,
            smallest=None if least is None or math.isnan(least) else least,
            needed=int(queries) if math.isfinite(queries) else None,
        )


def _levels(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the level that Holm holds each p against: the smallest against a share of the level,
    and so on."""
    rank = np.empty(len(p), dtype=np.int64)
    rank[np.argsort(p, kind="stable")] = np.arange(len(p))
    return np.asarray(ALPHA / (len(p) - rank))


def _needed(
    differences: NDArray[np.float64], levels: NDArray[np.float64], sd: float
) -> NDArray[np.float64]:
    """Queries until the paired test has 80 % power; infinite where no number helps."""
    each = np.ones(len(differences), dtype=np.int64)
    square = differences**2
    moments = Moments(
        n=2,  # of two queries: what is needed further is all but these
        mean=differences,
        second=square + sd**2,
        third=differences**3 + 3 * differences * sd**2,
        fourth=square**2 + 6 * square * sd**2 + 3 * sd**4,
        above=each,
        below=each,
        size=np.zeros(len(each)),
        largest=np.ones(len(each)),
    )
    further = [needed.difference for needed in queries_needed(moments, levels)]
    return np.array([math.inf if more is None else more + 2 for more in further])


def _smallest(
    n: NDArray[np.float64], levels: NDArray[np.float64], sd: float
) -> NDArray[np.float64]:
    """The smallest difference for which no more than ``n`` queries are needed; NaN where means from
    0 to 1 have none."""
    low, high = np.zeros(len(n)), np.ones(len(n))
    shown = _needed(high, levels, sd) <= n
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = _needed(middle, levels, sd) <= n
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(shown, high, np.nan)


def _given(spreads: Sequence[str]) -> dict[str, float]:
    given: dict[str, float] = {}
    for text in spreads:
        metric, _, number = text.rpartition("=")
        try:
            sd = float(number)
        except ValueError:
            sd = math.nan
        if not 0 < sd < math.inf:
            raise ConfigError(
                f"--sd {text}",
                accepted="a number above 0, or METRIC=NUMBER, such as nDCG@10=0.3",
                fix="give the standard deviation of the differences from query to query",
            )
        given[str(parse_metric(metric)) if metric else ""] = sd
    return given


def _spread(metric: str, given: Mapping[str, float]) -> float:
    sd = given.get(metric, given.get("", SPREADS.get(metric)))
    if sd is None:
        raise ConfigError(
            f"no standard deviation of paired differences for {metric}",
            where="--sd",
            accepted=f"a metric of {', '.join(SPREADS)}, or a deviation of your own",
            fix=f"add --sd {metric}=0.3, with that of a run of your own",
        )
    return sd


def _read(path: Path) -> list[Published]:
    with reporting("the table", path) as faults:
        report = faults.of(path)
        lines = list(table(path, faults))
        if not lines or [cell.strip() for cell in lines[0][1]] != list(COLUMNS):
            fault = f"the header {','.join(lines[0][1])}" if lines else "no lines"
            if not report.count:
                report.error(None, fault, ",".join(COLUMNS))
            return []
        rows = [row for number, cells in lines[1:] if (row := _row(cells, number, report))]
        seen: set[tuple[str, str]] = set()
        for row in rows:
            if (row.system, row.metric) in seen:
                report.error(None, f"{row.metric} of {row.system} twice", "each once")
            seen.add((row.system, row.metric))
        if len({row.system for row in rows}) < 2 and not report.count:
            report.error(None, "fewer than two systems", "two or more to compare")
    return rows


def _row(cells: Sequence[str], number: int, report: FileFaults) -> Published | None:
    if len(cells) != len(COLUMNS):
        report.error(number, f"{len(cells)} columns", ",".join(COLUMNS))
        return None
    system, metric, mean, n = (cell.strip() for cell in cells)
    try:
        name = str(parse_metric(metric))
    except ConfigError as unknown:
        report.error(number, unknown.given, unknown.accepted)
        return None
    try:
        value = float(mean)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        report.error(number, f"mean is {mean!r}", "a number from 0 to 1; a percentage over 100")
        return None
    if not n.isascii() or not n.isdecimal() or int(n) < 2:
        report.error(number, f"n is {n!r}", "queries in the mean, 2 or more")
        return None
    return Published(system, name, value, int(n))
