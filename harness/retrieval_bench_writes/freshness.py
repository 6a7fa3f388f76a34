"""The record of ``bench --writes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted, first_few
from retrieval_bench_writes.delays import FEWEST, PARTS, Shown, parts_of, refreshes
from retrieval_bench_writes.kills import Kills
from retrieval_bench_writes.probes import PREFIX
from retrieval_bench_writes.study import Kind, Seen
from retrieval_bench_writes.while_writing import WhileWriting

_BUSY = 0.9
"""Share of the time in calls from which on one caller does not keep up with its polls."""


@dataclass(frozen=True, slots=True)
class Polling(Documented):
    """What asking took.

    Attributes:
        polls: searches that were answered.
        per_second: of these.
        busy: share of the time in which a call was under way, one after the other: polls, and
            writes unless these are made beside.
        beside: writes are made while polls and searches are under way, several at once.
        late_p50_s, late_max_s: how far behind their times writes were sent; null where none was.
    """

    polls: int
    per_second: float | None
    busy: float | None
    beside: bool
    late_p50_s: float | None
    late_max_s: float | None


@dataclass(frozen=True, slots=True)
class Leg(Documented):
    """How writes showed in the list of one leg of a hybrid.

    Attributes:
        name: of the leg.
        late: its median time to visible is shown to be longer than that of another leg, even if
            that had acknowledged as soon as the write was sent: in nine of ten parts of the round.
        visible, replaced, deleted: as those of the whole.
    """

    name: str
    late: bool
    visible: Shown
    replaced: Shown
    deleted: Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness(Documented):
    """When what was written to a retriever was found.

    Attributes:
        retriever, dataset, k: what was written to and asked.
        config: hash of its target and parameters; null of an object.
        split, fingerprint: of the dataset.
        machine: a fingerprint of what changes times.
        collection: that was written into; empty where the harness made it.
        rate: writes a second that were asked for.
        count: documents that were to be added, replaced and deleted.
        limit_s: seconds after which a write counts as never shown.
        seed: of the times and the texts.
        status: partial where the user stopped it.
        visible: added documents, asked with their own text.
        replaced: documents whose text was replaced; what is `outdated` are stale versions.
        deleted: deleted documents; what is `outdated` are zombies.
        legs: the same in the list of each leg of a hybrid.
        while_writing: searches while documents were written, beside quiet ones; null where none
            were asked for.
        kills: what became of acknowledged writes when the server was killed; null likewise.
        polling: what asking took.
        warnings: what changes how the figures must be read.
    """

    schema_version: ClassVar[int] = 1

    retriever: str
    config: str | None
    dataset: str
    split: str
    fingerprint: str
    machine: str
    k: int
    collection: str
    rate: float
    count: int
    limit_s: float
    seed: int
    status: Literal["complete", "partial"]
    visible: Shown
    replaced: Shown
    deleted: Shown
    legs: tuple[Leg, ...]
    while_writing: WhileWriting | None
    kills: Kills | None
    polling: Polling
    warnings: Sequence[str]


def shown_of(seen: Seen, kind: Kind, leg: str | None = None) -> Shown:
    """Sum up how the writes of one kind showed, in one leg or all together."""
    return Shown.of([write for write in seen.writes if write.kind is kind], leg)


def legs_of(seen: Seen) -> tuple[Leg, ...]:
    """Sum up how writes showed in each leg, and which legs are late."""
    names = dict.fromkeys(name for write in seen.writes for name in write.legs)
    shown = {name: [shown_of(seen, kind, name) for kind in Kind] for name in names}
    return tuple(
        Leg(name, any(_later(seen, name, other) for other in names if other != name), *kinds)
        for name, kinds in shown.items()
    )


def _later(seen: Seen, leg: str, other: str) -> bool:
    """Whether the medians of the lower ends of one leg lie above those of the upper ends of another
    in nine of ten parts of the round, which legs that are alike do in 1 % of studies."""
    writes = [of for of in seen.writes if of.kind is Kind.ADD and {leg, other} <= of.legs.keys()]
    at = np.array([write.acknowledged_s or 0.0 for write in writes])
    low = np.array([write.legs[leg].before for write in writes])
    first, high = (
        np.array(
            [(of.before, of.after + write.took_s) for write in writes for of in [write.legs[other]]]
        )
        .reshape(-1, 2)
        .T
    )
    if refreshes(at + first, at + high) < FEWEST:
        return False
    part = parts_of(at)
    each = [(low[part == number], high[part == number]) for number in np.unique(part)]
    return sum(bool(np.median(lows) > np.median(highs)) for lows, highs in each) >= PARTS - 1


def polling_of(seen: Seen, beside: bool = False) -> Polling:
    """Sum up what asking took, with writes beside it or in turn with it."""
    late = [write.late_s for write in seen.writes]
    return Polling(
        seen.polled,
        seen.polled / seen.seconds if seen.seconds else None,
        seen.busy_s / seen.seconds if seen.seconds else None,
        beside,
        float(np.median(late)) if late else None,
        max(late, default=None),
    )


def warnings_of(seen: Seen, polling: Polling) -> list[str]:
    """List what changes how the figures must be read."""
    warnings = [f"{counted(times, 'call')} failed: {text}" for text, times in seen.problems.items()]
    if polling.busy is not None and polling.busy > _BUSY:
        warnings.append(
            f"Calls took {polling.busy:.0%} of the time: polls came later than planned, and the "
            "engine worked for them. Ask for fewer writes a second."
        )
    if seen.left:
        warnings.append(
            f"{counted(len(seen.left), 'probe')} could not be deleted and may still be there: "
            f"delete the ids that begin with {PREFIX}, such as {first_few(sorted(seen.left))}."
        )
    return warnings
