"""The way from a text to index terms, by the name of a tokenizer.

The default, ``auto``, works for any script: writing without blanks between words (Han, Kana, Thai
...) and Hangul, whose words carry their particles, become character bigrams; everything else
becomes Unicode words with Snowball stems and without stop words. A tokenizer is deterministic, may
be called from several threads, and gives the same terms for a document and for a query.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from retrieval_bench.core.errors import ConfigError, MissingDependencyError, check_known, near_names
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.core.scripts import BLANKLESS_CHARACTERS, combining_marks
from retrieval_bench_retrievers.text.terms import EMOJI, Tokenizer, WordwiseTokenizer, stop_words
from retrieval_bench_retrievers.text.tool_tokenizers import BM25STokenizer, LuceneTokenizer

TokenizerSpec = str | Mapping[str, Any]
"""What a config gives: a name, or a mapping of ``name`` and that tokenizer's options."""

SNOWBALL = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""Language code -> stemmer of the Snowball project."""

BIGRAM_LANGUAGES = frozenset({"ja", "ko", "zh", "yue", "th", "lo", "km", "my"})
"""Languages that ``auto`` cuts into bigrams; their Latin words are mostly English."""

_BIGRAM_CHARACTER = re.compile(f"[{BLANKLESS_CHARACTERS}]")
# "don't", "it's", "we'll": what follows the apostrophe says nothing about the topic.
_ENGLISH_TAIL = re.compile(r"'(?:s|t|d|m|ll|re|ve)\b")
_ASCII_WORDS = re.compile(r"[0-9]+(?:[.,][0-9]+)+|[a-z0-9]+")
# Invisible inside a word: soft hyphen, zero-width joiner, word joiner.
_INVISIBLE = ("\u00ad", "\u200d", "\u2060")


class WhitespaceTokenizer(Tokenizer):
    """Tokenizer of what stands between blanks, punctuation included; lower-cased unless ``lower``
    is false."""

    def __init__(self, *, lower: bool = True) -> None:
        _require(isinstance(lower, bool), f"lower: {lower!r}", "true or false")
        self._lower = lower

    def __call__(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""
        return text.lower().split() if self._lower else text.split()

    def describe(self) -> dict[str, Any]:
        """See :class:`Tokenizer`."""
        return {"name": "whitespace", "lower": self._lower}


class WordTokenizer(Tokenizer):
    """Unicode words in lower case."""

    def __call__(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""
        return _cut(_fold(text), bigrams=False)

    def describe(self) -> dict[str, Any]:
        """See :class:`Tokenizer`."""
        return {"name": "word"}


class NgramTokenizer(WordwiseTokenizer):
    """Character n-grams within words; a shorter word gives itself."""

    def __init__(self, *, n: int = 3) -> None:
        whole = isinstance(n, int) and not isinstance(n, bool)
        _require(whole and 1 <= n <= 20, f"n: {n!r}", "a whole number from 1 to 20")
        self._n = n
        super().__init__(lambda word: _ngrams(word, n))

    def words(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""
        return _cut(_fold(text), bigrams=False)

    def describe(self) -> dict[str, Any]:
        """See :class:`Tokenizer`."""
        return {"name": "ngram", "n": self._n}


class StemmingTokenizer(WordwiseTokenizer):
    """Unicode words with Snowball stems and without stop words, both of one language.

    Args:
        name: what ``describe`` calls it.
        language: code for the manifest.
        stemmer: a Snowball algorithm, None for neither stems nor stop words.
        bigrams: cut runs of Han, Kana, Hangul, Thai, Lao, Burmese and Khmer into character bigrams
            (a run of one character gives that character).
    """

    def __init__(self, name: str, language: str, stemmer: str | None, *, bigrams: bool) -> None:
        import Stemmer

        self._name = name
        self._language = language
        self._stemmer = stemmer
        self._bigrams = bigrams
        self._version = Stemmer.version()
        self._stop_words = stop_words(stemmer) if stemmer else frozenset()
        self._stem: Callable[[str], str] = str
        if stemmer:
            # Words are remembered here, so that the stemmer's own memory is of no use.
            self._stem = Stemmer.Stemmer(stemmer, maxCacheSize=0).stemWord
        super().__init__(self._expand)

    def words(self, text: str) -> list[str]:
        """See :class:`Tokenizer`."""
        text = _fold(text, dotless_i=self._stemmer == "turkish")
        if self._stemmer == "english":
            text = _ENGLISH_TAIL.sub(" ", text.replace("\u2019", "'"))
        return _cut(text, bigrams=self._bigrams)

    def describe(self) -> dict[str, Any]:
        """See :class:`Tokenizer`."""
        return {
            "name": self._name,
            "language": self._language,
            "stemmer": self._stemmer,
            "stop_words": len(self._stop_words),
            "pystemmer": self._version,
        }

    def are_parts(self, terms: Sequence[str]) -> bool:
        """See :class:`Tokenizer`; a query that has a bigram or a word as well is asked by that."""
        return self._bigrams and all(len(term) == 1 and _is_bigram_run(term) for term in terms)

    def _expand(self, word: str) -> tuple[str, ...]:
        if self._bigrams and _is_bigram_run(word):
            return _ngrams(word, 2)
        return () if word in self._stop_words else (self._stem(word),)


class KiwiTokenizer(Tokenizer):
    """Korean morphemes that carry meaning (no particles, endings, punctuation), by kiwipiepy."""

    # Nouns, verbs, adjectives, adverbs, roots; Latin and Han words, numbers; web addresses, emoji.
    _KEPT = ("N", "VV", "VA", "MAG", "XR", "SL", "SH", "SN", "W")

    def __init__(self) -> None:
        if importlib.util.find_spec("kiwipiepy") is None:
            raise MissingDependencyError(
                "tokenizer 'kiwi' needs the package kiwipiepy, which is not installed",
                accepted="without it: tokenizer 'auto' (character bigrams) works for Korean",
                fix=f"{how_to_add('korean')}, or pip install kiwipiepy",
            )

    def __call__(self, text: str) -> list[str]:
        """See :class:`Tokenizer`; the first call in a process loads the engine's model."""
        with _KIWI_LOCK:
            tokens = _kiwi().tokenize(unicodedata.normalize("NFKC", text))
        return [token.form.casefold() for token in tokens if self._carries_meaning(token)]

    def describe(self) -> dict[str, Any]:
        """See :class:`Tokenizer`."""
        from importlib.metadata import version

        return {"name": "kiwi", "language": "ko", "kiwipiepy": version("kiwipiepy")}

    def _carries_meaning(self, token: Any) -> bool:
        # Words in scripts that the engine does not know come as symbols (SW).
        if token.tag == "SW":
            return any(map(str.isalnum, token.form))
        kept: bool = token.tag.startswith(self._KEPT)
        return kept


