"""Queries that people judged, and those that a model judged, with what each says of systems.

The unit is a query, whole: people judged it if they graded every hit of all systems that can be
compared, down to the deepest cut-off; the model likewise. A value is of one judge's labels alone,
the ideal ranking included, by one rule for all queries: it knows the hits of these systems, and no
other document. Never does a value mix people's labels with the model's.

Where all systems return the same, the difference is 0 without a label. Such queries are a stratum
of known share and known difference. All figures, n and N, are of the others, the *changing* ones C,
of which people's are drawn at random, and over all queries that were asked

    mean = |C| / |asked| mean_C,    error = |C| / |asked| error_C,

by strata s of C likewise: mean = sum of |C_s| / |asked| mean_s. So it does not matter how far down
the pool people came, or the model, or either in a stratum. No question is put on what changes
nothing in the pool's metric (weight 0): a metric in which it does change is left out, and so is one
whose mean is no sum of differences (geometric) where strata or queries of known difference count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from retrieval_bench.runs.run import Run, clusters_of
from retrieval_bench_labels.decide.draws import all_bounds
from retrieval_bench_labels.grades import Whose, settled
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
            # The dataset's where no person said anything.
            Whose.of(
                [g for g in by_people.values() if g.kind is Kind.PERSON] or by_people.values()
            ),
            frozenset(facts.get("prompted", ())),
            frozenset(label.pair.query_id for label in labels if label.kind is Kind.PERSON),
            strata or {},
        )


@dataclass(frozen=True, slots=True)
class Systems:
    """Systems that are held against labels.

    Attributes:
        names: told apart.
        metrics: that are looked at, the deciding one first.
        lists: of each, its hits of each query as deep as metrics look; none where it failed.
        failed: of each, ids of queries that it failed on.
        clustered: whether queries come in clusters.
        clusters: query -> its label; none where they are not known.
        warnings: of what is left out of them.
    """

    names: Sequence[str]
    metrics: Sequence[Metric]
    lists: Sequence[Lists]
    failed: Sequence[Collection[str]]
    clustered: bool
    clusters: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @classmethod
    def of_runs(cls, runs: Sequence[Run], names: Sequence[str], pool: Pool) -> Systems:
        """Give those of runs, with the metrics that judging to the pool's depth can tell."""
        metrics, warnings = _metrics(pool, runs)
        depth = max(_depth(metric, runs) for metric in metrics)
        lists = [_lists(run, depth) for run in runs]
        told = (zip(run.rankings.query_ids, run.status, strict=True) for run in runs)
        failed = [{query for query, status in of if status != OK} for of in told]
        of = clusters_of(runs)
        return cls(names, metrics, lists, failed, bool(of), of, warnings)

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
    """Changing queries that count on neither side, or for people alone.

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
        systems: that they are of, with the metrics that the labels can tell.
        asked: queries of the pool that all systems were asked.
        changing: those of them on which systems can differ.
        query_ids: changing queries that people judged, sorted; n of them.
        both: bool (n,), the model judged them, too, and did not see them in its prompt.
        more_ids: changing queries that the model alone judged; N of them.
        people: of each system (n, metrics).
        model: of each system, of the queries that are ``both`` (n of these, metrics).
        more: of each system (N, metrics).
        documents: changing query -> documents that values know.
        refused: place of a system -> why it cannot be compared.
        left_out: queries that count on neither side.
        why_nobody: why not even people decide; empty where they may.
        why_people: why people alone decide; empty where both may.
        warnings: what changes how verdicts must be read.
    """

    labels: Labels
    systems: Systems
    asked: Sequence[str]
    changing: Collection[str]
    query_ids: Sequence[str]
    both: NDArray[np.bool_]
    more_ids: Sequence[str]
    people: Sequence[Floats]
    model: Sequence[Floats]
    more: Sequence[Floats]
    documents: Mapping[str, Sequence[str]]
    refused: Mapping[int, str]
    left_out: LeftOut
    why_nobody: str
    why_people: str
    warnings: Sequence[str]

    @property
    def covered(self) -> list[int]:
        """Places of the systems that can be compared."""
        return [at for at in range(len(self.systems.names)) if at not in self.refused]

    def strata_of(self, query_ids: Sequence[str]) -> NDArray[np.str_]:
        """Return the stratum of each query."""
        return np.array([self.labels.strata.get(query, "") for query in query_ids], dtype=np.str_)

    def answered(self, at: int, query_ids: Sequence[str]) -> NDArray[np.bool_]:
        """Return which queries a system did not fail on."""
        return np.array([q not in self.systems.failed[at] for q in query_ids], dtype=np.bool_)

    def shares(self, systems: Sequence[int] = (), *, every: bool = False) -> dict[str, float]:
        """Stratum -> share of its changing queries among all that were asked, and that ``systems``
        answered: what its mean counts with; of ``every`` query, not of the changing ones alone."""
        failed = set[str]().union(*(self.systems.failed[at] for at in systems))
        asked = [q for q in self.asked if q not in failed]
        of = [q for q in asked if every or q in self.changing]
        counts = Counter(self.labels.strata.get(q, "") for q in of)
        return {name: counts[name] / len(asked) for name in sorted(counts)}


