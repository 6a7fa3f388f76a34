"""A service over HTTP in the test's process that load is made of: it answers, refuses, sleeps."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.builders.service import Reply, Request, Service, hits, service

Answer = Callable[[int, Request], Reply]
"""The reply to a request, by its number from 1."""

LENIENT = {
    **dict.fromkeys(("LAG_MS", "MOST_OF_A_CORE", "MOST_WAITED", "LITTLE"), 1e9),
    "LEAST_SENT": 0.0,
}
"""Attributes of :mod:`retrieval_bench_load.engine.levels` where the generator is not what a test is
about: it shares its core with the service."""

GOOD = hits(("ast-001", 1.0))


@contextmanager
def loadable(
    folder: Path, answer: Answer, name: str = "svc", *, waits: bool = False
) -> Iterator[tuple[Service, str]]:
    """The service, see :func:`.service`, and the path of a config that calls it; ``service.answer``
    may be set anew by :func:`answering`."""
    with service(answering(answer), waits=waits) as running:
        config = {
            "name": name,
            "target": "http",
            "params": {
                "url": f"{running.url}/search",
                "body": {"text": "{text}", "k": "{k}"},
                "hits": "hits",
                "id": "id",
                "score": "score",
            },
        }
        path = folder / f"{name}.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        yield running, str(path)


def answering(answer: Answer) -> Callable[[Request], Reply]:
    """It, told the number of each request."""
    numbers = itertools.count(1)
    return lambda request: answer(next(numbers), request)


def well(_number: int, _request: Request) -> Reply:
    """At once, and rightly."""
    return GOOD


def refusing(each: int, status: int = 503, **headers: str) -> Answer:
    """Every ``each``-th request is refused at once."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda number, _: GOOD if number % each else Reply({}, status, sent)


def sleeping(seconds: float) -> Answer:
    """Any number at once, after so long."""

    def answer(_number: int, _request: Request) -> Reply:
        time.sleep(seconds)
        return GOOD

    return answer


def shedding(seconds: float, share: int) -> Answer:
    """Every ``share``-th request is refused, after so long."""

    def answer(number: int, _request: Request) -> Reply:
        if number % share:
            return GOOD
        time.sleep(seconds)
        return Reply({}, 503)

    return answer
