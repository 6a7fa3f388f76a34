"""What each part of a retriever buys, and what it takes: the ledger.

A part's gain is the mean of the metric with it minus the mean without it, paired on the same
queries. It is judged in this order:

* *dead by structure*: what is known of the lists says that it can change nothing: another leg has
  the same list, or all of it, of 30 queries or more, and no ranking changes; or it runs after the
  cut at k, and the metric sees which documents are there and not their order.
* *harmful*, *helps*: the paired randomisation test, p < .05 after Holm's correction over the parts.
* *dead by test*: a gain of the margin or more is ruled out, one-sided, p < .05 after Holm. Where no
  value changes at all this is the rule of three, without correction: 299 queries for .01.
* *can't tell*: none of these.

A part that helps is never called dead, however little it helps. A chunker has a price and no gain:
without it, another index would have to be searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.brackets import Brackets
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA, corrected
from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.remembered import numbered
from retrieval_bench.core.types import Dataset
from retrieval_bench.measure.calls import OK
from retrieval_bench.metrics import Judgements, Metric, judge
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.runs.run import UNKNOWN, Rankings, Run, equally_wide
from retrieval_bench.runs.summary import PartFacts
from retrieval_bench.stats.clusters import Clusters, number_of
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.intervals import bracket
from retrieval_bench.stats.paired import paired_tests
from retrieval_bench.stats.power import check_margin
from retrieval_bench.stats.randomization import ROUNDING, signs
from retrieval_bench.stats.resampling import holm, mean_below_p
from retrieval_bench_explain.part_costs import chunker_of, cost_of
from retrieval_bench_explain.parts import Ledger, Row, Worth

Positions = NDArray[np.int32]
Rows = NDArray[np.int64]
"""Places of queries in the rankings."""


def ledger(
    run: Run,
    dataset: Dataset,
    metric: Metric | None = None,
    *,
    margin: float = MARGIN,
    token_price: float | None = None,
) -> Ledger | None:
    """What each part of the retriever of ``run`` buys; None for a retriever that says of no part.

    Args:
        metric: None = the first of the run.
        margin: a gain below it is none.
        token_price: money for a million tokens that a reader gets, of a run that counts these.

    Raises:
        ConfigError: a metric that cannot be averaged or looks deeper than the run; a margin that is
            none; a price of tokens that nobody counted.
    """
    check_margin(margin)
    chunkers = chunker_of(run, token_price)
    parts = run.summary.parts
    if not parts and not chunkers:
        return None
    metric = metric or run.evaluation.metrics[0]
    check_averaged(metric, run.summary.k)
    seen = _Seen.of(run, dataset, metric)
    failed = len(run.evaluation.query_ids) - len(seen.rows)
    rows = _one_fusion(_judged([_draft(seen, part) for part in parts], metric, margin, failed))
    mean = float(seen.values.mean()) if len(seen.values) else float("nan")
    clusters = number_of(seen.clusters(seen.rows))
    own = (*chunkers, *rows)
    return Ledger(run, metric, margin, len(seen.rows), mean, own, failed, clusters)


def ledger_of(run: Run, dataset: Dataset) -> Ledger | None:
    """By the first metric, for whoever shows a run; None also where that metric has no ledger, or
    nothing is judged."""
    metric = run.evaluation.metrics[0]
    unknown = not run.summary.parts or not run.judged
    if unknown or metric.geometric or (metric.cut or 0) > run.summary.k:
        return None
    return ledger(run, dataset, metric)


def check_averaged(metric: Metric, k: int) -> None:
    """Raise where differences of ``metric`` are not those of its means, or a run lacks them.

    Raises:
        ConfigError: its mean is geometric, or its cut-off beyond ``k``.
    """
    if metric.geometric:
        raise ConfigError(
            f"metric {metric}",
            where="--metric",
            accepted="a metric whose mean over queries is the arithmetic one",
            fix="take AP",
        )
    if (metric.cut or 0) > k:
        raise ConfigError(
            f"metric {metric} of a run with k = {k}",
            where="--metric",
            accepted=f"cut-offs up to {k}",
            fix="lower it, or measure again with a larger --k",
        )


@dataclass(frozen=True, slots=True)
class _Seen:
    """The queries that count and were answered.

    Attributes:
        rows: their places in the rankings, by id of the query.
        values: of the metric.
    """

    run: Run
    judgements: Judgements
    metric: Metric
    rows: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, run: Run, dataset: Dataset, metric: Metric) -> _Seen:
        place = {query_id: at for at, query_id in enumerate(run.rankings.query_ids)}
        answered = sorted(q for q in run.evaluation.query_ids if run.status[place[q]] == OK)
        rows = np.array([place[query_id] for query_id in answered], dtype=np.int64)
        seen = cls(run, Judgements(dataset.qrels), metric, rows, np.empty(0))
        return replace(seen, values=seen.score(run.rankings.ranking[rows], rows))

    def ids(self, rows: Rows) -> list[str]:
        """The queries in ``rows``."""
        return [self.run.rankings.query_ids[at] for at in rows.tolist()]

    def clusters(self, rows: Rows) -> Clusters | None:
        """The clusters of the queries in ``rows``; None where each is independent."""
        return Clusters.of_queries(self.run.clusters, self.ids(rows))

    def score(self, lists: Positions, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The values of rankings of the queries in ``rows``."""
        ids = self.ids(rows)
        if not ids:
            return np.empty(0)
        return self.metric.compute(judge(lists, self.run.rankings.doc_ids, ids, self.judgements))


