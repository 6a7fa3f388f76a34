"""Result of tuning, as data: the gain on queries that had no part in the choice, the doubts,
and the recommended setting as a retriever config that every command takes.

Decides in data; reads no file and prints nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.verdicts import PairJudge, Rules
from retrieval_bench.core import secrets
from retrieval_bench.core.as_json.document import Documented, document
from retrieval_bench.core.config import RetrieverConfig, for_editors
from retrieval_bench.core.errors import ConfigError, HarnessError, RecordError
from retrieval_bench.experiment.building import built
from retrieval_bench.metrics import Metric
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.intervals import graded, mean_interval
from retrieval_bench.stats.resampling import RESAMPLES
from retrieval_bench_tune.grid import Grid, Setting, ordered
from retrieval_bench_tune.price import Price
from retrieval_bench_tune.selection import Selection
from retrieval_bench_tune.shown import (
    ChosenValues,
    DefaultFigures,
    NaiveFigures,
    QueryBeforeAndAfter,
    RecommendedValues,
    TriedSetting,
    TunedDataset,
    TunedFigures,
    ValueMean,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan by which settings were chosen and tried.

    Attributes:
        split: of the queries that the held-out figure is of.
        dev_split: of the queries that the choice was made on; None = cross-validation.
        folds, repeats: of the cross-validation.
        seed: the queries of repeat r were dealt with ``seed`` + r, and a sample of the grid drawn.
    """

    split: str
    dev_split: str | None
    folds: int
    repeats: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Tuning(Documented):
    """Result of :func:`retrieval_bench_tune.tune`.

    Attributes:
        retriever: the config that was tuned.
        dataset: name, fingerprint, split and dev_split.
        k: hits asked for per query.
        metric: what was to be highest.
        plan: which queries choose, and which report.
        grid: settings that were tried.
        values: (settings, tuning queries), on which settings are chosen; with cross-validation
            these are all queries.
        query_ids: the held-out queries, in the order of ``selection.held_out``.
        selection: the winner, and its values on held-out queries.
        delta: the tuned retriever beside the default, on held-out queries.
        recommended: the config with the values of the winner.
        legs: names of the retrievers that this one asks, in the order of a list of weights.
        warnings: what makes the figures less than they seem, in plain words.
        clusters: of the held-out queries; None where each is independent.
        price: what the winner takes beside the default; None where that is the default, or nobody
            can be timed.
    """

    KEYS = (
        "retriever=retriever.name dataset k metric method folds repeats seed=plan.seed n_tuning "
        "n_held_out grid=grid.parameters n_combinations=grid.n_combinations sampled=grid.sampled "
        "legs default=default_figures tuned=tuned_figures naive delta recommended=recommendation "
        "price_ms=price choices settings parameters queries warnings"
    )

    retriever: RetrieverConfig
    dataset: TunedDataset
    k: int
    metric: Metric
    plan: Plan
    grid: Grid
    values: NDArray[np.float64]
    query_ids: tuple[str, ...]
    selection: Selection
    delta: Delta
    recommended: RetrieverConfig
    legs: tuple[str, ...]
    warnings: tuple[str, ...]
    clusters: Clusters | None = None
    price: Price | None = None

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean of every setting on the tuning queries."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def winner(self) -> Setting:
        """Best on the tuning queries: what is recommended."""
        return self.grid.settings[self.selection.winner]

    @property
    def held_out(self) -> float:
        """Mean over queries that had no part in the choice."""
        return float(self.selection.held_out.mean())

    @property
    def held_out_ci95(self) -> tuple[float, float] | None:
        """The interval over queries; the choices are taken as they are."""
        return self._ci95(self.selection.held_out)

    @property
    def default(self) -> float:
        """Mean of the default on the same queries."""
        return float(self.selection.default.mean())

    @property
    def default_ci95(self) -> tuple[float, float] | None:
        """The interval over the same queries."""
        return self._ci95(self.selection.default)

    def _ci95(self, values: NDArray[np.float64]) -> tuple[float, float] | None:
        # A mean over repeats of a hit is no hit.
        return mean_interval(values, graded(self.metric.scale), clusters=self.clusters)

    def views(self) -> dict[str, list[tuple[Any, float]]]:
        """Parameter -> its values with the means on the tuning queries, all other parameters as in
        :meth:`centre`; values that were not tried with these are left out."""
        centre = self.centre().values
        means = {str(s): float(m) for s, m in zip(self.grid.settings, self.means, strict=True)}
        views = {}
        for path, values in self.grid.parameters.items():
            around = [(v, means.get(str(Setting({**centre, path: v})))) for v in ordered(values)]
            views[path] = [(value, mean) for value, mean in around if mean is not None]
        return views

    def centre(self) -> Setting:
        """The best of the settings whose values are known: the winner, unless that is a default
        that is not on the grid."""
        at = [i for i, setting in enumerate(self.grid.settings) if setting.values]
        return self.grid.settings[max(at, key=lambda i: (self.means[i], -i))]

    @property
    def method(self) -> Literal["cross-validation", "dev split"]:
        """The way settings are chosen: by cross-validation or on a split of their own."""
        return "cross-validation" if self.plan.dev_split is None else "dev split"

    @property
    def folds(self) -> int | None:
        """The folds of cross-validation; None without."""
        return None if self.plan.dev_split else self.plan.folds

    @property
    def repeats(self) -> int | None:
        """The repeats of cross-validation; None without."""
        return None if self.plan.dev_split else self.plan.repeats

    @property
    def n_tuning(self) -> int:
        """Queries on which settings are chosen."""
        return int(self.values.shape[1])

    @property
    def n_held_out(self) -> int:
        """Queries that report."""
        return len(self.query_ids)

    @property
    def default_figures(self) -> DefaultFigures:
        """The retriever as its config has it; its values are empty where they are not told."""
        chosen, values = self.selection, self.grid.settings[0].values
        own = (chosen.default_tuning, self.default, self.default_ci95, chosen.default_gap)
        return DefaultFigures(values, *own)

    @property
    def tuned_figures(self) -> TunedFigures:
        """The retriever with what was chosen without the queries that report."""
        chosen = self.selection
        own = (chosen.tuning, self.held_out, self.held_out_ci95, chosen.gap)
        return TunedFigures(*own, chosen.gaps.tolist())

    @property
    def naive(self) -> NaiveFigures:
        """The setting that would be chosen, and reported, on the same queries."""
        chosen = self.selection
        return NaiveFigures(self.grid.settings[chosen.naive].values, chosen.naive_mean)

    @property
    def recommendation(self) -> RecommendedValues:
        """The setting to use."""
        own, mean = self.recommended, float(self.means[self.selection.winner])
        return RecommendedValues(
            self.winner.values, self.winner.as_is, mean, own.target, own.params, own.chunk
        )

    @property
    def inline(self) -> dict[str, Any]:
        """The config with the values of the winner, as a mapping; what says how it is called, and
        how documents are cut, stands there if it is given."""
        own = self.recommended
        given = own.model_dump(mode="json", include=set(own.calling), exclude_unset=True)
        called = {key: value for key, value in given.items() if value is not None}
        return {"name": own.name, "target": own.target, "params": dict(own.params)} | called

    @property
    def choices(self) -> list[ChosenValues]:
        """The choice of each fold."""
        return [
            ChosenValues(
                choice.repeat,
                choice.fold,
                self.grid.settings[choice.setting].values,
                choice.tuning,
                choice.held_out,
                choice.n_held_out,
            )
            for choice in self.selection.choices
        ]

    @property
    def settings(self) -> list[TriedSetting]:
        """All that were tried."""
        return [
            TriedSetting(tried.values, tried.as_is, float(mean), self.selection.times_chosen(at))
            for at, (tried, mean) in enumerate(zip(self.grid.settings, self.means, strict=True))
        ]

    @property
    def parameters(self) -> dict[str, list[ValueMean]]:
        """For each parameter its values, all others as in the best setting."""
        return {path: [ValueMean(*row) for row in rows] for path, rows in self.views().items()}

    @property
    def queries(self) -> list[QueryBeforeAndAfter]:
        """The held-out ones."""
        default, held_out = self.selection.default.tolist(), self.selection.held_out.tolist()
        rows = zip(self.query_ids, default, held_out, strict=True)
        return [QueryBeforeAndAfter(*row) for row in rows]

    def as_dict(self) -> dict[str, Any]:
        """The document of ``tune --format json``."""
        return dict(secrets.redact(document(self)))


