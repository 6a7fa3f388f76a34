"""Terms of texts as numbers: in this process, and in others beside it from some size on.

Another process is Python anew with a pipe each way, not one of ``multiprocessing``: that would run
the main module of whoever builds an index a second time. It ends with its stdin, so also with
whoever began it.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from array import array
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import chain, islice
from typing import NamedTuple

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.environment import usable_cores
from retrieval_bench_retrievers.text.terms import Remembered, Tokenizer
from retrieval_bench_retrievers.text.tokenizers import TokenizerSpec, make_tokenizer

# With -P modules are found where this process finds them, and not in the current folder first.
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import main; main()"
Made = tuple[TokenizerSpec, str | None]
"""What a tokenizer is made of: its name or options, and the language of the dataset."""

_ALONE = 10
"""Blocks after which other processes begin to help: they take a third of a second to start."""
_MOST_OTHERS = 3
"""More of them would wait for whoever reads the documents."""
_REMEMBERED = 1 << 19
"""Words whose numbers a process keeps; another one is stemmed again wherever it stands."""
_WAITING = 2
"""Blocks that another process has at most: the one at work, and the next."""


class Numbered(NamedTuple):
    """Texts as numbers of their terms.

    Attributes:
        new: terms that are numbered here for the first time, in the order of their numbers.
        terms: of all texts, one after the other, as they come in them.
        ends: where those of each text end.
    """

    new: list[str]
    terms: array[int]
    ends: array[int]


class Vocabulary(dict[str, int]):
    """Gives each new term the next number, from 0."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class Numbering:
    """Numbers the terms of texts as they come."""

    def __init__(self, tokenize: Tokenizer) -> None:
        self._tokenize = tokenize
        self._vocabulary = Vocabulary()
        self._numbers = Remembered(self._numbers_of, _REMEMBERED)

    def of(self, texts: Sequence[str]) -> Numbered:
        """Number the terms of ``texts``."""
        known = len(self._vocabulary)
        terms: list[int] = []
        ends = array("i")
        for text in texts:
            words = self._tokenize.words(text)
            terms.extend(chain.from_iterable(map(self._numbers.__getitem__, words)))
            ends.append(len(terms))
        new = list(islice(reversed(self._vocabulary), len(self._vocabulary) - known))
        return Numbered(new[::-1], array("i", terms), ends)

    def _numbers_of(self, word: str) -> tuple[int, ...]:
        return tuple(map(self._vocabulary.__getitem__, self._tokenize.terms_of(word)))


def numbered(
    blocks: Iterable[list[str]], tokenize: Tokenizer, tokenizer: Made
) -> Generator[tuple[int, Numbered]]:
    """Number the terms of ``blocks`` of texts, here and, from a size on, in other processes.

    Args:
        tokenize: for this process, which takes what no other one is free for.
        tokenizer: what other processes make the same of.

    Yields:
        The blocks in their order, each with a number that stands for whose numbers they are.

    Raises:
        ConfigError: another process has ended.
    """
    own = Numbering(tokenize)
    others: list[OtherProcess] = []
    waiting: deque[tuple[int, Future[Numbered]]] = deque()
    with ExitStack() as ending:
        for at, texts in enumerate(blocks):
            if at == _ALONE:
                for _ in range(min(_MOST_OTHERS, (usable_cores() or 1) - 1)):
                    others.append(OtherProcess(tokenizer))
                    ending.callback(others[-1].end)
            free = next((source for source, other in enumerate(others) if other.free), None)
            if free is None:
                done: Future[Numbered] = Future()
                done.set_result(own.of(texts))
                waiting.append((-1, done))
            else:
                waiting.append((free, others[free].number(texts)))
            while waiting and waiting[0][1].done():
                source, block = waiting.popleft()
                yield source, block.result()
        for source, block in waiting:
            yield source, block.result()


class OtherProcess:
    """A process that numbers blocks of texts, one after the other, by numbers of its own."""

    def __init__(self, tokenizer: Made) -> None:
        start = _START.format(__name__)
        command = [sys.executable, "-P", "-c", start, json.dumps(sys.path)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("they were asked for")
        self._given, self._answers = self._process.stdin, self._process.stdout
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[Future[Numbered]] = []
        self._thread.submit(self._tell, tokenizer)

    @property
    def free(self) -> bool:
        """Say whether it should be given something, so that it never waits."""
        self._waiting = [future for future in self._waiting if not future.done()]
        return len(self._waiting) < _WAITING

    def number(self, texts: list[str]) -> Future[Numbered]:
        """Let it number ``texts``; the result raises ConfigError where the process has ended."""
        self._waiting.append(self._thread.submit(self._numbered, texts))
        return self._waiting[-1]

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._thread.shutdown(cancel_futures=True)
        with suppress(OSError):  # what it was still to be told
            self._process.communicate()
        self._errors.close()

    def _numbered(self, texts: list[str]) -> Numbered:
        try:
            self._tell(texts)
            answer: Numbered = pickle.load(self._answers)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise self._ended() from None
        return answer

    def _tell(self, something: object) -> None:
        pickle.dump(something, self._given)
        self._given.flush()

    def _ended(self) -> ConfigError:
        status = self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return ConfigError(
            f"a process that tokenizes ended {how}" + (f": {last}" if last else ""),
            accepted="processes that stay, with some hundred megabytes of memory each",
            fix="make room in memory and run it again; nothing of the index was kept",
        )


def main() -> None:
    """Number what comes from stdin until it ends; Ctrl-C is for whoever waits for the answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a tokenizer prints is no answer
    numbering = Numbering(make_tokenizer(*pickle.load(given)))
    with suppress(EOFError, BrokenPipeError):
        while True:
            pickle.dump(numbering.of(pickle.load(given)), out, pickle.HIGHEST_PROTOCOL)
            out.flush()
