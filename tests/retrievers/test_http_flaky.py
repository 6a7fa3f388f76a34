"""A service that fails now and then is not a worse one; one that loses documents is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from retrieval_bench import compare
from retrieval_bench.api.results import ComparisonResult
from retrieval_bench.core.types import Dataset, Document, Query, Verdict
from retrieval_bench.data import build_dataset
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_retrievers.http.http import HTTP
from tests.builders.service import Reply, Request, hits, service

pytestmark = [pytest.mark.slow, pytest.mark.long]

N = 300
TRIALS = 20
BUSY, BROKEN, HANGS = 0.03, 0.01, 0.002
PROTOCOL = Protocol(rounds=3, warm_up_s=0.0, timeout_s=0.3)


def data() -> Dataset:
    documents = [Document(f"d{i}", f"text {i}") for i in range(N)]
    queries = [Query(f"q{i}", f"text {i}") for i in range(N)]
    judged = {f"q{i}": {f"d{i}": 1} for i in range(N)}
    return build_dataset("numbered", documents, queries, judged, language="en")


def flaky(seed: int, lost: float = 0.0) -> Callable[[Request], Reply]:
    """Finds the document of a query, first or further down; ``lost`` of them never."""
    draw = random.Random(seed)
    gone = set(random.Random(99).sample(range(N), round(lost * N)))

    def answer(request: Request) -> Reply:
        luck = draw.random()
        if luck < BUSY:
            return Reply({"error": "busy"}, 429, {"Retry-After": "0"})
        if luck < BUSY + BROKEN:
            return Reply({"error": "broken"}, 500)
        if luck < BUSY + BROKEN + HANGS:
            return Reply(hang=True)
        number = int(request.body["text"].split()[1])
        before = [f"d{(number + step) % N}" for step in range(1, number % 4 + 1)]
        found = [*before, *([] if number in gone else [f"d{number}"])]
        return hits(*((one, 1.0 - rank / 10) for rank, one in enumerate(found)))

    return answer


def verdict(seed: int, lost: float = 0.0) -> tuple[Verdict, int]:
    """Of the second service beside the first, and how many calls failed."""
    with service(flaky(2 * seed)) as one, service(flaky(2 * seed + 1, lost)) as other:
        systems = [
            HTTP(
                url=f"{at.url}/search",
                body={"text": "{text}", "k": "{k}"},
                hits="hits",
                id="id",
                score="score",
            )
            for at in (one, other)
        ]
        found = compare(systems, data(), k=5, protocol=PROTOCOL)
    assert isinstance(found, ComparisonResult)
    runs = found.comparison.runs
    failed = sum(run.summary.latency_ms.failed_calls for run in runs)
    assert all(run.summary.as_dict()["attempts"]["recovered"] for run in runs)
    return found.comparison.deltas[0].verdict, failed


@pytest.mark.parametrize("part", range(4))
def test_a_flaky_service_is_never_worse_than_itself(part: int) -> None:
    seeds = range(part * TRIALS // 4, (part + 1) * TRIALS // 4)
    found = [verdict(seed) for seed in seeds]
    assert not [one for one, _ in found if one in (Verdict.WORSE, Verdict.BETTER)]
    assert all(failed > 20 for _, failed in found)  # about 4 % of 1,800


def test_one_that_loses_documents_is_worse() -> None:
    for seed in range(3):
        assert verdict(seed, lost=0.05)[0] is Verdict.WORSE