def judged(
    selection: Selection,
    metric: Metric,
    dataset: str,
    margin: float = MARGIN,
    clusters: Clusters | None = None,
) -> Delta:
    """The tuned retriever (b) beside the default (a), paired by held-out query."""
    values, names = [selection.default[:, None], selection.held_out[:, None]], ("default", "tuned")
    judge = PairJudge(dataset, names, (metric,), values, clusters=[clusters] * 2)
    (delta,) = judge.judged([(0, 1)], Rules(margin, (), RESAMPLES))
    return delta


def check_out(out: Path | None, config: RetrieverConfig) -> None:
    """Check that :func:`write_config` can write ``out``, and the retriever be built from there.

    Raises:
        ConfigError: no YAML file, it exists already, there is no such folder, or what the config
            names by a relative path is not found from there.
    """
    if out is None:
        return
    if out.suffix not in (".yaml", ".yml"):
        raise _bad(out, "a file that ends in .yaml", "give it such a name")
    if out.exists():
        raise _bad(out, "a file that is not there yet", "give another name, or remove it")
    if not os.access(out.absolute().parent, os.W_OK):
        raise _bad(out, "a folder that may be written to", "make the folder first")
    if config.source is not None and out.absolute().parent != config.source.parent:
        moved = config.model_copy(update={"source": out.absolute()})
        try:
            built(moved).close()
        except HarnessError as problem:
            raise _bad(
                out,
                f"a folder from where the config's paths lead to the same ({problem.given})",
                f"write it to {config.source.parent}",
            ) from None


