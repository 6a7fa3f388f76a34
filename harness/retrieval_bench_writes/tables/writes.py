"""The table of ``bench --writes``: the answer in a sentence, and when each kind of write showed."""

from __future__ import annotations

import math

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import three_digits
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.cells import COUNT, Content
from retrieval_bench.reports.render.table import AnyNote, Table, warning
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench_duet.decision import ALPHA
from retrieval_bench_writes.delays import LEVELS, Delay, Shown
from retrieval_bench_writes.freshness import Freshness
from retrieval_bench_writes.kills import Kills
from retrieval_bench_writes.while_writing import WhileWriting

_KINDS = (
    ("added: found", "visible", False),
    ("updated: complete", "replaced", True),
    ("deleted: gone", "deleted", True),
)
"""Row, field, and whether answers can hold what was there before."""


def writes_tables(fresh: Freshness) -> list[Table]:
    """One table: a row for each kind of write, and what must be known to read it."""
    rows = []
    for name, of, outdated in _KINDS:
        for head, shown in ((name, fresh), *((f"  in {leg.name}", leg) for leg in fresh.legs)):
            rows.append(_row(head, getattr(shown, of), fresh.limit_s, outdated=outdated))
    levels = [f"p{level:g}" for level in LEVELS]
    columns = ("", "writes", *levels, f"not in {span(fresh.limit_s)}", "old answers")
    lead = [*map(warning, fresh.warnings)]
    tables = [Table(answer(fresh), columns, rows, notes=_notes(fresh), lead=lead)]
    if fresh.while_writing is not None:
        tables.append(_searches(fresh.while_writing, fresh.polling.beside))
    return [*tables, *([] if fresh.kills is None else [_killed(fresh.kills)])]


def _searches(blocks: WhileWriting, beside: bool) -> Table:
    """Searches while writing beside quiet ones."""
    rows: list[list[Content]] = []
    for name, of in (("quiet", blocks.quiet), ("writing", blocks.writing)):
        times = [_ms(time) for time in (of.p50_ms, of.p95_ms, of.p99_ms)]
        answers = [f"{getattr(one, name):.3f}" for one in blocks.answers]
        rows.append([name, COUNT(of.calls), COUNT(of.failed), *times, *answers])
    heads = [f"p{level:g} ms" for level in LEVELS] + [answer.metric for answer in blocks.answers]
    where = "beside" if beside else "between"
    how = (
        f"{blocks.pairs} pairs of blocks of {span(blocks.seconds)} in turn, the same queries in "
        f"both; {counted(blocks.writes, 'write')} {where} searches. A pair is a launch of a duet."
    )
    notes: list[AnyNote] = [how]
    notes += [
        f"{one.metric} while writing: {one.difference:+.3f} [{one.ci95[0]:+.3f}, "
        f"{one.ci95[1]:+.3f}]; truth is what was acknowledged when the query was due."
        for one in blocks.answers
        if one.ci95 is not None
    ]
    if blocks.settled_s is not None:
        most = blocks.settled_most_s
        end = "" if most is None else f", {span(most)} at most"
        notes.append(f"Settled {span(blocks.settled_s)} after the last write in the median{end}.")
    if blocks.unsettled:
        notes.append(f"{counted(blocks.unsettled, 'block')} did not settle within the limit.")
    return Table(_slower(blocks), ("", "calls", "failed", *heads), rows, notes=notes)


def _slower(blocks: WhileWriting) -> str:
    """Whether searches take longer while writing, in one sentence."""
    failed = blocks.writing.failed
    before = f"{blocks.quiet.failed:,} in quiet blocks"
    more = f"; {failed:,} of them failed, {before}" if failed else ""
    gates = sorted(blocks.gates, key=lambda item: item.verdict is not blocks.verdict)
    gate = next((item for item in gates if item.ratio is not None), None)
    if gate is None or gate.ratio is None or gate.interval is None:
        return f"While writing: too few answered queries to say whether searches take longer{more}"
    low, high = (f"{end - 1:+.1%}" for end in gate.interval)
    said = {
        Verdict.WORSE: "searches take longer",
        Verdict.EQUIVALENT: f"searches do not take {gate.limit:.0%} longer",
        Verdict.BETTER: "searches are faster",
    }.get(blocks.verdict, "it is not decided whether searches take longer")
    ends = f"[{low}, {high}], a {1 - 2 * ALPHA:.0%} interval"
    return f"While writing {said}: {gate.gate} {gate.ratio - 1:+.1%} {ends}{more}"


