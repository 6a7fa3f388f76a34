"""Labels until the decision, replayed on collections whose judgements are complete: verdicts are
hardly ever wrong, and take far fewer labels than the pool has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.labelling import REPLAYS, Case, Replays, cases, replay

pytestmark = [pytest.mark.realdata, pytest.mark.slow]

COLLECTIONS = [
    pytest.param(("time", 60), id="time, few replays"),
    *(
        pytest.param((name, REPLAYS), marks=pytest.mark.long, id=name)
        for name in ("time", "scifact", "halubench-mala299", "squad2-dev")
    ),
]


@pytest.fixture(scope="module", params=COLLECTIONS)
def played(request: pytest.FixtureRequest, bench_data: Path) -> list[tuple[Case, Replays, Replays]]:
    """Each pair by difference, and in random order."""
    name, replays = request.param
    return [
        (case, replay(case, replays), replay(case, replays, random=True))
        for case in cases(bench_data / "beir" / name)
    ]


def test_verdicts_are_wrong_in_at_most_one_of_twenty(
    played: list[tuple[Case, Replays, Replays]],
) -> None:
    assert {
        case.names: found.wrong.mean() for case, found, _ in played if found.wrong.mean() > 0.05
    } == {}


def test_a_clear_difference_takes_at_most_35_percent_of_the_labels(
    played: list[tuple[Case, Replays, Replays]],
) -> None:
    clear = [(c, f) for c, f, _ in played if abs(c.effect) >= 0.4 and len(c.values) >= 300]
    assert {c.names: float(np.median(f.taken)) for c, f in clear if np.median(f.taken) > 0.35} == {}
    assert clear or len(played[0][0].values) < 300


def test_it_is_never_behind_a_random_order_and_ahead_in_the_mean(
    played: list[tuple[Case, Replays, Replays]],
) -> None:
    weighted = np.array([found.known for _, found, _ in played])
    random = np.array([found.known for _, _, found in played])
    gap = weighted.mean(axis=(0, 1)) - random.mean(axis=(0, 1))
    of_pairs = weighted.var(axis=1) + random.var(axis=1)  # each pair has replays of its own
    error = np.sqrt(of_pairs.sum(axis=0) / weighted.shape[1]) / len(played)
    assert np.all(gap >= -2 * error)
    assert gap.mean() > 0
