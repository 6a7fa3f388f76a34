"""The tokenizers that are named after tools, against those tools where they are installed."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from retrieval_bench.data import load_dataset
from retrieval_bench_retrievers.text.porter import porter_stem
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer
from tests.builders import some

_ENDINGS = """
    sses ies s eed ed ing y ational tional enci anci izer bli alli entli eli ousli ization
    ation ator alism iveness fulness ousness aliti iviti biliti logi icate ative alize iciti
    ical ful ness al ance ence er ic able ible ant ement ment ent sion tion ion ou ism ate iti
    ous ive ize e ll
"""


def _texts() -> list[str]:
    dataset = load_dataset("science-mini")
    return [document.contents for document in some(dataset.documents)]


def test_bm25s_gives_the_terms_of_its_own_tokenizer() -> None:
    import bm25s
    import Stemmer

    texts = [*_texts(), "", "a", "l'été _x_ 한국어 검색 m² IL-2 naïve"]
    theirs = bm25s.tokenize(
        texts,
        stopwords="en",
        stemmer=Stemmer.Stemmer("english"),
        return_ids=False,
        show_progress=False,
    )
    tokenize = make_tokenizer("bm25s")
    # A text without terms gets an empty one there, so that no document is empty.
    assert [tokenize(text) for text in texts] == [[t for t in terms if t] for terms in theirs]


@pytest.mark.slow
@pytest.mark.needs("nltk")
def test_porter_is_that_of_nltk_with_the_author_s_extensions() -> None:
    from nltk.stem import porter

    theirs = porter.PorterStemmer(porter.PorterStemmer.MARTIN_EXTENSIONS)
    words = {word for text in _texts() for word in re.findall("[a-z]+", text.lower())}
    draw = random.Random(7)
    endings = _ENDINGS.split()
    for first, second in draw.sample(list(product(endings, ["", *endings])), 1_000):
        start = "".join(draw.choices("aeioubcdlstwxyz", k=draw.randint(0, 6)))
        words.add(start + first + second)
    assert len(words) > 3_000
    assert [w for w in sorted(words) if porter_stem(w) != theirs.stem(w)] == []
