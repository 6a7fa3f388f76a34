"""The transport stdio: a server that is started as a program, a message on each line."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.mcp.messages import WHERE, decoded, encoded
from retrieval_bench_retrievers.programs.child import Child
from retrieval_bench_retrievers.programs.launch import launch

_PROBE_S = 2.0


class Stdio:
    """A server on the pipes of a program.

    Args:
        cwd: folder that it runs in; a relative one begins at the config.
        env: variables that are added.
        max_bytes: that come while one answer is waited for.

    Attributes:
        name: of the server, for messages.
        shared: all messages come on one connection, so that an answer may come while another is
            waited for.
        probe_s: seconds in which it is to answer a request that it may not know.
        over: the transport, in words.
        begun: starts that are no fault of the server: those that find out what it speaks.

    Raises:
        ConfigError: no program, no such folder, or a secret that stands in the config.
    """

    name, shared, probe_s, over = "the server", True, _PROBE_S, "stdio"

    def __init__(
        self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str], max_bytes: int
    ) -> None:
        started = launch(command, cwd, env, WHERE)
        self._command = started.command
        self._child = Child(
            started.command,
            name=self.name,
            where=f"{WHERE}, command",
            cwd=started.cwd,
            env=started.env,
            max_bytes=max_bytes,
        )
        self._max_bytes = max_bytes
        self.begun = 1

    @property
    def pid(self) -> int | None:
        """Number of the program's process."""
        return self._child.pid

    def ready(self) -> None:
        """Forgive what was started so far, to find out what the server speaks."""
        self.begun = self._child.starts

    def clean(self, text: str) -> str:
        """``text`` without secrets."""
        return str(secrets.redact(text))

    def describe(self) -> dict[str, Any]:
        """Facts of it for the manifest."""
        return {
            "transport": self.over,
            "command": secrets.redact(self._command),
            "starts": self._child.starts,
            "program_files": self._child.files,
        }

    def warnings(self) -> list[str]:
        """Say what is worth a warning after the searches."""
        again = self._child.starts - self.begun
        if again < 1:
            return []
        times = "once" if again == 1 else f"{again:,} times"
        return [f"the server was started again {times}: it ended, broke the protocol or was silent"]

    def open(self) -> bool:
        """Start the program, unless it runs."""
        if self._child.pid is not None:
            return False
        begun = self._child.starts > 0
        try:
            self._child.start()
        except ConfigError as problem:
            if begun:  # it could be started before, and may be again
                raise TransientError(problem.given, Kind.CONNECTION) from None
            raise
        return True

    def ask(
        self, message: Mapping[str, Any], headers: Mapping[str, str], deadline: float
    ) -> Generator[Mapping[str, Any], None, None]:
        """Send a request, and give the messages that come, as long as somebody asks for more.

        Args:
            deadline: by :func:`time.monotonic`.
        """
        self._child.send(encoded(message) + b"\n", deadline)
        left = self._max_bytes
        while True:
            line = self._child.next_line(deadline)
            left -= len(line)
            if left < 0:
                raise CallError(
                    f"the server wrote more than {self._max_bytes:,} bytes, and no answer among it"
                )
            if line.strip():
                yield from decoded(line)
            if time.monotonic() > deadline:  # messages may come faster than they are read
                raise TransientError("the server did not answer in time", Kind.TIMEOUT)

    def tell(self, message: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> None:
        """Send what nobody answers."""
        self._child.send(encoded(message) + b"\n", deadline)

    def reset(self) -> None:
        """End the program at once."""
        self._child.kill()

    def close(self) -> None:
        """End the program's input, and then the program."""
        self._child.close()
