"""The files of baselines: sorted, one query a line, replaced at once or not at all.

Each ends with a checksum of its content. A file that was cut off, merged by git line by line, or
changed by hand is refused, never half believed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from pydantic import ValidationError

from retrieval_bench.core.errors import RecordError
from retrieval_bench.core.plugins import describe_faults
from retrieval_bench.runs.records import slug
from retrieval_bench_regress.baseline import SCHEMA_VERSION, LatencyBaseline, QualityBaseline

FOLDER = Path("results") / "baselines"
"""Below the folder where the user stands."""

CHECKSUM = "checksum"

_DIGITS = 16
Kind = TypeVar("Kind", QualityBaseline, LatencyBaseline)


class NoBaselineError(RecordError):
    """There is no such file."""


class DamagedBaselineError(RecordError):
    """It cannot be read, and making it anew mends that."""


class OtherBaselineError(RecordError):
    """It is the baseline of another retriever or dataset, whose names make the same file name."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places of the baselines of one retriever on one dataset.

    Attributes:
        folder: of all baselines.
        machine: fingerprint of this one.
    """

    folder: Path
    retriever: str
    dataset: str
    machine: str

    @property
    def quality(self) -> Path:
        """Holds on any machine."""
        return self.folder / self._name

    @property
    def latency(self) -> Path:
        """Holds on this machine."""
        return self.folder / self.machine / self._name

    @property
    def _name(self) -> str:
        return f"{_safe(self.retriever)}-{_safe(self.dataset)}.json"

    def elsewhere(self) -> list[str]:
        """Fingerprints of the other machines that have a latency baseline."""
        return sorted(
            path.parent.name
            for path in self.folder.glob(f"*/{self._name}")
            if path.parent.name != self.machine
        )

    def read_quality(self) -> QualityBaseline:
        """Raises:
        RecordError: none there (:class:`NoBaselineError`), damaged, newer, or of another name.
        """
        return self._checked(_read(self.quality, QualityBaseline), self.quality)

    def read_latency(self) -> LatencyBaseline:
        """Raises:
        RecordError: none there (:class:`NoBaselineError`), damaged, newer, or of another name or
            machine.
        """
        latency = self._checked(_read(self.latency, LatencyBaseline), self.latency)
        if latency.fingerprint != self.machine:
            raise RecordError(
                f"a baseline of machine {latency.fingerprint} in the folder of {self.machine}",
                where=str(self.latency),
                fix="take it away: times of another machine say nothing here",
            )
        return latency

    def _checked(self, baseline: Kind, path: Path) -> Kind:
        names = (baseline.retriever.name, baseline.dataset.name)
        asked = (self.retriever, self.dataset)
        if any(_composed(a) != _composed(b) for a, b in zip(names, asked, strict=True)):
            raise OtherBaselineError(
                f"the baseline of {names[0]!r} on {names[1]!r}",
                where=str(path),
                accepted=f"that of {self.retriever!r} on {self.dataset!r}",
                fix="give one of the two another name, or another folder with --baselines",
            )
        return baseline


def write(baselines: Sequence[tuple[Path, QualityBaseline | LatencyBaseline]]) -> None:
    """Put every baseline in its place; where one cannot be written out, all old ones stay.

    Raises:
        RecordError: disk full, read-only; nothing is left of what was tried.
    """
    waiting: list[tuple[Path, Path]] = []
    replaced: list[Path] = []
    try:
        for path, baseline in baselines:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Processes in containers may share a folder and a number.
            part = path.with_name(f".{token_hex(8)}.part")
            waiting.append((part, path))
            with part.open("x", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
                file.write(to_text(baseline))
                file.flush()
                os.fsync(file.fileno())
        for part, path in waiting:
            part.replace(path)
            replaced.append(path)
    except OSError as problem:
        raise _cannot_write(path, problem, replaced) from None
    finally:
        for part, _ in waiting:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def to_text(baseline: QualityBaseline | LatencyBaseline) -> str:
    """JSON with sorted keys. Numbers are the shortest that read back as the same ones."""
    content = baseline.model_dump(mode="json")
    if not content.get("clusters"):
        content.pop("clusters", None)
    return _laid_out({**content, CHECKSUM: _checksum(content)}) + "\n"


def _laid_out(document: Mapping[str, Any]) -> str:
    """One key a line, and below it one entry a line, so that a diff shows single queries."""
    entries = []
    for key, value in sorted(document.items()):
        if isinstance(value, dict) and value:
            rows = (f"    {_json(name)}: {_json(item)}" for name, item in sorted(value.items()))
            text = "{\n" + ",\n".join(rows) + "\n  }"
        else:
            text = _json(value)
        entries.append(f"  {_json(key)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _read(path: Path, kind: type[Kind]) -> Kind:
    try:
        content = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except FileNotFoundError:
        raise NoBaselineError("no baseline", where=str(path)) from None
    except OSError as problem:
        raise _damaged(path, problem.strerror or str(problem)) from None
    except (ValueError, RecursionError) as problem:
        raise _damaged(path, f"not JSON: {problem}") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if type(version) is not int:
        raise _damaged(path, "no schema_version in it")
    if version > SCHEMA_VERSION:
        raise RecordError(
            f"baseline of schema version {version}",
            where=str(path),
            accepted=f"versions up to {SCHEMA_VERSION}",
            fix="read it with the version of retrieval-bench that wrote it, or a newer one",
        )
    try:
        fits = content.pop(CHECKSUM, None) == _checksum(content)
    except ValueError:  # a number that JSON has no word for
        fits = False
    if not fits:
        raise _damaged(path, "its content does not fit its checksum: cut off, merged or edited")
    try:
        return kind.model_validate(content)
    except ValidationError as problem:
        raise _damaged(path, "; ".join(describe_faults(problem))) from None


def _damaged(path: Path, how: str) -> DamagedBaselineError:
    return DamagedBaselineError(
        f"unreadable baseline: {how}",
        where=str(path),
        fix="take the file from git again, or make it anew",
    )


def _safe(name: str) -> str:
    """``name`` as a part of a file name; what had to be changed is told apart by a hash."""
    made, name = slug(name), _composed(name)
    if made == name:
        return made
    return f"{made}-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:6]}"


def _composed(name: str) -> str:
    """A name from a file system that takes letters apart is the same name."""
    return unicodedata.normalize("NFC", name)


def _cannot_write(path: Path, problem: OSError, replaced: Sequence[Path]) -> RecordError:
    full = problem.errno in (errno.ENOSPC, errno.EDQUOT)
    do = "free some space" if full else "name a folder that you may write to with --baselines"
    after = "all baselines are as they were"
    if replaced:
        after = f"replaced was {', '.join(map(str, replaced))}, and this one is as it was"
    return RecordError(
        f"cannot write the baseline: {problem.strerror or problem}",
        where=str(path),
        accepted="a folder with free space that you may write to",
        fix=f"{do}; {after}",
    )