def gather_evidence(labels: Labels, systems: Systems) -> Evidence:
    """Hold ``systems`` against the labels of people and of the model.

    Raises:
        ConfigError: no query in common, or no metric that the labels can tell.
    """
    pool, names, lists = labels.pool, systems.names, systems.lists
    asked = sorted({query.id for query in pool.queries}.intersection(*lists))
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
    own, refused = finished.sum(axis=1), {}
    for at in {*range(len(names))} - {*covered}:
        refused[at] = (
            f"people graded all hits of {names[at]} on {counted(int(own[at]), 'query')}, those of "
            f"others on {own.max():,}: pool its run, too, and judge the rest"
        )
    done = {q for q, of in zip(asked, finished[covered].T, strict=True) if of.all()}
    systems, changing = _changing(labels, systems, covered, asked, done)
    hits = {q: list(dict.fromkeys(d for at in covered for d in lists[at][q])) for q in changing}
    people = [q for q in changing if q in done]
    by_model = {q for q in changing if _judged(q, hits[q], labels.model)}
    open_ = [q for q in changing if q not in done and q not in labels.begun]
    more = [q for q in open_ if q in by_model and q not in labels.prompted]
    both = np.array([q in by_model and q not in labels.prompted for q in people], dtype=np.bool_)
    prompted = sum(q in labels.prompted for q in people)
    left_out = LeftOut(
        len(changing) - len(people) - len(open_),
        len(open_) - len(more),
        prompted,
        len(people) - int(both.sum()) - prompted,
    )
    shared = [q for q, of in zip(people, both, strict=True) if of]
    strata = {q: labels.strata.get(q, "") for q in changing}
    few, judge = "", labels.judge
    for of, who, whose in (
        (more, judge, " beside those of people"),
        (shared, judge, " of those that people judged"),
        (people, "people", ""),
    ):
        if less := _few(strata, of, FEWEST_QUERIES):
            few = f"{who} judged {less}{whose}"
    nobody, metrics = labels.strata and _few(strata, people, 2), systems.metrics
    return Evidence(
        labels,
        systems,
        asked,
        frozenset(changing),
        people,
        both,
        more,
        _values(metrics, lists, people, hits, labels.people),
        _values(metrics, lists, shared, hits, labels.model),
        _values(metrics, lists, more, hits, labels.model),
        hits,
        refused,
        left_out,
        f"people judged {nobody}: two of each show how it varies" if nobody else "",
        _why_people(labels, systems, few),
        [*systems.warnings, *_doubts(labels, people, changing)],
    )


