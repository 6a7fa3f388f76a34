"""One case while it is read: which of its words say what, and what becomes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from retrieval_bench.core.types import Query
from retrieval_bench.data.faults import FileFaults, Place, shown
from retrieval_bench.data.files.rows import yes_or_no
from retrieval_bench.data.source import Judgement, take_filter, take_grade
from retrieval_bench_rules.rules import EXPECT, FORBID, entries_of

_IDS, _GRADES = ("id", "doc_id", "_id"), ("grade", "score", "relevance")
"""Keys of one judgement; any other mapping under ids is {id: grade}."""
_NO_LIST = re.compile(r"\s*\[.*[,'\"].*\]\s*", re.DOTALL)
"""A list as no JSON has it, such as Python prints it."""
_NO_TRUTH = ("answerable", "tags")
"""Keys that are read, and no other word."""
NAMED = "`columns: {rows: {question: NAME, documents: NAME of ids, sources: NAME of phrases}}`"
"""How words of one's own are named."""

Row = Mapping[str, Any]


@dataclass
class Cases:
    """The cases of a file.

    Attributes:
        queries, judgements: with their places.
        used: kind -> the words that were read as such.
        ruled, judged: places with phrases, sources or rules, and with ids.
        unread: other words.
        taken: ids that cases have.
    """

    queries: list[tuple[Place, Query]] = field(default_factory=list)
    judgements: list[tuple[Place, Judgement]] = field(default_factory=list)
    used: dict[str, list[str]] = field(default_factory=dict)
    ruled: list[Place] = field(default_factory=list)
    judged: list[Place] = field(default_factory=list)
    unread: dict[str, None] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def free(self, number: int) -> str:
        """The id of a case that has none: its number, or else the next that no case has."""
        name = next(name for at in count(number) if (name := f"q{at}") not in self.taken)
        self.taken.add(name)
        return name


@dataclass(frozen=True)
class How:
    """How the cases of a file are read.

    Attributes:
        names: kind -> its words.
        separator: of several values in one text.
        cells: whether all values are texts, so that a list is written as JSON.
        ids_are_rules: and not judgements.
    """

    names: Mapping[str, Sequence[str]]
    separator: str | None
    cells: bool
    ids_are_rules: bool


