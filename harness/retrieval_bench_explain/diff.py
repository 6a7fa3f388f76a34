"""Why two rankings differ, query by query: values, groups of queries, and what stood where.

Two runs against each other, or one hybrid against its own legs. Values and groups are arrays over
all queries and cheap for tens of thousands; which documents stood where is looked up only for the
queries that are asked for (:meth:`Explanation.details`). Pure: reads runs and a dataset, no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.pairs.comparability import common_metrics, not_comparable
from retrieval_bench.comparison.pairs.judged_gap import judged_gap
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, counted, distinct_names
from retrieval_bench.core.types import Dataset, Query, by_rule, kind_of_truth
from retrieval_bench.measure.calls import OK
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.dataset import titles_of
from retrieval_bench.runs.evaluation import Mean, averaged
from retrieval_bench.runs.run import UNKNOWN, Run, clusters_of
from retrieval_bench_explain.ceilings import Ceiling, Positions, ceilings
from retrieval_bench_explain.kept_lists import (
    FUSION,
    RERANKING,
    aligned,
    fate,
    is_same,
    kept_lists,
    made_by,
    rewritten,
)
from retrieval_bench_explain.partitions import Gap, Partition, best_leg, by_fusion, outcome


@dataclass(frozen=True, slots=True)
class Placed(Documented):
    """A document of a query; where truth is by rule, also a slot.

    Attributes:
        doc_id: of it, or the name of the slot.
        title: or the beginning of its text; None where there is none, or texts were left out.
        grade: None where it is not judged.
        ranks: by system; None where it is not in the list. Of a leg also behind k.
        fates: what fusion did to a relevant document, by run.
    """

    KEYS = "id=doc_id title? grade ranks fusion=fates"

    doc_id: str
    title: str | None
    grade: int | None
    ranks: Mapping[str, int | None]
    fates: Mapping[str, str] = field(default_factory=dict)

    @property
    def relevant(self) -> bool:
        """Whether its grade is 1 or more."""
        return self.grade is not None and self.grade >= 1


@dataclass(frozen=True, slots=True)
class ExplainedQuery(Documented):
    """A query in short.

    Attributes:
        values: by system.
        difference: of the two.
        groups: its label in each partition.
    """

    values: Mapping[str, float]
    difference: float
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryDetail(ExplainedQuery):
    """A query in full.

    Attributes:
        query: with its tags.
        text: None where texts were left out.
        status: by run: "ok", or why it failed.
        documents: in the first k of any system, and all relevant ones; in the order of the last
            run, then of the first, then of the legs; those that nothing returned come last.
    """

    KEYS = "id=query.id text? tags=query.tags values difference groups status documents?"

    query: Query
    text: str | None
    status: Mapping[str, str]
    documents: tuple[Placed, ...]


Order = Literal["largest", "worse", "better"]


@dataclass(frozen=True, slots=True)
class System:
    """Something with a ranking for each query: a run, a leg of one, or both.

    A leg that two hybrids share is one system. A run whose rankings are those that the other run
    got from a leg is one system with that leg, and the longer of the two lists counts.

    Attributes:
        name: as shown; no two are equal.
        leg: its name as a leg; empty where it is none.
        of: places in ``systems`` of the runs that it is a leg of.
        without: place of the run whose ranking without a step it is; 0 of any other.
    """

    name: str
    leg: str = ""
    of: tuple[int, ...] = ()
    without: int = 0


@dataclass(frozen=True, eq=False)
class Explanation:
    """What :func:`explain` found.

    Attributes:
        metric: by which queries differ.
        k: cut-off of the runs; legs are cut there before they are scored.
        runs: one or two.
        dataset: that they were measured on.
        query_ids: the evaluated queries.
        systems: the runs, then the legs of those that are hybrids and told what their legs
            returned, without legs that are one of the runs.
        values: float64 (queries, systems) of the metric.
        difference: float64 (queries,): second run minus first; of a single run, the fused ranking
            minus the best of its legs.
        partitions: groups of queries: of two runs their ``outcome`` first; of each run whose legs
            are known ``best leg`` (once for two that share their legs) and ``fusion``.
        doc_ids: what positions in ``lists`` stand for.
        lists: for each system int32 (queries, depth), positions in ``doc_ids``, -1 behind the last.
    """

    metric: Metric
    k: int
    runs: tuple[Run, ...]
    dataset: Dataset
    query_ids: tuple[str, ...]
    systems: tuple[System, ...]
    values: NDArray[np.float64]
    difference: NDArray[np.float64]
    partitions: tuple[Partition, ...]
    doc_ids: tuple[str, ...]
    lists: tuple[Positions, ...]

    @cached_property
    def means(self) -> tuple[Mean, ...]:
        """The mean of each system with its interval."""
        each = [self.metric] * len(self.systems)
        return averaged(self.query_ids, each, self.values, clusters=self.clusters).means

    @property
    def clusters(self) -> Mapping[str, str]:
        """Query -> label of its cluster; empty where each counts by itself."""
        return clusters_of(self.runs)

    @property
    def made_by(self) -> str:
        """What makes a ranking of lists that were kept: fusion, unless all are pipelines."""
        legs = [made_by(run) for at, run in enumerate(self.runs) if self.legs_of(at)]
        return RERANKING if legs and FUSION not in legs else FUSION

    @property
    def subtracted(self) -> tuple[str, str]:
        """What ``difference`` is, in words: the first minus the second."""
        names = [system.name for system in self.systems[: len(self.runs)]]
        return (names[1], names[0]) if len(names) == 2 else (names[0], self.best_of)

    @property
    def best_of(self) -> str:
        """What a single run is held against, in words."""
        return "its best leg" if self.made_by == FUSION else "the best list before"

    @property
    def gap(self) -> Gap:
        """The second run beside the first; of a single run, fusion beside its best leg."""
        one, other, names = 1, 0, [system.name for system in self.systems[1::-1]]
        if len(self.runs) == 1:
            one, other = 0, max(self.legs_of(0), key=lambda leg: self.means[leg].mean)
            names = [self.systems[0].name, self.systems[other].leg]
        return Gap.of(names, self.values[:, one], self.values[:, other], self.metric)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the figures should know, in plain words."""
        found = []
        for system, status in zip(self.systems, self._status_of, strict=False):
            failed = sum(status[query_id] != OK for query_id in self.query_ids)
            if failed:
                counts = "it counts as a miss" if failed == 1 else "they count as misses"
                found.append(f"{counted(failed, 'query')} failed with {system.name}: {counts}")
        if self.dataset.documents is None:
            found.append("the dataset has no documents: only their ids are known")
        names = [system.name for system in self.systems[: len(self.runs)]]
        pairs = [(0, 1)] if len(names) == 2 else []
        runs = [self._scored(run, at) for at, run in enumerate(self.runs)]
        return (*found, *judged_gap(names, runs, pairs, self.metric))

    def _scored(self, run: Run, at: int) -> Run:
        """A run by :attr:`metric` alone, which it need not have been measured by."""
        evaluation = averaged(self.query_ids, [self.metric], self.values[:, [at]])
        return replace(run, evaluation=replace(evaluation, judged=run.evaluation.judged))

    def legs_of(self, run: int) -> list[int]:
        """Places in ``systems`` of the legs of one run; empty where they are not known."""
        return [at for at, system in enumerate(self.systems) if run in system.of]

    def order(self, by: Order = "largest", group: str | None = None) -> list[int]:
        """Places of queries, those first that tell most; equal ones by id.

        Args:
            by: ``largest`` difference first, whatever its sign; ``worse`` = where the second run
                (the fused ranking) is below the first (the best leg) by most; ``better`` = the
                other way round.
            group: label of a group; None = all queries.
        """
        size = {"largest": -np.abs(self.difference), "worse": self.difference}
        keys = size.get(by, -self.difference).round(9).tolist()
        inside = self._inside(group)
        places = [at for at in range(len(self.query_ids)) if inside is None or inside[at]]
        return sorted(places, key=lambda at: (keys[at], self.query_ids[at]))

    def ceilings(self, metrics: Sequence[Metric] | None = None) -> dict[str, tuple[Ceiling, ...]]:
        """The oracle ceiling of each run whose legs are known; where none is, that of the two runs
        as if they were legs, under the name "both". By all metrics that the runs have in common.
        """
        if by_rule(self.dataset.qrels):
            return {}  # a hit may fill several slots: no order of hits is the best for all
        if metrics is None:
            known = [m for m in common_metrics(self.runs) if m != self.metric]
            metrics = (self.metric, *known)
        judgements = Judgements(self.dataset.qrels)

        def of(legs: Mapping[str, Positions], fused: Positions | None) -> tuple[Ceiling, ...]:
            ids = (self.doc_ids, self.query_ids)
            return ceilings(
                legs, fused, *ids, judgements, metrics=metrics, k=self.k, clusters=self.clusters
            )

        found = {}
        for run in range(len(self.runs)):
            legs = {self.systems[at].leg: self.lists[at] for at in self.legs_of(run)}
            if legs:
                found[self.systems[run].name] = of(legs, self.lists[run])
        if found or len(self.runs) < 2:
            return found
        return {"both": of({self.systems[at].name: self.lists[at] for at in (0, 1)}, None)}

    def details(self, places: Sequence[int], *, texts: bool = True) -> list[QueryDetail]:
        """The queries at ``places``, with titles from one walk through the corpus.

        Args:
            texts: False = no titles, and the corpus is not read.
        """
        found = [self._detail(at) for at in places]
        if not texts:
            return found
        titles = titles_of(self.dataset, {one.doc_id for each in found for one in each.documents})
        return [
            replace(
                each,
                text=each.query.text,
                documents=tuple(
                    replace(one, title=titles.get(one.doc_id)) for one in each.documents
                ),
            )
            for each in found
        ]

    def explained(self, at: int) -> ExplainedQuery:
        """The query at a place: its values and groups."""
        values = dict(zip(self._names, self.values[at].tolist(), strict=True))
        groups = tuple(p.labels[p.member[at]] for p in self.partitions)
        return ExplainedQuery(values, float(self.difference[at]), groups)

    @cached_property
    def _names(self) -> list[str]:
        return [system.name for system in self.systems]

    @cached_property
    def _query_of(self) -> dict[str, Query]:
        return {query.id: query for query in self.dataset.queries}

    @cached_property
    def _status_of(self) -> list[dict[str, str]]:
        return [dict(zip(run.rankings.query_ids, run.status, strict=True)) for run in self.runs]

    def _inside(self, group: str | None) -> NDArray[np.bool_] | None:
        if group is None:
            return None
        inside = np.zeros(len(self.query_ids), dtype=np.bool_)
        for partition in self.partitions:
            if group in partition.labels:
                inside |= partition.member == partition.labels.index(group)
        return inside

    def _detail(self, at: int) -> QueryDetail:
        query_id = self.query_ids[at]
        rules = by_rule(self.dataset.qrels)
        grades = rules[query_id].slots if rules else self.dataset.qrels.get(query_id, {})
        rows = [[self.doc_ids[i] for i in rows[at].tolist() if i != NONE] for rows in self.lists]
        ranks = [{doc_id: rank for rank, doc_id in enumerate(row, start=1)} for row in rows]
        shown = dict.fromkeys(doc_id for row in rows for doc_id in row[: self.k])
        truths = _truths(self.dataset, self.runs, self.systems) if rules else []
        for of, row, truth in zip(ranks, rows, truths, strict=False):
            filled = list(truth.rules[query_id].filled(row))
            of |= {slot: rank for rank, slot in reversed(filled)}  # the first rank of each
            shown |= dict.fromkeys(slot for _, slot in filled)
        shown |= dict.fromkeys(doc_id for doc_id, grade in grades.items() if grade >= 1)
        documents = []
        names = self._names
        for doc_id in shown:
            placed = dict(zip(names, (of.get(doc_id) for of in ranks), strict=True))
            entry = Placed(doc_id, None, grades.get(doc_id), placed)
            fates = self._fates(placed) if entry.relevant else {}
            documents.append(replace(entry, fates=fates))
        n_runs = len(self.runs)
        first_looked_at = [*names[:n_runs][::-1], *names[n_runs:]]
        documents.sort(
            key=lambda hit: (*(hit.ranks[name] or np.inf for name in first_looked_at), hit.doc_id)
        )
        known, query = self.explained(at), self._query_of[query_id]
        by_run = zip(names, self._status_of, strict=False)
        status = {run: of.get(query_id, OK) for run, of in by_run}
        short = (known.values, known.difference, known.groups)
        return QueryDetail(*short, query, None, status, tuple(documents))

    def _fates(self, placed: Mapping[str, int | None]) -> dict[str, str]:
        ranks = [rank or 0 for rank in placed.values()]
        return {
            # A run that is a leg of the other one has the longer list of the leg here.
            self.systems[run].name: fate(
                ranks[run] if ranks[run] <= self.k else 0, [ranks[at] for at in legs], self.k
            )
            for run in range(len(self.runs))
            if (legs := self.legs_of(run))
        }


