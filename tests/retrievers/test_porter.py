from __future__ import annotations

import pytest

from retrieval_bench_retrievers.text.porter import porter_stem


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        # the paper's examples of each step, taken through all steps
        ("caresses", "caress"), ("ponies", "poni"), ("ties", "ti"), ("cats", "cat"),
        ("feed", "feed"), ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"),
        ("motoring", "motor"), ("sing", "sing"), ("conflated", "conflat"), ("troubled", "troubl"),
        ("sized", "size"), ("hopping", "hop"), ("tanned", "tan"), ("falling", "fall"),
        ("hissing", "hiss"), ("fizzed", "fizz"), ("failing", "fail"), ("filing", "file"),
        ("happy", "happi"), ("sky", "sky"), ("relational", "relat"), ("conditional", "condit"),
        ("rational", "ration"), ("vietnamization", "vietnam"), ("operator", "oper"),
        ("hopefulness", "hope"), ("sensibiliti", "sensibl"), ("triplicate", "triplic"),
        ("electrical", "electr"), ("goodness", "good"), ("replacement", "replac"),
        ("adjustment", "adjust"), ("adoption", "adopt"), ("irritant", "irrit"),
        ("probate", "probat"), ("rate", "rate"), ("cease", "ceas"), ("controll", "control"),
        ("roll", "roll"), ("generalizations", "gener"), ("oscillators", "oscil"),
        # y is a vowel behind a consonant only
        ("toy", "toi"), ("say", "sai"), ("syzygy", "syzygi"), ("byyed", "by"),
        # where the program differs from the paper
        ("as", "as"), ("pathology", "patholog"), ("pathological", "patholog"),
        ("possibly", "possibl"),
        # characters other than vowels are consonants
        ("il2s", "il2"), ("naïve", "naïv"), ("한국어", "한국어"),
    ],
)  # fmt: skip
def test_stems_are_those_of_the_author_s_program(word: str, stem: str) -> None:
    assert porter_stem(word) == stem
