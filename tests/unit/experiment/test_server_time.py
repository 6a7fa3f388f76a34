"""Calls of a server that spend most of their time outside of it are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.notices import Code, about_times, says
from retrieval_bench.experiment.server_time import outside_server
from retrieval_bench.measure.calls import Timings

MS = 1_000_000
LINE, CLIENT = "Look at the connection", "ask for fewer fields"


def timings(**stages: float | list[float]) -> Timings:
    """Three calls of the same length, of which ``stages`` says the milliseconds."""
    n = 3
    given = {
        name.replace("__", "."): np.array(np.broadcast_to(np.array(ms) * MS, n), dtype=np.int64)
        for name, ms in stages.items()
    }
    some = np.zeros(n, dtype=np.int32)
    wall = np.full(n, 10**9, dtype=np.int64)
    return Timings(wall, some, some, some, np.zeros(n, dtype=np.bool_), given)


@pytest.mark.parametrize(
    ("request_ms", "server", "wrapper", "told"),
    [
        (40.2, 0.25, 0.1, LINE),  # an acknowledgement that is delayed
        (3.0, 0.25, 5.0, CLIENT),
        (4.0, 2.2, 0.1, ""),  # more than half of it
        (1.2, 0.25, 0.01, ""),  # less than a millisecond is left over
        (40.0, 0.0, 0.1, LINE),
        (3.0, 1.0, 0.1, ""),  # whole milliseconds: 1 may be nearly 2
        (5.0, 1.0, 0.1, LINE),
    ],
)
def test_where_most_of_a_call_is_not_the_servers(
    request_ms: float, server: float, wrapper: float, told: str
) -> None:
    found = outside_server(timings(request=request_ms, server=server, wrapper=wrapper), {})
    assert bool(found) == bool(told)
    assert all(told in text for text in found)
    assert all(about_times(text) and says([text], Code.OUTSIDE_SERVER) for text in found)


def test_both_figures_stand_in_the_sentence() -> None:
    (text,) = outside_server(timings(request=[39, 41, 90], server=[0.1, 0.25, 7], wrapper=0.1), {})
    assert "takes 41.1 ms, of which it says that 0.250 ms are its own (medians)" in text
    (text,) = outside_server(timings(request=41, server=0, wrapper=0.1), {})
    assert "under 1 ms are its own" in text


def test_encoding_the_query_is_no_part_of_it() -> None:
    assert not outside_server(timings(encode=500, request=4, server=2.5, wrapper=0.1), {})


def test_a_leg_is_named_and_one_that_never_answered_says_nothing() -> None:
    legs = {"es__request": 41, "es__server": 0.3, "es__wrapper": 0.1}
    legs |= {"os__request": 41, "os__server": -1e-6, "os__wrapper": 0.1}
    (text,) = outside_server(timings(**legs), {})
    assert text.startswith("es: Asking the server takes 41.1 ms")


@pytest.mark.parametrize("stages", [{"sparse": 3}, {"request": 40, "wrapper": 1}])
def test_nothing_is_said_where_the_server_says_nothing(stages: dict[str, Any]) -> None:
    assert outside_server(timings(**stages), {"server_ms": {"error": "no permission"}}) == []


@pytest.mark.parametrize(("ms", "told"), [(45.0, True), (1.5, False)])
def test_the_times_of_a_database_are_those_that_it_explains(ms: float, told: bool) -> None:
    facts = {"server_ms": {"execution": 0.5, "planning": 0.2, "queries": 20}}
    found = outside_server(timings(sql=ms), facts)
    assert [("takes 45.0 ms" in text, "0.700 ms are" in text) for text in found] == [
        (True, True)
    ] * told