def explain(runs: Sequence[Run], dataset: Dataset, metric: Metric | None = None) -> Explanation:
    """Two runs on ``dataset`` against each other, or one hybrid against its legs.

    Args:
        runs: one or two; the second one's values minus the first one's are the differences. A
            single one must have the lists of its legs.
        metric: None = the first of the first run. Any will do: values are computed here.

    Raises:
        ConfigError: more or fewer runs, a single run without lists of legs, two that cannot be
            compared (other dataset, split, k, convention, or other queries), or a metric that looks
            deeper than they are.
    """
    _check(runs)
    first, k = runs[0].evaluation, runs[0].summary.k
    metric = first.metrics[0] if metric is None else metric
    if metric.cut is not None and metric.cut > k:
        raise ConfigError(
            f"{metric} of rankings of {k} hits",
            where="--metric",
            accepted=f"a cut-off of at most {k}, the k of the runs",
            fix="lower the cut-off, or measure with a larger --k",
        )
    query_ids = first.query_ids
    code_of: dict[str, int] = {}
    names = distinct_names([run.name for run in runs])
    systems = [System(name) for name in names]
    lists = [aligned(run, run.rankings.ranking[:, :k], query_ids, code_of) for run in runs]
    for at, run in enumerate(runs):
        kind = "leg" if run.rankings.leg_lists else "after"
        for leg, rows in kept_lists(run.rankings).items():
            own = aligned(run, rows, query_ids, code_of)
            shared = next((i for i in range(len(systems)) if is_same(lists[i], own, k)), None)
            if shared is None or at in (shared, *systems[shared].of):
                systems.append(System(f"{kind} {leg}", leg, (at,)))
                lists.append(own)
                continue
            known = systems[shared]
            systems[shared] = replace(known, leg=known.leg or leg, of=(*known.of, at))
            if own.shape[1] > lists[shared].shape[1]:
                lists[shared] = own
        for step, rows in rewritten(run.rankings).items():
            systems.append(System(f"without {step}", without=at))
            lists.append(aligned(run, np.where(rows == UNKNOWN, NONE, rows), query_ids, code_of))
    systems = _told_apart(systems, len(runs))
    doc_ids, judgements = tuple(code_of), Judgements(dataset.qrels)
    truths = zip(lists, _truths(dataset, runs, systems), strict=True)
    judged = [judge(rows[:, :k], doc_ids, query_ids, truth) for rows, truth in truths]
    values = np.column_stack([metric.compute(of) for of in judged])
    nothing = np.full((len(query_ids), 1), NONE, dtype=np.int32)
    floor = metric.compute(judge(nothing, (), query_ids, judgements))
    partitions = _partitions(systems, len(runs), values, floor, [made_by(run) for run in runs])
    if len(runs) == 2:
        difference = values[:, 1] - values[:, 0]
    else:
        legs = [at for at, system in enumerate(systems) if system.of]
        difference = values[:, 0] - values[:, legs].max(axis=1)
    of_runs = (metric, k, tuple(runs), dataset, query_ids, tuple(systems))
    return Explanation(*of_runs, values, difference, tuple(partitions), doc_ids, tuple(lists))


