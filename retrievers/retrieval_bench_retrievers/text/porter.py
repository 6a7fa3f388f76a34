"""Porter's stemmer in its author's own program, which is what Lucene's PorterStemFilter holds.

The program differs from the paper (Porter 1980, "An algorithm for suffix stripping") in three
points, and so from the stemmer "porter" of the Snowball project: words of one or two letters are
left alone, step 2 turns ``bli`` into ``ble`` (the paper: ``abli`` into ``able``), and ``logi`` into
``log``. "Pathology" and "pathological" share a stem only by the last.
"""

from __future__ import annotations

_STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
_STEP_3 = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4 = dict.fromkeys(
    (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion"),
        *("tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"),
    ),
    "",
) | {"sion": "s", "tion": "t"}


def porter_stem(word: str) -> str:
    """The stem of an English word in lower case; other characters than vowels are consonants."""
    if len(word) <= 2:
        return word
    word = _past_and_gerund(_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2, above=0)
    word = _replaced(word, _STEP_3, above=0)
    word = _replaced(word, _STEP_4, above=1)
    return _last_letter(word)


def _plural(word: str) -> str:
    """Step 1a."""
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past_and_gerund(word: str) -> str:
    """Step 1b."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next((ending for ending in ("ed", "ing") if word.endswith(ending)), None)
    if ending is None or "v" not in _shape(stem := word.removesuffix(ending)):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _doubled(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _short_syllable(stem) else stem


def _replaced(word: str, endings: dict[str, str], *, above: int) -> str:
    """Replace the longest ending of ``endings`` of a word where enough syllables stand before
    it."""
    if not word.endswith(tuple(endings)):
        return word
    ending = max((ending for ending in endings if word.endswith(ending)), key=len)
    stem = word.removesuffix(ending)
    # "(s)ion" and "(t)ion" of step 4: the letter in brackets belongs to the stem.
    kept = endings[ending] if above else ""
    return stem + endings[ending] if _measure(stem + kept) > above else word


def _last_letter(word: str) -> str:
    """Step 5: a final e, and one of two l."""
    syllables = _measure(word)
    without_e = word.removesuffix("e")
    if without_e != word and (syllables > 1 or (syllables == 1 and not _short_syllable(without_e))):
        word = without_e
    return word[:-1] if syllables > 1 and word.endswith("ll") else word


def _shape(word: str) -> str:
    """Each letter as v (vowel) or c; y is a vowel behind a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Return how often consonants follow vowels: m of the paper."""
    return _shape(word).count("vc")


def _doubled(word: str) -> bool:
    return word[-2:-1] == word[-1:] and _shape(word).endswith("c")


def _short_syllable(word: str) -> bool:
    """Ends with consonant, vowel, and a consonant that is none of w, x, y: *o of the paper."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
