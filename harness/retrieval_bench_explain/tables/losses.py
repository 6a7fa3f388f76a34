"""Tables of losses: what is served beside an exact search, then step by step."""

from __future__ import annotations

from dataclasses import replace

from retrieval_bench.comparison.claims import unless_open
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import short_ms, signed
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.cells import (
    SHORT_DIFFERENCE,
    SHORT_MS,
    SHORT_QUALITY,
    Cell,
    Content,
    Form,
)
from retrieval_bench.reports.render.table import AnyNote, Table, result, warning
from retrieval_bench.reports.render.words import metric_label, on_dataset, unit_note
from retrieval_bench.stats.intervals import levels_text
from retrieval_bench.stats.recall import TAIL
from retrieval_bench_explain.losses import Losses, LossStep, Seen

MEGABYTES = Form(lambda n: short_ms(n / 1e6))


def losses_table(losses: Losses) -> Table:
    """The answer, and a row for each step that differs or that nobody can tell apart."""
    lead, *others = map(metric_label, losses.metrics)
    rows = [_row(step, losses) for step in losses.steps if step.state is not Seen.SAME]
    rules: tuple[int, ...] = ()
    if losses.whole:
        rules = (len(rows),)
        served = replace(losses.measured[-1], name="all of it", what="", differences=losses.whole)
        rows.append(_row(served, losses))
    where = f"{losses.retriever} {on_dataset(losses.dataset)}: {counted(losses.n, 'query')}"
    return Table(
        f"{where}, k = {losses.k}; from an exact search to what is served",
        [
            *("step", lead, "effect", *(f"effect on {name}" for name in others)),
            *(f"with {TAIL:g}", "p50 ms", "MB"),
        ],
        rows,
        rules=rules,
        notes=_notes(losses),
        lead=answer(losses),
    )


def answer(losses: Losses) -> list[AnyNote]:
    """Say how much is lost, where, and what for."""
    name, metric = losses.retriever, metric_label(losses.metrics[0])
    if not losses.whole:
        return [result(f"{name} is exact: no step of it that can be told apart differs from that.")]
    whole, first, last = losses.whole[0], losses.measured[0], losses.measured[-1]
    exact, served = (f"{step.means[str(losses.metrics[0])] or 0:.3f}" for step in (first, last))
    beside = f"an exact search: {metric} {served} and {exact}"
    size = f"{abs(whole.difference or 0):.3f}"
    reached, search = f"{name} reaches {metric} {served}", f"an exact search ({exact})"
    said = {
        Verdict.WORSE: f"{reached}, {size} below {search}.",
        Verdict.BETTER: f"{reached}, {size} above {search}.",
        Verdict.EQUIVALENT: f"{name} is as good as {beside} differ by less than {losses.margin:g}.",
    }
    open_ = f"These queries can't tell {name} from {beside}."
    claimed = said.get(whole.verdict, open_)
    first_line = unless_open("explain --by loss", claimed, losses.warnings)
    if first_line != claimed:
        return [result(first_line)]
    notes: list[AnyNote] = [result(claimed), result(_by_step(losses))]
    notes += [result(f"It finds {last.found.text(losses.k)}.")] if last.found else []
    if first.index_bytes and last.index_bytes and first.p50_ms and last.p50_ms:
        bytes_ = [MEGABYTES.text(step.index_bytes or 0) for step in (last, first)]
        notes.append(
            result(
                f"The index takes {bytes_[0]} in place of {bytes_[1]} MB, a call "
                f"{short_ms(last.p50_ms)} in place of {short_ms(first.p50_ms)} ms (p50)."
            )
        )
    return notes


def _by_step(losses: Losses) -> str:
    """Return which steps lose, gain, cost nothing, or cannot be judged."""
    groups: dict[str, list[str]] = {}
    for step in losses.measured[1:]:
        delta = step.differences[0]
        words = {
            Verdict.WORSE: "Lost by",
            Verdict.BETTER: "Gained by",
            Verdict.EQUIVALENT: f"Shown to cost less than {losses.margin:g}:",
        }.get(delta.verdict, "Can't tell with these queries:")
        sized = f"{step.name} ({signed(delta.difference, 3)})"
        if not step.changed:
            words, sized = "No ranking changes by", step.name
        groups.setdefault(words, []).append(sized)
    order = sorted(groups, key=lambda words: (words[0] not in "LG", words))
    return " ".join(f"{words} {', '.join(groups[words])}." for words in order)


def _row(step: LossStep, losses: Losses) -> list[Content]:
    name = f"{step.name}: {step.what}" if step.what and step.state is Seen.MEASURED else step.name
    deltas = step.differences or [None] * len(losses.metrics)
    return [
        "exact" if step.name == "exact" else name,
        SHORT_QUALITY(step.means.get(str(losses.metrics[0]))),
        *(SHORT_DIFFERENCE(d.difference, d.ci) if d else Cell(None) for d in deltas),
        SHORT_QUALITY(step.found.tail if step.found else None),
        SHORT_MS(step.p50_ms),
        MEGABYTES(step.index_bytes),
    ]


def _notes(losses: Losses) -> list[AnyNote]:
    notes: list[AnyNote] = [*map(warning, losses.warnings)]
    messages = [
        f"{step.name}: cannot be told apart: {step.what}"
        for step in losses.steps
        if step.state is Seen.UNKNOWN
    ]
    levels = [d.level for step in losses.steps for d in step.differences if d.level]
    same = [step.name for step in losses.steps if step.state is Seen.SAME]
    messages += [f"as in an exact search: {', '.join(same)}"] if same else []
    effect = (
        "Effect: with this step and all above it, minus without it; effects add up to the last "
        f"row. Brackets: paired randomisation test inverted, {levels_text(levels)}, each by itself."
    )
    return [
        *notes,
        "; ".join([f"exact: {losses.steps[0].what}", *messages]) + ".",
        *([effect] if levels else []),
        f"With {TAIL:g}: the share of queries that find {TAIL:g} of the exact top {losses.k}.",
        *unit_note(losses.whole[0].clusters if losses.whole else None),
    ]