def _truths(dataset: Dataset, runs: Sequence[Run], systems: Sequence[System]) -> list[Judgements]:
    """The judgements of each system; by rule those that its run, or that of its leg, decided."""
    if not (kind := kind_of_truth(dataset.qrels)):
        return [Judgements(dataset.qrels)] * len(systems)
    kept = [Judgements(service(f"judge as kept by {kind}")(dataset.qrels, run)) for run in runs]
    of = (system.without or next(iter(system.of), 0) for system in systems[len(runs) :])
    return [kept[run] for run in (*range(len(runs)), *of)]


def _check(runs: Sequence[Run]) -> None:
    if len(runs) not in (1, 2):
        raise ConfigError(
            f"{len(runs)} runs",
            accepted="two runs, or one of a hybrid or pipeline",
            fix="give the folders of two runs; `compare` takes more",
        )
    if len(runs) == 2:
        reason = not_comparable(runs[0], runs[1])
        if reason:
            raise ConfigError(
                f"runs that cannot be compared: {reason}",
                where=" and ".join(str(run.folder or run.name) for run in runs),
                accepted="runs on one dataset and split, with one k, over the same queries",
                fix="measure one of them again as the other was",
            )
    elif not kept_lists(runs[0].rankings):
        raise ConfigError(
            "a single run without lists of legs",
            where=str(runs[0].folder or runs[0].name),
            accepted="one run of a hybrid or pipeline with the lists of its legs or steps, or two "
            "runs",
            fix="give a second run to hold it against",
        )


