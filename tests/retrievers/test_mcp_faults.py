"""What servers of MCP do wrong: each time a clear word, never an answer without hits, and the next
call is answered."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import product

import pytest

from retrieval_bench.core.calls.failures import CallError, Kind
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Query
from tests.builders.marks import also
from tests.builders.mcp_served import serving
from tests.builders.mcp_toy import DOCS, LEGACY, MODERN, found

WAYS = ("stdio", "json", "events")

ANYWHERE = {
    "no JSON": "no JSON: Searching ...",
    "invalid byte": "what is no JSON",
    "no message": "no message of MCP: [1, 2]",
    "another id": "answered the request 4711",
    "id as text": "answered the request '",
    "id as list": "answered the request [",
    "id with a point": ".0, and was asked ",
    "no id": "answered the request None",
    "no result": "neither a result nor an error",
    "result is a list": "neither a result nor an error",
    "error": "the error -32602: limit is too high",
    "internal error": "the error -32603: index is locked",
    "error is a text": "the error None: broken",
    "error without id": "the error -32700: cannot parse that",
    "isError": "the tool answered an error: index is gone",
    "isError without text": "the tool answered an error: without a word",
    "input required": "asks back before it answers: Who is it?",
    "another type": "a result of type 'task'",
    "huge answer": "more than 1,000,000 bytes",
    "no hits at all": "hits found nothing in the answer",
    "prose in place of hits": "its text begins: No luck today.",
    "hits are a mapping": "hits found no list in the answer",
    "hit without id": "id found nothing at rank 1",
    "id is a list": "id found a list at rank 1",
    "id is empty": "id found the text '' at rank 1",
    "NaN": "score found a number at rank 1",
    "score is a word": "score found a text at rank 1",
    "scores rise": "the score rises from 0.5 to 0.75 at rank 2",
}
PROGRAM = {
    "dies": "the server ended (exit code 3); its stderr ends: toy is up",
    "half": "in the middle of a line: {",
    "endless line": "more than 1,000,000 bytes without the end of a line",
    "notifications": "more than 10,000 notifications",
    "many messages": "more than 1,000,000 bytes, and no answer among it",
}
HTTP = {
    "dies": "broke: ",
    "endless line": "no JSON: xxx",
    "400": "answered 400: no",
    "401": "answered 401: no",
    "405": "answered 405: no",
    "429": "answered 429: no",
    "500": "answered 500: no",
    "503": "answered 503: no",
    "204": "answered 204 to a request, and nothing else",
    "202": "answered 202 to a request, and nothing else",
    "302": "a redirect to http://elsewhere.example:80, which is not followed",
    "HTML": "no JSON: <html>Sign in</html>",
}
EVENTS = {"half": "no JSON: {", "many messages": "more than 1,000,000 bytes"}
OF_MODERN = {"asks back": "for which MCP 2026-07-28 has no place", "404": "answered 404: no"}
OF_LEGACY = {"404": "does not know the session any more"}
PASSING = {
    **{"internal error": Kind.SERVER, "500": Kind.SERVER, "503": Kind.SERVER},
    **{"429": Kind.THROTTLED, "dies": Kind.CONNECTION},
}


def _cases() -> Iterator[tuple[str, str, str, str]]:
    for era, way in product((MODERN, LEGACY), WAYS):
        faults = {**ANYWHERE, **(PROGRAM if way == "stdio" else HTTP)}
        faults |= EVENTS if way == "events" else {}
        if way != "stdio":
            faults |= OF_MODERN if era == MODERN else OF_LEGACY
        elif era == MODERN:
            faults |= {"asks back": OF_MODERN["asks back"]}
        if way == "json":
            faults.pop("asks back", None)
        yield from ((era, way, fault, word) for fault, word in faults.items())


CASES = list(_cases())


def test_there_are_more_than_two_hundred() -> None:
    assert len(CASES) > 200


@pytest.mark.parametrize(
    ("era", "way", "fault", "word"),
    [*(case for case in CASES if case[0] == MODERN), *also(*(c for c in CASES if c[0] == LEGACY))],
)
def test_a_fault_is_a_failed_call_with_a_clear_word_and_the_next_is_answered(
    era: str, way: str, fault: str, word: str
) -> None:
    with serving(era, way, fault, max_answer_mb=1.0, tokens="none") as retriever:
        first = list(retriever.search(Query("q1", "cat ran"), 3))
        with pytest.raises(CallError) as caught:
            retriever.search(Query("q2", "break cat"), 3)
        assert word in str(caught.value)
        assert caught.value.kind is PASSING.get(fault, caught.value.kind)
        assert (
            list(retriever.search(Query("q3", "cat ran"), 3)) == first == found(DOCS, "cat ran", 3)
        )
        pid = retriever.server_pid()
    if pid is not None:
        with pytest.raises(ProcessLookupError):
            os.killpg(pid, 0)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", ["silent", "half and silent"])
def test_silence_ends_at_the_time_out(era: str, way: str, fault: str) -> None:
    if (way, fault) == ("events", "half and silent"):
        pytest.skip("half an event is one that is wrong")
    with serving(era, way, fault, timeout_s=0.3) as retriever:
        retriever.use_k(3)
        for _ in range(2):
            begin = time.monotonic()
            with pytest.raises(CallError, match="in time") as caught:
                retriever.search(Query("q", "break cat"), 3)
            assert caught.value.kind is Kind.TIMEOUT
            assert time.monotonic() - begin < 30
        # A program that was silent twice was ended, and begins anew, which may take longer.
        retriever._session._timeout_s = 60
        assert list(retriever.search(Query("q", "cat ran"), 3)) == found(DOCS, "cat ran", 3)


@pytest.mark.parametrize(
    ("fault", "era"),
    [
        ("start-invalid", LEGACY),
        ("start-ends", LEGACY),
        ("start-banner", LEGACY),
        ("start-older", LEGACY),
        pytest.param("start-silent", LEGACY, marks=pytest.mark.slow),
        pytest.param("start-slow", MODERN, marks=pytest.mark.slow),
    ],
)
def test_the_era_is_found_whatever_a_program_says_to_the_first_message(
    fault: str, era: str
) -> None:
    with serving("", "stdio", fault) as retriever:
        assert list(retriever.search(Query("q", "cat ran"), 3)) == found(DOCS, "cat ran", 3)
        assert retriever.describe()["protocol"] == era
        assert retriever.health([]) == [] or "again" not in str(retriever.health([]))


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ("start-newer", "the server speaks 2099-01-01"),
        ("start-gone", "the server ended (exit code 3)"),
        ("start-mute", "did not answer in time"),
    ],
)
def test_a_server_that_cannot_be_spoken_to_ends_the_run(fault: str, word: str) -> None:
    startup_s = 0.3 if fault == "start-mute" else 60
    with serving("", "stdio", fault, startup_s=startup_s) as retriever:
        with pytest.raises(ConfigError) as caught:
            retriever.use_k(3)
        assert word in str(caught.value)
        assert "start it by hand" in str(caught.value) or fault == "start-newer"
