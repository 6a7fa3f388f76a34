"""Rules: what one hit must have to fill a slot, or to be forbidden."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from retrieval_bench.core.errors import near_names
from retrieval_bench.core.types import Query
from retrieval_bench.data.faults import FileFaults, Place, shown
from retrieval_bench_rules import matching
from retrieval_bench_rules.matching import Text

EXPECT, FORBID = "expect", "forbid"
"""Keys of a query's metadata that hold rules."""

KEYS = ("any", "all", "matches", "source", "id", "within", "words")
CONDITIONS = KEYS[:5]

EARLY, SLOT, FORBIDDEN = 2, 1, -1
"""Grades of slots: one with ``within``, any other one, and what must not come."""

_LIMIT = re.compile(r" within ([0-9]+)$")

_ACCEPTED = (
    "a phrase, or an object such as {any: [PHRASE, PHRASE]}, {source: GLOB}, {id: ID, within: 3}"
)


@dataclass(frozen=True)
class Rule:
    """Conditions that hold for one and the same hit.

    Attributes:
        any: one of these phrases is in its text.
        all: all of these are.
        matches: a regular expression that its text has, whatever the case.
        source: a glob that fits its source.
        id: its id.
        within: the last rank that counts; None = every one.
        words: phrases stand as words of their own.
        forbidden: such a hit must not come.
    """

    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    matches: str = ""
    source: str = ""
    id: str = ""
    within: int | None = None
    words: bool = False
    forbidden: bool = False

    @cached_property
    def label(self) -> str:
        """Its name: all it says, on one line, and no two rules have the same."""
        parts = ["not"] * self.forbidden
        parts += ["any " + " or ".join(map(_quoted, self.any))] * bool(self.any)
        parts += ["all " + " and ".join(map(_quoted, self.all))] * bool(self.all)
        for name in ("matches", "source", "id"):
            if value := getattr(self, name):
                parts.append(f"{name} {_quoted(value)}")
        parts += ["as words"] * self.words
        parts += [f"within {self.within}"] * (self.within is not None)
        return " ".join(parts)

    @property
    def grade(self) -> int:
        """Of its slot."""
        if self.forbidden:
            return FORBIDDEN
        return SLOT if self.within is None else EARLY

    @property
    def reads_text(self) -> bool:
        """True if it cannot be decided without the text of a hit."""
        return bool(self.any or self.all or self.matches)

    @cached_property
    def _phrases(self) -> tuple[list[str], list[str]]:
        return list(map(matching.folded, self.any)), list(map(matching.folded, self.all))

    @property
    def never(self) -> bool:
        """True if no text can meet it, since white space in texts is one blank."""
        return bool(self.matches) and matching.meets_no_text(self._patterns[0])

    @cached_property
    def _id(self) -> str:
        return unicodedata.normalize("NFC", self.id)

    @cached_property
    def _patterns(self) -> tuple[Any, Any]:
        regex = matching.compiled(self.matches) if self.matches else None
        return regex, matching.glob(self.source) if self.source else None

    def holds(self, doc_id: str, source: str, text: Text | None) -> bool:
        """Say whether a hit meets it, at whatever rank.

        Args:
            text: None where it is not known: then no phrase is in it.
        """
        if self.id and self._id != unicodedata.normalize("NFC", doc_id):
            return False
        regex, glob = self._patterns
        if glob is not None and not matching.fits(source, glob):
            return False
        if not self.reads_text:
            return True
        if text is None:
            return False
        some, every = self._phrases
        has = matching.has
        return (
            (not some or any(has(text.folded, phrase, words=self.words) for phrase in some))
            and all(has(text.folded, phrase, words=self.words) for phrase in every)
            and (regex is None or regex.search(text.plain) is not None)
        )


def is_forbidden(label: str) -> bool:
    """Say whether the rule of this name forbids."""
    return label.startswith("not ")


