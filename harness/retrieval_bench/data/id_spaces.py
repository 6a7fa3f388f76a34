"""Ids that never meet: those of a run beside those of the corpus, the judgements or the queries.

Where two programs write the same thing differently (``A-1`` and ``a-1``, ``0007`` and ``7``, a
chunk and its document), no hit is ever relevant, and every figure is a confident 0. A bad system
returns ids that are known; ids of another kind are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
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
    """

    cause: str
    plain: Callable[[str], str]
    one_side: bool = False


def _number(text: str) -> str:
    """The number that ``text`` ends with; all of it where it ends with none."""
    match = re.search(r"[0-9]+$", text)
    return text if match is None else match[0].lstrip("0")


_SPELLINGS = (
    _Spelling("upper and lower case", str.casefold),
    _Spelling("leading zeros", lambda text: text.lstrip("0") or "0"),
    _Spelling("a decimal point, as tables write whole numbers", lambda t: re.sub(r"\.0+$", "", t)),
    _Spelling("quotes or blanks around them", lambda text: text.strip(" \t\"'")),
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
    _Spelling("punctuation or case", lambda text: re.sub(r"[\W_]+", "", text).casefold()),
    _Spelling("what stands before the number", _number),
)


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
        first, second = self.example
        text = f"{is_not} {known} ({first!r} beside {second!r})"
        if self.cause:
            return f"{text}: they differ in {self.cause}. Write them alike on both sides."
        return f"{text}: the two sides seem to use different ids."


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