_Draft = tuple[Row, NDArray[np.float64], Clusters | None]
"""A row that is not judged yet, unless by its structure; the values (2, queries) without the part
and with it; and the clusters of these queries."""


def _draft(seen: _Seen, part: PartFacts) -> _Draft:
    run, nothing = seen.run, np.empty((2, 0))
    row = Row(part.name, part.kind, part.instead, Worth.UNKNOWN, cost=cost_of(run, part))
    lists = run.rankings.without.get(part.name)
    if lists is None or run.manifest.get("spans", {}).get("foreign"):
        cut = "" if lists is None else "hits of a foreign cut that it alone has were not looked for"
        why = part.why or cut or "what was kept does not say what comes without it"
        return replace(row, why=why), nothing, None
    known = lists[seen.rows, 0] != UNKNOWN
    rows, values = seen.rows[known], seen.values[known]
    if not len(rows):
        return replace(row, why="no query was answered with and without it"), nothing, None
    others = seen.score(lists[rows], rows)
    gains = values - others
    sign = signs(gains)
    gains[sign == 0] = 0.0
    k = run.summary.k
    changed = _changed(run.rankings.ranking[rows, :k], lists[rows, :k])
    row = replace(
        row,
        worth=Worth.UNDECIDED,
        n=len(rows),
        gain=float(gains.mean()),
        without=float(others.mean()),
        changed=changed,
        helped=int(np.count_nonzero(sign > 0)),
        hurt=int(np.count_nonzero(sign < 0)),
    )
    reason, blind = _structure(run, part, seen.metric, rows)
    alike = part.kind == "leg" and not changed
    if reason and not gains.any() and (blind or alike):
        row = replace(row, worth=Worth.DEAD)
    return replace(row, why=reason), np.stack([others, values]), seen.clusters(rows)


def _changed(one: Positions, other: Positions) -> int:
    """How many rows differ."""
    one, other = equally_wide(one, other)
    return int(np.count_nonzero((one != other).any(axis=1)))


def _structure(run: Run, part: PartFacts, metric: Metric, rows: Rows) -> tuple[str, bool]:
    """What the lists say of what ``part`` can change, and whether the metric cannot see it."""
    if part.kind == "leg":
        return _beside_others(run.rankings, run.summary.parts, part, rows), False
    gets = run.rankings.kept(part.gets) if part.kind == "reranker" else None
    k = run.summary.k
    if gets is None or "/" in part.name:
        return "", False
    lengths, ranked = (gets[rows] != NONE).sum(axis=1), run.rankings.ranking[rows, :k]
    if lengths.max(initial=0) > k or not _same_documents(gets[rows], ranked):
        return "", False
    blind = metric.name in _ORDER_BLIND and (metric.cut or k) >= int(lengths.max(initial=0))
    return f"runs after the cut at {k}: it cannot change which documents are there", blind


_ORDER_BLIND = ("R", "P", "Success")
"""Metrics that see which documents are there, and not their order."""


def _same_documents(one: Positions, other: Positions) -> bool:
    """Whether both have the same documents for every query."""
    return all(
        set(mine.tolist()) | {NONE} == set(theirs.tolist()) | {NONE}
        for mine, theirs in zip(one, other, strict=True)
    )


FEWEST = 30
"""With fewer queries nothing is said of lists that are alike: they are so by chance, too."""


def _beside_others(
    rankings: Rankings, parts: Sequence[PartFacts], part: PartFacts, rows: Rows
) -> str:
    """Whether another leg of the same hybrid has the same list, or all of it; of several texts, for
    each of them. A leg that found nothing is not compared."""
    own = _lists(rankings, part.gives)
    holder = part.name.rpartition("/")[0]
    if not own or len(rows) < FEWEST or not (own[0][rows] != NONE).any(axis=1).all():
        return ""
    for other in parts:
        beside = other.kind == "leg" and other.name.rpartition("/")[0] == holder
        lists = _lists(rankings, other.gives) if beside and other is not part else []
        if len(lists) != len(own):
            continue
        name, pairs = other.name.rpartition("/")[2], list(zip(own, lists, strict=True))
        if not any(_changed(mine[rows], theirs[rows]) for mine, theirs in pairs):
            return f"its list is the same as that of {name}"
        if all(_is_within(mine[rows], theirs[rows]) for mine, theirs in pairs):
            return f"its list is contained in that of {name}"
    return ""


def _is_within(one: Positions, other: Positions) -> bool:
    return all(
        set(mine.tolist()) <= {*theirs.tolist(), NONE}
        for mine, theirs in zip(one, other, strict=True)
    )


