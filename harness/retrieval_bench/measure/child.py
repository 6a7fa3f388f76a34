"""A fresh process of this project: what it can be told, its start and end, and its errors here.

A module with a function ``main(spec)`` runs in it. Two are measured like this: launches and cold
starts. The side of a duet has its own start, since it may be another revision's code.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from retrieval_bench.core import errors, secrets
from retrieval_bench.core.errors import ConfigError, DataError, HarnessError

# With -P and this, modules are found where the parent finds them: `-m` would put the current
# folder first, where a user's `random.py` hides the library's.
_START = (
    "import json, sys; spec = json.loads(sys.stdin.readline()); sys.path[:] = spec['sys_path']; "
    "from {} import main; sys.exit(main(spec))"
)
_LAST_LINES = 5
_LONGEST = 500


@contextmanager
def started(
    module: str,
    spec: Mapping[str, Any],
    *,
    stdout: int | IO[bytes],
    stderr: int | None = None,
    variables: Mapping[str, str] | None = None,
    more: bool = False,
    folder: str | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``main(spec)`` of ``module`` in a fresh process; afterwards nothing of it stays, neither
    running nor as a zombie. Ctrl-C does not reach it: it is for whoever watches.

    Args:
        module: by its full name.
        spec: JSON types.
        variables: set in its environment.
        more: its stdin stays open, for what it is told later.
        folder: that it runs in; None = this process's.
    """
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _START.format(module)],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env=os.environ | dict(variables or {}),
        start_new_session=True,
        cwd=folder,
    ) as process:
        try:
            if process.stdin is not None:
                message = json.dumps(dict(spec) | {"sys_path": sys.path}) + "\n"
                with suppress(BrokenPipeError):
                    process.stdin.write(message.encode())
                    process.stdin.flush()
                    if not more:
                        process.stdin.close()
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End ``process`` with everything that it has started itself."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # Windows
            process.kill()
    process.wait()


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
    """What another process can be told of a retriever: a name, or an inline mapping.

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
