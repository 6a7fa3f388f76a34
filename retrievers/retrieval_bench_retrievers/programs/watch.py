"""Who ends programs when this process is gone, by whatever signal: a shell that outlives it by a
moment. Their stdin ends, too, but not all programs look at it, nor do those that they started."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress

_WATCH = """
groups=
while read -r verb group; do
  left=
  for one in $groups; do test "$one" = "$group" || left="$left $one"; done
  groups=$left
  test "$verb" = add && groups="$groups $group"
done
for one in $groups; do kill -KILL "-$one" 2> /dev/null; done
"""
"""Its input ends when the last process that holds the other end does, and none but ours does."""


class Watch:
    """The process groups that are to end with this process; one shell watches over them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def add(self, group: int) -> None:
        """Let ``group`` end with this process."""
        with self._lock:
            if self._owner != os.getpid():  # a fork has none of its own yet
                self._groups, self._shell, self._owner = set(), None, os.getpid()
            self._groups.add(group)
            if self._shell is None or self._shell.poll() is not None:
                self._shell = subprocess.Popen(  # in a session of its own: Ctrl-C is not for it
                    ["/bin/sh", "-c", _WATCH],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    start_new_session=True,
                )
                for other in self._groups - {group}:
                    self._tell("add", other)
            self._tell("add", group)

    def drop(self, group: int) -> None:
        """Forget ``group``, of which nothing is left; its number may be another's from now on. The
        shell ends with the last one, whoever else still holds its input."""
        with self._lock:
            self._groups.discard(group)
            self._tell("drop", group)
            shell = self._shell
            if not self._groups and shell is not None and shell.stdin is not None:
                self._shell = None
                shell.kill()
                shell.stdin.close()
                shell.wait()

    def forget(self) -> None:
        """Let go of the shell in a fork, which may outlive this process: it is not to hold the
        shell's input."""
        self._lock = threading.Lock()
        if self._shell is not None and self._shell.stdin is not None:
            self._shell.stdin.close()

    def _tell(self, verb: str, group: int) -> None:
        with suppress(OSError):
            if self._shell is not None and self._shell.stdin is not None:
                self._shell.stdin.write(f"{verb} {group}\n".encode())


watched = Watch()
"""Of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watched.forget)
