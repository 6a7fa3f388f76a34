"""Ids that do not meet: those of a run beside those of the corpus, the judgements or the queries.

Where two programs write the same thing differently (``A-1`` and ``a-1``, ``0007`` and ``7``, a
chunk and its document), no hit is ever relevant, and every figure is a confident 0. A bad system
returns ids that are known; ids of another kind are not. Where only some are written differently,
these count as not relevant, and no figure shows it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.types import Documents, Qrels

FEW = 0.01
"""From this share of known ids on, two sides use the same ids."""

ENOUGH = 0.5
"""Share of the ids that must be the same once they are written alike, to name what sets them
apart."""

_CHUNK = re.compile(r"[\W_]+[^\W\d_]{0,12}[\W_]{0,3}\d+[^\W\d_]{0,4}[)\]}]?$")
"""Marks, perhaps a word in any script (``chunk``, ``청크``), and a number at the end of an id."""


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way in which programs write the same id differently.

    Attributes:
        cause: in words, behind "they differ in".
        plain: takes the difference away.
        one_side: on one side only: taken away on both it would make different ids equal.
        loose: different ids may be equal without it: it says something where most ids are.
    """

    cause: str
    plain: Callable[[str], str]
    one_side: bool = False
    loose: bool = False


_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
_QUOTES = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb"


def _number(text: str) -> str:
    """The number that ``text`` ends with; all of it where it ends with none."""
    match = re.search(r"[0-9]+$", text)
    return text if match is None else match[0].lstrip("0")


_SPELLINGS = (
    _Spelling("upper and lower case", str.casefold),
    _Spelling("leading zeros", lambda text: _ZEROS.sub("", text)),
    _Spelling("a decimal point, as tables write whole numbers", lambda t: re.sub(r"\.0+$", "", t)),
    _Spelling("quotes around them", lambda text: text.strip(_QUOTES)),
    _Spelling("blanks", lambda text: "".join(text.split())),
    _Spelling("characters that nobody sees", lambda text: _UNSEEN.sub("", text)),
    _Spelling("their Unicode form", lambda text: unicodedata.normalize("NFKC", text)),
    _Spelling(
        "a number behind: chunks on one side, documents on the other",
        lambda text: _CHUNK.sub("", text),
        one_side=True,
    ),
    _Spelling(
        "numbers behind: chunks on one side, documents on the other",
        lambda text: _CHUNK.sub("", _CHUNK.sub("", text)),
        one_side=True,
    ),
    _Spelling("a path before them", lambda text: PurePosixPath(text).name, one_side=True),
    _Spelling(
        "a path before or the ending of a file behind them",
        lambda text: PurePosixPath(text).stem,
        one_side=True,
    ),
    _Spelling(
        "punctuation or case", lambda text: re.sub(r"[\W_]+", "", text).casefold(), loose=True
    ),
    _Spelling("what stands before the number", _number, loose=True),
)
_STRICT = [s for s in _SPELLINGS if not s.one_side and not s.loose]


def plain(text: str) -> str:
    """``text`` as all programs may write it that mean the same id."""
    for spelling in _STRICT[::-1]:  # what hides others first
        text = spelling.plain(text)
    return text


@dataclass(frozen=True, slots=True)
class Apart:
    """Ids of two sides that hardly meet.

    Attributes:
        n: distinct ids of the first side.
        met: those that the second side has, too.
        example: an id of each side; where a cause is known, the same thing.
        cause: what sets them apart, in words; empty where that is not known.
    """

    n: int
    met: int
    example: tuple[str, str]
    cause: str = ""

    def notice(self, *, corpus: bool) -> Notice:
        """Warn of returned ids.

        Args:
            corpus: the known ids are those of a corpus: without one of them nothing can be judged.
        """
        text = self.sentence(RETURNED, "in the corpus" if corpus else "judged")
        unknown = corpus and not self.met
        return Notice(text, Code.UNKNOWN_IDS if unknown else Code.FOREIGN_IDS)

    def sentence(self, noun: tuple[str, str], known: str) -> str:
        """Say it.

        Args:
            noun: one and several of the first side, such as "returned id" and "returned ids".
            known: what they are not, such as "judged" or "in the corpus".
        """
        if self.met:
            is_not = f"Only {self.met:,} of {self.n:,} {noun[1]} {'is' if self.met == 1 else 'are'}"
        else:
            is_not = (
                f"None of the {self.n:,} {noun[1]} is" if self.n > 1 else f"The {noun[0]} isn't"
            )
        text = f"{is_not} {known} ({beside(*self.example)})"
        if self.cause:
            return f"{text}: they differ in {self.cause}. Write them alike on both sides."
        return f"{text}: the two sides seem to use different ids."


def beside(first: str, second: str) -> str:
    """Two ids as a reader sees that they differ."""
    alike = unicodedata.normalize("NFKC", first) == unicodedata.normalize("NFKC", second)
    shown = ascii if alike else repr
    return f"{shown(first)} beside {shown(second)}"