def _lists(rankings: Rankings, name: str) -> list[Positions]:
    """All lists that a leg gave, text by text."""
    known = {**rankings.step_lists, **rankings.leg_lists}
    found = [known[name]] if name in known else []
    while (again := numbered(name, len(found) + 1)) in known and found:
        found.append(known[again])
    return found


def _one_fusion(rows: Sequence[Row]) -> list[Row]:
    """Of the rows that hold fusion against each leg alone, the one with the best leg; they were
    judged together, since the best of several is picked."""
    best: dict[str, Row] = {}
    for row in rows:
        holder = row.name.rpartition("/")[0]
        if row.kind == "fusion" and row.without is not None:
            before = best.get(holder)
            if before is None or (before.without or 0.0) < row.without:
                best[holder] = row
    found = []
    for row in rows:
        holder = row.name.rpartition("/")[0]
        if row.kind != "fusion":
            found.append(row)
        elif best.get(holder) is row:
            found.append(replace(row, name=f"{holder}/fusion" if holder else "fusion"))
    return found


def _judged(drafts: Sequence[_Draft], metric: Metric, margin: float, failed: int) -> list[Row]:
    """With intervals, tests and what they show. Holm's family are the parts that their structure
    does not decide."""
    rows = [row for row, *_ in drafts]
    known = [at for at, (_, values, _) in enumerate(drafts) if values.size]
    tested = [at for at in known if rows[at].worth is not Worth.DEAD]
    tests = {
        at: paired_tests(
            drafts[at][1][:, :, None],
            [(0, 1)],
            margin=margin,
            scales=[metric.scale],
            clusters=drafts[at][2],
        )
        for at in known
    }
    gains = {at: drafts[at][1][1] - drafts[at][1][0] for at in tested}
    below = np.array([_below(gains[at], metric, margin, drafts[at][2]) for at in tested])
    p, _ = corrected([np.empty((0, 1)), *(tests[at].p for at in tested)])
    alpha = bracket(p)[:1] if tested else np.array([[QUALITY_ALPHA]])
    for at, found in tests.items():
        own = Brackets.of(found, alpha).at((0, 0))
        rows[at] = replace(rows[at], ci=own.ci, level=own.level, bound=own.bound)
    together = holm(below)
    for place, at in enumerate(tested):
        # Where nothing varies the test is exact, and by itself.
        alone = not (rows[at].helped or rows[at].hurt)
        row = replace(
            rows[at],
            p=float(p[place, 0]),
            p_below=float(below[place] if alone else together[place]),
        )
        needed = tests[at].queries_needed(QUALITY_ALPHA / len(tested))[0][0].difference
        if alone and metric.scale is not None:
            units = _rule_of_three(margin / (metric.scale.high - metric.scale.low))
            needed = math.ceil(units * row.n / tests[at].units) - row.n
        rows[at] = _despite_failures(_decided(row, margin, needed), metric, failed)
    return rows


def _despite_failures(row: Row, metric: Metric, failed: int) -> Row:
    """A part helps only if it does so were every query that failed lost by it: it may be what makes
    them fail."""
    if row.worth is not Worth.HELPS or not failed or row.gain is None:
        return row
    largest = 1.0 if metric.scale is None else metric.scale.high - metric.scale.low
    if row.gain * row.n > failed * largest:
        return row
    queries = counted(failed, "query")
    return replace(
        row, worth=Worth.UNDECIDED, why=f"{queries} failed, which it may be the cause of"
    )


def _rule_of_three(share: float) -> int:
    """Queries, or clusters, without a change that rule out, one-sided, that ``share`` of them
    change."""
    return math.ceil(math.log(QUALITY_ALPHA) / math.log1p(-share))


def _below(
    gains: NDArray[np.float64], metric: Metric, margin: float, clusters: Clusters | None
) -> float:
    """One-sided p that the mean gain is below the margin; 1 where no range is known."""
    gains = np.where(np.abs(gains) <= ROUNDING, 0.0, gains)
    if metric.scale is None:
        return 1.0
    largest = metric.scale.high - metric.scale.low
    if largest <= margin or gains.max() > largest:
        return 1.0
    below = mean_below_p(gains[:, None], margin, np.array([largest]), clusters=clusters)
    return float(below[0])


def _decided(row: Row, margin: float, needed: int | None) -> Row:
    gain, p, below = row.gain or 0.0, row.p or 0.0, row.p_below or 0.0
    if gain and p < QUALITY_ALPHA:
        return replace(row, worth=Worth.HELPS if gain > 0 else Worth.HARMFUL)
    if below < QUALITY_ALPHA and (row.ci is None or row.ci[1] < margin):
        nothing = "changes no ranking" if not row.changed else "changes no value"
        queries = counted(row.n, "query")
        why = f"{nothing} on {queries}" if not (row.helped or row.hurt) else row.why
        return replace(row, worth=Worth.DEAD, why=why or f"a gain of {margin:g} is ruled out")
    return replace(row, queries_needed=needed)
