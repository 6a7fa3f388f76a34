"""Records of a duet; and the folder that it leaves, written once and completely."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from retrieval_bench.core import secrets
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.types import Verdict
from retrieval_bench.runs.arrays import TIMINGS
from retrieval_bench.runs.checksums import check_sums
from retrieval_bench.runs.records import (
    DUET,
    check_destination,
    check_version,
    new_record,
    read_json,
    record_id,
    to_json,
)
from retrieval_bench_duet.launch import Measured

SCHEMA_VERSION = 1

Word = Literal["PASS", "FAIL", "INCONCLUSIVE", "NOT MEASURED"]

WORDS: Mapping[Verdict, Word] = {
    Verdict.BETTER: "PASS",
    Verdict.EQUIVALENT: "PASS",
    Verdict.WORSE: "FAIL",
    Verdict.UNRESOLVABLE: "INCONCLUSIVE",
    Verdict.UNDECIDED: "INCONCLUSIVE",
    Verdict.MISSING: "NOT MEASURED",
    Verdict.NOT_COMPARABLE: "NOT MEASURED",
}
"""What gates say on screen."""


@dataclass(frozen=True, slots=True)
class SideFacts:
    """A side of a duet.

    Attributes:
        name: in the duet.
        retriever: its name; null where its process did not come to say it.
        place: where its code is from, in words.
        commit: of its code; null outside a repository.
        overrides: of its parameters.
        config: target and parameters; null where its process did not come to say them.
        environment: packages, thread pools and variables of its process where they differ from
            those of the record, which are those of side a.
    """

    name: str
    retriever: str | None
    place: str
    commit: str | None
    overrides: list[str]
    config: Mapping[str, Any] | None
    environment: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DuetDataset:
    """Dataset that both sides were asked.

    Attributes:
        name, fingerprint, split: of the dataset; null where no process came to say it.
        k: hits asked for.
    """

    name: str | None
    fingerprint: str | None
    split: str
    k: int


@dataclass(frozen=True, slots=True)
class GateResult(Documented):
    """One figure of side b beside side a.

    Attributes:
        gate: its name, such as "p50".
        verdict: of side b: WORSE fails, EQUIVALENT and BETTER pass.
        limit: largest acceptable slow-down, a share.
        beyond: what must be shown to be exceeded to fail, a share.
        ratio: time of b over time of a; None where nothing was measured.
        interval: of the ratio, 99 % sure on either side.
        spread: of the log ratio from launch to launch, one standard deviation.
        visible: the smallest slow-down, a share, that 9 of 10 duets with this spread say FAIL to.
        launches: pairs of processes behind it.
        confirmed: of a first sign of a slow-down, whether new launches showed it again; None where
            there was none.
        reason: why there is no verdict, or what else to know.
    """

    KEYS = "gate verdict=word limit beyond ratio interval spread visible launches confirmed reason"

    gate: str
    verdict: Verdict
    limit: float
    beyond: float
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    spread: float | None = None
    visible: float | None = None
    launches: int = 0
    confirmed: bool | None = None
    reason: str = ""

    @property
    def word(self) -> Word:
        """The verdict as shown."""
        return WORDS[self.verdict]


@dataclass(frozen=True, slots=True)
class BlockFacts(Documented):
    """Pairs of blocks under load.

    Attributes:
        rate: calls a second that are due.
        seconds: of a block.
        medians_ms: latency of a and of b in each pair.
        p99_ms: of all calls of each, for information; None where there are too few.
        unanswered: calls of each.
        refused: requests of each that failed, those that were made again included.
    """

    rate: float
    seconds: float
    medians_ms: tuple[tuple[float, float], ...]
    p99_ms: tuple[float, float] | None
    unanswered: tuple[int, int]
    refused: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class DuetResult(Documented):
    """A whole duet.

    Attributes:
        a, b: name, commit and config of each side, and what of ``environment`` is another there.
        dataset: name, fingerprint, split and k.
        verdict: WORSE when a gate fails, EQUIVALENT or BETTER when all that were judged pass.
        gates: one for each figure.
        launches: pairs of processes, or of blocks, that were measured.
        lost: one sentence for each launch that was lost.
        measured_s, total_s: seconds of measuring, and of everything.
        calls: pairs of calls.
        failed: pairs in which a call failed.
        queries: asked.
        other_rankings: queries that the two sides answer differently; None when not known.
        median_ns: of a call of either side, in nanoseconds.
        interrupted: Ctrl-C ended it.
        reason: why the verdict is what it is, where that is not plain.
        warnings: what makes the figures less than they seem.
        environment: machine, packages and variables of side a.
        stalled: calls of either side that took far longer than their query usually does there;
            None where there are too few to say.
        others, stolen: shares of the cores' time that other processes took, and other guests of the
            host; None where it is not known.
        blocks: of a duet under load; None of one call beside the other.
        one_core: launches in which both sides searched on the same core.
        launched: all times, for the record.
        query_ids: of all queries of the dataset, in the order of the numbers in ``launched``.
        folder: of the record; None where it was not saved.
        schema_version: of the document.
    """

    KEYS = (
        "schema_version verdict=word reason a b dataset gates launches one_core lost measured_s "
        "total_s calls failed stalled queries other_rankings median_ns others stolen "
        "interrupted warnings environment blocks?"
    )

    schema_version: ClassVar[int] = SCHEMA_VERSION
    a: SideFacts
    b: SideFacts
    dataset: DuetDataset
    verdict: Verdict
    gates: tuple[GateResult, ...] = ()
    launches: int = 0
    lost: tuple[str, ...] = ()
    measured_s: float = 0.0
    total_s: float = 0.0
    calls: int = 0
    failed: int = 0
    queries: int = 0
    other_rankings: int | None = None
    median_ns: tuple[float, float] | None = None
    interrupted: bool = False
    reason: str = ""
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    stalled: tuple[int, int] | None = None
    others: float | None = None
    stolen: float | None = None
    one_core: int = 0
    blocks: BlockFacts | None = None
    launched: tuple[Measured, ...] = field(default=(), repr=False, compare=False)
    query_ids: tuple[str, ...] = field(default=(), repr=False)
    folder: Path | None = None

    @property
    def word(self) -> Word:
        """The verdict as shown: PASS, FAIL, INCONCLUSIVE or NOT MEASURED."""
        return WORDS[self.verdict]


@dataclass(frozen=True, slots=True)
class PrintedDuet(Documented):
    """Document of ``duet --format json``.

    Attributes:
        result: of the duet.
    """

    KEYS = "folder?=result.folder *result"

    result: DuetResult


ROOT = Path("results") / "duets"
DOCUMENT = DUET


def check_place(out: Path | None) -> None:
    """Find out before the measurement whether a duet can be written; leaves no trace.

    Raises:
        RecordError: ``out`` is a file, already holds something, or cannot be written to.
    """
    check_destination(out, ROOT, "duet")


def write_duet(result: DuetResult, out: Path | None = None) -> Path:
    """Save the verdict and every time; gives the folder.

    Args:
        out: exactly this folder, new or empty; None = a new one under ``results/duets``.

    Raises:
        RecordError: nothing was written; disk full, read-only, or the folder is taken.
    """
    created = datetime.now(UTC)
    arrays = _arrays(result)
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays.values())).hexdigest()[:8]
    duet_id = record_id(created, str(result.b.retriever), digest=digest)
    check_place(out)
    folder = (out if out is not None else ROOT / duet_id).absolute()
    document = {"duet_id": duet_id, "created": created.isoformat(timespec="seconds")}
    document |= secrets.redact(json.loads(to_json(result.as_dict())))
    with new_record(folder, duet_id, "duet") as new:
        np.savez_compressed(new / TIMINGS, **arrays)
        (new / DOCUMENT).write_text(to_json(document) + "\n", encoding="utf-8")
    return folder


def read_duet(folder: Path) -> dict[str, Any]:
    """The document of a saved duet.

    Raises:
        RecordError: missing, cut off, or written by a later version.
    """
    document = read_json(folder / DOCUMENT, "a folder of a duet, as `retrieval-bench duet`")
    check_version(document, SCHEMA_VERSION, "duet", folder / DOCUMENT)
    check_sums(folder)
    return document


def _arrays(result: DuetResult) -> dict[str, Any]:
    """One row for each pair of calls: int64 nanoseconds of both sides, -1 where a call failed."""
    launched = result.launched
    if not launched:
        return {"wall_ns": np.zeros((2, 0), dtype=np.int64)}
    sizes = [launch.wall_ns.shape[1] for launch in launched]
    return {
        "wall_ns": np.concatenate([launch.wall_ns for launch in launched], axis=1),
        "launch": np.repeat(np.arange(len(launched), dtype=np.int32), sizes),
        "round": np.concatenate([launch.round for launch in launched]),
        "query": np.concatenate([launch.query for launch in launched]),
        "first": np.concatenate([launch.first for launch in launched]),
    }
