"""Queries that people judged, and those that a model judged, with what each says of systems.

The unit is a query, whole: people judged it if they graded every hit of all systems that can be
compared, down to the deepest cut-off; the model likewise. Where all of them return the same list,
the difference is 0 without a label. A value is of one judge's labels alone,
the ideal ranking included, by one rule for all queries: it knows the hits of these systems, and no
other document. Never does a value mix people's labels with the model's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.comparability import common_metrics
from retrieval_bench.core.errors import ConfigError, counted, near_names
from retrieval_bench.core.types import DROP
from retrieval_bench.experiment.until import Target
from retrieval_bench.measure.calls import NOT_RUN, OK
from retrieval_bench.metrics import Judgements, Metric, judge_lists, one_metric
from retrieval_bench.runs.dataset import self_hits_of
from retrieval_bench.runs.run import Run
from retrieval_bench_labels.grades import Settled, Whose, settled
from retrieval_bench_labels.label import Kind, Pair, Pool
from retrieval_bench_labels.store import Store

Floats = NDArray[np.float64]
Lists = Mapping[str, Sequence[str]]
Grades = Mapping[Pair, int]

COVERED = 0.9
"""Of the queries that people finished for some pair, the share that they must have finished for
another: what is left out for its hits is not left out by chance."""
PROMPTED = "judges"
"""The fact in a file of labels that has the record of each model that was asked."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of a file, people and one model apart.

    Attributes:
        pool: what was to be judged.
        judge: name of the model.
        people: grades of people and of the dataset, one for each pair.
        model: grades of the model.
        whose: people's.
        prompted: queries that stood in the model's prompt.
        begun: queries of which somebody graded a document by hand.
        strata: query -> stratum, of each of which people's were drawn at random; empty = all are
            one.
    """

    pool: Pool
    judge: str
    people: Grades
    model: Grades
    whose: Whose
    prompted: frozenset[str]
    begun: frozenset[str]
    strata: Mapping[str, str]

    @classmethod
    def of(
        cls, store: Store, judge: str | None = None, strata: Mapping[str, str] | None = None
    ) -> Labels:
        """Read a file of labels.

        Raises:
            ConfigError: no label of a model in it, or of several, and none of them is named.
        """
        labels = [label for label in store.labels() if label.grade is not None]
        models = dict.fromkeys(label.who for label in labels if label.kind is Kind.MODEL)
        if judge is None and len(models) == 1:
            (judge,) = models
        if judge is None or judge not in models:
            raise ConfigError(
                "labels of no model" if judge is None else f"no labels of a model {judge!r}",
                where=str(store.path),
                accepted=near_names(judge or "", models) if models else "labels of a model",
                fix="name one with --judge"
                if models
                else "ask one: retrieval-bench label judge judge.py:grade --who NAME",
            )
        by_people = settled(label for label in labels if label.kind is not Kind.MODEL)
        model = {
            label.pair: label.grade
            for label in labels
            if label.who == judge and label.kind is Kind.MODEL and label.grade is not None
        }
        facts = (store.fact(PROMPTED) or {}).get(judge, {})
        return cls(
            store.pool(),
            judge,
            {pair: grade.grade for pair, grade in by_people.items()},
            model,
            Whose.of(_of(by_people.values())),
            frozenset(facts.get("prompted", ())),
            frozenset(label.pair.query_id for label in labels if label.kind is Kind.PERSON),
            strata or {},
        )


def _of(grades: Collection[Settled]) -> Collection[Settled]:
    """People's, or the dataset's where no person said anything."""
    return [g for g in grades if g.kind is Kind.PERSON] or grades


@dataclass(frozen=True, slots=True)
class Systems:
    """Systems that are held against labels.

    Attributes:
        names: told apart.
        metrics: that are looked at, the deciding one first.
        lists: of each, its hits of each query as deep as metrics look; none where it failed.
        failed: of each, ids of queries that it failed on.
        clustered: whether queries come in clusters.
        warnings: of what is left out of them.
    """

    names: Sequence[str]
    metrics: Sequence[Metric]
    lists: Sequence[Lists]
    failed: Sequence[Collection[str]]
    clustered: bool
    warnings: Sequence[str] = ()

    @classmethod
    def of_runs(cls, runs: Sequence[Run], names: Sequence[str], pool: Pool) -> Systems:
        """Give those of runs, with the metrics that judging to the pool's depth can tell."""
        metrics, warnings = _metrics(pool, runs)
        depth = max(_depth(metric, runs) for metric in metrics)
        lists = [_lists(run, depth) for run in runs]
        failed = [
            {
                q
                for q, status in zip(run.rankings.query_ids, run.status, strict=True)
                if status != OK
            }
            for run in runs
        ]
        clustered = any(run.clusters for run in runs)
        return cls(names, metrics, lists, failed, clustered, warnings)

    @classmethod
    def of_pool(cls, pool: Pool) -> Systems:
        """Give those whose hits were pooled."""
        metric = one_metric(pool.metric)
        lists = [
            {q: docs[: metric.cut] for q, docs in pool.lists[name].items()} for name in pool.systems
        ]
        failed = [pool.failed.get(name, ()) for name in pool.systems]
        return cls(pool.systems, [metric], lists, failed, bool(pool.n_clusters))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Queries that count on neither side.

    Attributes:
        begun: people graded some hits of them, and not all.
        unlabelled: neither people nor the model judged them to the end.
        prompted: people judged them, and they stood in the model's prompt.
        judged_alone: people judged them, and the model did not to the end.
    """

    begun: int
    unlabelled: int
    prompted: int
    judged_alone: int


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """Values of systems by people's labels and by a model's.

    Attributes:
        labels: the labels.
        systems: that they are of.
        query_ids: queries that people judged, sorted; n of them.
        both: bool (n,), the model judged them, too, and did not see them in its prompt.
        more_ids: queries that the model alone judged; N of them.
        people: of each system (n, metrics).
        model: of each system (n, metrics); 0 where not ``both``.
        more: of each system (N, metrics).
        answered, more_answered: of each system, which queries it did not fail on.
        documents: query -> documents that values know.
        refused: place of a system -> why it cannot be compared.
        left_out: queries that count on neither side.
        why_people: why people alone decide; empty where both may.
        warnings: what changes how verdicts must be read.
    """

    labels: Labels
    systems: Systems
    query_ids: Sequence[str]
    both: NDArray[np.bool_]
    more_ids: Sequence[str]
    people: Sequence[Floats]
    model: Sequence[Floats]
    more: Sequence[Floats]
    answered: Sequence[NDArray[np.bool_]]
    more_answered: Sequence[NDArray[np.bool_]]
    documents: Mapping[str, Sequence[str]]
    refused: Mapping[int, str]
    left_out: LeftOut
    why_people: str
    warnings: Sequence[str]

    def strata_of(self, query_ids: Sequence[str]) -> NDArray[np.str_]:
        """Return the stratum of each query."""
        return np.array([self.labels.strata.get(query, "") for query in query_ids], dtype=np.str_)

    @property
    def shares(self) -> dict[str, float]:
        """Stratum -> its share of the queries, by which it counts; empty where all are one."""
        if not self.labels.strata:
            return {}
        names = self.strata_of([*self.query_ids, *self.more_ids])
        return {str(name): float(np.mean(names == name)) for name in np.unique(names)}


def gather_evidence(labels: Labels, systems: Systems) -> Evidence:
    """Hold ``systems`` against the labels of people and of the model.

    Raises:
        ConfigError: no query in common.
    """
    pool, names, metrics, lists = labels.pool, systems.names, systems.metrics, systems.lists
    known = {query.id for query in pool.queries}
    asked = sorted(known.intersection(*lists))
    if not asked:
        raise ConfigError(
            f"no query of the runs is in the pool of {pool.dataset!r}",
            where=", ".join(names),
            accepted="runs of the dataset whose pool was judged",
            fix="name the file of labels of their dataset with --judged-by",
        )
    finished = np.array(
        [[_judged(q, of[q], labels.people) for q in asked] for of in lists], dtype=np.bool_
    )
    covered = _covered(finished)
    refused = {
        at: _unjudged(names[at], finished, at) for at in range(len(names)) if at not in covered
    }
    hits: dict[str, list[str]] = {
        q: list(dict.fromkeys(d for at in covered for d in lists[at][q])) for q in asked
    }
    alike = {q for q in asked if all(lists[at][q] == lists[covered[0]][q] for at in covered)}
    done = {q for at, q in enumerate(asked) if finished[covered, at].all()} - alike
    order = [query.id for query in pool.queries if query.id in known.intersection(*lists)]
    last = max((at for at, q in enumerate(order) if q in done), default=0)
    # What is returned alike differs by 0, whoever judges it, and counts at its turn.
    people = sorted(done | (alike & {*order[:last]}))
    by_model = {q for q in asked if q in alike or _judged(q, hits[q], labels.model)}
    hits |= {q: [] for q in alike}
    open_ = [q for q in asked if q not in people and (q in alike or q not in labels.begun)]
    more = [q for q in open_ if q in by_model and q not in labels.prompted]
    both = np.array([q in by_model and q not in labels.prompted for q in people], dtype=np.bool_)
    prompted = sum(q in labels.prompted for q in people)
    left_out = LeftOut(
        len(asked) - len(people) - len(open_),
        len(open_) - len(more),
        prompted,
        len(people) - int(both.sum()) - prompted,
    )
    shared = [q for q, of in zip(people, both, strict=True) if of]
    few = _few(labels, shared, more)
    model = [np.zeros((len(people), len(metrics))) for _ in lists]
    for own, of in zip(model, _values(metrics, lists, shared, hits, labels.model), strict=True):
        own[both] = of
    return Evidence(
        labels,
        systems,
        people,
        both,
        more,
        _values(metrics, lists, people, hits, labels.people),
        model,
        _values(metrics, lists, more, hits, labels.model),
        [_answered(of, people) for of in systems.failed],
        [_answered(of, more) for of in systems.failed],
        hits,
        refused,
        left_out,
        _why_people(labels, systems, few),
        [*systems.warnings, *_out_of_order(labels, people)],
    )


def _metrics(pool: Pool, runs: Sequence[Run]) -> tuple[list[Metric], list[str]]:
    """The metrics of the runs that judging to the pool's depth can tell; else that of the pool."""
    own = [one_metric(pool.metric)]
    common = list(common_metrics(runs)) if all(run.judged for run in runs) else own
    seen = [metric for metric in common if _depth(metric, runs) <= pool.depth]
    deeper = [str(metric) for metric in common if metric not in seen]
    text = f"left out, since they look below the pool's depth of {pool.depth}: {', '.join(deeper)}"
    return seen or own, [text] if deeper else []


