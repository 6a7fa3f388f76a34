"""A program that answers a line with a line, and does one thing wrong: for those who ask programs.

    python faulty_program.py [FAULT AT [GOOD]]

The request with the number AT (from 0) is answered with FAULT, all others well; ``-`` is no fault.
A request that has a fault in its metadata is answered with that. Only the standard library, and
nothing of this project, for it runs as a program of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Fault = Callable[[Message, Message], None]
"""From the request and its good answer to what is wrong."""


def command(fault: str = "-", at: int = 0, good: str = "hits") -> list[str]:
    """The program as it is started; without ``site``, so that it starts fast."""
    return [sys.executable, "-I", "-S", str(Path(__file__)), fault, str(at), good]


def write(content: bytes) -> None:
    """To stdout, at once and whatever it is."""
    view = memoryview(content)
    while view:
        view = view[os.write(1, view) :]


def line(message: Any) -> bytes:
    """A message as it is sent."""
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def _dies(_request: Message, _good: Message) -> None:
    os.write(2, b"out of luck\n")
    os._exit(3)


def _killed(_request: Message, _good: Message) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dies_in_a_line(_request: Message, good: Message) -> None:
    write(line(good)[:-5])
    os._exit(0)


def _closes(_request: Message, _good: Message) -> None:
    os.close(1)
    time.sleep(60)


def _leaves_a_grandchild(_request: Message, _good: Message) -> None:
    subprocess.Popen(["/bin/sleep", "60"])
    os._exit(4)


def _hangs(_request: Message, _good: Message) -> None:
    time.sleep(60)


def _half(_request: Message, good: Message) -> None:
    write(line(good)[:-5])
    time.sleep(60)


def _drips(_request: Message, good: Message) -> None:
    for byte in line(good)[:-1]:
        write(bytes([byte]))
        time.sleep(0.02)
    time.sleep(60)


def _endless(_request: Message, _good: Message) -> None:
    while True:
        write(b"[" * 65536)


def _two(_request: Message, good: Message) -> None:
    write(line(good) + line(good))


def _storm(_request: Message, good: Message) -> None:
    for at in range(100_000):
        write(line({"progress": at}))
    write(line(good))


def _pretty(_request: Message, good: Message) -> None:
    write(json.dumps(good, indent=1).encode() + b"\n")


def _no_end(_request: Message, good: Message) -> None:
    write(line(good)[:-1] + b"\r")
    time.sleep(60)


def _late(_request: Message, good: Message) -> None:
    time.sleep(60)
    write(line(good))


def _signal(number: int) -> Fault:
    return lambda _request, _good: os.kill(os.getpid(), number)


def _flood(_request: Message, _good: Message) -> None:
    for at in range(20_000):
        os.write(2, b"warning %d: this goes on and on\n" % at)
    os._exit(5)


def _said(content: bytes) -> Fault:
    return lambda _request, _good: write(content + b"\n")


def _within(change: Callable[[bytes], bytes]) -> Fault:
    return lambda _request, good: write(change(line(good)[:-1]) + b"\n")


def _put(place: tuple[str | int, ...], value: Any) -> Fault:
    """A good answer with another value, or without it, at one place."""

    def put(_request: Message, good: Message) -> None:
        inner: Any = good
        for key in place[:-1]:
            inner = inner[key]
        if value is MISSING:
            del inner[place[-1]]
        else:
            inner[place[-1]] = value
        write(line(good))

    return put


MISSING = object()
_KINDS: tuple[Any, ...] = (None, True, 5, "x", [], {})
_NUMBERS = (float("nan"), float("inf"), -1, 10**400)
WRONG: dict[tuple[str | int, ...], tuple[Any, ...]] = {
    ("id",): (*_KINDS, MISSING),
    ("hits",): (None, True, 5, "x", {}, MISSING),
    ("hits", 1): _KINDS,
    ("hits", 1, "id"): (None, True, [], {}, MISSING, "d0"),
    ("hits", 1, "score"): (None, True, "high", [], {}, MISSING, *_NUMBERS[:2], 10**400, 99),
    ("hits", 1, "text"): (True, 5, [], {}),
    ("hits", 1, "source"): (True, 5, [], {}),
    ("usage",): (True, 5, "x", [1], {"tokens": 1}),
    ("usage", "tokens_in"): ("x", True, [1], {"a": 1}, *_NUMBERS[:3]),
    ("server_ms",): (True, "x", [], {}, *_NUMBERS),
}
"""What may not stand in an answer to a query: place -> values."""

SHAPES: dict[str, Fault] = {
    f"{'.'.join(map(str, place))} {'missing' if value is MISSING else str(value)[:9]}": _put(
        place, value
    )
    for place, values in WRONG.items()
    for value in values
}
"""Answers of a wrong shape."""

WRITTEN: dict[str, Fault] = {
    **{
        f"says {content[:12]!r}": _said(content)
        for content in (
            *(b"", b" ", b"hello", b"OK 3 hits", b"[", b"{", b"{'id': 1}", b"null", b"5", b"true"),
            *(b'"x"', b"[]", b"{}", b"NaN", b"<html>", b"\x00", b"[" * 100_000, b"1" * 5_000),
        )
    },
    "invalid byte": _within(lambda good: good.replace(b"d0", b"d\xff")),
    "half a character": _within(lambda good: good.replace(b"d0", b"\xec\x97")),
    "surrogate": _within(lambda good: good.replace(b"d0", b"\xed\xa0\x80")),
    "utf-16": _within(lambda good: good.decode().encode("utf-16")),
    "latin-1": _within(lambda good: good.replace(b"d0", "é".encode("latin-1"))),
    "byte order mark": _within(lambda good: b"\xef\xbb\xbf" + good),
    "cut": _within(lambda good: good[:-1]),
    "no quotes": _within(lambda good: good.replace(b'"', b"")),
    "something behind": _within(lambda good: good + b" ok"),
    "two in one line": _within(lambda good: good + good),
    "a comma too many": _within(lambda good: good[:-1] + b",}"),
}
"""Lines that are no JSON object, or no text."""

FAULTS: dict[str, Fault] = {
    "dies": _dies,
    "killed": _killed,
    "dies in a line": _dies_in_a_line,
    "closes": _closes,
    "leaves a grandchild": _leaves_a_grandchild,
    "hangs": _hangs,
    "half": _half,
    "drips": _drips,
    "endless": _endless,
    "two": _two,
    "flood": _flood,
    "storm": _storm,
    "pretty": _pretty,
    "no end": _no_end,
    "late": _late,
    "segfault": _signal(signal.SIGSEGV),
    "aborted": _signal(signal.SIGABRT),
    "stopped": _signal(signal.SIGSTOP),
    **SHAPES,
    **WRITTEN,
}


def hits(request: Message) -> Message:
    """The good answer to a query: as many hits as it asks for."""
    k = request.get("k", 3)
    return {
        "id": request.get("id"),
        "hits": [{"id": f"d{at}", "score": 10.0 - at, "text": f"문서 {at}"} for at in range(k)],
        "usage": {"tokens_in": 3},
        "server_ms": 0.01,
    }


GOOD: dict[str, Callable[[Message], Message]] = {"hits": hits, "echo": dict}


def main(fault: str = "-", at: str = "-1", good: str = "hits") -> None:
    """Answer each line of stdin."""
    for number, asked in enumerate(sys.stdin.buffer):
        request = json.loads(asked)
        answer = GOOD[good](request)
        wrong = fault if number == int(at) else request.get("metadata", {}).get("fault", "-")
        if wrong != "-":
            FAULTS[wrong](request, answer)
        else:
            write(line(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
