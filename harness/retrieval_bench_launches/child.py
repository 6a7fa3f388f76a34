"""A fresh process of this project: how it starts, what it is told and says, how it ends, and its
errors here.

A module with a function ``main(spec)`` runs in it. What the process says (a line of JSON each, see
:mod:`.channel`) and what it prints goes into two files: it never waits for a reader, and no reader
is woken while it measures.
"""

from __future__ import annotations

import codecs
import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from retrieval_bench.core import errors, secrets
from retrieval_bench.core.errors import ConfigError, DataError, HarnessError
from retrieval_bench_launches.channel import Say, channel

# With -P and this, modules are found where the parent finds them: `-m` would put the current
# folder first, where a user's `random.py` hides the library's.
_START = (
    "import json, sys; spec = json.loads(sys.stdin.readline()); sys.path[:] = spec['sys_path']; "
    "from {} import main; sys.exit(main(spec))"
)
_LAST_LINES = 5
_LONGEST = 500
_TAIL_BYTES = 1 << 16

INTERRUPTED, DIED = 130, 70

TICK_S = 0.05
"""How often one looks at a process."""

MOST_PRINTED = 1 << 26
"""Bytes of what a process prints that are kept at most, about."""


class Child:
    """A process that :func:`started` has started.

    Attributes:
        folder: of its own, which is removed with it.
        spawned_ns: when it was started, by :func:`time.perf_counter_ns`.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, spawned_ns: int) -> None:
        if process.stdin is None:
            raise AssertionError("it was asked for")
        self.process = process
        self.stdin = process.stdin
        self.folder = folder
        self.spawned_ns = spawned_ns
        self._read = {"said": 0, "printed": 0}
        self._unread: list[dict[str, Any]] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send it something, unless it has ended."""
        with suppress(OSError):
            self.write(json.dumps(message).encode() + b"\n")

    def write(self, content: bytes) -> None:
        """Write to its stdin.

        Raises:
            OSError: it has ended.
        """
        if self.stdin.closed:
            raise BrokenPipeError("nothing more was to be told")
        view = memoryview(content)
        while view:
            view = view[os.write(self.stdin.fileno(), view) :]

    def running(self) -> bool:
        """Return whether it runs; after a tick, for whoever looks at it again and again."""
        if self.process.poll() is None:
            time.sleep(TICK_S)
        printed = self.folder / "printed"
        if printed.stat().st_size > MOST_PRINTED:  # a load may last for days
            os.truncate(printed, 0)
            self._read["printed"] = 0
        return self.process.poll() is None

    def messages(self) -> list[dict[str, Any]]:
        """Read the messages since one looked last."""
        said = []
        for line in self._new("said", whole_lines=True).splitlines():
            with suppress(ValueError):  # startup files of Python may have printed something
                message = json.loads(line)
                said += [message] if isinstance(message, dict) else []
        return said

    def next(self, until: float | None = None) -> dict[str, Any] | None:
        """The next message, once it is there; None where the process has ended without.

        Args:
            until: by :func:`time.monotonic`, after which None is given, too.
        """
        running = True
        while not self._unread:
            self._unread = self.messages()
            if not running or (until is not None and time.monotonic() >= until):
                break
            running = bool(self._unread) or self.running()  # what has ended is read once more
        return self._unread.pop(0) if self._unread else None

    def printed(self) -> str:
        """Read the text printed since one looked last."""
        return self._decoder.decode(self._new("printed"))

    def pass_on(self) -> None:
        """Print to stderr what it has printed since one looked last."""
        text = self.printed()
        if text and sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()

    def last_words(self) -> str:
        """The end of all that it has printed, see :func:`last_words`."""
        with (self.folder / "printed").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return last_words(file.read().decode("utf-8", "replace"))

    def ended(self) -> str:
        """Return how it has ended, in words, with its last ones."""
        return f"ended with code {self.process.wait()}{self.last_words()}"

    def end(self, seconds: float) -> None:
        """Tell it nothing more, and wait for its end, at most so long."""
        with suppress(OSError, subprocess.TimeoutExpired):
            self.stdin.close()
            self.process.wait(seconds)

    def kill(self) -> None:
        """End it with everything that it has started itself."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:  # Windows
                self.process.kill()
        self.process.wait()

    def _new(self, name: str, *, whole_lines: bool = False) -> bytes:
        with (self.folder / name).open("rb") as file:
            file.seek(self._read[name])
            content = file.read()
        if whole_lines:
            content = content[: content.rfind(b"\n") + 1]
        self._read[name] += len(content)
        return content


@contextmanager
def started(
    module: str,
    spec: Mapping[str, Any],
    *,
    variables: Mapping[str, str] | None = None,
    more: bool = False,
    folder: str | None = None,
) -> Iterator[Child]:
    """Run ``main(spec)`` of ``module`` in a fresh process; afterwards nothing of it stays, neither
    running nor as a zombie. Ctrl-C does not reach it: it is for whoever watches.

    Args:
        module: by its full name.
        spec: JSON types; ``folder`` is added, that of :class:`Child`.
        variables: set in its environment.
        more: its stdin stays open, for what it is told later.
        folder: that it runs in; None = this process's.
    """
    command = [sys.executable, "-P", "-c", _START.format(module)]
    with launched(command, spec, variables=variables, folder=folder) as child:
        if not more:
            child.stdin.close()
        yield child


@contextmanager
def launched(
    command: Sequence[str],
    spec: Mapping[str, Any],
    *,
    variables: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    answers: int | None = None,
) -> Iterator[Child]:
    """Start any command that reads ``spec`` from its stdin, like :func:`started`.

    Args:
        answers: a pipe that it inherits and answers by; what goes to stdout is then printed.

    Raises:
        OSError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="retrieval-bench-") as own:
        said, printed = (Path(own) / name for name in ("said", "printed"))
        with said.open("ab") as stdout, printed.open("ab") as stderr:
            spawned_ns = time.perf_counter_ns()
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=stdout if answers is None else stderr,
                stderr=stderr,
                env=os.environ | dict(variables or {}),
                start_new_session=True,
                cwd=folder,
                pass_fds=() if answers is None else (answers,),
                bufsize=0,
            )
        with process:
            child = Child(process, Path(own), spawned_ns)
            try:
                child.tell({"sys_path": sys.path, "folder": own} | dict(spec))
                yield child
            finally:
                child.kill()


