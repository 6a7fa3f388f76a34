"""Languages that documents and queries are written in, where they are not all in one.

A text counts for a language where the detector gives it :data:`SURE` of its normalised probability,
and a language where a tenth of the documents, or of the queries of six words or more, count for it:
seven real collections raise nothing by that rule, nor do their queries cut to four words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.scripts import BLANKLESS_CHARACTERS, ScriptSample
from retrieval_bench.core.types import Dataset

SURE = 0.9
SHARE = 0.1
_WORDS = 6
_LOOKED_AT, _LETTERS = 300, 400
"""Texts, spread evenly, and characters of each."""

_PLAIN_ENGLISH = {"the", "of", "and", "to", "is", "for", "that", "with", "what", "how", "which"}
_BLANKLESS = re.compile(f"[{BLANKLESS_CHARACTERS}]")
_ALIKE = {
    **{"nb": "no", "nn": "no", "da": "no", "hr": "sr", "bs": "sr", "ms": "id", "yue": "zh"},
    **{"gl": "pt", "af": "nl", "lb": "de", "sk": "cs"},
}
"""Languages that a few words do not tell apart."""
_NAMES = {
    **{"ar": "Arabic", "cs": "Czech", "de": "German", "en": "English", "es": "Spanish"},
    **{"fi": "Finnish", "fr": "French", "hi": "Hindi", "id": "Indonesian", "it": "Italian"},
    **{"ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish"},
    **{"pt": "Portuguese", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian"},
    **{"vi": "Vietnamese", "zh": "Chinese"},
}


def languages_told(data: Dataset, documents: Sequence[str] | None = None) -> list[str]:
    """Warn of texts in another language than the dataset's or, where it names none, than most.

    Args:
        documents: a sample of their texts, spread evenly; without it the corpus is walked.
    """
    if documents is None:
        sample = ScriptSample()
        for document in data.documents or ():
            sample.add(document.contents)
        documents = sample.texts
    queries = [query.text for query in data.queries if _words(query.text) >= _WORDS]
    try:
        shares = [_shares(documents), _shares(queries)]
    except (OSError, MemoryError) as problem:  # its model is unpacked into a temporary file
        why = getattr(problem, "strerror", None) or "not enough memory"
        return [Notice(f"The languages of the texts were not looked at: {why}.", Code.NOTE)]
    both = shares[0] + shares[1]
    if not both:
        return []
    given = (data.language or "").lower().partition("-")[0]
    main = _alike(given) if given else (shares[0] or both).most_common(1)[0][0]
    others = [c for c in both if c != main and any(side[c] >= SHARE for side in shares)]
    if not others:
        return []
    parts = [
        " and ".join(
            f"{side[code]:.0%} of the {what}".replace("%", " %")
            for side, what in zip(shares, ("documents", "queries"), strict=True)
            if side[code] >= SHARE
        )
        + f" look {_name(code)}"
        for code in sorted(others, key=lambda code: (-both[code], code))
    ]
    key = next((k for k in ("lang", "language") if any(k in q.metadata for q in data.queries)), "")
    where = "" if key else "give the queries `lang` in their metadata, and "
    text = (
        f"{', '.join(parts)}, not {_name(main)}: stems, stop words and many encoders are of one "
        f"language. For figures of each, {where}compare with `--slices {key or 'lang'}`."
    )
    return [Notice(text, Code.DATA)]


def _shares(texts: Sequence[str]) -> Counter[str]:
    """The share of texts that are surely in each language; nothing of a single text."""
    looked = [text[:_LETTERS] for text in texts[:: max(1, len(texts) // _LOOKED_AT)]]
    rest = [text for text in looked if not _is_plain_english(text)]
    counts: Counter[str] = Counter({"en": len(looked) - len(rest)})
    if len(rest) >= SHARE * len(looked):  # else nothing that they are could be told
        classify = _detector().classify
        for text in rest:
            code, probability = classify(text)
            if probability >= SURE:
                counts[_alike(code)] += 1
    return Counter({code: n / len(looked) for code, n in counts.items() if n > 1})


def _is_plain_english(text: str) -> bool:
    return text.isascii() and len(_PLAIN_ENGLISH.intersection(text.lower().split())) > 1


@cache
def _detector() -> Any:
    """py3langid with probabilities that add up to 1; loaded once, half a second and 100 MB."""
    from py3langid import langid

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


def _words(text: str) -> int:
    return len(text.split()) + len(_BLANKLESS.findall(text)) // 2


def _alike(code: str) -> str:
    return _ALIKE.get(code, code)


def _name(code: str) -> str:
    return _NAMES.get(code, f"like the language {code}")