def in_time(label: str, ranks: Iterable[int]) -> tuple[int, ...]:
    """Those of ``ranks`` at which the rule of this name counts."""
    limit = _LIMIT.search(label)
    return tuple(ranks) if limit is None else tuple(r for r in ranks if r <= int(limit[1]))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def has_rules(query: Query) -> bool:
    """Say whether a query has any."""
    return any(query.metadata.get(key) not in (None, "", []) for key in (EXPECT, FORBID))


def rules_of(query: Query, report: FileFaults) -> tuple[Rule, ...]:
    """The rules of a query; what is wrong with them is reported."""
    place = f"query {shown(query.id)}"
    named: dict[str, Rule] = {}
    for key in (EXPECT, FORBID):
        for at, entry in entries_of(query.metadata.get(key), f"{place}, {key}", report):
            rule = parse_rule(entry, at, report, forbidden=key == FORBID)
            if rule is not None and rule.label in named:
                report.error(at, f"{rule.label} twice", "each entry once")
            elif rule is not None:
                named[rule.label] = rule
    if named and not query.answerable:
        report.error(place, "it is flagged unanswerable, and has rules", "one of the two")
    return tuple(named.values())


def entries_of(
    given: Any, at: str, report: FileFaults, *, in_cell: bool = True
) -> Iterator[tuple[str, Any]]:
    """The entries under a key, each with its place; in a cell they are written as JSON."""
    if in_cell and isinstance(given, str) and given.lstrip().startswith(("[", "{")):
        accepted = "a list of entries, as JSON: texts and objects"
        try:
            held = json.loads(given)
        except ValueError:
            report.error(at, f"{shown(given)} is no JSON", accepted)
            return
        if isinstance(held, list) and not all(isinstance(item, str | Mapping) for item in held):
            report.error(at, shown(given), accepted)
            return
        given = held
    if given in (None, "", []):
        return
    for number, entry in enumerate(given if isinstance(given, list) else [given], start=1):
        yield f"{at}, entry {number}", entry


@dataclass
class _Read:
    """One entry while it is read."""

    given: Mapping[str, Any]
    place: Place
    report: FileFaults
    faulty: bool = field(default=False)

    def fault(self, what: str, accepted: str) -> None:
        self.faulty = True
        self.report.error(self.place, what, accepted)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.given.get(key, ())
        texts = value if isinstance(value, list | tuple) else [value]
        known = [self._text(key, text) for text in texts]
        if key in self.given and not texts:
            self.fault(f"{key} is empty", "at least one phrase")
        return tuple(dict.fromkeys(text for text in known if text))

    def text(self, key: str) -> str:
        return self._text(key, self.given[key]) if key in self.given else ""

    def _text(self, key: str, value: Any) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            self.fault(f"{key} is {shown(value)}", "a text that is not blank")
            return ""
        return value


def parse_rule(
    given: Any, place: Place, report: FileFaults, *, forbidden: bool = False
) -> Rule | None:
    """The rule that an entry of ``expect`` or ``forbid`` says; None after a fault."""
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        given = {"any": [given]}
    if not isinstance(given, Mapping):
        report.error(place, shown(given), _ACCEPTED)
        return None
    read = _Read(given, place, report)
    for key in given:
        if key not in KEYS:
            read.fault(f"unknown key {shown(key)}", near_names(str(key), KEYS))
    if not any(key in given for key in CONDITIONS):
        read.fault("it asks nothing of a hit", f"one or more of {', '.join(CONDITIONS)}")
    within, words = given.get("within"), given.get("words", False)
    if within is not None and (not isinstance(within, int) or within < 1 or within is True):
        read.fault(f"within is {shown(within)}", "a rank, from 1")
    if not isinstance(words, bool) or (words and not {"any", "all"} & set(given)):
        read.fault(f"words is {shown(words)}", "true or false, beside any or all")
    phrases = read.texts("any"), read.texts("all")
    others = read.text("matches"), read.text("source"), read.text("id")
    if read.faulty:
        return None
    rule = Rule(*phrases, *others, within, words, forbidden)
    try:
        _ = rule._patterns
    except ValueError as problem:
        report.error(
            place,
            f"matches {shown(rule.matches)}: {problem}",
            "a pattern of Python's re; `a++` and (?>...) are not tried twice",
        )
        return None
    return rule