def _depth(metric: Metric, runs: Sequence[Run]) -> int:
    return metric.cut or max(run.summary.k for run in runs)


def _lists(run: Run, depth: int) -> Lists:
    """The hits of each query that was asked, as deep as metrics look; none where it failed."""
    drop = self_hits_of(run) == DROP
    lists = {}
    for at, query in enumerate(run.rankings.query_ids):
        if run.status[at] == NOT_RUN:
            continue
        docs = run.rankings.row(at).doc_ids if run.status[at] == OK else ()
        lists[query] = [doc for doc in docs if not drop or doc != query][:depth]
    return lists


def _judged(query: str, documents: Sequence[str], grades: Grades) -> bool:
    return all(Pair(query, doc) in grades for doc in documents)


def _covered(finished: NDArray[np.bool_]) -> list[int]:
    """Places of the systems of which people judged about as many queries as of any pair."""
    pairs = list(combinations(range(len(finished)), 2))
    done = [np.count_nonzero(finished[i] & finished[j]) for i, j in pairs]
    most = max(done)
    best = list(pairs[int(np.argmax(done))])
    rest = [at for at in range(len(finished)) if at not in best]
    for at in sorted(rest, key=lambda at: -np.count_nonzero(finished[at])):
        if np.count_nonzero(finished[[*best, at]].all(axis=0)) >= COVERED * most > 0:
            best.append(at)
    return sorted(best)


