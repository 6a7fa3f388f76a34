"""Parameters of the ``sql`` retriever, checked together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, model_validator

from retrieval_bench.core.errors import ConfigError, check_known

_WORD = "[A-Za-z_][A-Za-z0-9_]{0,50}"
TABLE = rf"^{_WORD}(\.{_WORD})?$"
_CONFIGURATIONS: Mapping[str, str] = {
    **{"ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek"},
    **{"en": "english", "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french"},
    **{"ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian"},
    **{"it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian"},
    **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish"},
    **{"ta": "tamil", "tr": "turkish", "yi": "yiddish"},
}
"""ISO 639-1 -> the text search configuration that stems it; for others there is ``simple``."""


Text = Annotated[str, Field(strict=True, pattern=r"\S")]
"""A text that is not blank."""


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def check_table(name: str, where: str = "") -> str:
    """``name``, if it can be that of a table: it stands in statements as it is.

    Raises:
        ConfigError: it cannot.
    """
    if not re.fullmatch(TABLE, name):
        raise ConfigError(
            f"table {name!r}",
            where=where,
            accepted="letters, digits and _, perhaps with a schema: public.documents",
            fix="give another --table",
        )
    return name


class LoadSettings(_Given):
    """What a table has besides the texts.

    Attributes:
        index: "exact" (none on the vectors) or "hnsw".
        m, ef_construction: of HNSW.
        cache: keep vectors on disk.
    """

    index: Literal["exact", "hnsw"] = "exact"
    m: Annotated[StrictInt, Field(ge=2)] = 16
    ef_construction: Annotated[StrictInt, Field(ge=1)] = 64
    cache: StrictBool = True


class PoolSettings(_Given):
    """How many connections are kept.

    Attributes:
        min, max: connections; without ``max`` as many as ``min``, one at least.
        timeout_s: seconds that a search waits for one.
    """

    min: Annotated[StrictInt, Field(ge=0)] = 1
    max: Annotated[StrictInt, Field(ge=1)] | None = None
    timeout_s: Annotated[float, Field(strict=True, gt=0)] = 5.0

    @property
    def largest(self) -> int:
        """Connections at most."""
        return max(1, self.min) if self.max is None else self.max

    @model_validator(mode="after")
    def _in_order(self) -> PoolSettings:
        if self.min > self.largest:
            raise ValueError("min is above max")
        return self


class EncoderSettings(_Given):
    """Parameters of :class:`.Encoder`, which checks their values."""

    model: Any = None
    backend: Any = None
    prompts: Any = None
    device: Any = None
    batch_size: Any = None
    max_seq_length: Any = None


class Settings(_Given):
    """All but the statement; a description says what is accepted."""

    dsn: Text = Field(repr=False, description="embedded, or the DSN of a server")
    table: str = Field(
        strict=True,
        pattern=TABLE,
        description="letters, digits and _, perhaps with a schema: public.documents",
    )
    load: LoadSettings = Field(
        description="{index: exact or hnsw, m: 2 or more, ef_construction, cache: true or false}"
    )
    # It stands in the definition of a column.
    language: str = Field(
        strict=True,
        pattern=TABLE,
        description="auto, or a text search configuration, such as english or simple",
    )
    encoder: EncoderSettings | None = Field(
        description="a mapping with keys of " + ", ".join(EncoderSettings.model_fields)
    )
    scores: StrictBool = Field(description="true or false")
    order: Literal["descending", "ascending"] = Field(description="descending, ascending")
    exact: StrictBool = Field(description="true or false")
    setup: tuple[Text, ...] = Field(description="a list of statements")
    pool: PoolSettings = Field(
        description="{min, max, timeout_s}: whole numbers 0 <= min <= max, max at least 1, "
        "timeout_s above 0"
    )
    sample_explain: Annotated[StrictInt, Field(ge=0)] = Field(
        description="a whole number of at least 0"
    )


def check_language(given: str, where: str) -> str:
    """``given``, if embedded engines know such words.

    Raises:
        ConfigError: they do not.
    """
    known = ("auto", "simple", *_CONFIGURATIONS.values())
    fix = "name a text search configuration, such as english, or leave it at auto"
    check_known(given, known, f"language = {given!r}", where=where, fix=fix)
    return given


def configuration(given: str, language: str | None) -> str:
    """The text search configuration: ``given``, unless that is "auto".

    Then it goes by the language of the dataset as BM25's tokenizer does: English where none is
    named; for one that has no stemmer there is ``simple``.
    """
    if given != "auto":
        return given
    code = (language or "en").lower().replace("_", "-").partition("-")[0]
    return _CONFIGURATIONS.get(code, "simple")
