"""Queries in groups: by tag, source, length, number of relevant documents, filter, or any metadata
key.
A group is never empty; a query may be in several, when it has several tags. Equal lengths and equal
numbers are never torn apart.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from retrieval_bench.core.errors import check_known
from retrieval_bench.core.metadata import Filtering
from retrieval_bench.core.scripts import BLANKLESS, main_script, script_profile
from retrieval_bench.core.types import Dataset, Qrels, Query, kind_of_truth

DIMENSIONS = ("tags", "source", "length", "relevant")
"""Properties that queries of any dataset are grouped by."""

BY_FILTER = ("filter", "selectivity")
"""What they are grouped by besides where they have filters: by the fields these name, and by the
share of the documents that fits."""

SOURCE_KEYS = ("source", "source_ds", "dataset", "domain")
"""Metadata keys that name where a query comes from; the first one there is counts."""

NONE = "(none)"

_FEW_NUMBERS = 6
"""A numeric key with more distinct values than this is grouped in thirds."""

_EXACT = 1 << 53
"""Below this a float is one whole number."""

Rows = list[int]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of queries.

    Attributes:
        by: name of the dimension, or the metadata key.
        what: the same in words.
        groups: label and places of the queries, rising; at least one query in each.
        notes: what to know before reading them, in plain words.
        one_by_one: hardly any two queries share a value: these are no groups.
    """

    by: str
    what: str
    groups: tuple[tuple[str, Rows], ...]
    notes: tuple[str, ...] = ()
    one_by_one: bool = False


def check_names(names: Iterable[str], dataset: Dataset) -> None:
    """Refuse what queries cannot be grouped by.

    Raises:
        ConfigError: a name that is no dimension of its queries and no metadata key of one.
    """
    keys = {key for query in dataset.evaluated for key in query.metadata}
    known, where = keys.union(dimensions(dataset)), f"queries of {dataset.name}"
    for name in names:
        fix = "name some of them, or none for all that there are"
        check_known(name, known, f"slices by {name!r}", where=where, fix=fix)


def dimensions(dataset: Dataset) -> tuple[str, ...]:
    """Those that its queries can be grouped by."""
    return (*DIMENSIONS, *BY_FILTER) if dataset.filter_fields else DIMENSIONS


def grouped(
    by: str,
    queries: Sequence[Query],
    qrels: Qrels,
    *,
    most: int,
    filtering: Filtering | None = None,
) -> Grouping:
    """``queries`` in groups; of more than ``most`` the smallest are one group together.

    Args:
        filtering: of the dataset, for groups by selectivity.
    """
    known: Mapping[str, Callable[[], Grouping]] = {
        "tags": lambda: _by_value(by, "tag", [query.tags for query in queries], most),
        "source": lambda: _by_source(queries, most),
        "length": lambda: _by_length(queries),
        "relevant": lambda: _by_relevant(queries, qrels),
        "filter": lambda: _by_value(by, "filter", [_named(query) for query in queries], most),
        "selectivity": lambda: _by_selectivity(queries, filtering),
    }
    if by in BY_FILTER and not any(query.filter for query in queries):
        return _by_key(by, queries, most)
    return known.get(by, lambda: _by_key(by, queries, most))()


def _relevant(grades: Mapping[str, int]) -> int:
    return sum(grade >= 1 for grade in grades.values())


def _named(query: Query) -> tuple[str, ...]:
    """The fields that the filter of a query names, as one label."""
    return () if query.filter is None else (" + ".join(query.filter.fields),)


_SELECTIVITY = (0.01, 0.1, 0.5)


def _by_selectivity(queries: Sequence[Query], filtering: Filtering | None) -> Grouping:
    """By the share of the documents that fits the filter: up to 1 %, 10 %, 50 %, more."""
    what = "share of documents that fits the filter"
    if filtering is None:
        told = "Without the documents nobody knows how many of them fit."
        return Grouping("selectivity", what, (), (told,))
    labels = [f"up to {share:.0%}" for share in _SELECTIVITY]
    labels.append(f"above {_SELECTIVITY[-1]:.0%}")
    groups: dict[str, Rows] = {label: [] for label in [*labels, NONE]}
    for at, query in enumerate(queries):
        if query.filter is None:
            groups[NONE].append(at)
        else:
            groups[labels[bisect_left(_SELECTIVITY, filtering.share(query.filter))]].append(at)
    found = tuple((label, rows) for label, rows in groups.items() if rows)
    return Grouping("selectivity", what, found)


def _by_source(queries: Sequence[Query], most: int) -> Grouping:
    present = {key for query in queries for key in query.metadata}
    key = next((key for key in SOURCE_KEYS if key in present), None)
    if key is None:
        return Grouping("source", "source", (), ("No query says where it comes from.",))
    values = [_labels(query.metadata.get(key)) for query in queries]
    return _by_value("source", f"source (metadata.{key})", values, most)