def _unjudged(name: str, finished: NDArray[np.bool_], at: int) -> str:
    most = max(np.count_nonzero(of) for of in finished)
    own = int(np.count_nonzero(finished[at]))
    return (
        f"people graded all hits of {name} on {counted(own, 'query')}, those of others on "
        f"{most:,}: pool its run, too, and judge the rest"
    )


def _values(
    metrics: Sequence[Metric],
    lists: Sequence[Lists],
    query_ids: Sequence[str],
    documents: Mapping[str, Sequence[str]],
    grades: Grades,
) -> list[Floats]:
    """(queries, metrics) of each system by one judge's grades of these documents."""
    if not query_ids:
        return [np.zeros((0, len(metrics))) for _ in lists]
    qrels = {
        q: {doc: grade for doc in documents[q] if (grade := grades.get(Pair(q, doc))) is not None}
        for q in query_ids
    }
    judgements = Judgements(qrels)
    runs = (judge_lists(of, query_ids, judgements) for of in lists)
    return [np.column_stack([metric.compute(run) for metric in metrics]) for run in runs]


def _answered(failed: Collection[str], query_ids: Sequence[str]) -> NDArray[np.bool_]:
    return np.array([query not in failed for query in query_ids], dtype=np.bool_)


FEWEST_QUERIES = 4
"""Queries that people and model judged, with which a slope can be told at all."""