def _killed(kills: Kills) -> Table:
    """Acknowledged writes after the server was killed."""
    rows: list[list[Content]] = [
        ["added: lost", COUNT(kills.additions), COUNT(kills.lost)],
        ["deleted: back", COUNT(kills.deletions), COUNT(kills.back)],
    ]
    gone, tried = kills.lost + kills.back, kills.undoing.n
    title = f"Killed {counted(kills.kills, 'time')}"
    if tried < kills.kills:
        title += f", {counted(tried, 'time')} after an acknowledged write"
    if tried:
        undid = f"{kills.undoing.count:,} undid {counted(gone, 'acknowledged write')}"
        of = " after one" if tried < kills.kills else ""
        share = _percent(kills.undoing.at_most)
        most = f"at most {share} of kills{of} undo one (one-sided 95 %)"
        title += f": {undid if gone else 'no acknowledged write undone'}; {most}"
    notes: list[AnyNote] = [
        "What was under way when the server was killed counts as neither.",
        f"The first answer after a kill came within {span(kills.restart_s)}.",
    ]
    return Table(title, ("", "acknowledged", "undone"), rows, notes=notes)


def _ms(value: float | None) -> str:
    return "-" if value is None else three_digits(value)


def answer(fresh: Freshness) -> str:
    """What was found, in one sentence."""
    limit, visible = fresh.limit_s, fresh.visible
    name = f"{fresh.retriever} {on_dataset(fresh.dataset)}"
    partial = " (PARTIAL)" if fresh.status == "partial" else ""
    if not visible.n:
        return f"{name}: no write was polled{partial}"
    median, tail = visible.at(50.0), visible.at(95.0)
    if median.reason:
        said = f"not enough writes to say when they show ({median.reason})"
    else:
        said = f"visible {_when(median, limit)} in the median"
        if not tail.reason:
            said += f", 95 % {_when(tail, limit, within=True)}"
    never = visible.never
    if never.count:
        said += f", {never.count:,} of {never.n:,} never within {span(limit)}"
    ends = [
        _outdated(fresh.deleted, "zombie", "deletion", "gone", limit),
        _outdated(fresh.replaced, "stale version", "update", "complete", limit),
    ]
    return "; ".join(filter(None, (f"{name}: {said}", late_legs(fresh), *ends))) + partial


def late_legs(fresh: Freshness) -> str:
    """Name the legs that are late, and whether the whole waits for them; empty where none is."""
    late = [leg for leg in fresh.legs if leg.late]
    if not late:
        return ""
    medians = {leg.name: leg.visible.at(50.0) for leg in fresh.legs}
    each = ", ".join(
        f"{leg.name} {'late: ' if leg.late else ''}{_when(medians[leg.name], fresh.limit_s)}"
        for leg in sorted(fresh.legs, key=lambda leg: not leg.late)
    )
    firsts = [medians[leg.name].at_most_s for leg in fresh.legs if not leg.late]
    first = min((high for high in firsts if high is not None), default=math.inf)
    buried = (fresh.visible.at(50.0).at_least_s or 0.0) > first
    return each + ("; fusion shows nothing before" if buried else "")


def _outdated(shown: Shown, thing: str, write: str, done: str, limit: float) -> str:
    """Say whether answers held what was deleted or replaced, and for how long; the median is of all
    writes, and says so where some of them were never outdated."""
    share = shown.outdated
    if not share.n:
        return ""
    of = counted(share.n, write)
    if not share.count:
        return f"no {thing} in {of}, at most {_percent(share.at_most)} (one-sided 95 %)"
    median = shown.at(50.0)
    what = "gone" if share.count == share.n else f"{write}s {done}"
    gone = "" if median.reason else f", {what} {_when(median, limit)} in the median"
    stays = f", {shown.never.count:,} not within {span(limit)}" if shown.never.count else ""
    return f"{counted(share.count, thing)} in {of}{gone}{stays}"


