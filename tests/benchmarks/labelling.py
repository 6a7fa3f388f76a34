"""Labels until the decision, replayed on collections whose judgements are complete.

``python -m tests.benchmarks.labelling FOLDER ...`` prints the tables of the guide: for each pair of
six systems how often the verdict is wrong, how many of the depth-10 pool's labels it takes, and how
good what is known after a share of the labels is, beside a random order of queries and beside depth
pooling. ``--svg FILE`` draws the curves. A replay reveals the judgements of the pool query by query
and looks after each; all replays of a pair are played side by side, one stream of bets each.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.types import Dataset, Qrels, Verdict
from retrieval_bench.data import load_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.metrics import Judgements, Metric, judge_lists, parse_metrics
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.intervals import SHARE
from retrieval_bench_labels.decide.draws import all_bounds, drawn_order, estimate, weights
from retrieval_bench_modes.sequential import Betting, Draw, verdicts
from retrieval_bench_pictures import vega
from retrieval_bench_pictures.draw import svg

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Lists = Mapping[str, Sequence[str]]

SYSTEMS: Mapping[str, Mapping[str, object]] = {
    "bm25": {},
    "whitespace": {"tokenizer": "whitespace"},
    "k1 2.5, b 1": {"k1": 2.5, "b": 1.0},
    "k1 .3, b 0": {"k1": 0.3, "b": 0.0},
    "trigrams": {"tokenizer": {"name": "ngram", "n": 3}},
    "bigrams": {"tokenizer": {"name": "ngram", "n": 2}, "k1": 3.0, "b": 0.0},
}
"""Parameters of bm25: near relatives, and some that are clearly worse."""

DEPTH, REPLAYS = 10, 500
BUDGETS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
"""Shares of the labels of the pool."""


@dataclass(frozen=True, eq=False)
class Case:
    """A pair of systems on a collection.

    Attributes:
        names: of collection, a and b.
        values: (queries,), b minus a by the judgements of the pool.
        truth: mean of b minus a by all judgements.
        effect: that mean over the standard deviation of the differences.
        limits: (queries, 2), what a difference can be.
        cost: (queries,), documents in the pool of each.
        lists: of a and of b.
        qrels: all judgements.
        metric: what is compared.
    """

    names: tuple[str, str, str]
    values: Floats
    truth: float
    effect: float
    limits: Floats
    cost: Ints
    lists: tuple[Lists, Lists]
    qrels: Qrels
    metric: Metric


@dataclass(frozen=True, eq=False)
class Replays:
    """What many replays of a case came to.

    Attributes:
        taken: (replays,), share of the labels at the verdict, 1 without one.
        right, wrong: bool (replays,).
        known: (replays, budgets), whether the right verdict was there within each budget.
        error: (replays, budgets), how far the estimate was off.
    """

    taken: Floats
    right: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    known: NDArray[np.bool_]
    error: Floats


def lists_of(dataset: Dataset, params: Mapping[str, object]) -> Lists:
    """The first documents that bm25 with ``params`` finds for each query that counts."""
    once = Protocol(RANKINGS_ONLY, rounds=1, warm_up_s=0.0)
    retriever = {"name": "bm25", "target": "bm25", "params": dict(params)}
    experiment = prepare([retriever], dataset, k=DEPTH, protocol=once, save=False)
    answers = experiment.search()
    return {
        query.id: list(ranking.doc_ids)
        for query, ranking in zip(experiment.queries, answers.rankings, strict=True)
        if ranking is not None
    }


def cases(folder: Path, split: str = "test") -> list[Case]:
    """All pairs of :data:`SYSTEMS` on one collection."""
    dataset = load_dataset(folder, split)
    (metric,) = parse_metrics([f"nDCG@{DEPTH}"])
    ids = [query.id for query in dataset.evaluated]
    lists = {name: lists_of(dataset, params) for name, params in SYSTEMS.items()}
    whole = Judgements(dataset.qrels)
    full = {name: _values(metric, of, ids, whole) for name, of in lists.items()}
    found = []
    for a, b in combinations(SYSTEMS, 2):
        pools = {q: {*lists[a].get(q, ()), *lists[b].get(q, ())} for q in ids}
        seen = {q: {d: dataset.qrels[q].get(d, 0) for d in pools[q]} for q in ids}
        judged = Judgements(seen)
        difference = full[b] - full[a]
        found.append(
            Case(
                (dataset.name, a, b),
                _values(metric, lists[b], ids, judged) - _values(metric, lists[a], ids, judged),
                float(difference.mean()),
                float(difference.mean() / difference.std(ddof=1)),
                all_bounds(metric, [lists[a], lists[b]], ids)[0],
                np.array([len(pools[q]) for q in ids]),
                ({q: lists[a].get(q, ()) for q in ids}, {q: lists[b].get(q, ()) for q in ids}),
                dataset.qrels,
                metric,
            )
        )
    return found


def _values(metric: Metric, lists: Lists, ids: Sequence[str], judged: Judgements) -> Floats:
    return metric.compute(judge_lists({q: list(lists.get(q, ())) for q in ids}, ids, judged))


def replay(case: Case, replays: int = REPLAYS, *, random: bool = False) -> Replays:
    """Play ``case`` so many times.

    Args:
        random: every query has the same chance, as without knowing the lists.
    """
    n, limits = len(case.values), case.limits
    chances = weights(limits[None])
    if random:
        chances, limits = np.ones(n), np.tile(SHARE.of_differences[:2], (n, 1))
    orders = np.array([drawn_order(chances, seed) for seed in range(replays)])
    steps = int(np.count_nonzero(chances > 0))
    spent = np.cumsum(case.cost[orders], axis=1) / case.cost.sum()
    taken, found = np.ones(replays), np.full(replays, Verdict.UNDECIDED, dtype=object)
    known = np.full(replays, case.values[chances <= 0].sum())
    betting = Betting(
        [-MARGIN, 0.0, MARGIN], SHARE.of_differences, streams=replays, total=n, known=known
    )
    drawn = chances > 0
    ratios = limits[drawn] / chances[drawn, None]
    low, high = float(ratios[:, 0].min()), float(ratios[:, 1].max())
    left = np.full(replays, chances.sum())
    rest = np.tile(limits[drawn].sum(axis=0), (replays, 1))
    for step in range(steps):
        places = orders[:, step]
        rest = rest - limits[places] if step + 1 < steps else np.zeros_like(rest)
        draw = Draw(chances[places] / left, low * left, high * left, rest[:, 0], rest[:, 1])
        betting.add(case.values[places], draw)
        left = left - chances[places]
        open_ = found == Verdict.UNDECIDED
        now = np.array(verdicts(betting), dtype=object)
        new = open_ & (now != Verdict.UNDECIDED)
        found[new], taken[new] = now[new], spent[new, step]
        if not (found == Verdict.UNDECIDED).any():
            break
    right = np.array([_right(verdict, case.truth) for verdict in found])
    wrong = ~right & (found != Verdict.UNDECIDED)
    error = np.array(
        [
            [
                abs(estimate(case.values, chances, order, _within(own, b, steps)) - case.truth)
                for b in BUDGETS
            ]
            for order, own in zip(orders[:ESTIMATED], spent, strict=False)
        ]
    )
    return Replays(taken, right, wrong, right[:, None] & (taken[:, None] <= BUDGETS + 1e-9), error)


ESTIMATED = 100
"""Replays whose estimates are looked at."""


def _within(spent: Floats, budget: float, steps: int) -> int:
    """Queries that a budget pays for; at least one."""
    return int(np.clip(np.count_nonzero(spent <= budget + 1e-9), 1, steps))


def _right(verdict: Verdict, truth: float) -> bool:
    if verdict is Verdict.EQUIVALENT:
        return abs(truth) <= MARGIN
    return verdict is (Verdict.BETTER if truth > 0 else Verdict.WORSE)


def depth_pooling(case: Case, orders: int = 5) -> Floats:
    """(orders, budgets), how far the difference is off when documents are judged rank by rank for
    all queries, and what is not judged counts as not relevant."""
    a, b = case.lists
    ids = list(a)
    error = np.zeros((orders, len(BUDGETS)))
    for seed in range(orders):
        rng = np.random.default_rng(seed)
        ranked = sorted(
            (min(_rank(a[q], d), _rank(b[q], d)), float(rng.random()), q, d)
            for q in ids
            for d in {*a[q], *b[q]}
        )
        known: dict[str, dict[str, int]] = {q: {} for q in ids}
        at = 0
        for column, budget in enumerate(BUDGETS):
            for _, _, q, d in ranked[at : (at := round(budget * len(ranked)))]:
                known[q][d] = case.qrels[q].get(d, 0)
            judged = Judgements({q: of or {"": 0} for q, of in known.items()})
            gap = _values(case.metric, b, ids, judged) - _values(case.metric, a, ids, judged)
            error[seed, column] = abs(float(gap.mean()) - case.truth)
    return error


def _rank(documents: Sequence[str], document: str) -> int:
    return documents.index(document) if document in documents else DEPTH


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--replays", type=int, default=REPLAYS)
    parser.add_argument("--svg", type=Path, help="a picture of the curves")
    options = parser.parse_args()
    curves: dict[str, Curves] = {}
    for folder in options.folders:
        rows = []
        for case in cases(folder, options.split):
            weighted = replay(case, options.replays)
            uniform = replay(case, options.replays, random=True)
            rows.append((weighted, uniform, depth_pooling(case)))
            name, a, b = case.names
            print(
                f"{name:<18}{a:<14}{b:<14}{len(case.values):>6}{case.truth:>+8.3f}"
                f"{abs(case.effect):>6.2f}  {np.median(weighted.taken):>5.0%} "
                f"{np.median(uniform.taken):>5.0%}  {weighted.wrong.mean():>5.1%} "
                f"{weighted.right.mean():>6.1%}",
                flush=True,
            )
        curves[name] = {
            "right verdict, by difference": _means([one.known for one, _, _ in rows]),
            "right verdict, random order": _means([one.known for _, one, _ in rows]),
            "error, by difference": _means([one.error for one, _, _ in rows]),
            "error, random order": _means([one.error for _, one, _ in rows]),
            "error, depth pooling": _means([one for _, _, one in rows]),
        }
        print(f"\n{'after':<34}" + "".join(f"{b:>7.0%}" for b in BUDGETS) + "   mean")
        for label, means in curves[name].items():
            shown = "".join(f"{value:>7.3f}" for value in means)
            print(f"{label:<34}{shown}{means.mean():>7.3f}")
        print(flush=True)
    if options.svg is not None:
        options.svg.write_text(picture(curves), encoding="utf-8")


Curves = Mapping[str, Floats]
"""What is drawn -> (budgets,), means over pairs and replays."""

_ORDERS = ("by difference", "random order", "depth pooling")


def _means(of: Sequence[Floats | NDArray[np.bool_]]) -> Floats:
    """Over pairs and replays, each pair counting once."""
    return np.asarray(np.array([one.mean(axis=0) for one in of]).mean(axis=0))


def picture(curves: Mapping[str, Curves]) -> str:
    """SVG: collections side by side, share of right verdicts above, error of the estimate below."""
    kinds = {"right verdict": "right verdicts (share)", "error": "error of the difference"}
    rows = [
        {
            "collection": name,
            "kind": label.partition(", ")[0],
            "system": label.partition(", ")[2],
            "budget": budget,
            "value": value,
        }
        for name, of in curves.items()
        for label, values in of.items()
        for budget, value in zip((100 * BUDGETS).tolist(), values.tolist(), strict=True)
    ]
    color, dash, shape = vega.told_apart(_ORDERS, key={})
    across = vega.linear(0, 105)
    views = [
        {
            "width": 150,
            "height": 140,
            "title": {"text": name if kind != "error" else "", "fontSize": 11},
            "data": {"values": [r for r in rows if (r["kind"], r["collection"]) == (kind, name)]},
            "encoding": {
                "x": vega.axis("budget", across, "% of the labels" if kind == "error" else None),
                "y": vega.axis("value", _scale(rows, kind), None if at else what),
            },
            "layer": [
                vega.mark("line", None, {"color": color, "strokeDash": dash}),
                vega.mark("point", None, {"color": color, "shape": shape}, size=25),
            ],
        }
        for kind, what in kinds.items()
        for at, name in enumerate(curves)
    ]
    title = "Labels until the decision"
    said = [f"Right verdicts and error of the difference by labels: {', '.join(curves)}."]
    content = {"concat": views, "columns": len(curves)}
    return svg(vega.picture(content, title=title, said=said, width=820))


def _scale(rows: Sequence[vega.Spec], kind: str) -> vega.Spec:
    return vega.around([0, *(row["value"] for row in rows if row["kind"] == kind)], 0.04)


if __name__ == "__main__":
    main()
