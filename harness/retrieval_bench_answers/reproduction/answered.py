"""What the systems of a file of published numbers return on the datasets at hand, each asked once;
for several systems on one dataset also by group of queries, under several conventions.

Everything that is missing becomes a sentence that says so, and the next figure is looked at.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Dataset, Query, Ranking
from retrieval_bench.data import build_dataset, load_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_answers.reproduction.published import (
    Published,
    PublishedSystem,
    PublishedTable,
)
from retrieval_bench_score.conventions import Convention, Ties, convention
from retrieval_bench_score.runs.imported import RunFile, read_rankings
from retrieval_bench_score.scorecard import Truth
from retrieval_bench_score.scoring import Scored

DATA_FOLDER = "BENCH_DATA"
"""The environment variable that names the folder of the data."""

_DIGITS = 32
_ONCE = Protocol(rounds=1, warm_up_s=0.1)


class NotAtHandError(Exception):
    """Reason why a dataset, a file or a system cannot be used here; the text is shown."""


@dataclass(frozen=True, slots=True)
class Data:
    """A dataset at hand, or judgements alone.

    Attributes:
        unjudged: why nothing measured on it may be judged, empty where it may.
    """

    truth: Truth
    dataset: Dataset | None
    unjudged: str


@dataclass(frozen=True, slots=True)
class Lists:
    """Rankings of one system: as it returned them, or a file's."""

    own: Mapping[str, Ranking]
    file: RunFile | None = None

    def rankings(self, ties: Ties) -> Mapping[str, Ranking]:
        """Query id -> ranking, equal scores of a file as the rule says."""
        return self.own if self.file is None else self.file.ordered(ties)

    def ordered(self, ties: Ties) -> Mapping[str, Sequence[str]]:
        """Query id -> document ids."""
        return {query: ranking.doc_ids for query, ranking in self.rankings(ties).items()}


class Answered:
    """Asks and remembers.

    Args:
        folder: of the data; None = there is none.
    """

    def __init__(
        self, published: Published, folder: Path | None, reporter: Reporter | None = None
    ) -> None:
        self._published = published
        self._folder = folder
        self._reporter = reporter
        self._data: dict[str, Data | str] = {}
        self._lists: dict[tuple[str, str, int], Lists | str] = {}

    def path(self, name: str) -> Path:
        """A path of the file of published numbers.

        Raises:
            NotAtHandError: no folder of data, or nothing there.
        """
        if self._folder is None:
            raise NotAtHandError(f"{DATA_FOLDER} names no folder")
        path = self._folder / name
        if not path.exists():
            raise NotAtHandError(f"no {name} in the folder of {DATA_FOLDER}")
        return path

    def data(self, key: str) -> Data:
        """The dataset ``key``.

        Raises:
            NotAtHandError: it is not here, or another one is in its place.
        """
        if key not in self._data:
            try:
                self._data[key] = self._load(key)
            except (NotAtHandError, HarnessError) as problem:
                self._data[key] = sentence(problem)
        data = self._data[key]
        if isinstance(data, str):
            raise NotAtHandError(data)
        return data

    def lists(self, system: str, dataset: str, k: int) -> Lists:
        """Search the queries of ``dataset`` with ``system``.

        Raises:
            NotAtHandError: the dataset, a file, a package or a model is missing.
        """
        return self._remembered(system, dataset, k, lambda: self.data(dataset))

    def lists_like(self, system: str, run: str) -> tuple[Lists, Lists]:
        """Search the queries of the file ``run`` with ``system``; also the lists of that file.

        Raises:
            NotAtHandError: as :meth:`lists`; also a system that needs a corpus.
        """
        try:
            saved = Lists({}, read_rankings(self.path(run)))
            theirs = saved.rankings("list")
            k = max(1, *map(len, theirs.values()))
            return self._remembered(system, run, k, lambda: _queries_of(run, theirs)), saved
        except HarnessError as problem:
            raise NotAtHandError(sentence(problem)) from None

    def _remembered(self, system: str, asked: str, k: int, data: Callable[[], Data]) -> Lists:
        key = (system, asked, k)
        if key not in self._lists:
            try:
                self._lists[key] = self._ask(system, data(), k)
            except (NotAtHandError, HarnessError) as problem:
                self._lists[key] = sentence(problem)
        lists = self._lists[key]
        if isinstance(lists, str):
            raise NotAtHandError(lists)
        return lists

    def scored(
        self, system: str, dataset: str, k: int, convention: Convention, metrics: Sequence[str]
    ) -> Scored:
        """``system`` under ``convention``.

        Raises:
            NotAtHandError: as :meth:`lists`; also rankings that the convention does not score.
        """
        data = self.data(dataset)
        lists = self.lists(system, dataset, k).ordered(convention.ties)
        try:
            return data.truth.score(lists, convention, metrics)
        except HarnessError as problem:
            raise NotAtHandError(sentence(problem)) from None

    def _load(self, key: str) -> Data:
        published = self._published.datasets[key]
        if published.path is None:
            raise NotAtHandError(f"the dataset {key} is not public")
        path = self.path(published.path)
        dataset = load_dataset(path, published.split) if path.is_dir() else None
        fingerprint = _sha256(path) if dataset is None else dataset.fingerprint
        unjudged = ""
        if published.fingerprint is None:
            unjudged = f"the fingerprint of the published {key} is not known"
        elif fingerprint != published.fingerprint:
            unjudged = f"{published.path} is another dataset: fingerprint {fingerprint[:12]}"
        return Data(Truth.needed(dataset or path), dataset, unjudged)

    def _ask(self, name: str, data: Data, k: int) -> Lists:
        system: PublishedSystem = self._published.systems[name]
        if system.run is not None:
            file = read_rankings(self.path(system.run))
            return Lists({}, file)
        if data.dataset is None:
            raise NotAtHandError("judgements alone: there is nothing to search")
        retriever = system.retriever
        if isinstance(retriever, dict):
            retriever = {"name": name, **retriever}
        experiment = prepare([retriever], data.dataset, k=k, protocol=_ONCE, save=False)
        (run,) = experiment.run(self._reporter, save=False)
        if run.summary.status != "complete":
            raise KeyboardInterrupt
        failed = [status for status in run.status if status != "ok"]
        if failed:
            raise NotAtHandError(f"{len(failed)} of {len(run.status)} queries failed: {failed[0]}")
        rankings = run.rankings
        ids = rankings.query_ids
        return Lists({query: rankings.row(at) for at, query in enumerate(ids)})