def run_in_child(work: Callable[[Say], None]) -> int:
    """Do the work of a fresh process, which says what was wrong; gives the exit code."""
    secrets.redact_tracebacks()
    say = channel()
    faulthandler.enable()
    try:
        work(say)
    except HarnessError as problem:
        say({"error": described(problem)})
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as problem:  # told by the last words of this process
        sys.stderr.write(secrets.redact("".join(traceback.format_exception(problem))))
        return DIED
    return 0


def last_words(text: str) -> str:
    """The end of what a process printed, or its fatal error, for the end of a sentence."""
    # Secrets first: one of several lines would not be known any more.
    lines = [line.strip() for line in secrets.redact(text).splitlines() if line.strip()]
    fatal = [at for at, line in enumerate(lines) if line.startswith("Fatal Python error")]
    last = lines[fatal[-1] :][:_LAST_LINES] if fatal else lines[-_LAST_LINES:]
    words = " / ".join(last)
    words = words if len(words) <= _LONGEST else f"... {words[-_LONGEST:]}"
    return f"; its last words: {words}" if words else ""


def retriever_to_send(given: Any, fix: str) -> str | dict[str, Any]:
    """Name a retriever as another process can be told of it: a name, or an inline mapping.

    Raises:
        ConfigError: an object, which only exists in this process.
    """
    if isinstance(given, str | Path):
        return str(given)
    if not isinstance(given, Mapping):
        raise _cannot_send("a retriever", given, "a name, a YAML file or a mapping", fix)
    check_plain(dict(given), fix)
    return dict(given)


def dataset_to_send(given: Any, fix: str) -> str:
    """The name or the folder of a dataset.

    Raises:
        ConfigError: it is an object.
    """
    if not isinstance(given, str | Path):
        raise _cannot_send("a dataset", given, "the name or the folder of a dataset", fix)
    return str(given)


def check_plain(value: Any, fix: str) -> None:
    """Raise :class:`ConfigError` where JSON would refuse or change ``value``."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for item in value.values():
            check_plain(item, fix)
    elif isinstance(value, list | tuple):
        for item in value:
            check_plain(item, fix)
    elif type(value) not in (str, int, float, bool, type(None)):
        accepted = "text, numbers, true, false, null, and lists or mappings of those"
        raise _cannot_send("a parameter", value, accepted, fix)


def _cannot_send(what: str, given: Any, accepted: str, fix: str) -> ConfigError:
    return ConfigError(
        f"{what} that is a {type(given).__name__} object",
        where="measured in processes of its own, a retriever must come from a config",
        accepted=accepted,
        fix=fix,
    )


def described(problem: HarnessError) -> dict[str, Any]:
    """An error in words that can be sent; ``raised`` says where it came from."""
    kind = next(base for base in type(problem).__mro__ if base.__module__ == errors.__name__)
    where = "; ".join(filter(None, [*getattr(problem, "__notes__", ()), problem.where]))
    description: dict[str, Any] = secrets.redact(
        {
            "parts": [problem.given, where, problem.accepted, problem.fix],
            "faults": list(problem.faults) if isinstance(problem, DataError) else [],
            "raised": "".join(traceback.format_exception(problem)),
        }
    )
    return description | {"kind": kind.__name__}


def rebuilt(description: Mapping[str, Any], place: Sequence[str] = ()) -> HarnessError:
    """The error that :func:`described` put in words.

    Args:
        place: words that are added to where it came up.
    """
    given, where, accepted, fix = description["parts"]
    known: dict[str, Any] = {
        "where": "; ".join(filter(None, [where, *place])),
        "accepted": accepted,
        "fix": fix,
    }
    kind = getattr(errors, description["kind"])
    if kind is DataError:
        known["faults"] = description["faults"]
    problem: HarnessError = kind(given, **known)
    problem.__cause__ = RuntimeError(description["raised"])
    return problem