def write_config(out: Path, tuning: Tuning) -> None:
    """Write the recommended config; its first lines say what to expect of it.

    Raises:
        RecordError: the file cannot be written, or it is there already; ``runs`` has ``tuning``.
    """
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(config_text(tuning))
    except OSError as problem:
        unwritten = RecordError(
            f"cannot write {out}: {problem.strerror}",
            where=str(out.absolute().parent),
            fix="give another --out; the setting is in the table",
        )
        unwritten.runs = [tuning]
        raise unwritten from None


def config_text(tuning: Tuning) -> str:
    """The file as text."""
    chosen, own = tuning.selection, tuning.recommended
    how = (
        f"chosen on split {tuning.plan.dev_split}, tried on split {tuning.plan.split}"
        if tuning.plan.dev_split
        else f"cross-validated on split {tuning.plan.split}, {tuning.plan.folds} folds, "
        f"{tuning.plan.repeats} times, seed {tuning.plan.seed}"
    )
    choice = (
        f"{tuning.winner} - best of {len(tuning.grid.settings)} settings of {own.name} on "
        f"{tuning.dataset.name}, {how}"
    )
    worth = (
        f"{tuning.metric}: {tuning.held_out:.4f} held out ({tuning.default:.4f} by the default: "
        f"{tuning.delta.verdict.value}); not {chosen.tuning:.4f}, which is on the tuning queries"
    )
    first = {"name": f"{own.name}-tuned", "target": own.target, "description": own.description}
    content = tuning.inline | first
    content = {key: content[key] for key in (*first, *content)}
    body = yaml.dump(
        secrets.redact({key: value for key, value in content.items() if value}),
        Dumper=_ListsInLine,
        allow_unicode=True,
        sort_keys=False,
        width=100,
    )
    comments = "".join(f"# {' '.join(line.split())}\n" for line in (choice, worth))
    return "".join([for_editors("retriever"), str(secrets.redact(comments)), body])


class _ListsInLine(yaml.SafeDumper):
    """Mappings a key a line, lists as ``[a, b]``: as these configs are written by hand."""


_ListsInLine.add_representer(
    list,
    lambda dumper, items: dumper.represent_sequence(
        "tag:yaml.org,2002:seq", items, flow_style=True
    ),
)


def _bad(out: Path, accepted: str, fix: str) -> ConfigError:
    return ConfigError(f"--out {out}", accepted=accepted, fix=fix)
