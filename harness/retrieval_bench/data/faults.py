"""All faults of a dataset, collected while it is read and told in one message.

Readers never stop at the first fault: they report it here and go on. Each file keeps its first
faults as text and the exact count of the rest, so that a corpus with a million broken lines is
told in a page and hides no fault of another file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrieval_bench.core import secrets
from retrieval_bench.core.errors import DataError

LISTED = 50
"""Faults of one file that are listed; the rest is counted."""

EXAMPLES = 3
"""Places that a warning names, and those of faults with the same words; the rest is counted."""

_REMEMBERED = 100_000
_WIDTH = 60

Place = int | str | None
"""Where in a file: a line number from 1, a path such as ``data[3].title``, None for the whole."""


def shown(value: Any) -> str:
    """``value`` quoted for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}... ({len(text):,} characters)"


class FileFaults:
    """Faults of one file, or of one named part of a dataset that lies in memory."""

    def __init__(self, label: str, owner: Faults) -> None:
        self.label = label
        self.count = 0
        self.listed: list[str] = []
        self._same: Counter[str] = Counter()
        self._known: set[int] = set()
        self._owner = owner

    def error(self, place: Place, fault: str, accepted: str = "") -> None:
        """Report what prevents a run: where, what was found, what is accepted."""
        words = f"{fault}; accepted: {accepted}" if accepted else fault
        text = f"{self.at(place)}: {words}"
        if (key := hash(text)) in self._known:  # a file that is read twice tells its fault once
            return
        self.count += 1
        if len(self._known) < _REMEMBERED:
            self._known.add(key)
        if not str(place)[-1:].isdigit():  # not one line or row of many
            self.listed += [text] * (len(self.listed) < LISTED)
        elif words in self._same or len(self.listed) < LISTED:
            self._same[words] += 1
            if self._same[words] <= EXAMPLES and len(self.listed) < LISTED:
                self.listed.append(text)

    @property
    def told(self) -> list[str]:
        """The faults that are listed, how many more of them have the same words, and how many
        other ones there are."""
        again = {words: n - EXAMPLES for words, n in self._same.items() if n > EXAMPLES}
        same = [f"{self.label}: the same {n:,} more times: {words}" for words, n in again.items()]
        rest = self.count - len(self.listed) - sum(again.values())
        return self.listed + same + [f"... and {rest:,} more in {self.label}"] * (rest > 0)

    def warn(self, kind: str, place: Place, detail: str = "") -> None:
        """Count what does not prevent a run, under ``kind``, a plural such as "empty texts"."""
        self._owner.count_warning(kind, self.at(place) + (f" {detail}" if detail else ""))

    def repeats(
        self, what: str, key: str, place: Place, seen: dict[str, Any], once: str = ""
    ) -> bool:
        """Whether ``key`` is among those ``seen``, which is an error; else it is from now on, at
        this place."""
        if key in seen:
            self.error(place, f"{what} {shown(key)} again, first at {self.at(seen[key])}", once)
            return True
        seen[key] = place
        return False

    def at(self, place: Place) -> str:
        """``place`` with the name of the file."""
        if place is None:
            return self.label
        return f"{self.label}:{place}" if isinstance(place, int) else f"{self.label}: {place}"


class Faults:
    """Faults and warnings of one dataset."""

    def __init__(self) -> None:
        self._files: dict[str, FileFaults] = {}
        self._warned: dict[str, list[str]] = {}
        self._warning_counts: dict[str, int] = {}
        self._notes: list[str] = []

    def of(self, path: Path | str) -> FileFaults:
        """Return where the faults of ``path`` are reported."""
        label = str(path)
        return self._files.setdefault(label, FileFaults(label, self))

    def note(self, warning: str) -> None:
        """A warning about the dataset as a whole."""
        self._notes.append(warning)

    def count_warning(self, kind: str, example: str) -> None:
        """One more warning of ``kind``; the first few examples are kept."""
        self._warning_counts[kind] = self._warning_counts.get(kind, 0) + 1
        examples = self._warned.setdefault(kind, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    @property
    def count(self) -> int:
        """The exact number of faults."""
        return sum(file.count for file in self._files.values())

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind of warning, with its count and first examples."""
        counted = [
            f"{kind}: {count:,} ({', '.join(self._warned[kind])}"
            f"{', ...' if count > len(self._warned[kind]) else ''})"
            for kind, count in self._warning_counts.items()
        ]
        return tuple(secrets.redact(text) for text in [*self._notes, *counted])

    def raise_if_any(self, what: str, where: Path | str) -> None:
        """Raise one :class:`DataError` with all faults, if there are any."""
        faulty = [file for file in self._files.values() if file.count]
        if not faulty:
            return
        messages: list[str] = []
        for file in faulty:
            messages += file.told
        number = f"{self.count:,} fault" + ("" if self.count == 1 else "s")
        raise DataError(
            f"{what} has {number}",
            where=secrets.redact(str(where)),
            fix="correct the lines named below" if self.count > 1 else "correct it",
            faults=[secrets.redact(text) for text in messages],
        )


@contextmanager
def reporting(what: str, where: Path | str) -> Iterator[Faults]:
    """Collect the faults of a block; at its end they are raised, all in one error."""
    faults = Faults()
    yield faults
    faults.raise_if_any(what, where)
