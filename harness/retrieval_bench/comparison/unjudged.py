"""Systems side by side on a dataset where nothing is judged: what can be said, and the texts of the
queries that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.likeness import Differing, Likeness
from retrieval_bench.core.types import Dataset
from retrieval_bench.runs.dataset import datasets_of, titles_of


def with_texts(comparison: Comparison, named: Sequence[str | Dataset] = ()) -> Comparison:
    """``comparison`` with the texts of the queries that differ most, and the titles of what the
    systems find first, on datasets where nothing is judged; as it is where there is none.

    Args:
        named: where some of the datasets are now; the others are looked for where the runs found
            them.

    Raises:
        HarnessError: one of ``named`` is no dataset, or none of those of the runs.
    """
    if not any(group.likeness for group in comparison.groups):
        return comparison
    places = [at for at, group in enumerate(comparison.groups) if named or group.likeness]
    sources = datasets_of([comparison.groups[at].runs for at in places], named)
    told = list(comparison.groups)
    for at, source in zip(places, sources, strict=True):
        told[at] = with_texts_of(told[at], source)
    return replace(comparison, groups=tuple(told))


def with_texts_of(group: DatasetComparison, source: Dataset | str) -> DatasetComparison:
    """``group`` with the texts of ``source``, or with what that says of why there are none; as it
    is where something is judged."""
    if group.likeness is None:
        return group
    if isinstance(source, str):
        return replace(group, likeness=replace(group.likeness, without_texts=source.rstrip(".")))
    return replace(group, likeness=told_by(group.likeness, source))


def told_by(found: Likeness, dataset: Dataset) -> Likeness:
    """``found`` with the texts of ``dataset``."""
    texts = {query.id: query.text for query in dataset.queries}
    wanted = {doc for one in found.differing for ids in one.first.values() for doc in ids}
    titles = titles_of(dataset, wanted)

    def told(one: Differing) -> Differing:
        own = {doc for ids in one.first.values() for doc in ids}
        here = {doc: titles[doc] for doc in sorted(own) if doc in titles}
        return replace(one, text=texts.get(one.query_id, ""), titles=here)

    return replace(found, differing=tuple(map(told, found.differing)), without_texts="")
