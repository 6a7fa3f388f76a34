"""What a model's labels are worth, replayed on collections that are judged: how often its own p
names the wrong winner, how often that of people and model together does, and how wide that is.

``python -m tests.benchmarks.judges FOLDER ...`` prints the tables of the guide; without a folder,
on made-up data. In each replay n + N queries are drawn with replacement from a collection, whose
mean is the truth; people judge n of them, and a model, whose labels are drawn afresh, all. Systems
are three settings of bm25 and a noisy twin of the first: sides of the twins are exchanged at
random, so that the truth of that pair is 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core.scripts import tokens
from retrieval_bench.data import load_dataset
from retrieval_bench_judges.alarms import rung
from retrieval_bench_judges.estimate import both, chosen, judge_counts, people_alone
from tests.benchmarks.labelling import lists_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SYSTEMS: Mapping[str, Mapping[str, object]] = {
    "bm25": {},
    "whitespace": {"tokenizer": "whitespace", "k1": 2.5, "b": 1.0},
    "trigrams": {"tokenizer": {"name": "ngram", "n": 3}},
}
DEPTH, SIZES, MORE, REPLAYS = 10, (20, 30, 50, 100), 600, 1_500
TWIN = (0, 3)
SWAPS = 2.0
"""Ranks by which a document of the twin moves, as a standard deviation."""
DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))
ALPHA, FLIPS = 0.05, 1_000
_BLOCK = 100


@dataclass(frozen=True, eq=False)
class Collection:
    """Queries with what is pooled for them.

    Attributes:
        name: of the dataset.
        grades: (queries, documents), people's; -1 where there is none.
        places: (systems, queries, DEPTH), of each hit among the documents; the last for none.
        alone: (queries, documents), only the first system and its twin have it.
        near: (queries, documents), it shares more of the query's words than most of the pool.
    """

    name: str
    grades: Ints
    places: Ints
    alone: NDArray[np.bool_]
    near: NDArray[np.bool_]

    @property
    def levels(self) -> Ints:
        """All grades that people gave."""
        return self.grades[self.grades >= 0]


def read(folder: Path) -> Collection:
    """A collection of a folder, with what the systems find in it."""
    data = load_dataset(folder, "test")
    ids = [query.id for query in data.evaluated]
    words = {query.id: set(tokens(query.text)) for query in data.queries}
    found = [lists_of(data, params) for params in SYSTEMS.values()]
    wanted = {doc for of in found for docs in of.values() for doc in docs}
    texts = {d.id: set(tokens(d.contents)) for d in data.documents or () if d.id in wanted}
    lists = [[list(of.get(query, ())) for query in ids] for of in found]
    shared = [
        {doc: len(words[q] & texts[doc]) / max(len(words[q]), 1) for of in lists for doc in of[at]}
        for at, q in enumerate(ids)
    ]
    grades = [
        {d: max(data.qrels[q].get(d, 0), 0) for d in of} for q, of in zip(ids, shared, strict=True)
    ]
    return collection(data.name, lists, grades, shared)


def made_up(queries: int = 200, seed: int = 0) -> Collection:
    """A collection of numbers: each system orders the documents by their worth and noise."""
    rng = np.random.default_rng([seed, 17])
    lists: list[list[list[str]]] = [[] for _ in SYSTEMS]
    grades, shared = [], []
    for _ in range(queries):
        worth, words = rng.normal(size=40), rng.normal(size=40)
        hard = rng.uniform(0.3, 1.2)
        for of, noise in zip(lists, (1.0, 1.3, 1.1), strict=True):
            scores = hard * (worth + 0.5 * words) + noise * rng.normal(size=40)
            of.append([f"d{at}" for at in np.argsort(-scores)[:DEPTH]])
        pooled = sorted({doc for of in lists for doc in of[-1]})
        grades.append({d: int(worth[int(d[1:])] > 1.2) for d in pooled})
        shared.append({d: float(words[int(d[1:])]) for d in pooled})
    return collection("made up", lists, grades, shared)


def collection(
    name: str,
    lists: Sequence[Sequence[Sequence[str]]],
    grades: Sequence[Mapping[str, int]],
    shared: Sequence[Mapping[str, float]],
) -> Collection:
    """Lists, grades and nearness as arrays, with a noisy twin of the first system."""
    rng = np.random.default_rng(5)
    twin = [
        [of[at] for at in np.argsort(np.arange(len(of)) + rng.normal(0, SWAPS, len(of)))]
        for of in lists[0]
    ]
    systems = [*lists, twin]
    width = max(map(len, grades)) + 1
    shape = (len(grades), width)
    known, alone, near = np.full(shape, -1), np.zeros(shape, bool), np.zeros(shape, bool)
    places = np.full((len(systems), len(grades), DEPTH), width - 1)
    for at, of in enumerate(grades):
        index = {doc: place for place, doc in enumerate(of)}
        middle = float(np.median(list(shared[at].values()))) if of else 0.0
        others = {doc for lists_ in lists[1:] for doc in lists_[at]}
        for doc, place in index.items():
            known[at, place] = of[doc]
            alone[at, place] = doc not in others
            near[at, place] = shared[at][doc] > middle
        for system, lists_ in enumerate(systems):
            hits = [index[doc] for doc in lists_[at][:DEPTH]]
            places[system, at, : len(hits)] = hits
    return Collection(name, known, places, alone, near)


def values(grades: Ints, places: Ints) -> Floats:
    """nDCG@10 of each system, (systems, rows).

    Args:
        grades: (rows, documents); below 0 where there is none.
        places: (systems, rows, DEPTH).
    """
    gains = np.maximum(grades, 0).astype(np.float32)
    depth = min(DEPTH, gains.shape[1])
    best = -np.partition(-gains, depth - 1, axis=1)[:, :depth] if gains.shape[1] > depth else gains
    ideal = (-np.sort(-best, axis=1)) @ DISCOUNT[:depth].astype(np.float32)
    rows = np.arange(len(gains))[:, None]
    found = np.stack([gains[rows, of] @ DISCOUNT.astype(np.float32) for of in places])
    whole = np.broadcast_to(ideal, found.shape).astype(np.float64)
    ratio = np.divide(found, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(ratio, dtype=np.float64)


Judge = Callable[[Collection, Ints, np.random.Generator], Ints]


def degraded(kappa: float) -> Judge:
    """Labels of so much agreement that err as often on relevant documents as on others."""

    def judge(data: Collection, rows: Ints, rng: np.random.Generator) -> Ints:
        truth = data.grades[rows]
        turned = np.where(truth > 0, 0, 1)
        wrong = rng.random(truth.shape) < error_of(kappa, float((data.levels > 0).mean()))
        return np.where(truth < 0, -1, np.where(wrong, turned, truth))

    return judge


def error_of(kappa: float, base_rate: float) -> float:
    """The chance of an error, the same for both kinds of documents, that comes to ``kappa``."""
    low, high = 0.0, 0.5
    for _ in range(50):
        error = (low + high) / 2
        says = base_rate * (1 - error) + (1 - base_rate) * error
        chance = base_rate * says + (1 - base_rate) * (1 - says)
        low, high = (error, high) if (1 - error - chance) / (1 - chance) > kappa else (low, error)
    return low


def redrawn(kappa: float, *, by_query: bool = False) -> Judge:
    """Labels of so much agreement that miss relevant documents: people's with chance ``kappa``,
    else one drawn as often as people give it; document by document, or query by query."""

    def judge(data: Collection, rows: Ints, rng: np.random.Generator) -> Ints:
        truth = data.grades[rows]
        shape = (len(rows), 1) if by_query else truth.shape
        drawn = data.levels[rng.integers(0, len(data.levels), truth.shape)]
        said = np.where(rng.random(shape) < kappa, truth, drawn)
        return np.where(truth < 0, -1, said)

    return judge


def coin(data: Collection, rows: Ints, rng: np.random.Generator) -> Ints:
    """Relevant or not, by the flip of a coin."""
    truth = data.grades[rows]
    return np.where(truth < 0, -1, rng.integers(0, 2, truth.shape))


def constant(data: Collection, rows: Ints, rng: np.random.Generator) -> Ints:
    """All is relevant."""
    del rng
    return np.where(data.grades[rows] < 0, -1, 1)


def overrating(what: str, chance: float = 0.5, kappa: float = 0.65) -> Judge:
    """A judge that calls relevant, with a chance, what is not and is ``what``."""
    fair = degraded(kappa)

    def judge(data: Collection, rows: Ints, rng: np.random.Generator) -> Ints:
        said = fair(data, rows, rng)
        taken = getattr(data, what)[rows] & (rng.random(said.shape) < chance)
        return np.where(taken & (said == 0), 1, said)

    return judge


JUDGES: Mapping[str, Judge] = {
    "kappa .9": degraded(0.9),
    "kappa .65": degraded(0.65),
    "kappa .35": degraded(0.35),
    "misses .9": redrawn(0.9),
    "misses .65": redrawn(0.65),
    "clustered .65": redrawn(0.65, by_query=True),
    "coin": coin,
    "constant": constant,
    "circular": overrating("alone"),
    "lexical": overrating("near"),
}


class Cell(NamedTuple):
    """What replays of one pair, judge and n came to.

    Attributes:
        collection, judge, pair, n: of what.
        rho: correlation of the differences, people's and the model's.
        held, alone_held: share of replays whose interval holds the truth; people's by Student's t,
            as the switch has it.
        wrong: shares whose word is wrong, below and above; of twins any word.
        decided, alone_decided: shares with the right word.
        own_wrong: shares in which the model's own p < .05 names the wrong winner.
        width, alone_width, plain_width: mean half-widths; the last of PPI++ with Student's t.
        used: share of replays in which the model counts.
    """

    collection: str
    judge: str
    pair: tuple[int, int]
    n: int
    rho: float
    held: float
    alone_held: float
    wrong: tuple[float, float]
    decided: float
    alone_decided: float
    own_wrong: float
    width: float
    alone_width: float
    plain_width: float
    used: float


def replayed(
    data: Collection, name: str, replays: int = REPLAYS, seed: int = 0, more: int = MORE
) -> Iterator[Cell]:
    """All cells of one judge on one collection."""
    rng = np.random.default_rng([seed, list(JUDGES).index(name)])
    truth = values(data.grades, data.places)
    most = max(SIZES)
    drawn = rng.integers(0, len(data.grades), (replays, most + more))
    said = np.empty((len(data.places), replays, most + more), dtype=np.float32)
    for start in range(0, replays, _BLOCK):
        rows = drawn[start : start + _BLOCK].ravel()
        own = values(JUDGES[name](data, rows, rng), data.places[:, rows])
        said[:, start : start + _BLOCK] = own.reshape(len(own), -1, most + more)
    for a, b in combinations(range(len(data.places)), 2):
        people, model = truth[b] - truth[a], (said[b] - said[a]).astype(np.float64)
        true, judged = float(people.mean()), people[drawn]
        if (a, b) == TWIN:
            true, side = 0.0, rng.choice((-1.0, 1.0), drawn.shape)
            judged, model = judged * side, model * side
        for n in SIZES:
            shown = judged[:, :n], model[:, :n], model[:, most:]
            yield _cell((data.name, name, (a, b)), true, *shown)


def flipped_p(differences: Floats) -> Floats:
    """Two-sided p of the paired randomisation test of each replay, as ``compare`` has it: where
    people decide, they do so by it."""
    rng = np.random.default_rng(2)
    flips = rng.integers(0, 2, (differences.shape[1], FLIPS)).astype(np.float32) * 2 - 1
    seen = np.abs(differences.sum(axis=1)) - 1e-5
    reached = (np.abs(differences.astype(np.float32) @ flips) >= seen[:, None]).sum(axis=1)
    return np.asarray((reached + 1) / (FLIPS + 1))


def _cell(
    of: tuple[str, str, tuple[int, int]], true: float, people: Floats, model: Floats, more: Floats
) -> Cell:
    alone, plain = people_alone(people), both(people, model, more, hc3=False)
    with_judge = both(people, model, more)
    counts = judge_counts(people, model, alone, with_judge)
    ours, own = chosen(counts, with_judge, alone), people_alone(np.hstack([model, more]))
    rho = np.corrcoef(people.ravel(), model.ravel())[0, 1] if model.std() > 0 else 0.0
    by_people = flipped_p(people)
    p = np.where(counts, with_judge.p(), by_people)
    word, own_word = np.sign(ours.mean) * (p < ALPHA), np.sign(own.mean) * (own.p() < ALPHA)
    alone_word = np.sign(alone.mean) * (by_people < ALPHA)
    right = np.sign(true)
    wrong = [float(np.mean((word == side) & (right != side))) for side in (-1, 1)]
    return Cell(
        *of,
        people.shape[1],
        float(rho),
        float(np.mean(np.abs(ours.mean - true) <= ours.half_width())),
        float(np.mean(np.abs(alone.mean - true) <= alone.half_width())),
        (wrong[0], wrong[1]),
        float(np.mean((word == right) & (right != 0))),
        float(np.mean((alone_word == right) & (right != 0))),
        float(np.mean((own_word != 0) & (own_word != right))),
        float(ours.half_width().mean()),
        float(alone.half_width().mean()),
        float(plain.half_width().mean()),
        float(counts.mean()),
    )


TRIALS, ENOUGH = 100, 100
"""Of alarms; and queries of a collection that they are looked for in, at least and at most."""
FAIR, UNFAIR = ("kappa .65", "kappa .35"), ("circular", "lexical")


def rings(data: Collection, name: str, trials: int = TRIALS, seed: int = 0) -> float:
    """Share of trials in which a judge raises any alarm, on :data:`ENOUGH` queries each."""
    rng = np.random.default_rng([seed, 71, list(JUDGES).index(name)])
    hits = [[{*row} - {data.grades.shape[1] - 1} for row in of.tolist()] for of in data.places]
    groups = [(0, 3), (1,), (2,)]
    rung_in = 0
    for _ in range(trials):
        rows = rng.choice(len(data.grades), min(ENOUGH, len(data.grades)), replace=False)
        said = JUDGES[name](data, rows, rng)
        errors, near = dict[str, dict[str, bool]](), dict[str, set[str]]()
        for at, row in enumerate(rows):
            places = np.flatnonzero(data.grades[row] == 0)
            errors[str(row)] = {str(d): bool(said[at, d] > 0) for d in places}
            near[str(row)] = {str(d) for d in np.flatnonzero(data.near[row])}
        named: list[tuple[tuple[str, ...], Mapping[str, set[str]]]] = []
        for group in groups:
            others = [at for at in range(len(hits)) if at not in group]
            only = {
                str(q): {
                    str(d)
                    for d in set().union(*(hits[at][q] for at in group))
                    - set().union(*(hits[at][q] for at in others))
                }
                for q in rows
            }
            named.append((tuple(map(str, group)), only))
        rung_in += any(alarm.rings for alarm in rung(errors, named, near))
    return rung_in / trials


BASE = ("kappa .9", "kappa .65", "kappa .35", "coin", "constant", "circular", "lexical")
"""The judges of the bars; the others are harder, and are shown."""


def bars(cells: Sequence[Cell]) -> list[tuple[str, float, float, bool]]:
    """What must hold: words, measured, the bar, whether it is met."""
    own = [cell for cell in cells if cell.judge in BASE]
    made: list[tuple[str, float, float, bool]] = []

    def at_least(words: str, measured: float, bar: float) -> None:
        made.append((words, measured, bar, measured >= bar))

    def at_most(words: str, measured: float, bar: float) -> None:
        made.append((words, measured, bar, measured <= bar))

    held, alone = (_mean(own, of) for of in ("held", "alone_held"))
    at_least("mean coverage, beside people alone less .003", held, alone - 0.003)
    for n in SIZES:
        of = [cell for cell in own if cell.n == n]
        if n >= 50:
            at_least(f"n = {n}: mean coverage", _mean(of, "held"), 0.94)
        at_most(f"n = {n}: below people alone", max(c.alone_held - c.held for c in of), 0.02)
        if n != 30:
            at_least(f"n = {n}: worst cell", min(c.held for c in of), 0.90 if n == 20 else 0.92)
        for judge in BASE:
            sides = np.array([cell.wrong for cell in of if cell.judge == judge])
            at_most(f"n = {n}, {judge}: wrong, a side", float(sides.mean(axis=0).max()), 0.025)
        at_most(f"n = {n}: wrong, worst cell", max(max(c.wrong) for c in of), 0.04)
        if n in (20, 50):
            useless = [c for c in of if c.judge in ("coin", "constant", "circular")]
            widest = max(c.width / c.alone_width for c in useless)
            at_most(f"n = {n}: width, useless judges", widest, 1.02 if n == 20 else 1.01)
        if n == 50:
            ratios = [
                c.width / c.alone_width / np.sqrt(1 - c.rho**2 * MORE / (n + MORE))
                for c in of
                if 0.6 <= c.rho < 0.9
            ]
            at_most("n = 50: width over sqrt(1 - rho^2 N/(n+N))", max(ratios, default=0.0), 1.15)
            like = [c.width / c.plain_width for c in of if c.rho >= 0.6]
            at_most("n = 50: width beside PPI++ with t", max(like, default=0.0), 1.15)
    return made


def _mean(cells: Sequence[Cell], name: str) -> float:
    return float(np.mean([getattr(cell, name) for cell in cells]))


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """The rows of the guide: a judge and n each."""
    yield "| judge | n | rho | own p wrong | ours wrong | held | people | worst | width | worth |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for judge in JUDGES:
        for n in SIZES:
            of = [cell for cell in cells if cell.judge == judge and cell.n == n]
            own, ours = max(c.own_wrong for c in of), max(sum(c.wrong) for c in of)
            width = float(np.mean([c.width / c.alone_width for c in of]))
            worst = min((c.held, c.alone_held) for c in of)
            means = (_mean(of, name) for name in ("held", "alone_held"))
            figures = (*(f"{mean:.3f}" for mean in means), "{:.2f} ({:.2f})".format(*worst))
            words = (judge, f"{n}", f"{_mean(of, 'rho'):.2f}", f"{100 * own:.1f} %")
            shown = (*words, f"{100 * ours:.1f} %", *figures, f"{width:.2f}", f"{n / width**2:.0f}")
            yield f"| {' | '.join(shown)} |"


def main(arguments: Sequence[str]) -> int:
    """Print the tables and the bars; exit code 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--replays", type=int, default=REPLAYS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    data = [read(folder) for folder in options.folders] or [made_up()]
    cells = [
        cell
        for of in data
        for judge in JUDGES
        for cell in replayed(of, judge, options.replays, options.seed)
    ]
    print(*table(cells), "", sep="\n")
    judged = bars(cells)
    for of in data:
        if len(of.grades) >= ENOUGH:
            for judge in (*UNFAIR, *FAIR):
                share, unfair = rings(of, judge, seed=options.seed), judge in UNFAIR
                met = share >= 0.95 if unfair else share <= 0.07
                judged.append((f"{of.name}, {judge}: alarms", share, (0.07, 0.95)[unfair], met))
    print("| bar | measured | must be | met |", "|---|---:|---:|---|", sep="\n")
    for words, measured, bar, met in judged:
        print(f"| {words} | {measured:.3f} | {bar:.3f} | {'yes' if met else 'MISSED'} |")
    return int(not all(met for *_, met in judged))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