_KIWI_LOCK = threading.Lock()


@cache
def _kiwi() -> Any:
    """The engine, loaded once a process: its model takes seconds and some hundred megabytes."""
    import kiwipiepy

    return kiwipiepy.Kiwi(num_workers=1)


def _auto(*, language: str | None = None) -> Tokenizer:
    code, stemmer = _stemmer_of(language or "en")
    return StemmingTokenizer("auto", code, stemmer, bigrams=True)


def _english() -> Tokenizer:
    return StemmingTokenizer("english", "en", "english", bigrams=False)


_TOKENIZERS: Mapping[str, Callable[..., Tokenizer]] = {
    "auto": _auto,
    "whitespace": WhitespaceTokenizer,
    "word": WordTokenizer,
    "english": _english,
    "ngram": NgramTokenizer,
    "kiwi": KiwiTokenizer,
    "lucene": LuceneTokenizer,
    "bm25s": BM25STokenizer,
}


TOKENIZERS = (
    f"{', '.join(_TOKENIZERS)}, or a mapping of name and options, such as {{name: ngram, n: 3}} or "
    "{name: auto, language: fr}"
)
"""What may stand there, for messages."""


def make_tokenizer(spec: TokenizerSpec, dataset_language: str | None = None) -> Tokenizer:
    """The tokenizer that ``spec`` names.

    Args:
        spec: a name (auto, whitespace, word, english, ngram, kiwi, lucene, bm25s), or a mapping of
            ``name`` and options: ``{name: ngram, n: 3}``, ``{name: auto, language: fr}``,
            ``{name: whitespace, lower: false}``.
        dataset_language: used by ``auto`` when ``spec`` gives no language; a language without a
            Snowball stemmer gives words without stems, never an error.

    Raises:
        ConfigError: unknown name, option or language, or a value out of range.
        MissingDependencyError: ``kiwi`` without the package kiwipiepy.
    """
    options: dict[str, Any] = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = options.pop("name", None)
    what = "tokenizer without a name" if name is None else f"unknown tokenizer {name!r}"
    fix = "write `tokenizer: auto`, or `tokenizer: {name: ngram, n: 3}`"
    check_known(name, _TOKENIZERS, what, fix=fix)
    build = _TOKENIZERS[name]
    accepted = list(inspect.signature(build).parameters)
    unknown = [key for key in options if key not in accepted]
    if unknown:
        raise ConfigError(
            f"tokenizer {name!r} has no option " + ", ".join(repr(key) for key in unknown),
            accepted=", ".join(accepted) or f"{name!r} takes no option",
        )
    if name == "auto":
        if options.get("language") is None:
            options["language"] = dataset_language
        else:
            _check_language(options["language"])
    return build(**options)


