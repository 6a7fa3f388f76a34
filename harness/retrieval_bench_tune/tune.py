"""The way from words to tuned parameters: everything built and checked first, all faults at
once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from retrieval_bench.core.config import RetrieverConfig, inline_config, load_retriever_config
from retrieval_bench.core.errors import ConfigError, DataError, counted
from retrieval_bench.core.progress import Reporter, Silent
from retrieval_bench.core.retriever import Capabilities, require_k
from retrieval_bench.core.types import EMPTY, Dataset, Qrels, Query, Ranking
from retrieval_bench.data import given_dataset, load_dataset, with_settings
from retrieval_bench.data.id_spaces import known_ids
from retrieval_bench.data.needs_judgements import require_corpus, require_judged
from retrieval_bench.experiment.preparation import Problems
from retrieval_bench.experiment.warnings import drawn, of_answers, refuse_unknown
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.measure.threads import prepare_environment
from retrieval_bench.metrics import Metric, default_metrics, one_metric
from retrieval_bench.metrics.names import check_defined
from retrieval_bench.runs.dataset import clusters_in
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.power import check_margin
from retrieval_bench.stats.resampling import SEED
from retrieval_bench_tune.doubts import doubts
from retrieval_bench_tune.grid import Grid, checked_grid, make_grid, parse_grid
from retrieval_bench_tune.price import price_of
from retrieval_bench_tune.search import Tunable, values_of
from retrieval_bench_tune.selection import chosen_on_dev, cross_validated
from retrieval_bench_tune.shown import TunedDataset
from retrieval_bench_tune.tuned import Plan, Tuning, check_out, judged, write_config

FOLDS, REPEATS = 5, 10

GridGiven = Mapping[str, Sequence[Any]] | Sequence[str]


def tune(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path | Dataset = "science-mini",
    *,
    split: str = "test",
    language: str | None = None,
    self_hits: str | None = None,
    dev: str | Dataset | None = None,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    k: int = 10,
    metric: str | None = None,
    grid: GridGiven = (),
    overrides: Sequence[str] = (),
    sample: int | None = None,
    seed: int = SEED,
    margin: float = MARGIN,
    price: bool = True,
    out: str | Path | None = None,
    reporter: Reporter | None = None,
) -> Tuning:
    """Choose parameters of one retriever, and say what they are worth on other queries.

    Args:
        retriever: name of a config, YAML file, ``module:Class`` or inline mapping.
        dataset: name, folder, or a :class:`Dataset`; its judged queries are reported on.
        split: of a dataset that is given by name or folder.
        language, self_hits: of the dataset, as in :func:`.load_dataset`.
        dev: split of the same dataset, or a dataset with the same documents, on whose queries
            settings are chosen; None = cross-validation over the queries of ``split``.
        folds, repeats: of the cross-validation.
        k: hits asked for per query.
        metric: what the best setting has most of; None = nDCG@10, or at k when that is smaller;
            where truth is by rule, the first metric of a run.
        grid: dotted path of a parameter -> values, or ``path=[v1, v2]`` as on the command line;
            empty = the retriever's own :meth:`.Retriever.search_space`.
        overrides: ``dotted.path=value`` into the parameters, the same in every setting.
        sample: so many settings of a large grid, drawn at random.
        margin: up to this absolute difference of means tuned and default are as good as equal.
        price: time the best setting beside the default; False where calls cost.
        out: file for the recommended setting as a retriever config.

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
    """
    prepare_environment(Protocol().threads)
    problems = Problems()
    destination = None if out is None else Path(out)
    with problems.kept():
        _check_numbers(folds, repeats, seed, margin)
    with problems.kept():
        require_k(k)
    queries: _Queries | None = None
    with problems.kept():
        queries = _Queries.of(dataset, split, dev, folds, language=language, self_hits=self_hits)
    chosen: Metric | None = None
    with problems.kept():
        chosen = _chosen_metric(metric, k, EMPTY if queries is None else queries.data.qrels)
    tunable: Tunable | None = None
    with problems.kept():
        config = _config(retriever, overrides)
        tunable = Tunable(config)
        check_out(destination, config)
    made: Grid | None = None
    parse = checked_grid if isinstance(grid, Mapping) else parse_grid
    given = parse(cast("Any", grid), problems)
    with problems.kept():
        if tunable is not None and (given or not grid):
            made = _grid(tunable, given, problems, k=k, sample=sample, seed=seed)
    try:
        problems.raise_if_any()
        if tunable is None or made is None or queries is None or chosen is None:
            raise AssertionError("what could not be made is a problem that was raised")
        require_corpus(queries.data, {tunable.config.name: tunable.base.capabilities})
        plan = Plan(queries.data.split, queries.dev_split, folds, repeats, seed)
        tuning = _found(
            tunable,
            made,
            queries,
            plan,
            k=k,
            metric=chosen,
            margin=margin,
            price=price,
            reporter=reporter or Silent(),
        )
    finally:
        if tunable is not None:
            tunable.close()
    if destination is not None:
        write_config(destination, tuning)
    return tuning


_MOST = 10_000
"""Folds, and cross-validations: the values of all of them are held."""


def _chosen_metric(name: str | None, k: int, qrels: Qrels) -> Metric:
    """Raises:
    ConfigError: unknown, undefined for these judgements, deeper than k, or with a mean of its
        own kind.
    """
    if name is None:
        return default_metrics(max(k, 1), qrels)[0]  # a k below 1 is told by itself
    metric = one_metric(name)
    if qrels:
        check_defined([metric], qrels, "--metric")
    if metric.cut is not None and metric.cut > k >= 1:
        raise ConfigError(
            f"metric {metric} with k = {k}",
            where="--metric",
            accepted=f"cut-offs up to k = {k}",
            fix=f"raise --k to {metric.cut}, or lower the cut-off",
        )
    if metric.geometric:
        raise ConfigError(
            f"metric {metric}",
            where="--metric",
            accepted="a metric whose mean over queries is the arithmetic one",
            fix="tune on AP",
        )
    return metric


def _check_numbers(folds: int, repeats: int, seed: int, margin: float) -> None:
    """Raises:
    ConfigError: everything that is wrong with the numbers.
    """
    problems = Problems()
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1)):
        if not least <= value <= _MOST:
            accepted = f"a whole number from {least} to {_MOST:,}"
            problems.add(ConfigError(f"--{name} {str(value)[:12]}", accepted=accepted))
    if seed < 0:
        problems.add(ConfigError(f"--seed {seed}", accepted="a whole number from 0"))
    with problems.kept():
        check_margin(margin)
    problems.raise_if_any()


def _config(retriever: str | Path | Mapping[str, Any], overrides: Sequence[str]) -> RetrieverConfig:
    if isinstance(retriever, str | Path):
        return load_retriever_config(str(retriever), overrides)
    if isinstance(retriever, Mapping):
        return inline_config(retriever, overrides)
    raise ConfigError(
        f"a {type(retriever).__name__} to tune",
        accepted="a name, a YAML file, module:Class, or an inline {target, params}",
        fix="name its class, so that it can be built with other parameters",
    )


def _grid(
    tunable: Tunable,
    given: Mapping[str, tuple[Any, ...]],
    problems: Problems,
    *,
    k: int,
    sample: int | None,
    seed: int,
) -> Grid:
    parameters = dict(given) or checked_grid(tunable.search_space(), problems)
    if not parameters:
        raise ConfigError(
            f"{tunable.config.name!r} does not say what is worth tuning",
            where="no --grid",
            accepted="parameters with the values to try",
            fix="give --grid key=[value, value]; an adapter can name its own in search_space()",
        )
    current = {}
    for path in parameters:
        try:
            current[path] = tunable.current(path)
        except KeyError:
            continue  # neither config nor retriever tells it
    made = make_grid(parameters, current, sample=sample, seed=seed)
    tunable.remember(parameters)
    tunable.check(made, k)
    return made


@dataclass(frozen=True, slots=True)
class _Queries:
    """Queries that settings are chosen and tried on."""

    data: Dataset
    held_out: tuple[Query, ...]
    dev: Dataset | None
    tuning: tuple[Query, ...]
    warnings: tuple[str, ...]
    clusters: Mapping[str, str]

    @property
    def dev_split(self) -> str | None:
        """Of the queries that settings are chosen on; None = cross-validation."""
        return None if self.dev is None else self.dev.split

    @classmethod
    def of(
        cls,
        dataset: str | Path | Dataset,
        split: str,
        dev: str | Dataset | None,
        folds: int,
        *,
        language: str | None,
        self_hits: str | None,
    ) -> _Queries:
        """Raises:
        HarnessError: no such data, too few queries, or other documents.
        """
        data = given_dataset(dataset, split, language=language, self_hits=self_hits)
        require_judged(data, "tuning")
        held_out = _by_id(data.evaluated)
        clusters = clusters_in(data, held_out)
        if held_out and len(data.without_relevant) == len(held_out):
            raise DataError(
                f"nothing can be compared in split {data.split!r}: no evaluated query has a "
                "relevant document",
                accepted="judgements of which some are 1 or more",
                fix="choose another --split, or judge some documents as relevant",
            )
        if dev is None:
            n = len(set(groups_of(held_out, clusters).values()))
            if n < folds:
                raise DataError(
                    f"{counted(n, 'different query')} with judgements in split {data.split!r}",
                    accepted=f"at least one for each of {folds} folds",
                    fix="choose another --split, or fewer --folds",
                )
            warnings = (*data.warnings, *drawn(data))
            return cls(data, held_out, None, held_out, warnings, clusters)
        other = dev if isinstance(dev, Dataset) else _dev_data(dataset, dev)
        other = with_settings(other, language=language, self_hits=self_hits)
        if other.n_documents != data.n_documents:
            raise DataError(
                f"{other.n_documents:,} documents with split {other.split!r}, "
                f"{data.n_documents:,} with {data.split!r}",
                accepted="two splits of queries over the same documents",
                fix="give a dev split of the same dataset",
            )
        clusters = {**clusters_in(other, other.evaluated), **clusters}
        ids = {query.id for query in held_out}
        own = [query for query in _by_id(other.evaluated) if query.id not in ids]
        groups = groups_of([*held_out, *own], clusters)
        reported = {groups[query_id] for query_id in ids}
        tuning = tuple(query for query in own if groups[query.id] not in reported)
        if not tuning or not held_out:
            raise DataError(
                f"{counted(len(tuning), 'query')} to choose on in split {other.split!r}, "
                f"{len(held_out):,} to report on in {data.split!r}",
                accepted="two splits with judged queries, no query in both",
                fix="choose other splits, or leave --dev-split out for cross-validation",
            )
        left_out = len(other.evaluated) - len(tuning)
        told = list(dict.fromkeys([*data.warnings, *other.warnings, *drawn(data)]))
        if left_out:
            same = "id, cluster or text" if clusters else "id or text"
            told.append(
                f"{counted(left_out, 'query')} of split {other.split!r} left out: the same {same} "
                f"is in {data.split!r}"
            )
        return cls(data, held_out, other, tuning, tuple(told), clusters)

    def clusters_of(self, queries: Sequence[Query]) -> Clusters | None:
        """The clusters of ``queries``; None where each is independent."""
        return Clusters.of_queries(self.clusters, [query.id for query in queries])


def _dev_data(dataset: str | Path | Dataset, dev: str) -> Dataset:
    if isinstance(dataset, Dataset):
        raise ConfigError(
            f"dev split {dev!r} of a dataset that is given as an object",
            accepted="a dev Dataset, or the dataset by name or folder",
            fix="load both splits, and give the other one as dev",
        )
    return load_dataset(dataset, dev)


def _by_id(queries: Sequence[Query]) -> tuple[Query, ...]:
    """The order in which queries were given changes no choice and no interval."""
    return tuple(sorted(queries, key=lambda query: query.id))


def groups_of(queries: Sequence[Query], clusters: Mapping[str, str]) -> dict[str, Hashable]:
    """Query id -> its group. Queries of one cluster, or with the same text, are one question:
    knowing one is knowing the other."""
    above: dict[Hashable, Hashable] = {}

    def top(key: Hashable) -> Hashable:
        while (parent := above.setdefault(key, key)) != key:
            above[key] = key = above[parent]
        return key

    texts: dict[str, Hashable] = {}
    for query in queries:
        words = " ".join(query.text.casefold().split())
        texts[query.id] = text = ("text", words, tuple(map(str, query.messages)))
        if query.id in clusters:
            above[top(text)] = top(("cluster", clusters[query.id]))
    return {query_id: top(text) for query_id, text in texts.items()}


def _of_answers(
    can: Capabilities, data: Dataset, queries: Sequence[Query], rankings: Sequence[Ranking], k: int
) -> list[str]:
    """The warnings that ``bench`` has of answers, of those of the default."""
    rows = [at for at, query in enumerate(queries) if query.id in data.qrels]
    corpus = None
    if can.external and (data.unit_of or data.documents is not None):
        corpus = known_ids(data.documents, data.unit_of, EMPTY)
    return of_answers(data, queries, rankings, can, (), rows=rows, corpus=corpus, k=k)


def _found(
    tunable: Tunable,
    grid: Grid,
    queries: _Queries,
    plan: Plan,
    *,
    k: int,
    metric: Metric,
    margin: float,
    price: bool,
    reporter: Reporter,
) -> Tuning:
    data, dev = queries.data, queries.dev
    together = queries.held_out if dev is None else (*queries.tuning, *queries.held_out)
    kept = {query.id for query in queries.tuning}
    qrels = {
        **{q: row for q, row in (dev.qrels if dev else {}).items() if q in kept},
        **{query.id: data.qrels[query.id] for query in queries.held_out},
    }
    told: list[str] = []

    def asked(rankings: Sequence[Ranking]) -> None:
        told.extend(_of_answers(tunable.base.capabilities, data, together, rankings, k))
        refuse_unknown({tunable.config.name: told}, data.name)

    values = values_of(
        *(tunable, grid, data, together, qrels), k=k, metric=metric, reporter=reporter, asked=asked
    )
    if dev is None:
        tuning = values
        selection = cross_validated(
            values,
            list(groups_of(queries.held_out, queries.clusters).values()),
            n_folds=plan.folds,
            repeats=plan.repeats,
            seed=plan.seed,
        )
    else:
        tuning, held_out = np.split(values, [len(queries.tuning)], axis=1)
        selection = chosen_on_dev(tuning, held_out)
    winner, clusters = grid.settings[selection.winner], queries.clusters_of(queries.held_out)
    return Tuning(
        tunable.config,
        TunedDataset(data.name, data.fingerprint, data.split, plan.dev_split),
        k,
        metric,
        plan,
        grid,
        tuning,
        tuple(query.id for query in queries.held_out),
        selection,
        judged(selection, metric, data.name, margin, clusters),
        tunable.config_of(winner),
        tunable.leg_names(),
        (
            *queries.warnings,
            *told,
            *doubts(grid, tuning, selection, queries.clusters_of(queries.tuning)),
        ),
        clusters,
        price_of(tunable, winner, data, queries.held_out, k=k, reporter=reporter)
        if price
        else None,
    )