def _changing(
    labels: Labels,
    systems: Systems,
    covered: Sequence[int],
    asked: Sequence[str],
    done: Collection[str],
) -> tuple[Systems, list[str]]:
    """``systems`` with the metrics that the labels can tell, and the queries on which systems can
    differ in these.

    Raises:
        ConfigError: none is left.
    """
    pool, lists = labels.pool, [systems.lists[at] for at in covered]
    several = [q for q in asked if any(of[q] != lists[0][q] for of in lists)]
    worth = {query.id for query in pool.queries if query.weight > 0}
    unasked = [q for q in several if q not in worth]

    def moved(metric: Metric) -> set[str]:
        if metric.scale is None:
            return {*unasked}
        most = np.abs(all_bounds(metric, lists, unasked)).max(axis=(0, 2))
        return {q for q, far in zip(unasked, most, strict=True) if far > 0}

    def tells(metric: Metric) -> bool:
        if metric.geometric and (labels.strata or len(several) < len(asked)):
            return False
        return len(moved(metric) - {*done}) <= (1 - COVERED) * len(several)

    own = systems.metrics
    kept = [*filter(tells, own)] or [*filter(tells, [one_metric(pool.metric)])]
    if not kept:
        raise ConfigError(
            f"labels that tell nothing in {', '.join(map(str, own))}",
            where=", ".join(systems.names),
            accepted=f"systems that are alike where the pool's are in {pool.metric}: nobody is "
            "asked for that",
            fix="pool these runs: retrieval-bench label pool RUN RUN --metric METRIC",
        )
    out = ", ".join(str(metric) for metric in own if metric not in kept)
    why = [f"left out, since queries count in it that nobody is asked for: {out}"] * bool(out)
    worth |= {q for metric in kept for q in moved(metric)}
    told = replace(systems, metrics=kept, warnings=[*systems.warnings, *why])
    return told, [q for q in several if q in worth]


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
    """Places of the systems of which people judged about as many queries as of any pair; all where
    they judged no pair's."""
    pairs = list(combinations(range(len(finished)), 2))
    done = [np.count_nonzero(finished[i] & finished[j]) for i, j in pairs]
    most = max(done)
    if not most:
        return [*range(len(finished))]
    best = list(pairs[int(np.argmax(done))])
    rest = [at for at in range(len(finished)) if at not in best]
    for at in sorted(rest, key=lambda at: -np.count_nonzero(finished[at])):
        if np.count_nonzero(finished[[*best, at]].all(axis=0)) >= COVERED * most:
            best.append(at)
    return sorted(best)


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


FEWEST_QUERIES = 4
"""Queries that people and model judged, with which a slope can be told at all."""


def _few(strata: Mapping[str, str], query_ids: Sequence[str], needed: int) -> str:
    """Say of which stratum fewer than ``needed`` are among these; empty where of none."""
    counts = Counter(strata[q] for q in query_ids)
    for name in sorted({*strata.values()}) or [""]:
        if counts[name] < needed:
            return f"only {counted(counts[name], 'query')}" + (f" of {name}" if name else "")
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


def _doubts(labels: Labels, people: Sequence[str], changing: Sequence[str]) -> list[str]:
    """Tell where people's labels are the dataset's, or not of the beginning of the pool's random
    order, or of a stratum's."""
    told, judged, counts, orders = [], {*people}, {*changing}, dict[str, list[bool]]()
    if people and not labels.begun:
        told.append(
            "What stands for people are judgements of the dataset, which does not say who made "
            "them."
        )
    for query in labels.pool.in_turn:
        if query.id in counts:
            orders.setdefault(labels.strata.get(query.id, ""), []).append(query.id in judged)
    behind = sum(sum(of[of.index(False) :]) for of in orders.values() if False in of)
    if labels.pool.target is Target.POPULATION and behind > 1:
        told.append(
            f"In the pool's random order {counted(behind, 'query')} that people judged stand "
            "behind one that they did not: if they were chosen and not drawn, no verdict holds."
        )
    return told
