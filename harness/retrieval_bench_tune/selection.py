"""Choosing among settings, and what the choice is worth on queries that it was not made on.

Arithmetic on a matrix of values (settings, queries): nothing is searched, and nothing decided. The
best of many settings on some queries is in part the luckiest one there, so its mean on the same
queries promises too much; every figure called held out is of queries that had no part in the
choice.

Sources: Stone, JRSS B 1974 (cross-validated choice); Cawley & Talbot, JMLR 2010 (over-fitting in
model selection).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDING = 1e-12
"""Means that differ by no more are equal."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting, chosen on some queries and tried on others.

    Attributes:
        repeat, fold: which queries were held out, both from 0.
        setting: its place among the settings.
        tuning: its mean on the queries that it was chosen on.
        held_out: its mean on the others.
        n_held_out: how many these are.
    """

    repeat: int
    fold: int
    setting: int
    tuning: float
    held_out: float
    n_held_out: int


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Worth of choosing.

    Attributes:
        choices: one for each fold of each repeat; a single one with a dev split.
        winner: the setting that is best on all tuning queries.
        tuning: mean of the chosen settings on the queries that they were chosen on.
        held_out: (queries,): value of each query by the setting that was chosen without it; the
            mean over repeats.
        default: (queries,): the same queries by the default.
        default_tuning: mean of the default on the tuning queries.
        naive: the setting that is best on the very queries that are reported.
        naive_mean: and its mean there.
        gaps: (repeats,): tuning mean minus held-out mean.
        chosen: (repeats, queries): the setting that each query was answered by.
    """

    choices: tuple[Choice, ...]
    winner: int
    tuning: float
    held_out: Floats
    default: Floats
    default_tuning: float
    naive: int
    naive_mean: float
    gaps: Floats
    chosen: NDArray[np.intp]

    @property
    def gap(self) -> float:
        """Mean on the tuning queries minus held-out mean."""
        return self.tuning - float(self.held_out.mean())

    @property
    def default_gap(self) -> float:
        """The same of the default, which was not chosen: what the two sets of queries differ by."""
        return self.default_tuning - float(self.default.mean())

    def times_chosen(self, setting: int) -> int:
        """Out of all choices."""
        return sum(choice.setting == setting for choice in self.choices)


def best(means: Floats) -> int:
    """The place of the highest mean; of equal ones the first, which is the default if it is among
    them."""
    return int(np.flatnonzero(means >= means.max() - ROUNDING)[0])


def tied(means: Floats) -> list[int]:
    """All places of the highest mean."""
    return [int(at) for at in np.flatnonzero(means >= means.max() - ROUNDING)]


def deal_folds(groups: Sequence[Hashable], n_folds: int, seed: int) -> NDArray[np.intp]:
    """The fold of each query, dealt at random.

    Args:
        groups: one for each query; those of one group, such as queries with the same text, fall
            into the same fold.

    Returns:
        (queries,), from 0 to ``n_folds`` - 1; folds differ by at most the largest group.
    """
    members: dict[Hashable, list[int]] = {}
    for at, group in enumerate(groups):
        members.setdefault(group, []).append(at)
    together = list(members.values())
    fold_of = np.empty(len(groups), dtype=np.intp)
    sizes = [0] * n_folds
    for at in np.random.default_rng(seed).permutation(len(together)).tolist():
        fold = sizes.index(min(sizes))
        fold_of[together[at]] = fold
        sizes[fold] += len(together[at])
    return fold_of


def cross_validated(
    values: Floats, groups: Sequence[Hashable], *, n_folds: int, repeats: int, seed: int
) -> Selection:
    """Within each fold the setting that is best on the other folds is tried.

    Args:
        values: (settings, queries), the default first.
        groups: as in :func:`deal_folds`; at least ``n_folds`` different ones.
        repeats: how often the queries are dealt anew, with seeds from ``seed`` on.
    """
    n = values.shape[1]
    means = values.mean(axis=1)
    choices: list[Choice] = []
    held_out = np.zeros(n)
    gaps = np.empty(repeats)
    chosen = np.empty((repeats, n), dtype=np.intp)
    for repeat in range(repeats):
        fold_of = deal_folds(groups, n_folds, seed + repeat)
        own = np.empty(n)
        folds = []
        for fold in range(n_folds):
            out = fold_of == fold
            training = values[:, ~out].mean(axis=1)
            at = best(training)
            own[out] = values[at, out]
            chosen[repeat, out] = at
            row = Choice(
                repeat, fold, at, float(training[at]), float(values[at, out].mean()), int(out.sum())
            )
            folds.append(row)
        gaps[repeat] = np.mean([row.tuning for row in folds]) - own.mean()
        held_out += own / repeats
        choices += folds
    winner = best(means)
    return Selection(
        tuple(choices),
        winner,
        float(np.mean([choice.tuning for choice in choices])),
        held_out,
        values[0],
        float(means[0]),
        winner,
        float(means[winner]),
        gaps,
        chosen,
    )


def chosen_on_dev(dev: Floats, test: Floats) -> Selection:
    """The setting that is best on ``dev``, tried on ``test``.

    Args:
        dev, test: (settings, queries) of other queries each, the default first.
    """
    on_dev, on_test = dev.mean(axis=1), test.mean(axis=1)
    at, naive = best(on_dev), best(on_test)
    choice = Choice(0, 0, at, float(on_dev[at]), float(on_test[at]), test.shape[1])
    return Selection(
        (choice,),
        at,
        choice.tuning,
        test[at],
        test[0],
        float(on_dev[0]),
        naive,
        float(on_test[naive]),
        np.array([choice.tuning - choice.held_out]),
        np.full((1, test.shape[1]), at, dtype=np.intp),
    )