def _few(labels: Labels, shared: Sequence[str], more: Sequence[str]) -> str:
    """Say in which stratum too few queries are judged by both, or by the model alone."""
    counts = Counter(labels.strata.get(q, "") for q in shared)
    others = Counter(labels.strata.get(q, "") for q in more)
    for name in sorted({*counts, *others}) or [""]:
        of = f" of {name or 'no stratum'}" if labels.strata else ""
        if counts[name] < FEWEST_QUERIES:
            n = counted(counts[name], "query")
            return f"{labels.judge} judged only {n}{of} of those that people judged"
        if others[name] < FEWEST_QUERIES:
            n = counted(others[name], "query")
            return f"{labels.judge} judged only {n}{of} beside those of people"
    return ""


def _why_people(labels: Labels, systems: Systems, few: str) -> str:
    if labels.pool.target is not Target.POPULATION:
        return (
            "the pool was drawn --for split, hard queries first: what people judged is no random "
            "sample"
        )
    if systems.clustered:
        return "queries come in clusters, which are no independent draws"
    return few


def _out_of_order(labels: Labels, people: Sequence[str]) -> list[str]:
    """Tell where what people judged is not the beginning of the pool's random order, or of a
    stratum's."""
    judged, orders = {*people}, dict[str, list[bool]]()
    for query in labels.pool.queries:
        if query.weight > 0:
            orders.setdefault(labels.strata.get(query.id, ""), []).append(query.id in judged)
    behind = sum(sum(of[of.index(False) :]) for of in orders.values() if False in of)
    if labels.pool.target is not Target.POPULATION or behind <= 1:
        return []
    queries = counted(behind, "query")
    told = (
        f"In the pool's random order {queries} that people judged stand behind one that they did "
    )
    return [f"{told}not: if they were chosen and not drawn, no verdict here holds."]
