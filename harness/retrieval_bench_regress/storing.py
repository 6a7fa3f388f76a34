"""A new baseline in place of the old one, or beside it; and what that changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import DataError, HarnessError, RecordError, counted
from retrieval_bench_regress import files
from retrieval_bench_regress.baseline import LatencyBaseline, QualityBaseline
from retrieval_bench_regress.files import NoBaselineError, OtherBaselineError, Places


@dataclass(frozen=True, slots=True)
class Change(Documented):
    """One figure; None where one of the two does not have it.

    Attributes:
        figure: metric, or percentile.
        unit: "" for a metric, "ms" for a percentile.
        before: in the baseline that was there.
        now: in the new one.
    """

    figure: str
    unit: str
    before: float | None
    now: float | None


def quality_changes(before: QualityBaseline | None, now: QualityBaseline) -> list[Change]:
    """Metric by metric."""
    old = {} if before is None else before.metrics
    names = dict.fromkeys([*now.metrics, *old])
    return [Change(name, "", old.get(name), now.metrics.get(name)) for name in names]


def latency_changes(before: LatencyBaseline | None, now: LatencyBaseline) -> list[Change]:
    """Percentile by percentile over all calls, where either can be said."""
    old = {} if before is None else before.call
    rows = [
        Change(name, "ms", *(calls.get(name, {}).get("value") for calls in (old, now.call)))
        for name in sorted({*old, *now.call})
    ]
    return [row for row in rows if row.before is not None or row.now is not None]


@dataclass(frozen=True, slots=True)
class Stored(Documented):
    """Outcome of writing the files.

    Attributes:
        written: paths of files that are new or replaced.
        kept: paths of files that say the same as was measured, and stay as they are.
        changes: figure by figure.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    changes: tuple[Change, ...]


class NothingToKeepError(HarnessError):
    """Fault of a measurement that can be no baseline: nothing could be judged by it.

    Attributes:
        warnings: of the measurement.
    """

    def __init__(self, why: str, warnings: Sequence[str]) -> None:
        self.warnings = tuple(warnings)
        super().__init__(
            f"{why}: there is nothing to keep, since nothing could be judged by it",
            accepted="a measurement that answers judged queries",
            fix=f"see why: {'; '.join(warnings)}" if warnings else "",
        )


def check_free(places: Places, *, force: bool) -> None:
    """Refuse what could only end in an overwritten baseline, before anything is measured.

    Args:
        force: their own baseline may be replaced.

    Raises:
        RecordError: both files are there, or one of another retriever or dataset.
    """
    for read in (places.read_quality, places.read_latency):
        _old(read)
    if not force and places.quality.exists() and places.latency.exists():
        raise RecordError(
            f"{places.retriever} has a baseline on {places.dataset}",
            where=f"{places.quality}, {places.latency}",
            accepted="a retriever without one on this machine",
            fix="compare with it: regress; replace it: --force",
        )


def store(
    places: Places, quality: QualityBaseline, latency: LatencyBaseline | None, *, force: bool
) -> Stored:
    """Write what was measured.

    A baseline of quality that is there and says the same stays, so that another machine adds its
    times and nothing else.

    Args:
        force: replace what is there, unless it is of another retriever or dataset.

    Raises:
        DataError: a value is no number.
        RecordError: something is there that would change, and it is not forced; cannot be written.
    """
    _check_numbers(quality)
    old_quality, quality_there = _old(places.read_quality)
    old_latency, latency_there = _old(places.read_latency)
    changes = [
        *quality_changes(old_quality, quality),
        *(latency_changes(old_latency, latency) if latency is not None else ()),
    ]
    same = old_quality is not None and _same(old_quality, quality)
    if not force and ((quality_there and not same) or (latency_there and latency is not None)):
        raise RecordError(
            f"{places.retriever} has a baseline on {places.dataset}, and it would change",
            where=str(places.quality if quality_there and not same else places.latency),
            accepted="a baseline with the same rankings",
            fix="compare with it: regress; replace it: --force",
        )
    new: list[tuple[Any, QualityBaseline | LatencyBaseline]] = []
    if force or not same:
        new.append((places.quality, quality))
    if latency is not None:
        new.append((places.latency, latency))
    files.write(new)
    written = tuple(str(path) for path, _ in new)
    kept = () if str(places.quality) in written else (str(places.quality),)
    return Stored(written, kept, tuple(changes))


def _check_numbers(quality: QualityBaseline) -> None:
    """Refuse what no later run can be held against. In the other direction it is a verdict: values
    of today that are no numbers cannot be judged."""
    for at, metric in enumerate(quality.metrics, start=1):
        ids = [
            query for query in quality.evaluated if not math.isfinite(quality.queries[query][at])
        ]
        if ids or not math.isfinite(quality.metrics[metric]):
            others = f" and {counted(len(ids) - 1, 'other query')}" if len(ids) > 1 else ""
            raise DataError(
                f"the value of {metric} is no number",
                where=f"query {ids[0]!r}{others}" if ids else "its mean",
                accepted="a finite number for every evaluated query",
                fix="mend the metric, or leave it out: of --metrics and of the policy",
            )


def _old(read: Any) -> tuple[Any, bool]:
    """The baseline where it can be read, and whether there is a file at all.

    Raises:
        OtherBaselineError: nobody asked to replace that one.
    """
    try:
        return read(), True
    except OtherBaselineError:
        raise
    except NoBaselineError:
        return None, False
    except RecordError:
        return None, True


def _same(before: QualityBaseline, now: QualityBaseline) -> bool:
    """Return whether both say the same of quality, whoever measured it. Values follow from
    rankings, and may differ by rounding from one processor to the next."""
    settled = ("dataset", "k", "convention", "metrics_version")
    return (
        all(getattr(before, name) == getattr(now, name) for name in settled)
        and list(before.metrics) == list(now.metrics)
        and before.evaluated == now.evaluated
        and {query: row[0] for query, row in before.queries.items()}
        == {query: row[0] for query, row in now.queries.items()}
    )
