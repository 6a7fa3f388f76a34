"""Labels for a verdict on questions like these, replayed: the other half of the collection
contradicts hardly any word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.labelling import cases
from tests.benchmarks.population_labels import REPLAYS, allowed, replay, sizes

pytestmark = [pytest.mark.realdata, pytest.mark.slow]


@pytest.mark.parametrize(
    ("name", "replays"),
    [
        pytest.param("scifact", 40, id="scifact, few replays"),
        *(
            pytest.param(name, REPLAYS, marks=pytest.mark.long, id=name)
            for name in ("scifact", "piaf-v1.0", "squad2-dev")
        ),
    ],
)
def test_words_are_wrong_in_at_most_six_of_a_hundred(
    name: str, replays: int, bench_data: Path
) -> None:
    played = {
        (case.names, n): replay(case, n, replays)
        for case in cases(bench_data / "beir" / name)
        for n in sizes(case)
    }
    assert {
        key: one.wrong.mean() for key, one in played.items() if one.wrong.mean() > allowed(replays)
    } == {}
    assert any(one.ended.any() for one in played.values())
    assert any(one.decided.mean() > one.ended.mean() for one in played.values())
