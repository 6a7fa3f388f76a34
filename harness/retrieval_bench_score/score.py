"""``evaluate`` and ``audit`` from words to figures.

Judgements may take long to read: they are given as a function, called once all else was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.notices import with_text
from retrieval_bench.core.types import EMPTY
from retrieval_bench.data.faults import reporting
from retrieval_bench.data.files.lines import lines
from retrieval_bench.metrics.names import Param
from retrieval_bench_score.audit import Audit, audit
from retrieval_bench_score.conventions import CONVENTIONS, Duplicates, Missing, convention
from retrieval_bench_score.runs.as_units import in_units
from retrieval_bench_score.runs.imported import read_rankings
from retrieval_bench_score.scorecard import (
    ScoreCard,
    Truth,
    data_warnings,
    id_warnings,
    left_of,
    score_file,
    score_mapping,
)

RunGiven = str | Path | Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]]


def evaluate(
    run: RunGiven,
    truth: Callable[[], Truth],
    *,
    metrics: Sequence[str] = (),
    rules: str = "trec",
    dev_ids: Collection[str] | None = None,
    missing: Missing | None = None,
    also: Mapping[str, Param] = EMPTY,
    repeats: Duplicates | None = None,
) -> ScoreCard:
    """Score a run that was made elsewhere.

    Args:
        metrics: names; empty = what the convention shows.
        rules: name of the convention.
        dev_ids: the queries to choose an abstention threshold on; None draws half of them, seeded.
        missing: what a query is worth that the run does not have; None = as the convention has it.
        also: parameters of every metric that knows them and was not given them: ``rel``, ``depth``
            and ``judged_only`` (trec_eval -l, -M and -J).
        repeats: what a document counts that stands in a ranking more than once, likewise.

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    chosen = convention(rules)
    for name, given, choices in (
        ("missing", missing, (chosen.missing, *get_args(Missing))),
        ("repeats", repeats, get_args(Duplicates)),
    ):
        if given not in (None, *choices):
            raise ConfigError(
                f"{name} {given!r}",
                accepted=" or ".join(map(repr, dict.fromkeys(choices))),
                fix="give one of them, or leave it out",
            )
    if missing not in (None, chosen.missing):
        source = f"{chosen.source}; but queries missing from the run: {missing}"
        chosen = replace(chosen, missing=missing, source=source)
    if repeats not in (None, chosen.duplicates):
        source = f"{chosen.source}; but repeated documents: {repeats}"
        chosen = replace(chosen, duplicates=repeats, source=source)
    chosen = replace(chosen, also=also)
    chosen.parse(metrics)  # a wrong name is told before large files are read
    if isinstance(run, str | Path):
        file, known = read_rankings(run), truth()
        file = file.within(known.documents)
        return score_file(file, known, metrics, chosen, dev_ids=dev_ids)
    return score_mapping(run, truth(), metrics, chosen, dev_ids=dev_ids)


def audit_runs(
    runs: Sequence[str | Path],
    truth: Callable[[], Truth],
    *,
    conventions: Sequence[str] = (),
    k: int = 10,
) -> Audit:
    """Score runs that lie in files or folders under several conventions.

    Args:
        conventions: the first is what the others are compared with; empty = all, trec first.
        k: cut-off where a convention has none of its own.

    Raises:
        HarnessError: everything that is wrong with the input.
    """
    if k < 1:
        raise ConfigError(f"k {k}", where="--k", accepted="1 or more", fix="raise it")
    chosen = [convention(name) for name in conventions or CONVENTIONS]
    rankings = [read_rankings(path) for path in runs]
    known = truth()
    rankings = [in_units(ranking.within(known.documents), known.unit_of) for ranking in rankings]
    left = [left_of(ranking, known) for ranking in rankings]
    rankings = [ranking for ranking, _ in left]
    audited = audit(rankings, known.judgements, chosen, k, unanswerable=known.unanswerable)
    apart = [
        with_text(warning, f"{name}: {warning}")
        for name, (run, told) in zip(audited.systems, left, strict=True)
        for lists in [{query: of.doc_ids for query, of in run.rankings.items()}]
        for warning in (*id_warnings(lists, known), *told, *data_warnings(known, lists))
    ]
    return replace(audited, warnings=(*known.origins, *apart, *audited.warnings))


def read_ids(path: Path) -> list[str]:
    """One id a line; blank lines do not count."""
    with reporting("the list of queries", path) as faults:
        ids = [text.strip() for _, text in lines(path, faults) if text.strip()]
        if not ids and not faults.count:
            faults.of(path).error(None, "no ids", "ids of queries, one a line")
    return ids
