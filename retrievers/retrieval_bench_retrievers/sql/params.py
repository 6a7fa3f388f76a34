"""Parameters of the ``sql`` retriever, checked one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from retrieval_bench.core.errors import ConfigError, near_names
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.sql.statement import WHERE

_NAME = re.compile(r"[a-z_]\w{0,50}(\.[a-z_]\w{0,50})?", re.ASCII)
_ENCODER = ("model", "backend", "prompts", "device", "batch_size", "max_seq_length")
_CONFIGURATIONS: Mapping[str, str] = {
    **{"ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek"},
    **{"en": "english", "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french"},
    **{"ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian"},
    **{"it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish"},
    **{"ta": "tamil", "tr": "turkish", "yi": "yiddish"},
}
"""ISO 639-1 -> the text search configuration that stems it; for others there is ``simple``."""


def encoder_of(given: Any, embeds: bool) -> Encoder | None:
    """The parameter ``encoder``, built; None for a statement that takes no vector.

    Args:
        embeds: whether the statement takes the vector of the query.

    Raises:
        ConfigError: an unknown key, or an encoder that nothing would use.
    """
    if given is None and not embeds:
        return None
    params = {} if given is None else given
    if not isinstance(params, Mapping):
        accepted = f"a mapping with keys of {', '.join(_ENCODER)}"
        raise ConfigError(f"encoder = {given!r}", where=WHERE, accepted=accepted)
    for key in params:
        if key not in _ENCODER:
            accepted = near_names(str(key), _ENCODER)
            raise ConfigError(f"encoder: unknown key {key!r}", where=WHERE, accepted=accepted)
    if not embeds:
        raise ConfigError(
            "an encoder, and no %(embedding)s in the statement",
            where=WHERE,
            fix="take one of the two away or add the other",
        )
    return Encoder(**params)


def configuration(given: str, language: str | None) -> str:
    """The text search configuration: ``given``, unless that is "auto".

    Then it goes by the language of the dataset as BM25's tokenizer does: English where none is
    named; for one that has no stemmer there is ``simple``.
    """
    if given != "auto":
        return given
    code = (language or "en").lower().replace("_", "-").partition("-")[0]
    return _CONFIGURATIONS.get(code, "simple")


def given_language(given: Any) -> str:
    """The parameter ``language``: a name, since it stands in the definition of a column.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise ConfigError(
            f"language = {given!r}",
            where=WHERE,
            accepted="auto, or a text search configuration, such as english or simple",
        )
    return given


def statements(given: Any) -> tuple[str, ...]:
    """The parameter ``setup``.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(f"setup = {given!r}", where=WHERE, accepted="a list of statements")
    return tuple(given_text(one, "setup") for one in given)


def given_text(given: Any, name: str) -> str:
    """``given``, a text that is not blank; a DSN is not repeated in the message.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(given, str) or not given.strip():
        what = "a text" if name != "dsn" else "embedded, or the DSN of a server"
        shown = repr(given) if name != "dsn" else "what was given"
        raise ConfigError(f"{name}: {shown} is no text", where=WHERE, accepted=what)
    return given


def truth(given: Any, name: str) -> bool:
    """``given``, true or false.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(given, bool):
        raise ConfigError(f"{name} = {given!r}", where=WHERE, accepted="true or false")
    return given
