"""What failed calls do to a run: asked again, counted, and the means without failed queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench
from retrieval_bench.core.calls.failures import TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data import build_dataset
from retrieval_bench.experiment.failing import joined_attempts
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.summary import Summary
from tests.builders import some
from tests.builders.tables import folded

pytestmark = pytest.mark.usefixtures("here")
N = 8
QUICK = Protocol(rounds=2, warm_up_s=0.0)


def data() -> Dataset:
    documents = [Document(f"d{i}", f"text {i}") for i in range(N)]
    queries = [Query(f"q{i}", f"text {i}") for i in range(N)]
    judged = {f"q{i}": {f"d{i}": 1} for i in range(N)}
    return build_dataset("small", documents, queries, judged, language="en")


def failing(how: Callable[[int, int], Exception | None]) -> Callable[[str, int], list[str]]:
    """Finds what is asked for; fails as ``how`` says of a query and the number of its call."""
    calls: dict[str, int] = {}

    def search(text: str, k: int) -> list[str]:
        calls[text] = calls.get(text, 0) + 1
        problem = how(int(text.split()[1]), calls[text])
        if problem is not None:
            raise problem
        return [f"d{text.split()[1]}"]

    return search


def test_quality_is_that_of_the_answer_that_came_later() -> None:
    def how(query: int, n: int) -> Exception | None:
        return TransientError("503") if query < 2 and n == 1 else None

    summary = bench(failing(how), data(), k=3, protocol=QUICK).run.summary.as_dict()
    assert summary["metrics"]["nDCG@3"]["mean"] == 1.0
    assert (summary["n_failed"], summary["latency_ms"]["failed_calls"]) == (0, 2)
    attempts = summary["attempts"]
    assert attempts["failed"] == {"5xx": 2}
    assert (attempts["recovered"], attempts["asked_again"]) == (2, 0)
    assert attempts["to_answer_ms"]["max"] > 500  # half a second that nobody waited
    assert summary["latency_ms"]["max"] < 500
    (warning,) = [w for w in summary["warnings"] if "asked again" in w]
    assert isinstance(warning, Notice)
    assert warning.code is Code.FAILED_CALLS
    assert warning.startswith("2 calls failed (5xx: 2); 2 queries had an answer when asked again.")
    assert "answered" not in summary


def test_means_with_failures_as_zero_and_over_answered_queries() -> None:
    def how(query: int, n: int) -> Exception | None:
        return ValueError("no") if query < 2 else None

    result = bench(failing(how), data(), k=3, protocol=QUICK)
    summary = result.run.summary.as_dict()
    assert summary["metrics"]["nDCG@3"]["mean"] == 0.75
    assert summary["answered"]["n"] == 6
    assert summary["answered"]["metrics"]["nDCG@3"]["mean"] == 1.0
    assert "Over the 6 that were answered: nDCG@3 1.000." in folded(str(result))
    assert summary["attempts"]["failed"] == {"other": 2}  # once each: it would fail again


@pytest.mark.slow
def test_a_config_says_what_is_made_again_and_how_often(tmp_path: Path) -> None:
    Path("busy.py").write_text(
        "from retrieval_bench.core.calls.failures import Kind, TransientError\n"
        "CALLS = []\n"
        "def search(text, k):\n"
        "    CALLS.append(text)\n"
        "    raise TransientError(f'busy {len(CALLS)}', Kind.THROTTLED) if text == 'text 0' "
        "else ValueError('no')\n"
        "def some(text, k):\n"
        "    return search(text, k) if text == 'text 0' else ['d1']\n"
    )
    given: dict[str, Any] = {"target": "callable", "params": {"function": "busy.py:some"}}
    for retry, calls in (({"times": 0}, 1), ({"when": ["timeout"]}, 1), ({"times": 1}, 2)):
        run = bench({**given, "retry": retry}, data(), k=3, protocol=QUICK).run
        assert some(run.summary.attempts).failed == {"429": calls}
    with pytest.raises(ConfigError, match="retry"):
        bench({**given, "retry": {"when": ["418"]}}, data(), k=3, protocol=QUICK)
    with pytest.raises(ConfigError, match="rate_limit"):
        bench({**given, "rate_limit": 0}, data(), k=3, protocol=QUICK)


def test_launches_add_up_their_failures() -> None:
    one = {"failed": {"429": 2}, "recovered": 1, "asked_again": 0, "given_up": 1}
    other = {"failed": {"429": 1, "5xx": 1}, "recovered": 2, "asked_again": 1, "given_up": 0}
    none = Summary.model_validate({"retriever": "a", "dataset": {}, "k": 1})
    told = [none.replace(attempts={**each, "to_answer_ms": None}) for each in (one, other)]
    assert joined_attempts([*told, none]) == {
        "attempts": {
            "failed": {"429": 3, "5xx": 1},
            "recovered": 3,
            "asked_again": 1,
            "given_up": 1,
            "to_answer_ms": None,
        }
    }
    assert joined_attempts([none]) == {}
