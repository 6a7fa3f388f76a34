"""Language that queries look written in, for advice where a dataset names none. It changes no
ranking."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from retrieval_bench.core.scripts import BLANKLESS, main_script, script_profile
from retrieval_bench_retrievers.text.tokenizers import SNOWBALL, TokenizerSpec, make_tokenizer

_WORD = re.compile(r"[^\W\d_]+")
_QUERIES = 300
_MOST_PARTS, _FEWEST_PARTS = 10, 4
_LETTERS = 40
"""Of different words, for each part: shorter texts are often taken for another language, and codes
that repeat each other say nothing however many there are."""


def likely_language(texts: Sequence[str]) -> str | None:
    """The ISO 639 code of the language that ``texts`` look written in, None in doubt.

    An even sample of 300 to 600 texts is dealt into ten parts, fewer where there are not 40 letters
    of different words for each. Each part is identified by itself, and one of ten may differ: texts
    in two languages and lists of names fall apart. With fewer than four parts nothing is said.
    """
    sample = texts[:: max(1, len(texts) // _QUERIES)]
    words = {word for text in sample for word in _WORD.findall(text.casefold())}
    n = min(_MOST_PARTS, len(sample), sum(map(len, words)) // _LETTERS)
    if n < _FEWEST_PARTS:
        return None
    from py3langid import classify

    counter = Counter(str(classify(" ".join(sample[part::n]))[0]) for part in range(n))
    ((language, agreeing),) = counter.most_common(1)
    return language if n - agreeing <= n // _MOST_PARTS else None


def language_advice(tokenizer: TokenizerSpec, queries: Sequence[str]) -> str:
    """Say how naming the language of a dataset would change its terms; empty where it would change
    nothing, and in doubt.

    Args:
        tokenizer: as it is configured; one that names its language is right in any case.
        queries: their texts.
    """
    before = make_tokenizer(tokenizer).describe()
    follows = before != make_tokenizer(tokenizer, "fr").describe()
    if not follows or main_script(script_profile(queries)) in (*BLANKLESS, "Hangul"):
        return ""
    code = {"no": "nb"}.get(language := likely_language(queries) or "en", language)  # YAML's false
    after = make_tokenizer(tokenizer, code).describe()
    if after["stemmer"] in (None, before["stemmer"]):
        return ""
    name = SNOWBALL[code].capitalize()
    what = "stems and stop words" if after["stop_words"] else "stems"
    return (
        f"The queries look {name}, and the dataset names no language: with `language: {code}` in "
        f"its dataset.yaml, or --language {code}, words would get {name} {what}, not English ones."
    )
