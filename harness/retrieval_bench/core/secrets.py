"""``${NAME}`` in config values: filled from the environment, and kept out of everything written.

Values that were filled in are remembered for the life of the process, so that :func:`redact` can
put ``${NAME}`` back wherever a library repeats one in a message. Variables whose name says that
they are secret (``..._KEY``, ``..._TOKEN``) count too, for a library reads them by itself.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.notices import with_text

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHORTEST = 4
"""Shorter values are not looked for in texts: they would match everywhere and hide nothing."""

_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_SHORTEST_UNASKED = 8
"""The same for variables with such a name that no config mentions."""

_IDENTIFIERS = ("name", "target", "hash")
"""Of the retriever in a manifest: what this project itself put there."""

_filled: dict[str, str] = {}
_masked: dict[str, str] = {}
"""Secrets that came without a ``${NAME}``, and what to write in place of each."""


class Filled(str):
    """A text with values of the environment in it; whoever reads words of a config in texts, such
    as ``{text}``, leaves these alone.

    Attributes:
        spans: (start, end) of each value, in order.
    """

    spans: tuple[tuple[int, int], ...]

    def __new__(cls, text: str, spans: Iterable[tuple[int, int]] = ()) -> Filled:
        made = super().__new__(cls, text)
        made.spans = tuple(spans)
        return made


def expand(value: Any, where: str) -> Any:
    """``value`` with every ``${NAME}`` in its strings filled from the environment, which makes
    them :class:`Filled`.

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
        return _filled_text(value, missing)
    if isinstance(value, Mapping):
        return {key: _expand(item, missing) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, missing) for item in value]
    return value


def _filled_text(text: str, missing: list[str]) -> str:
    if isinstance(text, Filled):  # once: what a variable holds is no config
        return text
    made, spans, end = "", [], 0
    for match in _REFERENCE.finditer(text):
        made += text[end : match.start()]
        end = match.end()
        name = match[1]
        if name not in os.environ:
            missing.append(name)
            continue
        _filled[name] = os.environ[name]
        spans.append((len(made), len(made) + len(os.environ[name])))
        made += os.environ[name]
    return Filled(made + text[end:], spans) if spans else text


def redact(value: Any) -> Any:
    """``value`` with every secret in its strings put back to ``${NAME}``; keys stay as they are.

    Found as it is and as libraries print it: quoted for a URL, escaped by ``repr`` or JSON.
    """
    return _redact(value, *_replacements(_known()))


def redact_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """``manifest`` with what the retriever was given and tells redacted, nothing else."""
    redacted = dict(manifest)
    retriever = redacted.get("retriever")
    if isinstance(retriever, Mapping):
        redacted["retriever"] = {
            key: item if key in _IDENTIFIERS else redact(item) for key, item in retriever.items()
        }
    return redacted


def redact_tracebacks() -> None:
    """Let this process print no traceback with a secret in it, from whatever thread or destructor.

    For processes of our own: it sets the hooks of the interpreter.
    """

    def show(problem: BaseException | None, heading: str = "") -> None:
        if problem is not None and sys.stderr is not None:
            sys.stderr.write(redact(heading + "".join(traceback.format_exception(problem))))

    def in_thread(raised: Any) -> None:
        if not isinstance(raised.exc_value, SystemExit):  # of which Python says nothing, either
            show(raised.exc_value, f"in thread {raised.thread.name if raised.thread else '?'}: ")

    sys.excepthook = lambda _kind, problem, _trace: show(problem)
    threading.excepthook = in_thread
    sys.unraisablehook = lambda raised: show(
        raised.exc_value, f"{raised.err_msg or 'ignored'}, {type(raised.object).__name__}: "
    )
    if logging.lastResort is not None:  # where a library logs and nobody said how
        logging.lastResort.setFormatter(_RedactingFormatter())


class _RedactingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return str(redact(super().format(record)))


def filled() -> list[str]:
    """Names of the variables that were filled in so far."""
    return sorted(_filled)


def remember(names: Iterable[str]) -> None:
    """Hide the values of these variables, too: a process with the same ones filled them in."""
    _filled.update({name: os.environ[name] for name in names if name in os.environ})


def mask(value: str, shown: str) -> None:
    """Write ``shown`` in place of ``value`` from now on: for a secret that stands in a text which
    no variable filled in, such as a password in an address."""
    if len(value) >= _SHORTEST:
        _masked[value] = shown


def _known() -> tuple[tuple[str, str], ...]:
    """(what to write, value) of everything to hide; those that a config named come first."""
    filled = [(f"${{{name}}}", value) for name, value in _filled.items() if len(value) >= _SHORTEST]
    named = [
        (f"${{{name}}}", value)
        for name, value in os.environ.items()
        if name.upper().endswith(_SECRET_NAMES) and len(value) >= _SHORTEST_UNASKED
    ]
    masked = [(shown, value) for value, shown in _masked.items()]
    return tuple(dict.fromkeys(filled + named + masked))


@lru_cache(maxsize=4)
def _replacements(known: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern of all forms of all secrets, and what to put for each form."""
    put: dict[str, str] = {}
    for shown, value in known:
        raw = os.fsencode(value)
        for form in (
            value,
            quote(raw),
            quote(raw, safe=""),
            quote_plus(raw),
            repr(value)[1:-1],
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
        ):
            put.setdefault(form, shown)
    # What was put in before stays, whatever another secret says.
    put |= {reference: reference for reference in set(put.values())}
    # Longest first: a form that contains another is replaced whole.
    forms = sorted(put, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(re.escape, forms)) or r"(?!)"), put


def _redact(value: Any, pattern: re.Pattern[str], put: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return with_text(value, pattern.sub(lambda match: put[match[0]], value))
    if isinstance(value, Mapping):
        return {key: _redact(item, pattern, put) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redact(item, pattern, put) for item in value]
    return value
