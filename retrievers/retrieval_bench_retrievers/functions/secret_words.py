"""Which names say that their value is a secret, and secrets that stand in a config in the open."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from retrieval_bench.core.secrets import Filled

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = re.compile(
    "auth|authentication|authorization|bearer|cookie|credentials?|key|oauth"
    "|.*(apikey|passwd|password|secret|token)"
)
"""The last are also the ends of words that are written together, such as PGPASSWORD."""

_BESIDE = re.compile(
    "column|count|dir|env|field|file|folder|header|length|limit|max|name|path|size|type"
)
"""Last words of names that are about a secret: TOKEN_FILE, KEY_COLUMN."""

_OPTION = re.compile(r"--?([^\W\d_][\w-]*)")
_ASSIGNED = re.compile(r"(?:--?)?([^\W\d_][\w-]*)=(.+)", re.DOTALL)


def is_secret(name: str) -> bool:
    """Whether a variable, a header or an option of this name holds a secret; its words are whole
    ones, cut at signs and at capitals: ``API_KEY`` and ``apiKey``, not ``KEYSPACE``."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or _BESIDE.fullmatch(words[-1]):
        return False
    return any(map(_SECRET.fullmatch, words))


def open_in_env(env: Mapping[str, object]) -> str | None:
    """The first variable whose value is a secret that does not come from the environment."""
    return next((n for n, v in env.items() if is_secret(n) and not isinstance(v, Filled)), None)


def open_in_arguments(words: Sequence[str], given: str | Sequence[object]) -> str | None:
    """The first option whose value is such a secret: ``--api-key VALUE``, ``--api-key=VALUE``, or
    ``API_KEY=VALUE``.

    Args:
        words: of the command.
        given: the same as the config has it, a list or one text.
    """
    texts = [given] if isinstance(given, str) else given
    filled = {str(t)[a:b] for t in texts if isinstance(t, Filled) for a, b in t.spans} - {""}

    def is_open(value: str) -> bool:
        return not any(part in value for part in filled)

    for at, word in enumerate(words):
        if (pair := _ASSIGNED.fullmatch(word)) and is_secret(pair[1]) and is_open(pair[2]):
            return word.partition("=")[0]
        value = words[at + 1] if at + 1 < len(words) else "-"
        option = _OPTION.fullmatch(word)
        if option and is_secret(option[1]) and not value.startswith("-") and is_open(value):
            return word
    return None