def _fold(text: str, *, dotless_i: bool = False) -> str:
    """Compatibility forms (NFKC) without case; ``dotless_i``: Turkish rules for I."""
    if dotless_i:
        text = text.replace("\u0130", "i").replace("I", "\u0131")
    if text.isascii():
        return text.lower()
    for mark in _INVISIBLE:
        text = text.replace(mark, "")
    return unicodedata.normalize("NFKC", text).casefold()


def _cut(text: str, *, bigrams: bool) -> list[str]:
    """Words of a folded text; with ``bigrams``, runs of bigram characters stand apart.

    A word is letters and digits with their combining marks; numbers keep inner points and commas;
    each emoji is a word.
    """
    if text.isascii():
        return _ASCII_WORDS.findall(text)
    return _words(bigrams).findall(text)


@cache
def _words(bigrams: bool) -> re.Pattern[str]:
    apart = BLANKLESS_CHARACTERS if bigrams else ""
    letters = f"[^\\W_{apart}]"
    # Without the marks, which Python does not count as word characters, the words of most Indian
    # scripts would fall into single consonants.
    word = f"{letters}+(?:(?![\\x00-\\u02ff])[{combining_marks()}]+{letters}*)*"
    parts = [r"\d+(?:[.,]\d+)+", word, f"[{EMOJI}]"]
    return re.compile("|".join([f"[{apart}]+", *parts] if bigrams else parts))


def _is_bigram_run(word: str) -> bool:
    return not word.isascii() and _BIGRAM_CHARACTER.match(word) is not None


def _ngrams(word: str, n: int) -> tuple[str, ...]:
    if len(word) <= n:
        return (word,)
    # Interned: there are few different ones, and words that are remembered share them.
    return tuple([sys.intern(word[i : i + n]) for i in range(len(word) - n + 1)])


def _stemmer_of(language: str) -> tuple[str, str | None]:
    """Code and Snowball algorithm of a language; None where there is no stemmer for it."""
    import Stemmer

    code = language.strip().lower().replace("_", "-").partition("-")[0]
    code = next((short for short, name in SNOWBALL.items() if name == code), code)
    stemmer = "english" if code in BIGRAM_LANGUAGES else SNOWBALL.get(code)
    return code, stemmer if stemmer in Stemmer.algorithms() else None


def _check_language(language: object) -> None:
    if not isinstance(language, str) or _stemmer_of(language)[1] is None:
        raise ConfigError(
            f"tokenizer language {language!r}",
            kind="unknown-name",
            accepted=near_names(str(language), {*SNOWBALL, *BIGRAM_LANGUAGES}),
            fix="without a stemmer for the language use `tokenizer: word`; write codes that YAML "
            "does not read as text, such as no, in quotes",
        )


def _require(condition: bool, given: str, accepted: str) -> None:
    if not condition:
        raise ConfigError(f"tokenizer option {given}", accepted=accepted)
