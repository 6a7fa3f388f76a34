"""How a program is started: its command, folder and variables as a config has them, checked."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core import plugins
from retrieval_bench.core.errors import ConfigError
from retrieval_bench_retrievers.functions.secret_words import open_in_arguments, open_in_env


@dataclass(frozen=True, slots=True)
class Launch:
    """A program as it is started.

    Attributes:
        command: the program and its arguments.
        cwd: the folder that it runs in; None = the current one.
        env: variables beside those of this process.
    """

    command: list[str]
    cwd: Path | None
    env: dict[str, str]


def launch(
    command: str | Sequence[str | float],
    cwd: str | None,
    env: Mapping[str, str | float] | None,
    where: str,
) -> Launch:
    """A :class:`Launch` from parameters.

    Args:
        command: a list, or a text that is cut at blanks as a shell does; no shell reads it.
        cwd: begins at the config; None = the current folder.
        env: numbers are taken as texts.
        where: the target, for messages.

    Raises:
        ConfigError: no command, no such folder, or a secret that is written in the config.
    """
    try:
        words = (
            shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        )
    except ValueError as problem:  # a quote that is not closed
        raise ConfigError(f"command = {command!r}: {problem}", where=where) from None
    if not words or not all(words[:1]):
        raise ConfigError(
            f"command = {command!r}",
            where=where,
            accepted="a program and its arguments",
            fix="for example command: [node, search.mjs]",
        )
    check_secrets(words, command, env or {}, where)
    folder = None if cwd is None else plugins.beside_config(cwd)
    if folder is not None and not folder.is_dir():
        raise ConfigError(
            f"cwd = {cwd!r} is no folder",
            where=where,
            accepted="a folder; a relative one begins at the config",
            fix="correct cwd",
        )
    return Launch(words, folder, {name: str(value) for name, value in (env or {}).items()})


def check_numbers(where: str, **given: float) -> None:
    """Refuse what is not above 0."""
    for name, number in given.items():
        if not 0 < number < math.inf:
            raise ConfigError(f"{name} = {number!r}", where=where, accepted="a number above 0")


def check_secrets(
    words: Sequence[str], command: str | Sequence[object], env: Mapping[str, object], where: str
) -> None:
    """Raise :class:`ConfigError` where a secret stands in ``command`` or ``env`` of the config: a
    manifest holds both."""
    fix = "export the value under a name of your own, and write ${NAME} in its place"
    if name := open_in_env(env):
        what = f"the variable {name!r} in env"
        fix = (
            f"leave {name} out if it is exported, for the program gets what this process has; or "
            "write ${NAME} in its place"
        )
    elif name := open_in_arguments(words, command):
        what = f"{name!r} in the command"
    else:
        return
    raise ConfigError(
        f"the value of {what} stands in the config, which is copied into every saved run",
        where=where,
        accepted="${NAME}, which is filled from the environment and never written anywhere",
        fix=fix,
    )