def _told_apart(systems: Sequence[System], n_runs: int) -> list[System]:
    """Legs of one name in two hybrids carry the name of theirs; and no two names are equal."""
    legs = [system.leg for system in systems if system.leg]
    named = [
        f"{system.name} of {systems[system.of[0]].name}"
        if at >= n_runs and legs.count(system.leg) > 1
        else system.name
        for at, system in enumerate(systems)
    ]
    return [
        replace(system, name=name)
        for system, name in zip(systems, distinct_names(named), strict=True)
    ]


def _partitions(
    systems: Sequence[System],
    n_runs: int,
    values: NDArray[np.float64],
    floor: NDArray[np.float64],
    made_by: Sequence[str],
) -> list[Partition]:
    found = []
    if n_runs == 2:
        names = [system.name for system in systems[:2]]
        found.append(outcome(names, values[:, :2], floor))
    legs_of = {run: [at for at, s in enumerate(systems) if run in s.of] for run in range(n_runs)}
    hybrids = {run: legs for run, legs in legs_of.items() if legs}
    for run, legs in hybrids.items():
        name, of_legs = systems[run].name, values[:, legs]
        sharing = [other for other, theirs in hybrids.items() if theirs == legs]
        if run == sharing[0] and (len(legs) > 1 or made_by[run] == FUSION):
            names = [f"leg {systems[at].leg}" if at < n_runs else systems[at].name for at in legs]
            fused = {systems[other].name: values[:, other] for other in sharing}
            found.append(best_leg(fused, names, of_legs, floor))
        fusion = by_fusion(name, of_legs, values[:, run], floor, by=made_by[run])
        if len(hybrids) > 1:
            labels = tuple(f"{label} in {name}" for label in fusion.labels)
            fusion = replace(fusion, labels=labels)
        found.append(fusion)
    return found
