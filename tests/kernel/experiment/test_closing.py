from __future__ import annotations

import signal
import threading

import pytest

from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.experiment import candidate
from retrieval_bench.experiment.candidate import Candidate, close_all


class Mine(Retriever):
    closed = False

    def search(self, query: Query, k: int) -> Ranking:
        return Ranking([])

    def close(self) -> None:
        self.closed = True


class Hanging(Mine):
    def close(self) -> None:
        threading.Event().wait()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no call can be interrupted here")
def test_one_that_does_not_come_back_from_closing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was measured is printed behind it."""
    monkeypatch.setattr(candidate, "_CLOSING_S", 0.5)
    other = Mine()
    given = [Candidate("hanging", Hanging(), {}), Candidate("other", other, {})]
    with pytest.warns(RuntimeWarning, match=r"close\(\) of hanging did not return within 0.5 s"):
        close_all(given)
    assert other.closed
