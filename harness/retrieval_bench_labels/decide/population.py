"""Decision which system is better on questions like those of a pool: the first that ``label
status`` says.

The questions of a pool are taken for a random sample of those that users ask. As long as labels are
missing, they are looked at in the plain random order in which they were drawn, and each look is a
bet (:mod:`.pairs.anytime`): all looks at all pairs together are wrong with a
chance of at most :data:`BETTING`. A question on which no two systems can differ counts at its turn,
as a zero, without a label. Once all that can differ is judged, the answer is what ``compare`` says
of the same judgements, by the same function; so the two never differ.

Queries of one cluster are no independent bets: none is made on them, and that answer alone counts.

A pool whose questions were drawn with unequal chances is no such sample before it is complete.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.fixed import resamples_for, told_with_verdicts
from retrieval_bench.comparison.pairs.comparability import NOTHING_RELEVANT
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.verdicts import PairJudge, Rules
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.experiment.until import Target
from retrieval_bench.metrics import one_metric
from retrieval_bench.runs.dataset import n_alike, told_alike
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench_labels.decide.completeness import RELEVANT
from retrieval_bench_labels.decide.deciding import FEW, between, level, values_by_grades
from retrieval_bench_labels.grades import Settled
from retrieval_bench_labels.label import Pair, Pool, PooledQuery
from retrieval_bench_modes.anytime import deltas_in_order, scale_to_bet_on

BETTING = 0.01
"""Chance of a wrong word before all is judged; with the test of all labels at most 6 %."""


@dataclass(frozen=True, slots=True)
class PopulationPair(Documented):
    """One pair of systems.

    Attributes:
        delta: as in ``compare``; ``anytime`` as long as labels are missing.
        beyond: questions like these (clusters, where those of the pool can show nothing) that it
            probably takes beyond those of the pool, so that all labels together show something; 0
            where the pool may do, or has done; None where that cannot be told.
    """

    KEYS = "*delta beyond"

    delta: Delta
    beyond: int | None

    @property
    def decided(self) -> bool:
        """True if something is shown."""
        return self.delta.verdict in (Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT)


@dataclass(frozen=True, slots=True)
class Population(Documented):
    """Verdicts on questions like those of a pool.

    Attributes:
        complete: whether every question on which systems can differ is judged.
        drawn: questions that count, in the order drawn, zeros included; all of a complete pool.
        labels_left: documents without a grade that can change a difference.
        pairs: each with what is shown.
    """

    KEYS = "complete drawn labels_left done pairs"

    complete: bool
    drawn: int
    labels_left: int
    pairs: tuple[PopulationPair, ...]

    @property
    def done(self) -> bool:
        """True if every pair has a verdict."""
        return all(pair.decided for pair in self.pairs)

    @property
    def beyond(self) -> int | None:
        """The questions of the pair that takes the most; None where that cannot be told of one."""
        needed = [pair.beyond for pair in self.pairs if not pair.decided]
        known = [n for n in needed if n is not None]
        return max(known, default=0) if len(known) == len(needed) else None


def of_population(pool: Pool, grades: Mapping[Pair, Settled]) -> Population | None:
    """Judge questions like those of ``pool`` by ``grades``; None where they cannot: the pool was
    drawn with unequal chances, and is not complete.

    Before it is complete, grades of documents outside of the pool count for nothing: whoever could
    add some later could move what was drawn already. Then they count, as in ``compare``.
    """
    open_ = [query for query in pool.queries if query.weight > 0 and not query.finished(grades)]
    pairs = list(combinations(range(len(pool.systems)), 2))
    if not open_:
        rules = _rules(pool, pairs)
        # By the function of ``compare``, of all questions.
        deltas = _judge(pool, grades, pool.queries).judged(pairs, rules) if pairs else []
        shown = tuple(PopulationPair(delta, _beyond(delta, pool)) for delta in deltas)
        return Population(True, len(pool.queries), 0, shown)
    if pool.target is not Target.POPULATION:
        return None
    left = sum(pair not in grades for query in open_ for pair in query.pairs)
    drawn = pool.queries[: pool.queries.index(open_[0])]
    return Population(False, len(drawn), left, tuple(_so_far(pool, grades, pairs, drawn)))


def by_question(
    pool: Pool, grades: Mapping[Pair, Settled]
) -> tuple[Pool, Population | None, list[str]]:
    """As :func:`of_population`, with the pool that it is of: where questions are nearly the same,
    no key says so, and a verdict would be another, its clusters are these, "by text"; and tell."""
    shown, labels = of_population(pool, grades), [*pool.clusters.values()]
    if pool.cluster_key or not labels or shown is None or not shown.pairs:
        return pool, shown, []
    as_one = replace(pool, cluster_key="text")
    again = of_population(as_one, grades) or shown
    own, other = ([pair.delta for pair in of.pairs] for of in (shown, again))
    turned, told = told_with_verdicts(labels, own, other)
    if not shown.complete:
        change = "nothing is said of questions like these until all is judged"
        told = told_alike(len(labels), n_alike(labels), change)
    return (as_one, again, [told]) if turned else (pool, shown, [told])


def _rules(pool: Pool, pairs: Sequence[tuple[int, int]]) -> Rules:
    return Rules(pool.margin, (), resamples_for(len(pairs)))


def _judge(
    pool: Pool, grades: Mapping[Pair, Settled], queries: Collection[PooledQuery]
) -> PairJudge:
    """Build the judge of ``compare``, had it these questions."""
    metric = one_metric(pool.metric)
    ids = sorted(query.id for query in queries)  # as compare has them
    values = values_by_grades(metric, _lists(pool), ids, grades, set(ids))
    clusters = Clusters.by([pool.clusters[id_] for id_ in ids]) if pool.n_clusters else None
    relevant = any(
        grade.grade >= RELEVANT for pair, grade in grades.items() if pair.query_id in ids
    )
    may_be = not all(query.finished(grades) for query in queries)
    return PairJudge(
        pool.dataset,
        pool.systems,
        [metric],
        [of[:, None] for of in values],
        answered=list(_answered(pool, ids)),
        fixed=lambda i, j, metric: "" if relevant or may_be else NOTHING_RELEVANT,
        clusters=[clusters] * len(values),
    )


def _so_far(
    pool: Pool,
    grades: Mapping[Pair, Settled],
    pairs: Sequence[tuple[int, int]],
    drawn: Sequence[PooledQuery],
) -> list[PopulationPair]:
    """Decide by bets on ``drawn``, one after the other."""
    metric = one_metric(pool.metric)
    names = [(pool.systems[i], pool.systems[j]) for i, j in pairs]
    if not pairs:
        return []
    ids = [query.id for query in drawn]
    pooled = set(pool.pairs)
    inside = {pair: grade for pair, grade in grades.items() if pair in pooled}
    deltas = [Delta("", "", "", Verdict.UNDECIDED)] * len(pairs)
    if drawn and not pool.n_clusters:
        deltas = deltas_in_order(
            pool.systems,
            values_by_grades(metric, _lists(pool), ids, inside, set(ids)),
            _answered(pool, ids),
            pairs,
            scale_to_bet_on(metric, where="--metric"),
            margin=pool.margin,
            alpha=level(pool.generation, BETTING),
        )
    shown = [
        replace(delta, metric=pool.metric, a=a, b=b, dataset=pool.dataset)
        for delta, (a, b) in zip(deltas, names, strict=True)
    ]
    beyond: list[int | None] = [None] * len(pairs)
    if len(drawn) >= FEW:  # what the test of all labels takes, if others are like these
        tests = _judge(pool, inside, drawn).judged(pairs, _rules(pool, pairs))
        beyond = [_beyond(test, pool) for test in tests]
    population_pairs = map(PopulationPair, shown, beyond)
    return [replace(pair, beyond=0) if pair.decided else pair for pair in population_pairs]


def _beyond(delta: Delta, pool: Pool) -> int | None:
    """Questions beyond those of ``pool`` that the test takes, by those that ``delta`` is of."""
    queries = len(pool.queries)
    if PopulationPair(delta, None).decided:
        return 0
    if delta.resolvable_from is not None:
        return max(0, delta.resolvable_from - (pool.n_clusters or queries))
    needed = delta.queries_needed
    return None if needed is None else max(0, delta.n + needed - queries)


def _lists(pool: Pool) -> list[Mapping[str, Sequence[str]]]:
    return [pool.lists[name] for name in pool.systems]


def _answered(pool: Pool, query_ids: Sequence[str]) -> NDArray[np.bool_]:
    """(systems, queries), whether each did not fail."""
    failed = [set(pool.failed.get(name, ())) for name in pool.systems]
    return np.array([[query_id not in of for query_id in query_ids] for of in failed])


def sentence(pool: Pool, population: Population, pair: PopulationPair) -> str:
    """Say in words how a pair compares on questions like those of the pool."""
    delta = pair.delta
    better, worse = (delta.b, delta.a) if delta.verdict is Verdict.BETTER else (delta.a, delta.b)
    if delta.verdict in (Verdict.BETTER, Verdict.WORSE):
        size = "" if delta.ci is None else f", by {between(delta.ci)} in {pool.metric}"
        return f"{better} is better than {worse} on questions like these{size}."
    if delta.verdict is Verdict.EQUIVALENT:
        equal = f"{delta.a} and {delta.b} are equal within {pool.margin:g} in {pool.metric}"
        return f"{equal} on questions like these."
    yet = "" if population.complete else " yet"
    open_ = f"{delta.a} or {delta.b}: can't tell{yet} which is better on questions like these."
    if delta.verdict is Verdict.MISSING or delta.rests_on_failures:
        reason = delta.reason
        return f"{open_} {reason[:1].upper()}{reason[1:]}."
    if delta.verdict is Verdict.UNRESOLVABLE:
        further = counted(pair.beyond or 0, "further one")
        few = "clusters" if pool.n_clusters else "questions"
        return f"{open_} So few {few} can show nothing: it takes at least {further}."
    return f"{open_} {what_it_takes(population, pair.beyond)}"


def what_it_takes(population: Population, beyond: int | None) -> str:
    """Return how many labels are left in the pool, and how many questions it takes beyond it."""
    questions = counted(beyond or 0, "further question")
    if population.complete:
        left = "No label is left in the pool"
        more = f"about {questions} like these would show something (80 % power)"
        unknown = "how many further questions would show something cannot be told"
    else:
        verb = "is" if population.labels_left == 1 else "are"
        left = f"{counted(population.labels_left, 'label')} {verb} left in the pool"
        more = f"it probably takes about {questions} like these beyond it, too"
        unknown = "whether they are enough cannot be told yet"
    if beyond is None:
        return f"{left}; {unknown}."
    return f"{left}; {more}." if beyond else f"{left}; they may be enough."
