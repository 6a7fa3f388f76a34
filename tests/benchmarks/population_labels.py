"""Labels for a verdict on questions like these, replayed on collections that are judged.

In each replay the questions of a collection are dealt into two halves. Of one half so many are
pooled and judged in plain random order, with a look after each, up to the end; the other half
stands for the questions that users will ask: a word is wrong if its mean contradicts it. That mean
is a sample's, too, so that some words are wrong by its chance.

``python -m tests.benchmarks.population_labels FOLDER ...`` prints the table of the guide: how often
it ends early, how many of the labels it takes, and how often a word is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.verdicts import PairJudge, Rules
from retrieval_bench.core.types import Verdict
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.intervals import SHARE
from retrieval_bench.stats.resampling import RESAMPLES
from retrieval_bench_labels.decide.deciding import level
from retrieval_bench_labels.decide.population import BETTING
from retrieval_bench_modes.sequential import Betting, verdicts
from tests.benchmarks.labelling import Case, cases

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.object_]

SIZES = (30, 60, 100, 140, 300)
FEWEST = 300
"""Questions of a collection that is large enough for halves."""
REPLAYS = 200
PROMISED = 0.06

EFFECTS = {"0.4 and more": 0.4, "0.2 to 0.4": 0.2, "below 0.2": 0.0}
"""Classes of the size of a difference, in standard deviations, by their lower ends."""


@dataclass(frozen=True, eq=False)
class Replays:
    """What replays of one pair of systems came to; arrays (replays,).

    Attributes:
        taken: share of the labels at the word of the bets; 1 without one.
        early: the word of the bets, before all was judged.
        complete: the word of the test, once all was.
        elsewhere: mean difference of the other half.
    """

    taken: Floats
    early: Words
    complete: Words
    elsewhere: Floats

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Whether the bets had a word before all was judged."""
        return np.asarray(self.early != Verdict.UNDECIDED)

    @property
    def decided(self) -> NDArray[np.bool_]:
        """Whether there was a word at any time."""
        return np.asarray(self.ended | np.array([not word.open for word in self.complete]))

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Whether the other half contradicts either word."""
        words = (self.early, self.complete)
        return np.asarray(np.any([_contradicted(of, self.elsewhere) for of in words], axis=0))


def _contradicted(words: Words, means: Floats) -> NDArray[np.bool_]:
    return np.asarray(
        ((words == Verdict.BETTER) & (means <= 0))
        | ((words == Verdict.WORSE) & (means >= 0))
        | ((words == Verdict.EQUIVALENT) & (np.abs(means) > MARGIN))
    )


def replay(case: Case, n: int, replays: int = REPLAYS) -> Replays:
    """Deal, pool ``n`` questions and judge them, so many times."""
    rng = np.random.default_rng([n, len(case.values)])
    dealt = np.array([rng.permutation(len(case.values)) for _ in range(replays)])
    pooled, others = dealt[:, :n], dealt[:, len(case.values) // 2 :]
    values = case.values[pooled]
    cost = np.where(np.abs(case.limits).max(axis=1) > 0, case.cost, 0)[pooled]
    spent = np.cumsum(cost, axis=1) / np.maximum(cost.sum(axis=1), 1)[:, None]
    early, taken = _bets(values, spent)
    return Replays(taken, early, _tested(case, values), case.values[others].mean(axis=1))


def _bets(values: Floats, spent: Floats) -> tuple[Words, Floats]:
    """The first word of the bets in each replay, and the share of the labels spent by then."""
    replays = len(values)
    betting = Betting(
        [-MARGIN, 0.0, MARGIN], SHARE.of_differences, streams=replays, alpha=level(1, BETTING)
    )
    words, taken = np.full(replays, Verdict.UNDECIDED, dtype=object), np.ones(replays)
    for step in range(values.shape[1]):
        betting.add(values[:, step])
        now = np.array(verdicts(betting), dtype=object)
        # Once all that can differ is judged, the test decides.
        new = (words == Verdict.UNDECIDED) & (now != Verdict.UNDECIDED) & (spent[:, step] < 1)
        words[new], taken[new] = now[new], spent[new, step]
    return words, taken


def _tested(case: Case, values: Floats) -> Words:
    """The word of the test of all labels; each replay stands as a metric of the same two systems,
    so that all share their sign patterns."""
    low, high = np.maximum(-values, 0.0).T, np.maximum(values, 0.0).T
    judge = PairJudge("", case.names[1:], [case.metric] * len(values), [low, high])
    deltas = judge.judged([(0, 1)], Rules(MARGIN, (), RESAMPLES))
    return np.array([delta.verdict for delta in deltas], dtype=object)


def allowed(replays: int) -> float:
    """The share of wrong words that chance leaves to what is wrong in as many as promised."""
    return PROMISED + 3 * float(np.sqrt(PROMISED * (1 - PROMISED) / replays))


def sizes(case: Case) -> Iterator[int]:
    """Of the pools that a half of the collection can fill."""
    return (n for n in SIZES if n <= len(case.values) // 2)


def effect_of(case: Case) -> str:
    """The class of the size of the difference."""
    return next(name for name, least in EFFECTS.items() if abs(case.effect) >= least)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--replays", type=int, default=REPLAYS)
    options = parser.parse_args()
    print("| collection | questions | d | pairs | ended early | labels it took | decided | wrong |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for folder in options.folders:
        found = cases(folder)
        if len(found[0].values) < FEWEST:
            print(f"{folder.name}: {len(found[0].values)} judged queries, too few for halves")
            continue
        for n in sizes(found[0]):
            for effect in EFFECTS:
                played = [
                    replay(case, n, options.replays) for case in found if effect_of(case) == effect
                ]
                if played:
                    print(f"| {folder.name} | {n} | {effect} | {_row(played)} |", flush=True)


def _row(played: Sequence[Replays]) -> str:
    """Means over pairs and replays, and the worst pair."""
    ended, taken, decided, wrong = (
        np.mean([getattr(one, name).mean() for one in played])
        for name in ("ended", "taken", "decided", "wrong")
    )
    worst = max(one.wrong.mean() for one in played)
    shown = f"{ended:.0%} | {taken:.0%} | {decided:.0%} | {wrong:.1%}, at most {worst:.1%}"
    return f"{len(played)} | {shown}"


if __name__ == "__main__":
    main()
