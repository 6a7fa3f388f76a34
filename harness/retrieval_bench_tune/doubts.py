"""Why the choice among settings may be luck, one sentence for each reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.core.errors import counted
from retrieval_bench.stats.clusters import Clusters
from retrieval_bench.stats.randomization import randomization_p
from retrieval_bench_tune.grid import Grid, Setting, as_yaml, numeric
from retrieval_bench_tune.selection import Selection, tied

FEW_QUERIES = 50
"""With fewer tuning queries the best setting is mostly the luckiest one."""

_RESAMPLES = 2000
"""For one test of each setting against the best."""


def doubts(
    grid: Grid, values: NDArray[np.float64], selection: Selection, clusters: Clusters | None = None
) -> list[str]:
    """Return why the choice may be luck, one sentence each.

    Args:
        values: (settings, tuning queries).
        clusters: of these queries; None where each is independent.
    """
    return [
        *_few(values.shape[1], selection, clusters),
        *_ties(grid, values, selection),
        *_noise(grid, values, selection, clusters),
        *_unstable(selection),
        *_at_an_end(grid, grid.settings[selection.winner]),
    ]


def _few(n: int, selection: Selection, clusters: Clusters | None) -> list[str]:
    fewest = n - max(c.n_held_out for c in selection.choices) if len(selection.choices) > 1 else n
    unit = "tuning query"
    if clusters is not None:
        fewest, unit = round(fewest * clusters.n / n), "tuning cluster"
    if fewest >= FEW_QUERIES:
        return []
    return [f"{counted(fewest, unit)}: with fewer than {FEW_QUERIES} luck decides"]


def _ties(grid: Grid, values: NDArray[np.float64], selection: Selection) -> list[str]:
    equal = tied(values.mean(axis=1))
    if len(equal) < 2:
        return []
    won = grid.settings[selection.winner]
    which = "the default is taken" if won.as_is else f"the first is taken, {won}"
    return [f"{len(equal):,} settings tie for the best mean: {which}"]


def _noise(
    grid: Grid, values: NDArray[np.float64], selection: Selection, clusters: Clusters | None
) -> list[str]:
    """Name the settings that the tuning queries cannot tell from the best."""
    others = [at for at in range(len(values)) if at != selection.winner]
    if not others:
        return []
    worse = (values[selection.winner] - values[others]).T
    p = randomization_p(worse, resamples=_RESAMPLES, clusters=clusters)
    as_good = [at for at, own in zip(others, p.tolist(), strict=True) if own >= QUALITY_ALPHA]
    noise = []
    if as_good:
        n = counted(len(others), "other setting")
        noise.append(
            f"{len(as_good):,} of {n} cannot be told from the best on the tuning queries (one "
            "paired test each, p of .05 and more)"
        )
    alone = [at for at in (selection.winner, *as_good) if _one_leg(grid.settings[at])]
    if alone:
        which = grid.settings[alone[0]]
        verb = "is the best" if alone[0] == selection.winner else "cannot be told from the best"
        noise.append(f"one leg alone {verb} ({which}): the others may not be worth their time")
    return noise


def _one_leg(setting: Setting) -> bool:
    """Return whether weights leave a single leg of several."""
    return any(
        path.rpartition(".")[2] == "weights"
        and isinstance(weights, list | tuple)
        and sum(map(bool, weights)) == 1 < len(weights)
        for path, weights in setting.values.items()
    )


def _unstable(selection: Selection) -> list[str]:
    chosen = Counter(choice.setting for choice in selection.choices)
    often = chosen.most_common(1)[0][1]
    total = len(selection.choices)
    if total == 1 or often * 2 >= total:
        return []
    message = f"{len(chosen)} settings were chosen in {total} folds, none in more than {often}"
    return [f"{message}: which one is best is not settled"]


def _at_an_end(grid: Grid, winner: Setting) -> list[str]:
    """Parameters whose best value is the lowest or highest that was tried."""
    ends = []
    for path, value in winner.values.items():
        values = grid.parameters[path]
        if len(values) > 1 and numeric(values) and _is_end(value, values):
            ends.append(f"{path}={as_yaml(value)}")
    if not ends:
        return []
    return [f"the best is at an end of what was tried in {', '.join(ends)}: try values beyond it"]


def _is_end(value: Any, values: Sequence[Any]) -> bool:
    """Say of a list whether any of its numbers is the lowest or highest there; 0 is no such end,
    weights go no lower."""
    if not isinstance(value, list | tuple):
        return bool(value in (min(values), max(values)))
    if sum(map(bool, value)) == 1 < len(value):
        return False  # one leg alone: there is nothing beyond it, and that is told by itself
    columns = zip(*values, strict=True)
    return any(
        part != 0 and part in (min(column), max(column)) and len(set(column)) > 1
        for part, column in zip(value, columns, strict=True)
    )
