"""The dataset that runs were made on, found again: a run keeps ids, not texts, grades and tags."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from retrieval_bench.core.errors import ConfigError, DataError, HarnessError, counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.data import load_dataset
from retrieval_bench.data.fingerprint import without_self_hits
from retrieval_bench.data.self_queries import with_self_hits
from retrieval_bench.runs.run import Run


def dataset_of(runs: Sequence[Run], given: str | Path | Dataset | None = None) -> Dataset:
    """Load the dataset that all of ``runs`` were measured on, checked by its fingerprint.

    Args:
        runs: at least one.
        given: name, folder or dataset; None = where the first run found it.

    Raises:
        ConfigError: the runs are on different datasets or splits, or nothing says where it is.
        DataError: what was found is another dataset, or has changed since.
    """
    first = runs[0]
    wanted, split = first.summary.dataset.fingerprint, first.summary.dataset.split
    kinds = {(r.summary.dataset.fingerprint, r.summary.dataset.split) for r in runs}
    if len(kinds) > 1:
        raise ConfigError(
            f"runs on {len(kinds)} datasets or splits",
            where=", ".join(str(run.folder or run.name) for run in runs),
            accepted="runs on one dataset and split",
            fix="give those of one dataset at a time",
        )
    dataset = given if isinstance(given, Dataset) else _loaded(first, given, split)
    dataset = with_self_hits(dataset, self_hits_of(first))
    if dataset.fingerprint != wanted or dataset.split != split:
        raise DataError(
            f"dataset {dataset.name!r} ({dataset.split}) is not the one of the runs",
            where=f"fingerprint {dataset.fingerprint[:12]}, in the runs {wanted[:12]} ({split})",
            accepted="the documents, queries and judgements that were measured, unchanged",
            fix="name the right folder with --dataset, or measure again",
        )
    return dataset


def datasets_of(
    groups: Sequence[Sequence[Run]], named: Sequence[str | Path | Dataset] = ()
) -> list[Dataset | str]:
    """For each group of runs on one dataset that dataset, or in a sentence why it is not there.

    Args:
        named: where some of the datasets are now, in any order; the others are looked for where
            the runs found them.

    Raises:
        HarnessError: one of ``named`` is no dataset, or none of those of the runs.
    """
    splits = list(dict.fromkeys(runs[0].summary.dataset.split for runs in groups))
    known = {run.summary.dataset.fingerprint for runs in groups for run in runs}
    loaded: list[Dataset] = []
    for name in named:
        found_here = [name] if isinstance(name, Dataset) else _in_splits(name, splits)
        if not any(
            known & {dataset.fingerprint, without_self_hits(dataset.fingerprint)}
            for dataset in found_here
        ):
            dataset_of(groups[0], found_here[0])  # says what is wrong with it
        loaded += found_here
    datasets: list[Dataset | str] = []
    for runs in groups:
        wanted = {run.summary.dataset.fingerprint for run in runs}
        same = [with_self_hits(dataset, self_hits_of(runs[0])) for dataset in loaded]
        fitting = [dataset for dataset in same if dataset.fingerprint in wanted]
        try:
            datasets.append(dataset_of(runs, fitting[0] if fitting else None))
        except HarnessError as problem:
            if fitting:
                raise
            datasets.append(f"{problem.given}.")
    return datasets


def self_hits_of(run: Run) -> str:
    """Return whether hits with the id of their query count in ``run``: "keep" or "drop"."""
    return run.summary.dataset.self_hits


def _in_splits(place: str | Path, splits: Sequence[str]) -> list[Dataset]:
    """The dataset there in each of ``splits`` that it has; the error of the first if in none."""
    datasets: list[Dataset] = []
    problems: list[HarnessError] = []
    for split in splits:
        try:
            datasets.append(load_dataset(place, split))
        except HarnessError as problem:
            problems.append(problem)
    if not datasets:
        raise problems[0]
    return datasets


def _loaded(run: Run, given: str | Path | None, split: str) -> Dataset:
    """Raises:
    ConfigError: nothing says where the dataset is, or it is there no more.
    """
    if given is not None:
        return load_dataset(given, split)
    name = run.summary.dataset.name
    source = run.manifest.get("dataset", {}).get("source")
    try:
        return load_dataset(source or name, split)
    except HarnessError as problem:
        raise ConfigError(
            f"the dataset {name!r} of the run was not found again: {problem.given}",
            where=str(run.folder or run.name),
            accepted="its name or folder",
            fix="say where it is with --dataset",
        ) from problem


_BEGINNING = 200
"""Characters of a text that stand for a missing title."""


def titles_of(dataset: Dataset, wanted: set[str]) -> dict[str, str]:
    """Title, or beginning of the text, of the documents or units in ``wanted``; of a unit, that of
    its first document. One walk, which ends as soon as all are found."""
    titles: dict[str, str] = {}
    for document in dataset.documents or ():
        if len(titles) == len(wanted):
            break
        doc_id = dataset.unit_of.get(document.id, document.id)
        if doc_id in wanted and doc_id not in titles:
            titles[doc_id] = document.title or document.text[:_BEGINNING]
    return titles


def labels_of(dataset: Dataset, queries: Sequence[Query]) -> tuple[str, ...]:
    """Label the cluster of each of ``queries`` by the key of ``dataset``, where a query that lacks
    it, or has it empty, is one by itself; without a key as :func:`alike`."""
    key = dataset.cluster_key
    if key is None:
        return alike(queries)
    values = [query.metadata.get(key) for query in queries]
    return tuple(
        f"id {query.id}" if value in (None, "") else f"={value}"
        for query, value in zip(queries, values, strict=True)
    )


def clusters_in(dataset: Dataset, queries: Sequence[Query]) -> Mapping[str, str]:
    """Label the clusters of ``queries`` by their id; empty where ``dataset`` has no key."""
    labels = () if dataset.cluster_key is None else labels_of(dataset, queries)
    return dict(zip([query.id for query in queries], labels, strict=False))


def alike(queries: Sequence[Query]) -> tuple[str, ...]:
    """Label ``queries``: equal labels are asked in the same words, or nearly so; empty where all
    are different. Case, white space and punctuation at the end do not count, nor does one letter
    of a word, or one word of many; numbers, other signs (C, C++), messages and the filter do.
    """
    parent = list(range(len(queries)))

    def root(at: int) -> int:
        while parent[at] != at:
            at = parent[at]
        return at

    first: dict[int, int] = {}
    for at, query in enumerate(queries):
        text = " ".join(unicodedata.normalize("NFKC", query.text).casefold().split())
        for key in _nearly(text.rstrip("?!. ").split()):
            other = first.setdefault(hash(f"{query.messages}{query.filter} {key}"), at)
            low, high = sorted((root(at), root(other)))
            parent[high] = low
    found = [queries[root(at)].id for at in range(len(queries))]
    return tuple(found) if n_alike(found) else ()


def _nearly(words: list[str]) -> Iterator[str]:
    """Keys that questions share which are nearly one: all words, or all but a letter or a word."""
    yield " ".join(words)
    for at, word in enumerate(words if 1 < len(words) <= _LONGEST else ()):
        if word.isalpha() and word.isascii():
            before, after = " ".join(words[:at]), " ".join(words[at + 1 :])
            if len(words) >= _LONG:
                yield f"{before} * {after}"
            elif _LONG_WORD <= len(word) <= _LONGEST_WORD:
                yield f"{before} {word} {after} -{at}"
                for left in range(1, len(word)):
                    yield f"{before} {word[:left]}{word[left + 1 :]} {after} -{at}"


_LONG, _LONGEST, _LONG_WORD, _LONGEST_WORD = 12, 500, 5, 50
"""Words of a question, and letters of a word, from which on one does not count, and up to which."""


def n_alike(labels: Sequence[str]) -> int:
    """Number of different questions in ``labels``; 0 where each is one by itself."""
    n = len(set(labels))
    return n if n < len(labels) else 0


def told_alike(queries: int, n: int, change: str) -> Notice:
    """Say that ``queries`` are ``n`` different questions, and what would ``change``; where hardly
    any is asked twice it is a note."""
    text = (
        f"{counted(queries, 'query')} have {counted(n, 'different text')}, or nearly. Counted as "
        f"such (`cluster_key` in dataset.yaml), {change}."
    )
    return Notice(text, Code.SAME_QUESTION if n < 0.95 * queries else Code.NOTE)
