"""Whether an encoder can read a corpus: what it cuts off, does not know, or breaks into crumbs.

Counted on a sample, per script, with the encoder's own tokenizer: the share of letters in unknown
tokens, and the tokens per letter. A vocabulary that was built on a language takes few tokens per
letter for it; one that lacks the script takes one per letter, or more. Measured with
all-MiniLM-L6-v2: four English collections .21 to .23 (1.1 to 1.3 per word), French .34 (1.65),
German .38, Finnish .43, Vietnamese .45 (1.5), Russian, Greek, Arabic and Hebrew .93 to 1.0, Korean
2.5 (single jamo, and 21 % unknown), Chinese 55 % and Thai 100 % unknown.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.scripts import script_of
from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.encoders.encoder import Encoder, readable

SAMPLE = 500
"""Texts that are looked at, spread evenly."""

_FEWEST_LETTERS = 100
_SHARE_OF_SCRIPT = 0.2
_UNKNOWN = 0.1
_SYLLABLES = {"Han", "Hangul", "Kana"}
# One letter of these scripts is a syllable or a word, so an encoder made for them takes up to 1.
_CRUMBS = 0.7
_CRUMBS_OF_SYLLABLES = 1.2
_COARSE_PER_LETTER = 0.3
_COARSE_PER_WORD = 1.4
CUT_OFF = 0.1
"""From this share of documents, or of queries, that are cut off on, a warning says so."""

MULTILINGUAL = "`bench hybrid-multilingual` takes an encoder that reads about 100 languages."
"""What to try where an encoder does not know the language."""

_NAMED = 5

_WORD = re.compile(r"[^\W\d_]+")


@dataclass(slots=True)
class TokenFit:
    """Counts over one sample of texts.

    Attributes:
        texts: number of texts looked at.
        tokens: pieces, without those that the model adds to every text.
        unknown: of these, the unknown ones.
        cut_texts: texts with more tokens than the model reads.
        cut_tokens: tokens that it does not read.
        letters, unknown_letters, pieces, words: by script; pieces are those of known letters,
            words are runs of letters.
    """

    texts: int = 0
    tokens: int = 0
    unknown: int = 0
    cut_texts: int = 0
    cut_tokens: int = 0
    letters: Counter[str] = field(default_factory=Counter)
    unknown_letters: Counter[str] = field(default_factory=Counter)
    pieces: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)

    def per_letter(self, script: str) -> float:
        """Pieces per known letter of ``script``; 0 when no letter is known."""
        known = self.letters[script] - self.unknown_letters[script]
        return self.pieces[script] / known if known else 0.0

    def unfit_scripts(self) -> list[str]:
        """Scripts of a fifth of the letters or more that the encoder cannot read."""
        return [script for script in self._scripts() if self._is_unfit(script)]

    def is_coarse(self) -> bool:
        """Return whether Latin text is read, but in pieces shorter than those of the encoder's own
        language; by the letter and by the word, because some languages have long words and some
        have short ones."""
        script = "Latin"
        return (
            script in self._scripts()
            and not self._is_unfit(script)
            and self.per_letter(script) > _COARSE_PER_LETTER
            and self.pieces[script] > _COARSE_PER_WORD * self.words[script]
        )

    def _scripts(self) -> list[str]:
        total = self.letters.total()
        if total < _FEWEST_LETTERS:
            return []
        return [s for s, n in self.letters.most_common() if n / total >= _SHARE_OF_SCRIPT]

    def _is_unfit(self, script: str) -> bool:
        limit = _CRUMBS_OF_SYLLABLES if script in _SYLLABLES else _CRUMBS
        return (
            self.unknown_letters[script] / self.letters[script] > _UNKNOWN
            or self.per_letter(script) > limit
        )


def sample(texts: Sequence[str], size: int = SAMPLE) -> list[str]:
    """At most ``size`` of ``texts``, spread evenly over them."""
    step = max(1, -(-len(texts) // size))
    return list(texts[::step])


def measure(
    tokenizer: Any, unknown_id: int | None, texts: Sequence[str], max_length: int | None
) -> TokenFit:
    """What ``tokenizer`` makes of ``texts``.

    Args:
        tokenizer: of the library ``tokenizers``, cutting nothing off.
        unknown_id: its token for what it does not know, None when it has none.
        max_length: tokens that the model reads, its own additions included; None = all.
    """
    fit = TokenFit(texts=len(texts))
    for text in texts:
        encoding = tokenizer.encode(text)
        excess = 0 if max_length is None else max(0, len(encoding.ids) - max_length)
        fit.cut_texts += excess > 0
        fit.cut_tokens += excess
        fit.letters.update(_scripts_of(text))
        fit.words.update(script_of(word[0]) for word in _WORD.findall(text))
        pieces = zip(encoding.ids, encoding.offsets, encoding.special_tokens_mask, strict=True)
        for token, (start, end), added in pieces:
            if not added:
                _count(fit, token == unknown_id, text[start:end])
    return fit


@dataclass(frozen=True, slots=True)
class EncoderFit:
    """An encoder beside a sample of the documents and the queries.

    Attributes:
        documents, queries: what its tokenizer makes of them; None where nobody can look into it.
    """

    encoder: Encoder
    documents: TokenFit | None
    queries: TokenFit | None

    def facts(self) -> list[str]:
        """In one line, what it cuts off, and how much it does not know."""
        documents, queries = self.documents, self.queries
        if documents is None or queries is None:
            return []
        name, limit = self.encoder.name, self.encoder.max_seq_length
        unknown = "no unknown tokens"
        if documents.unknown or queries.unknown:
            unknown = (
                f"unknown tokens: {_share(documents.unknown, documents.tokens)} in documents, "
                f"{_share(queries.unknown, queries.tokens)} in queries"
            )
        if limit is None:
            return [f"encoder {name} reads texts of any length; {unknown}"]
        cut = "nothing is cut off"
        if documents.cut_texts or queries.cut_texts:
            cut = (
                f"cut off are {_share(documents.cut_texts, documents.texts)} of the documents "
                f"({_share(documents.cut_tokens, documents.tokens)} of their tokens) and "
                f"{_share(queries.cut_texts, queries.texts)} of the queries"
            )
        return [f"encoder {name} reads {limit} tokens of a text: {cut}; {unknown}"]

    def warnings(self, language: str | None) -> Sequence[str]:
        """Why rankings by its vectors may be bad; ``language`` is that of the dataset."""
        name, limit = self.encoder.name, self.encoder.max_seq_length
        prompts = self.encoder.missing_prompts()
        if self.documents is None or self.queries is None:
            hidden = f"encoder {name}: its tokenizer cannot be examined"
            return prompts if self.encoder.reads_all else [*prompts, hidden]
        cut = [
            Notice(
                f"{name} reads {limit} tokens: {100 * fit.cut_texts / fit.texts:.0f} % of the "
                f"{texts} are cut off, so dense rankings may be underrated. {remedy} them, or use "
                "an encoder that reads more.",
                code,
            )
            for fit, texts, remedy, code in (
                (self.documents, "documents", "Split", Code.CUT_OFF),
                (self.queries, "queries", "Shorten", Code.QUERIES_CUT_OFF),
            )
            if limit is not None and fit.cut_texts > CUT_OFF * fit.texts
        ]
        languages = self.encoder.languages()
        return [*prompts, *cut, *_unfit(name, self.documents, self.queries, languages, language)]


def fit_of(encoder: Encoder, texts: Sequence[str], queries: Sequence[Query]) -> EncoderFit:
    """``encoder``, which is loaded, beside ``texts`` of documents and ``queries``."""
    tools = encoder.tokenizer()
    if tools is None:
        return EncoderFit(encoder, None, None)
    asked = [readable(query.text) for query in queries]
    documents, questions = (
        measure(*tools, [encoder.prompts[role] + t for t in sample(some)], encoder.max_seq_length)
        for role, some in (("document", texts), ("query", asked))
    )
    return EncoderFit(encoder, documents, questions)


def _unfit(
    name: str,
    documents: TokenFit,
    queries: TokenFit,
    languages: Sequence[str],
    language: str | None,
) -> list[Notice]:
    """Where the letters or the language are not what the encoder was made for."""
    subjects: dict[str, tuple[str, TokenFit]] = {}
    for script in queries.unfit_scripts():
        subjects[script] = ("queries", queries)
    for script in documents.unfit_scripts():
        both = "corpus and the queries" if script in subjects else "corpus"
        subjects[script] = (both, documents)
    if subjects:
        consequence = "Expect dense rankings near chance, and fusion to lose by them."
        return [
            Notice(
                f"{name} does not fit the {subject}: {_letters(fit, script)}. {consequence} "
                f"{MULTILINGUAL}",
                Code.UNFIT,
            )
            for script, (subject, fit) in subjects.items()
        ]
    reasons = []
    code = (language or "").lower().partition("-")[0]
    foreign = bool(code and languages and not {code, "multilingual"} & set(languages))
    if foreign:
        reasons.append(f"its model card names {_few(languages)}, the dataset says {language}")
    if documents.is_coarse():
        reasons.append(_letters(documents, "Latin"))
    if not reasons:
        return []
    consequence = "Expect weaker rankings than from an encoder made for this language or subject."
    text = f"{name} may fit the corpus poorly: {'; '.join(reasons)}. {consequence}"
    return [Notice(f"{text} {MULTILINGUAL}" if foreign else text, Code.UNFIT)]


def _letters(fit: TokenFit, script: str) -> str:
    share = _share(fit.letters[script], fit.letters.total())
    parts = [f"{share} of the letters are {script}"]
    unknown = _share(fit.unknown_letters[script], fit.letters[script])
    if unknown != _share(0, 1):
        parts.append(f"{unknown} of these are unknown to it")
    if fit.per_letter(script):
        usual = "at most 1" if script in _SYLLABLES else "about 0.2"
        parts.append(
            f"it takes {fit.per_letter(script):.2f} tokens per letter ({usual} where it fits)"
        )
    return ", ".join(parts)


def _few(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _count(fit: TokenFit, unknown: bool, span: str) -> None:
    fit.tokens += 1
    scripts = _scripts_of(span)
    if unknown:
        fit.unknown += 1
        fit.unknown_letters.update(scripts)
    elif scripts:
        fit.pieces[scripts[0]] += 1


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def _scripts_of(text: str) -> list[str]:
    """The script of each letter; composed first, so that a syllable in parts is one letter."""
    return [script_of(c) for c in unicodedata.normalize("NFC", text) if c.isalpha()]