def _by_key(key: str, queries: Sequence[Query], most: int) -> Grouping:
    given = [query.metadata.get(key) for query in queries]
    what = f"metadata.{key}"
    told = [value for value in given if value is not None]
    numbers = [value for value in told if _is_number(value)]
    if len(numbers) < len(told) or len(set(numbers)) <= _FEW_NUMBERS:
        return _by_value(key, what, [_labels(value) for value in given], most)
    places = [at for at, value in enumerate(given) if value is not None]
    groups = [
        (label, [places[at] for at in rows])
        for label, rows in _thirds(numbers, lambda low, high: _bounds(low, high, " to "))
    ]
    without = [at for at, value in enumerate(given) if value is None]
    if without:
        groups.append((NONE, without))
    return Grouping(key, what, tuple(groups))


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _by_value(by: str, what: str, labels: Sequence[Sequence[str]], most: int) -> Grouping:
    """One group for each label, the largest first; queries without one last."""
    groups: dict[str, Rows] = {}
    for at, of_query in enumerate(labels):
        for label in dict.fromkeys(of_query):
            groups.setdefault(label, []).append(at)
    if not groups:
        return Grouping(by, what, (), (f"No query has a {what}.",))
    order = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    without = [at for at, of_query in enumerate(labels) if not of_query]
    tail = [(NONE, without)] if without else []
    notes = []
    if sum(map(len, groups.values())) + len(without) > len(labels):
        notes.append("A query that has several counts in each of them.")
    one_by_one = 2 * len(groups) > len(labels) > 3
    if one_by_one:
        notes.append("Hardly any two queries share a value.")
    if len(order) + len(tail) > most:
        kept = most - 1 - len(tail)
        rest = sorted({at for _, rows in order[kept:] for at in rows})
        notes.append(
            f"The {len(order) - kept:,} smallest of {len(order):,} are one slice together."
        )
        order = [*order[:kept], (f"({len(order) - kept:,} others)", rest)]
    return Grouping(by, what, (*order, *tail), tuple(notes), one_by_one)


def _labels(value: Any) -> tuple[str, ...]:
    """Labels that a metadata value stands for: a list for several, an empty one for none."""
    if value is None or value == "":
        return ()
    if isinstance(value, bool):
        return (str(value).lower(),)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        return tuple(label for one in value for label in _labels(one))
    if isinstance(value, Mapping):
        return tuple(f"{key}: {label}" for key, one in value.items() for label in _labels(one))
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return (str(int(value) if whole else value),)  # 2.0 is 2


def _by_length(queries: Sequence[Query]) -> Grouping:
    """Thirds by number of words, or of characters in scripts without blanks between words."""
    texts = [unicodedata.normalize("NFC", query.text) for query in queries]
    unit = "words"
    if main_script(script_profile(texts)) in BLANKLESS:
        unit = "characters"
        lengths = [len("".join(text.split())) for text in texts]
    else:
        lengths = [len(text.split()) for text in texts]

    def label(low: float, high: float) -> str:
        return f"1 {unit[:-1]}" if high == 1 else f"{_bounds(low, high)} {unit}"

    return Grouping("length", f"length in {unit}", tuple(_thirds(lengths, label)))


def _by_relevant(queries: Sequence[Query], qrels: Qrels) -> Grouping:
    """1, 2-3, 4 or more; thirds where most queries have 4 or more."""
    what = "number of relevant documents"
    if kind := kind_of_truth(qrels):
        return Grouping("relevant", what, (), (f"Truth is by {kind}: no document is judged.",))
    numbers = [_relevant(qrels[query.id]) for query in queries]
    if 2 * sum(number >= 4 for number in numbers) > len(numbers):
        groups = _thirds(numbers, lambda low, high: f"{_bounds(low, high)} relevant")
        return Grouping("relevant", what, tuple(groups))
    bins = {"none": (0, 0), "1": (1, 1), "2-3": (2, 3), "4 or more": (4, float("inf"))}
    found = (
        (f"{label} relevant", [at for at, n in enumerate(numbers) if low <= n <= high])
        for label, (low, high) in bins.items()
    )
    return Grouping("relevant", what, tuple((label, rows) for label, rows in found if rows))


def _thirds(
    values: Sequence[float], label: Callable[[float, float], str]
) -> list[tuple[str, Rows]]:
    """Up to three groups of about the same size, rising; equal values stay together.

    Each cut lies between two distinct values, where it comes closest to one or two thirds.
    """
    counts = sorted(Counter(values).items())
    seen = accumulate((n for _, n in counts), initial=0)
    below = {value: n for (value, _), n in zip(counts, seen, strict=False)}
    firsts = [value for value, _ in counts]
    starts = set(firsts[:1])
    for share in (1, 2):
        wanted = share * len(values) / 3
        starts |= set(sorted(firsts[1:], key=lambda value: abs(below[value] - wanted))[:1])
    groups = []
    for start, end in pairwise([*sorted(starts), math.inf]):
        rows = [at for at, value in enumerate(values) if start <= value < end]
        groups.append((label(start, max(values[at] for at in rows)), rows))
    return groups


def _bounds(low: float, high: float, between: str = "-") -> str:
    ends = [str(int(end)) if end == int(end) else f"{end:.6g}" for end in (low, high)]
    return between.join(dict.fromkeys(ends))