def data_folder() -> Path | None:
    """The folder that ``BENCH_DATA`` names, None where it names none.

    Raises:
        ConfigError: it names something else.
    """
    given = os.environ.get(DATA_FOLDER)
    if not given:
        return None
    folder = user_path(given)
    if not folder.is_dir():
        raise ConfigError(
            f"{DATA_FOLDER} names {given}, which is no folder",
            where="the environment",
            accepted="the folder of the data",
            fix="correct the variable, or leave it unset",
        )
    return folder


def _queries_of(name: str, run: Mapping[str, Ranking]) -> Data:
    """A dataset that has the queries of a run and no corpus; what is in the run counts as judged,
    so that all of them are asked."""
    queries = [Query(query_id, query_id) for query_id in run]
    qrels = {query_id: dict.fromkeys(ranking.doc_ids, 1) for query_id, ranking in run.items()}
    dataset = build_dataset(name, None, queries, qrels)
    return Data(Truth.of(dataset), dataset, "")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]


def sentence(problem: Exception) -> str:
    """Word a problem in one line."""
    if not isinstance(problem, HarnessError):
        return str(problem)
    return f"{problem.given} ({problem.fix})" if problem.fix else problem.given


ALL = "all"
NO_GROUP = "(none)"


@dataclass(frozen=True, slots=True)
class GroupMeans(Documented):
    """One system under one convention.

    Attributes:
        means: metric -> group -> mean; a group without a query that counts is left out.
        n: group -> queries that count; conventions leave out different ones.
        missing: queries to score that the system does not have.
        reason: why there is nothing, empty otherwise.
    """

    system: str
    convention: str
    means: Mapping[str, Mapping[str, float]]
    n: Mapping[str, int]
    missing: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GroupTable(Documented):
    """Systems by conventions, with the groups in the order of the queries, "all" last.

    Attributes:
        metrics: convention -> the explicit metrics that the plain names stand for there.
        rows: none where the dataset is not at hand; ``reason`` says why.
    """

    KEYS = "dataset k by groups rows reason"

    dataset: str
    k: int
    by: str
    groups: tuple[str, ...]
    metrics: Mapping[str, tuple[str, ...]]
    rows: tuple[GroupMeans, ...]
    reason: str = ""


def group_table(wanted: PublishedTable, answered: Answered) -> GroupTable:
    """The means of all systems of ``wanted``."""
    rules = [convention(name) for name in wanted.conventions]
    metrics = {r.name: tuple(str(metric) for metric in r.parse(wanted.metrics)) for r in rules}
    try:
        data = answered.data(wanted.dataset)
    except NotAtHandError as problem:
        frame = (wanted.dataset, wanted.k, wanted.by, (ALL,), metrics)
        return GroupTable(*frame, rows=(), reason=str(problem))
    group_of: dict[str, str] = {}
    if data.dataset is not None:
        group_of = {q.id: str(q.metadata.get(wanted.by, NO_GROUP)) for q in data.dataset.queries}
    groups = (*dict.fromkeys(group_of.values()), ALL)
    rows = [
        _row(system, wanted, rule, answered, group_of)
        for rule in rules
        for system in wanted.systems
    ]
    return GroupTable(wanted.dataset, wanted.k, wanted.by, groups, metrics, tuple(rows))


def _row(
    system: str,
    wanted: PublishedTable,
    rules: Convention,
    answered: Answered,
    group_of: Mapping[str, str],
) -> GroupMeans:
    try:
        scored = answered.scored(system, wanted.dataset, wanted.k, rules, wanted.metrics)
    except NotAtHandError as problem:
        return GroupMeans(system, rules.name, {}, {}, reason=str(problem))
    means, n = means_by_group(scored, group_of)
    return GroupMeans(system, rules.name, means, n, scored.counts.missing)


def means_by_group(
    scored: Scored, group_of: Mapping[str, str]
) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Metric -> group -> mean over its queries that count, and group -> how many these are; the
    group "all" has all of them."""
    evaluation = scored.evaluation
    rows: dict[str, list[int]] = {}
    for at, query_id in enumerate(evaluation.query_ids):
        rows.setdefault(group_of.get(query_id, NO_GROUP), []).append(at)
    if rows:
        rows[ALL] = list(range(len(evaluation.query_ids)))
    means = {
        str(metric): {
            group: float(np.mean(evaluation.per_query[of, column])) for group, of in rows.items()
        }
        for column, metric in enumerate(evaluation.metrics)
    }
    return means, {group: len(of) for group, of in rows.items()}
