"""The study of judges: its made-up data, its judges, and a part of its bars."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements, judge_lists, one_metric
from tests.benchmarks import judges as study


def test_values_are_those_of_the_metric() -> None:
    data, metric = study.made_up(30), one_metric("nDCG@10")
    ids = [f"q{at}" for at in range(30)]
    none = data.grades.shape[1] - 1
    graded = {
        q: {f"{d}": int(g) for d, g in enumerate(of) if g >= 0}
        for q, of in zip(ids, data.grades, strict=True)
    }
    values = study.values(data.grades, data.places)
    for own, places in zip(values, data.places, strict=True):
        lists = {q: [f"{d}" for d in of if d != none] for q, of in zip(ids, places, strict=True)}
        ours = metric.compute(judge_lists(lists, ids, Judgements(graded)))
        np.testing.assert_allclose(own, ours, atol=1e-6)


@pytest.mark.parametrize(("name", "kappa"), [("kappa .65", 0.65), ("misses .65", 0.65)])
def test_a_judge_has_the_kappa_of_its_name(name: str, kappa: float) -> None:
    data = study.made_up(200)
    rows = np.tile(np.arange(200), 20)
    said = study.JUDGES[name](data, rows, np.random.default_rng(0))
    truth = data.grades[rows]
    a, b = truth[truth >= 0] > 0, said[truth >= 0] > 0
    chance = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    assert ((a == b).mean() - chance) / (1 - chance) == pytest.approx(kappa, abs=0.02)


@pytest.mark.slow
@pytest.mark.long
def test_a_part_of_the_study_holds_what_people_alone_hold() -> None:
    data = study.made_up()
    for name in ("kappa .9", "kappa .35", "constant", "circular"):
        cells = [cell for cell in study.replayed(data, name, 200) if cell.n in (20, 50)]
        held, alone = (np.mean([getattr(c, of) for c in cells]) for of in ("held", "alone_held"))
        assert held >= alone - 0.02
        assert np.array([cell.wrong for cell in cells]).mean(axis=0).max() <= 0.025
    assert study.rings(data, "circular", 20) >= 0.95
    assert study.rings(data, "kappa .65", 20) <= 0.15
