"""Saved runs fused: what several systems would give together, from their lists alone.

A fusion is a hybrid whose legs replay the runs, so its lists, scores and settings are those of a
hybrid that asks the same systems; only its time is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.pairs.comparability import by_dataset
from retrieval_bench.core.config import inline_config
from retrieval_bench.core.errors import ConfigError, check_known, counted, distinct_names
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Dataset, Query, Ranking, kind_of_truth
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.runs.dataset import clusters_in, datasets_of
from retrieval_bench.runs.run import Run
from retrieval_bench_tune.tune import FOLDS, groups_of, tune
from retrieval_bench_tune.tuned import Tuning

TUNED = "tuned-"
METHODS = ("rrf", "convex")
ACCEPTED = (*METHODS, *(f"{TUNED}{name}" for name in METHODS))
"""Fusions by the name that people give; ``tuned-`` chooses the parameters, held out."""


def fusion_config(runs: Sequence[Run], method: str = METHODS[0]) -> dict[str, Any]:
    """The inline config of the hybrid whose legs replay ``runs``, each to its full length.

    Raises:
        ConfigError: fewer than two runs, or one that is not saved.
    """
    names = distinct_names([run.name for run in runs])
    if len(runs) < 2 or any(run.folder is None for run in runs):
        raise ConfigError(
            f"{len(runs)} run to fuse" if len(runs) < 2 else "a run to fuse that is not saved",
            where=", ".join(names),
            accepted="two saved runs or more on one dataset",
            fix="measure them first: bench",
        )
    legs = [
        {"name": name, "target": "trec_run", "params": {"path": str(run.folder)}}
        for name, run in zip(names, runs, strict=True)
    ]
    depth = [run.rankings.ranking.shape[1] for run in runs]
    params = {"legs": legs, "fusion": {"method": method}, "depth": depth}
    return {"name": f"fusion of {' + '.join(names)}", "target": "hybrid", "params": params}


def checked(hows: Sequence[str]) -> Sequence[str]:
    """``hows``, if all of them are fusions; the first method for none.

    Raises:
        ConfigError: which one is none.
    """
    for how in hows:
        check_known(how, ACCEPTED, f"fusion {how!r}", where="--fuse", fix="name one")
    return hows or [METHODS[0]]


def with_fusions(
    runs: Sequence[Run],
    hows: Sequence[str],
    named: Sequence[str | Path | Dataset] = (),
    reporter: Reporter | None = None,
) -> list[Run]:
    """``runs``, and behind those of each dataset their fusions, one for each of ``hows``.

    Args:
        named: where datasets are now, when they are not where the runs found them.

    Raises:
        HarnessError: as of :func:`fused`, or a dataset that is not found again.
    """
    groups = [group for _, _, group in by_dataset(runs)]
    fusions: list[Run] = []
    for group, data in zip(groups, datasets_of(groups, named), strict=True):
        if isinstance(data, str):
            raise ConfigError(
                data, accepted="the dataset of the runs", fix="say where it is with --dataset"
            )
        # What may be refused comes first: a fusion is saved once it is there.
        tuned_first = sorted(hows, key=lambda how: not how.startswith(TUNED))
        made = {how: fused(group, data, how, reporter) for how in tuned_first}
        fusions += [*group, *(made[how] for how in dict.fromkeys(hows))]
    return fusions


def fused(runs: Sequence[Run], data: Dataset, how: str, reporter: Reporter | None = None) -> Run:
    """The fusion of ``runs``, scored by the metrics that all of them have, and saved as a run.

    Args:
        runs: saved, on ``data``.
        how: one of :data:`ACCEPTED`. Tuned: the queries are dealt into folds, and each is answered
            by the setting that is best, by the runs' first metric, on the other folds.

    Raises:
        HarnessError: an unknown fusion, or runs that cannot be fused.
    """
    checked([how])
    if kind := kind_of_truth(data.qrels):  # texts that came are gone, what they met is kept
        as_decided = service(f"judge as decided in runs by {kind}")
        data = replace(data, qrels=as_decided(data.qrels, runs))
    config = fusion_config(runs, how.removeprefix(TUNED))
    k = min(run.summary.k for run in runs)
    metrics = [
        m for m in runs[0].evaluation.metrics if all(m in r.evaluation.metrics for r in runs)
    ]
    name = config["name"].replace("fusion", how, 1)
    given: Any = {**config, "name": name}
    if how.startswith(TUNED):
        _check_queries(how, data)
        metric = next((m for m in metrics if not m.geometric), None)
        tuning = tune(
            config,
            data,
            k=k,
            metric=None if metric is None else str(metric),
            repeats=1,
            reporter=reporter,
        )
        given = HeldOut(name, tuning)
    experiment = prepare(
        [given],
        data,
        k=k,
        metrics=[str(metric) for metric in metrics],
        protocol=Protocol(RANKINGS_ONLY, rounds=1, warm_up_s=0.0),
    )
    (run,) = experiment.run(reporter)
    return run


def _check_queries(how: str, data: Dataset) -> None:
    """Raises:
    ConfigError: fewer different queries than folds.
    """
    queries = data.evaluated
    n = len(set(groups_of(queries, clusters_in(data, queries)).values()))
    if 0 < n < FOLDS:  # without any, tuning says what it rests on
        raise ConfigError(
            f"{how} over {counted(n, 'different query')} with judgements",
            where="--fuse",
            accepted=f"{FOLDS} or more: each is answered by what is best on the others",
            fix=f"use {how.removeprefix(TUNED)}, or judge {FOLDS} queries or more",
        )


class HeldOut(Retriever):
    """Answers each query by the setting that was chosen without it.

    A query that had no part in the tuning, such as one without an answer, is answered by the
    setting that is best on all queries.

    Attributes:
        name: what a comparison calls it.
    """

    def __init__(self, name: str, tuning: Tuning) -> None:
        self.name = name
        chosen = tuning.selection.chosen[0].tolist()
        self._tuning = tuning
        self._setting_of = dict(zip(tuning.query_ids, chosen, strict=True))
        self._best = tuning.selection.winner
        self._built = {at: self._build(at) for at in {*chosen, self._best}}

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the fusion."""
        return self._built[self._best].capabilities

    def search(self, query: Query, k: int) -> Ranking:
        """The first ``k`` of what the setting of this query fuses."""
        ranking = self._built[self._setting_of.get(query.id, self._best)].search(query, k)
        assert isinstance(ranking, Ranking)
        return ranking

    def describe(self) -> Mapping[str, Any]:
        """Describe the best setting, and count the queries that each setting answers."""
        counts = Counter(self._setting_of.values())
        settings = {str(self._tuning.grid.settings[at]): n for at, n in counts.most_common()}
        return {**self._built[self._best].describe(), "queries_by_setting": settings}

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Return which settings were chosen."""
        settings = self._tuning.grid.settings
        parts = [
            f"{settings[at]} ({n} queries)"
            for at, n in Counter(self._setting_of.values()).most_common()
        ]
        return [f"chosen on the other folds: {'; '.join(parts)}"]

    def close(self) -> None:
        """Close every fusion."""
        for retriever in self._built.values():
            retriever.close()

    def _build(self, at: int) -> Retriever:
        own = self._tuning.retriever
        given = {"name": own.name, "target": own.target, "params": own.params}
        return inline_config(given, self._tuning.grid.settings[at].overrides).build()
