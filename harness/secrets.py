"""``${NAME}`` in config values: filled from the environment, and kept out of everything written.

Values that were filled in are remembered for the life of the process, so that :func:`redact` can
put ``${NAME}`` back wherever a library repeats one in a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from harness.errors import ConfigError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHORTEST = 4
"""Shorter values are not looked for in texts: they would match everywhere and hide nothing."""

_filled: dict[str, str] = {}


def expand(value: Any, where: str) -> Any:
    """``value`` with every ``${NAME}`` in its strings filled from the environment.

    Raises:
        ConfigError: a name that is not set; all missing names are told at once.
    """
    missing: list[str] = []
    result = _expand(value, missing)
    if missing:
        names = ", ".join(sorted(set(missing)))
        raise ConfigError(
            f"environment variable not set: {names}",
            where=where,
            accepted="${NAME} stands for the value of an environment variable",
            fix=f"export {sorted(set(missing))[0]}=... before the command, or write the value",
        )
    return result


def _expand(value: Any, missing: list[str]) -> Any:
    if isinstance(value, str):

        def fill(match: re.Match[str]) -> str:
            name = match[1]
            if name not in os.environ:
                missing.append(name)
                return match[0]
            _filled[name] = os.environ[name]
            return os.environ[name]

        return _REFERENCE.sub(fill, value)
    if isinstance(value, Mapping):
        return {key: _expand(item, missing) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, missing) for item in value]
    return value


def redact(value: Any) -> Any:
    """``value`` with every filled-in secret in its strings (keys too) put back to ``${NAME}``."""
    if isinstance(value, str):
        for name, secret in sorted(_filled.items(), key=lambda item: -len(item[1])):
            if len(secret) >= _SHORTEST and secret in value:
                value = value.replace(secret, f"${{{name}}}")
        return value
    if isinstance(value, Mapping):
        return {redact(key): redact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return value
