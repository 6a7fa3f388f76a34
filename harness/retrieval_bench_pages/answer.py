"""The first screen: what to take and why, the figures behind it, and what warns of it."""

from __future__ import annotations

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison, Recommendation
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import BELOW_CLOCK, about, times_text
from retrieval_bench.data.needs_judgements import TO_JUDGE
from retrieval_bench.reports.render.cells import SHORT_MS, SHORT_QUALITY, Cell
from retrieval_bench.reports.render.table import result, warning
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.reports.tables.brief import warnings_of
from retrieval_bench.reports.tables.run_facts import below_clock
from retrieval_bench_pages.html import notes_html
from retrieval_bench_pages.markup import Markup, el, joined, own_direction

_NAMED = 3
"""So many leaders, and so many other systems in the third tile, are named."""


def headline(answer: Recommendation) -> str:
    """Name the system to take, in a few words."""
    if not answer.leaders:
        return "No recommendation"
    if len(answer.leaders) > _NAMED:
        return f"{len(answer.leaders)} systems may be the best"
    return f"Recommended: {' or '.join(answer.leaders)}"


def answers_html(comparison: Comparison, answers: tuple[Recommendation, ...]) -> Markup:
    """The answer on each dataset, behind its name where there are several."""
    several = len(answers) > 1
    blocks = []
    for at, (group, answer) in enumerate(zip(comparison.groups, answers, strict=True), start=1):
        if several:
            name = el("h3", own_direction(group.dataset), ": ", headline(answer), class_="headline")
            blocks.append(name)
        blocks.append(_answer(group, answer, f"d{at}"))
    return joined(blocks)


def _answer(group: DatasetComparison, answer: Recommendation, id_: str) -> Markup:
    links = [
        el("a", text, href=f"#{id_}-{name}")
        for name, text in (
            ("front", "quality and time"),
            ("differences", "differences"),
            ("alike", "how alike they answer"),
            ("times", "speed and cost"),
        )
        if name == "times" or (name == "alike") != group.judged
    ]
    partial = [
        warning(f"{name} was interrupted: what it finished is here, and no more.")
        for name, run in zip(group.names, group.runs, strict=True)
        if run.interrupted
    ]
    saved = [result(group.sentence)] if group.sentence else []
    reasons = [el("li", reason, dir="auto") for reason in answer.reasons]
    return joined(
        [
            el("p", _why(answer), class_="answer", dir="auto"),
            _tiles(group, answer.leaders[0]) if answer.leaders else "",
            el("ul", *reasons, class_="reasons") if reasons else "",
            notes_html([*saved, *partial, *warnings_of(group)]),
            el("p", meaning(group), class_="aside"),
            el("p", "Evidence: ", joined(links, ", "), ".", class_="aside"),
        ]
    )


def _why(answer: Recommendation) -> str:
    """The sentence without what the headline says."""
    text = answer.sentence.removeprefix(f"Use {answer.system}: ")
    return text[:1].upper() + text[1:] if text != answer.sentence else text


def meaning(group: DatasetComparison) -> str:
    """Explain the first metric for a reader who does not know it; where nothing is judged, say what
    is left out."""
    if not group.judged:
        return (
            "Nothing is judged here, so the page leaves out quality, differences in it, kinds of "
            "queries and single queries. Judge what the systems found, and make it again: "
            f"{TO_JUDGE}"
        )
    metric = group.metrics[0]
    n = group.runs[0].evaluation.means[0].n
    over = f"The figures are means over {counted(n, 'query')}"
    if not metric.meaning:
        return f"{over}, in {metric_label(metric)}."
    return f"{metric_label(metric)} tells {metric.meaning}. {over}."


def _tiles(group: DatasetComparison, name: str) -> Markup:
    """Quality of ``name``, its p50, and how fast the others are beside it."""
    metric = group.metrics[0]
    run = group.runs[group.names.index(name)]
    mean, p50 = run.evaluation.mean(metric), run.summary.latency_ms.at("p50")
    of = f" of {name}" if len(group.names) > 1 else ""
    tiles = [_tile(f"{metric_label(metric)}{of}", SHORT_QUALITY(mean.mean, mean.ci95))]
    if below_clock(run):
        tiles.append(_tile(f"p50{of}", Cell(BELOW_CLOCK)))
    elif p50.value is not None:
        time = SHORT_MS(p50.value, p50.ci95)
        tiles.append(_tile(f"p50{of}", time, " ms"))
    if beside := _beside(group, name):
        lines = [el("span", line, dir="auto") for line in beside]
        tiles.append(el("div", el("dt", "Speed of the others"), el("dd", *lines, class_="lines")))
    return el("dl", *tiles, class_="tiles")


def _tile(label: str, cell: Cell, unit: str = "") -> Markup:
    more = el("dd", f"95 % interval {cell.more}{unit}", class_="detail") if cell.more else ""
    return el("div", el("dt", label, dir="auto"), el("dd", f"{cell.text}{unit}"), more)


def _beside(group: DatasetComparison, name: str) -> list[str]:
    """Return how much faster or slower the others are, the fastest first; none where no time is
    known."""
    known = [(group.speed_up(other, name), other) for other in group.names if other != name]
    ratios = sorted(
        ((speed_up.times, other) for speed_up, other in known if speed_up), reverse=True
    )
    lines = [
        f"{other}: {_faster(times)}"
        if group.is_faster(other, name) or group.is_faster(name, other)
        else f"{other}: no difference shown"
        for times, other in ratios[:_NAMED]
    ]
    if len(ratios) > _NAMED:
        lines.append(f"{len(ratios) - _NAMED:,} more below")
    return lines


def _faster(times: float) -> str:
    many, word = (times, "faster") if times >= 1 else (1 / times, "slower")
    return f"{about(round(many))}x {word}" if many >= 10 else f"{times_text(many)} {word}"