@dataclass
class Case:
    """One case while it is read."""

    row: Row
    place: Place
    how: How
    report: FileFaults
    cases: Cases
    used: set[str] = field(default_factory=set)

    def read(self, number: int) -> None:
        """Make a query of it, and judgements or rules."""
        word = self._word("question")
        if word is None:
            keys = ", ".join(map(shown, list(self.row)[:8])) or "none"
            self.report.error(
                self.place,
                f"no question; found: {keys}",
                f"one of {', '.join(self.how.names['question'])}; or name it: {NAMED}",
            )
            return
        question = self.row[word]
        if not isinstance(question, str):
            self.report.error(self.place, f"{word} is {shown(question)}", "a text")
            return
        named = self._word("id")
        given = self.row[named] if named is not None else None
        if isinstance(given, int) and not isinstance(given, bool):
            given = str(given)
        if given is not None and (not isinstance(given, str) or not given.strip()):
            self.report.error(self.place, f"{named} is {shown(given)}", "a text or a whole number")
            return
        query_id = given or self.cases.free(number)
        ids = self._ids()
        judged = {} if self.how.ids_are_rules else ids
        expect, forbid = self._rules({} if judged else ids)
        blank = {name for names in self.how.names.values() for name in names if not self._has(name)}
        used = self.used | blank | {"filter", EXPECT, FORBID}
        metadata = {key: value for key, value in self.row.items() if key not in used}
        self.cases.unread |= dict.fromkeys(key for key in metadata if key not in _NO_TRUTH)
        metadata |= {key: value for key, value in ((EXPECT, expect), (FORBID, forbid)) if value}
        if isinstance(flag := metadata.get("answerable"), str):
            metadata["answerable"] = yes_or_no(flag, "answerable", self.place, self.report)
        raw = self.row.get("filter")
        condition = take_filter(raw, self.place, self.report) if raw not in (None, "") else None
        query = Query(query_id, question, metadata=metadata, filter=condition)
        self.cases.queries.append((self.place, query))
        if expect or forbid:
            self.cases.ruled.append(self.place)
        if judged:
            self.cases.judged.append(self.place)
            for doc_id, grade in judged.items():
                self.cases.judgements.append((self.place, Judgement(query_id, doc_id, grade)))
            if (limit := self._first("within")) is not None and limit not in self.used:
                kind = "ranks that say nothing beside ids, unless `format: case_rules` makes rules"
                self.report.warn(f"{kind} of these", self.place, limit)

    def _first(self, kind: str) -> str | None:
        return next((name for name in self.how.names[kind] if self._has(name)), None)

    def _word(self, kind: str) -> str | None:
        word = self._first(kind)
        if word is not None:
            self._use(kind, word)
        return word

    def _has(self, name: str) -> bool:
        return self.row.get(name) not in (None, "", [])

    def _use(self, kind: str, word: str) -> None:
        self.used.add(word)
        words = self.cases.used.setdefault(kind, [])
        if word not in words:
            words.append(word)

    def _values(self, kind: str) -> Iterator[Any]:
        """The values under the words of a kind, one after the other."""
        for word in self.how.names[kind]:
            if not self._has(word):
                continue
            self._use(kind, word)
            value = self.row[word]
            if self.how.cells:
                value = self._listed(value, kind, word)
            if isinstance(value, str) and (separator := self.how.separator):
                value = [part.strip() for part in value.split(separator) if part.strip()]
            yield from value if isinstance(value, list) else [value]

    def _listed(self, cell: str, kind: str, word: str) -> Any:
        """The texts, rules or numbers of documents that a cell lists as JSON; else its text."""
        listed = (str, dict, int) if kind in ("ids", "forbidden ids") else (str, dict)
        with suppress(ValueError):
            held = json.loads(cell) if cell.lstrip().startswith("[") else None
            if isinstance(held, list) and all(isinstance(item, listed) for item in held):
                return held
        if _NO_LIST.fullmatch(cell):
            self.report.error(
                self.place, f"{word} is {shown(cell)}", 'a text, or a list as JSON: ["a", "b"]'
            )
            return []
        return cell

    def _ids(self) -> dict[str, int]:
        """Ids with grades; 1 where none is given."""
        ids: dict[str, int] = {}
        for value in self._values("ids"):
            pairs = value.items() if isinstance(value, Mapping) else [(value, 1)]
            named = [key for key in _IDS if isinstance(value, Mapping) and key in value]
            if named and not value.keys() - {named[0], *_GRADES}:
                pairs = [(value[named[0]], next((value[g] for g in _GRADES if g in value), 1))]
            for doc_id, given in pairs:
                grade = take_grade({"grade": given}, "grade", self.place, self.report)
                if isinstance(doc_id, bool) or not isinstance(doc_id, str | int):
                    self.report.error(self.place, f"id {shown(doc_id)}", "a text or a number")
                elif grade is not None:
                    ids[str(doc_id)] = grade
        return ids

    def _rules(self, ids: Mapping[str, int]) -> tuple[list[Any], list[Any]]:
        """Entries of ``expect`` and ``forbid``, which are checked where queries are."""
        expect = [_entry("any", value) for value in self._values("phrases")]
        either = list(self._values("one of several phrases"))
        expect += [{"any": either}] * bool(either)
        expect += [_entry("source", value) for value in self._values("sources")]
        expect += [{"id": doc_id} for doc_id, grade in ids.items() if grade > 0]
        forbid = [_entry("any", value) for value in self._values("forbidden phrases")]
        forbid += [_entry("source", value) for value in self._values("forbidden sources")]
        forbid += [_entry("id", value) for value in self._values("forbidden ids")]
        place = f"line {self.place}" if isinstance(self.place, int) else self.place
        for key, entries in ((EXPECT, expect), (FORBID, forbid)):
            if self._has(key):
                self._use(key, key)
                given, at = self.row[key], f"{place}, {key}"
                own = entries_of(given, at, self.report, in_cell=self.how.cells)
                entries.extend(entry for _, entry in own)
        limit = self._word("within") if expect else None
        if limit is not None:
            most = self.row[limit]
            most = int(most) if isinstance(most, str) and most.strip().isdecimal() else most
            expect = [_within(most, entry) for entry in expect]
        return expect, forbid


def _within(most: Any, entry: Any) -> Any:
    """The entry at that rank or before; its own limit wins."""
    entry = {"any": [entry]} if isinstance(entry, str | int | float) else entry
    return {"within": most, **entry} if isinstance(entry, Mapping) else entry


def _entry(key: str, value: Any) -> Any:
    """One entry; what is an object already says itself what it means."""
    return value if isinstance(value, Mapping) else {key: value}
