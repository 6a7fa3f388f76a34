"""Scores of an answer's text against gold texts: SQuAD exact match and token F1, character F1.

All values lie between 0 and 1 and are the maximum over the gold texts. A question without an
answer has no gold texts, and its gold is the empty text; so is the gold of a question whose gold
texts are all normalised to nothing. Two empty texts score 1, one empty text scores 0.

Source: the official script of SQuAD 2.0 (Rajpurkar, Jia & Liang 2018), to the last digit for
``exact`` and ``f1``. ``char_f1`` is for scripts without blanks between words, where token F1 is
exact match under another name; it works like the character F1 of KorQuAD (Lim et al. 2019), but
drops the punctuation of every script.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

COLUMNS = ("exact", "f1", "char_f1")
"""What :func:`score` gives, in its order."""

METRICS: Mapping[str, tuple[str, str]] = {
    f"{prefix}{column}": (column, group)
    for prefix, group in (("", "all"), ("HasAns_", "has_answer"), ("NoAns_", "no_answer"))
    for column in COLUMNS
}
"""Name as the official script prints it -> column of a question's scores, group of questions."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_CONTENT = frozenset("PZC")


def normalise(text: str) -> str:
    """``text`` as SQuAD compares it: lower case, without ASCII punctuation and the words a, an
    and the, tokens separated by one blank."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def characters(text: str) -> str:
    """The characters of ``text`` that count in any language, in their order.

    NFKC before and after case folding, so that full and half width, ligatures and decomposed
    Hangul or kana are the same characters (and a superscript 2 is a 2). Then everything of the
    Unicode categories P (punctuation), Z and C (blanks, line breaks, controls, joiners) is left
    out. Symbols such as currency signs and emoji stay, and so do articles.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in folded if unicodedata.category(c)[0] not in _NO_CONTENT)


def character_f1(golds: Sequence[str], answer: str) -> float:
    """Best F1 over the multisets of :func:`characters`, 0..1; blanks change nothing."""
    answered = characters(answer)
    return max(_multiset_f1(gold, answered) for gold in _contents(golds, characters))


def score(golds: Sequence[str], answer: str) -> tuple[float, float, float]:
    """The :data:`COLUMNS` of one question, each 0..1.

    ``exact`` is 1 if the normalised answer is one of the normalised golds, else 0; ``f1`` the best
    F1 over the multisets of their tokens: 2 common / (gold + answer). Source: SQuAD's script.

    Args:
        golds: the gold texts; none for a question without an answer.
        answer: the first answer's text, empty when the reader says that there is no answer.
    """
    normal, answered = _contents(golds, normalise), normalise(answer)
    f1 = max(_multiset_f1(gold.split(), answered.split()) for gold in normal)
    return float(answered in normal), f1, character_f1(golds, answer)


def _contents(golds: Iterable[str], normal_form: Callable[[str], str]) -> set[str]:
    """Golds in the form in which they are compared; those without content do not count."""
    return {form for gold in golds if (form := normal_form(gold))} or {""}


def _multiset_f1(gold: Sequence[str], answer: Sequence[str]) -> float:
    if not gold or not answer:
        return float(len(gold) == len(answer))
    common = (Counter(gold) & Counter(answer)).total()
    return 2 * common / (len(gold) + len(answer))