def _when(delay: Delay, limit: float, *, within: bool = False) -> str:
    """A delay in words: one figure where both ends agree, else the two."""
    low, high = delay.at_least_s, delay.at_most_s
    if low is None:
        return f"unknown ({delay.reason})"
    if high is None:
        return f"not before {span(low)}"
    ends = ""
    if delay.at_least_ci95 is not None:
        by = delay.surely_by
        upper = span(limit, over=True) if by is None else span(by)
        ends = f" [{span(delay.surely_after)}, {upper}]"
    if delay.agrees:
        return f"{'within' if within else 'after'} {span((low + high) / 2)}{ends}"
    return (
        f"within {span(high)}{ends}" if within or not low else f"after {span(low)} to {span(high)}"
    )


def _row(name: str, shown: Shown, limit: float, *, outdated: bool) -> list[Content]:
    undecided = shown.n > shown.never.n
    return [
        name,
        COUNT(shown.n),
        *(_cell(delay, limit, undecided) for delay in shown.percentiles),
        COUNT(shown.never.count),
        COUNT(shown.outdated.count) if outdated else "",
    ]


def _cell(delay: Delay, limit: float, undecided: bool) -> str:
    """Between which two times a percentile lies; one figure where they agree. Of
    what is undecided no more is known than its last poll."""
    low, high = delay.at_least_s, delay.at_most_s
    if delay.reason or low is None:
        return "-"
    if high is None:
        return span(low, over=True) if undecided and low < limit else "never"
    if delay.agrees:
        return span((low + high) / 2)
    return f"{span(low)} to {span(high)}" if low else f"up to {span(high)}"


def span(seconds: float, *, over: bool = False) -> str:
    """Seconds with their unit and three digits that count; below one, milliseconds."""
    text = f"{three_digits(seconds)} s" if seconds >= 1 else f"{three_digits(1e3 * seconds)} ms"
    return f"over {text}" if over else text


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def _notes(fresh: Freshness) -> list[AnyNote]:
    """Tell how it was measured, and which figures there are not."""
    kinds = (fresh.visible, fresh.replaced, fresh.deleted)
    polling, never = fresh.polling, fresh.visible.never
    where = f"into {fresh.collection}" if fresh.collection else "into an index of its own"
    how = (
        f"Writes went {where} at Poisson times, {fresh.rate:g} a second; each was asked for with "
        "its own text when it was acknowledged, after 1 ms, and then in steps of a tenth. A figure "
        "lies between the last poll without it and the first with it; two figures are these two."
    )
    notes: list[AnyNote] = [how]
    if any(shown.outdated.count for shown in kinds):
        notes.append(
            "Old answers: polls that were sent after the acknowledgement and still got the version "
            "before (stale), or what was deleted (zombies)."
        )
    if never.count and never.ci95 is not None:
        low, high = map(_percent, never.ci95)
        notes.append(
            f"Never found: {_percent(never.count / never.n)} [{low}, {high}] of added documents; "
            "they stand in the last ranks of all percentiles."
        )
    for of, said in (("unacknowledged", "not acknowledged"), ("unanswered", "without an answer")):
        if missing := sum(getattr(shown, of) for shown in kinds):
            notes.append(f"{counted(missing, 'write')} {said}: in no figure.")
    for (name, _, _), shown in zip(_KINDS, kinds, strict=True):
        if shown.back.count:
            notes.append(
                f"{name}: {shown.back.count:,} of {shown.back.n:,} showed, and did not when they "
                "were asked for again."
            )
    reasons = (delay.reason for shown in kinds if shown.n for delay in shown.percentiles)
    if few := dict.fromkeys(filter(None, reasons)):
        notes.append(f"No figure where there is a dash: {'; '.join(few)}.")
    levels = [delay.unsure for delay in fresh.visible.percentiles if delay.unsure]
    if levels:
        notes.append(f"No interval: {'; '.join(levels)}. More writes, or fewer a second, have one.")
    if polling.busy is not None and polling.late_p50_s is not None:
        how = "were made beside them" if polling.beside else "took turns with them"
        notes.append(
            f"{polling.per_second or 0:,.0f} polls a second; calls took {polling.busy:.0%} of the "
            f"time. Writes {how}, and were sent {span(polling.late_p50_s)} late in the median, "
            f"{span(polling.late_max_s or 0)} at most."
        )
    return notes