def misspelt(ids: Iterable[str], known: Collection[str]) -> list[tuple[str, str]]:
    """Each of ``ids`` that is not known, but is a known one once both are written alike, with that
    one."""
    ids = [item for item in dict.fromkeys(ids) if item not in known]
    if not ids or not known:
        return []
    spelt = {plain(item): item for item in sorted(known, reverse=True)}
    return [(own_id, other) for own_id in ids if (other := spelt.get(plain(own_id)))]


def cause_of(pair: tuple[str, str]) -> str:
    """What sets two ids apart that are one once they are written alike."""
    first, second = pair
    causes = (s.cause for s in _STRICT if s.plain(first) == s.plain(second))
    return next(causes, "more than one of case, blanks, quotes, zeros and Unicode form")


def misspelt_notice(
    pairs: Sequence[tuple[str, str]], noun: tuple[str, str], known: str, effect: str
) -> Notice:
    """Warn of ids of which some are written differently.

    Args:
        pairs: of :func:`misspelt`, at least one.
        noun: as of :meth:`Apart.sentence`.
        known: what the others are, such as "the judged ones".
        effect: what comes of it.
    """
    n = len(pairs)
    are = f"{n:,} {noun[1]} are written" if n > 1 else f"1 {noun[0]} is written"
    return Notice(
        f"{are} otherwise than {known} ({beside(*pairs[0])}; they differ in {cause_of(pairs[0])}): "
        f"{effect}. Write them alike on both sides.",
        Code.FOREIGN_IDS,
    )


def unmet(
    lists: Iterable[Sequence[str]],
    judged: Collection[str],
    corpus: Collection[str] | None,
    remedy: str,
) -> list[Notice]:
    """Warn of hits that the corpus does not have, and of those that are judged, but written
    differently, though it be one.

    Args:
        lists: the hits of each query.
        judged: documents (or units).
        corpus: all that could be returned; None where that is not known.
        remedy: a sentence on what to do where the corpus does not have a hit.
    """
    counts = Counter(doc_id for doc_ids in lists for doc_id in doc_ids)
    judged = frozenset(judged)
    known = judged if corpus is None else corpus
    unknown = [doc_id for doc_id in counts if doc_id not in known]
    # Without a corpus, two spellings of which both are returned are two documents.
    pairs = [
        pair for pair in misspelt(unknown, judged) if corpus is not None or pair[1] not in counts
    ]
    effect = "hits of theirs count as not relevant"
    told = [misspelt_notice(pairs, RETURNED, "the judged ones", effect)] if pairs else []
    strange = set(unknown if corpus is not None else ()) - {own for own, _ in pairs}
    if strange:
        hits, total = sum(counts[doc_id] for doc_id in strange), counts.total()
        example = next(doc_id for doc_id in counts if doc_id in strange)
        relevant = sum(doc_id in judged for doc_id in strange)
        counted = f", and {relevant:,} of these are judged" if relevant else ""
        share = f"{100 * hits / total:.1f} %" if 1000 * hits >= total else "less than 0.1 %"
        told.append(
            Notice(
                f"{hits:,} of {total:,} hits ({share}) are documents "
                f"that the corpus does not have, such as {example!r}{counted}. {remedy}",
                Code.FOREIGN_IDS,
            )
        )
    return told


RETURNED = ("returned id", "returned ids")
QUERIES = ("query of the run", "queries of the run")
"""What may be apart, see :meth:`Apart.sentence`."""


def apart(ids: Iterable[str], known: Collection[str]) -> Apart | None:
    """Give what sets ``ids`` apart from the known ones; None where they meet, or nothing is known.

    Ids of which none is known are apart in any case; where a few are, only if at least half of them
    become known ids when both are written alike.
    """
    distinct, known = dict.fromkeys(ids), frozenset(known)
    met = sum(item in known for item in distinct)
    if not distinct or not known or met >= FEW * len(distinct):
        return None
    for spelling in _SPELLINGS:
        if (pair := _explained(distinct, known, spelling)) is not None:
            return Apart(len(distinct), met, pair, spelling.cause)
    if met:
        return None
    for pair in misspelt(distinct, known):
        return Apart(len(distinct), 0, pair, cause_of(pair))
    return Apart(len(distinct), 0, (next(iter(distinct)), min(known)))


def _explained(
    ids: Collection[str], known: frozenset[str], spelling: _Spelling
) -> tuple[str, str] | None:
    """Give an id of each side that are one when written alike, where that is so of enough ids."""
    plain = {spelling.plain(item): item for item in sorted(known, reverse=True)}
    pairs = []
    for own_id in ids:
        if own_id in known:
            continue
        alike = spelling.plain(own_id)
        if spelling.one_side:
            other = alike if alike in known else plain.get(own_id)
        else:
            other = plain.get(alike)
        if other is not None:
            pairs.append((own_id, other))
    return pairs[0] if pairs and len(pairs) >= ENOUGH * len(ids) else None


def known_ids(documents: Documents | None, unit_of: Mapping[str, str], qrels: Qrels) -> set[str]:
    """Ids of all that could be returned: units, documents or, without a corpus, what is judged."""
    if unit_of:
        return set(unit_of.values())
    if documents is not None:
        return {document.id for document in documents}
    return {doc_id for grades in qrels.values() for doc_id in grades}
