"""The sections on one dataset and on loads, and what stands where something could not be made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.table import NoteKind, Table, kind_of
from retrieval_bench.reports.render.words import metric_label, on_dataset
from retrieval_bench.reports.tables.understand.comparison import (
    PAIRS_SHOWN,
    cost_table,
    differences_table,
    how_measured,
    kinds_tables,
    quality_table,
)
from retrieval_bench.reports.tables.understand.speed import speed_tables
from retrieval_bench.stats.percentiles import NEEDS
from retrieval_bench_explain.tables.diff import explanation_tables
from retrieval_bench_explain.tables.ledger import ledger_table
from retrieval_bench_explain.tables.slice import tables_of
from retrieval_bench_pages.analysis import GroupAnalysis
from retrieval_bench_pages.choices import choices_html
from retrieval_bench_pages.drawings import FRONT, Figures
from retrieval_bench_pages.explorer import STATIC, Chosen, Explorer, shown_of
from retrieval_bench_pages.html import notes_html, whole
from retrieval_bench_pages.markup import Markup, el, joined, own_direction
from retrieval_bench_pictures.vega import Spec

PAIRS_OPEN = 15
"""Of six systems all are to be seen at once, of more those of the best one."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page."""

    id: str
    heading: str
    content: Markup
    dataset: str = ""
    """Where there are several: the one it is about."""

    @property
    def whole_heading(self) -> str:
        return f"{self.heading} {on_dataset(self.dataset)}" if self.dataset else self.heading


class GroupPage:
    """Sections of the page on one dataset."""

    def __init__(
        self,
        comparison: Comparison,
        analysis: GroupAnalysis,
        id_: str,
        figures: Figures,
        *,
        with_text: bool,
    ) -> None:
        self._comparison, self._analysis, self._id = comparison, analysis, id_
        self._figures = figures
        self._group, queries = analysis.group, analysis.queries
        self.explorer = None if queries is None else Explorer(queries, with_text)
        self.place = f"<!--explorer of {id_}-->"

    def parts(self, *, several: bool) -> Iterator[Part]:
        """The sections, headed by the dataset where there is more than one."""
        group, dataset = self._group, self._group.dataset if several else ""
        sections: tuple[tuple[str, str, Markup], ...]
        if not group.judged:
            alike = joined(map(whole, service("show how alike runs answer")(group)))
            kinds = joined([*map(whole, kinds_tables(group)), *self._how()])
            sections = (
                ("alike", "How alike the systems answer", alike),
                ("systems", "What the systems are", kinds),
                ("times", "Speed, memory, disk", self._times()),
            )
        else:
            sections = (
                ("front", "Quality and time", self._front()),
                ("systems", "The systems beside each other", self._systems()),
                ("differences", "Is the difference real?", self._differences()),
                ("times", "Speed, memory, disk", self._times()),
                ("legs", "Hybrids and their legs", self._legs()),
                ("parts", "What each part buys", self._parts()),
                ("slices", "Kinds of queries", self._slices()),
                ("queries", "Single queries", self._queries()),
            )
        for name, heading, content in sections:
            if content:
                yield Part(f"{self._id}-{name}", heading, content, dataset)

    def explorer_html(self, budget: int) -> Markup:
        """The explorer in at most ``budget`` bytes, unless that is less than its least."""
        explorer = self.explorer
        if explorer is None:
            return Markup()
        first = self._still(explorer, explorer.chosen(budget))
        chosen = explorer.chosen(budget - len(first.encode(errors="replace")))
        still = self._still(explorer, chosen)
        script = el("script", Markup(explorer.document(chosen)), type="application/json")
        shown = shown_of(len(chosen.queries), len(explorer.data.query_ids))
        return el(
            "div",
            el("p", shown, class_="shown", hidden=True),
            el("div", still, class_="still"),
            script,
            class_="explorer",
            id=f"{self._id}-explorer",
        )

    @staticmethod
    def _still(explorer: Explorer, chosen: Chosen) -> Markup:
        """Show the part that is there without the script."""
        a, b = (explorer.data.names[at] for at in explorer.data.pair)
        return joined(
            [
                el(
                    "p",
                    f"The {min(STATIC, len(chosen.queries))} of "
                    f"{counted(len(explorer.data.query_ids), 'query')} on which ",
                    own_direction(b), " and ", own_direction(a),
                    f" differ most in {explorer.data.metric} (difference: ", own_direction(b),
                    " minus ", own_direction(a), "). Searching and sorting need JavaScript.",
                ),
                explorer.without_script(chosen),
            ]
        )  # fmt: skip

    def _front(self) -> Markup:
        if self._figures.why_not:
            return el("p", "This page was made without pictures.")
        figures = dict(self._figures.of(f"{self._id}-front"))
        if FRONT not in figures:
            return el("p", self._untimed())
        return joined(
            [
                *figures.values(),
                el(
                    "p",
                    "Up is better, left is faster. Boxes may overlap though a difference is real: "
                    "the verdicts below compare query by query, and call by call.",
                    class_="aside",
                ),
            ]
        )

    def _untimed(self) -> str:
        calls = max(run.summary.latency_ms.n for run in self._group.runs)
        replayed = all(run.summary.latency_ms.mean is None for run in self._group.runs)
        if replayed or not calls:
            return "No system has a time: these are rankings that were made elsewhere."
        least = NEEDS[50.0].printed
        return f"Too few calls for a median: {counted(calls, 'call')}, it takes {least}."

    def _how(self) -> list[Markup]:
        notes = how_measured(self._group)
        quiet = [note for note in notes if kind_of(note) is not NoteKind.WARNING]
        how = el("details", el("summary", "How this was measured"), notes_html(quiet))
        return [how] if quiet else []

    def _systems(self) -> Markup:
        table = quality_table(self._comparison, self._group)
        # Warnings stand with the answer.
        legends = [note for note in table.notes if kind_of(note) is not NoteKind.WARNING]
        return joined(
            [
                choices_html(self._analysis, self._comparison.baseline),
                whole(replace(table, notes=legends)),
                *map(whole, kinds_tables(self._group)),
                *self._how(),
                *dict(self._figures.of(f"{self._id}-systems")).values(),
            ]
        )

    def _differences(self) -> Markup:
        group = self._group
        if not group.deltas:
            return el("p", *(f"{text}. " for text in group.warnings))
        first, *others = (
            whole(differences_table(self._comparison, group, metric, PAIRS_OPEN))
            for metric in group.metrics
        )
        what = [f"The same for {', '.join(map(metric_label, group.metrics[1:]))}"] * bool(others)
        if PAIRS_OPEN < len(group.of(group.metrics[0])) <= PAIRS_SHOWN:
            every = differences_table(self._comparison, group, group.metrics[0])
            what.insert(0, f"All pairs in {metric_label(group.metrics[0])}")
            others.insert(0, whole(every))
        more = [el("details", el("summary", "; ".join(what)), *others)]
        pictures = dict(self._figures.of(f"{self._id}-differences")).values()
        return joined([first, *pictures, *(more if others else [])])

    def _times(self) -> Markup:
        tables = [
            whole(cost_table(self._group)),
            *(whole(table, sortable=False) for table in speed_tables(self._group)),
        ]
        shown = [
            figure if at == 0 else el("details", el("summary", name), figure)
            for at, (name, figure) in enumerate(self._figures.of(f"{self._id}-times"))
        ]
        return joined([*tables, *shown])

    def _legs(self) -> Markup:
        """Show the gain of each hybrid over its legs, and how far a perfect one would get."""
        queries, blocks = self._analysis.queries, []
        if queries is not None:
            for explanation in queries.explained:
                answer, means, *groups = explanation_tables(explanation)
                summary = el(
                    "summary", f"Queries by leg and fusion of {explanation.systems[0].name}"
                )
                more = el("details", summary, *map(whole, groups))
                blocks += [whole(answer), whole(means), more]
        return joined(blocks)

    def _parts(self) -> Markup:
        """Show the gain and the cost of the parts of each system, as far as the lists that were
        kept say it."""
        tables = [whole(ledger_table(ledger)) for ledger in self._analysis.ledgers]
        figures = [figure for _, figure in self._figures.of(f"{self._id}-parts")]
        both = zip_longest(tables, figures, fillvalue=Markup())
        return joined([block for blocks in both for block in blocks])

    def _slices(self) -> Markup:
        if self._analysis.without_dataset:
            return el("p", f"No slices: {self._analysis.without_dataset}")
        if not self._analysis.slicings:
            return el("p", "The queries have no tags, source or lengths that tell them apart.")
        blocks = []
        for slicing in self._analysis.slicings:
            means, *others = tables_of(slicing)
            # Their notes explain the table that is seen.
            notes = [*means.notes, *(note for table in others for note in table.notes)]
            differences = [whole(replace(table, notes=())) for table in others]
            blocks.append(whole(replace(means, notes=notes)))
            if differences:
                summary = el("summary", f"Differences from {slicing.baseline} by {slicing.what}")
                blocks.append(el("details", summary, *differences))
        return joined(blocks)

    def _queries(self) -> Markup:
        if self._analysis.without_dataset:
            return el("p", f"No single queries: {self._analysis.without_dataset}")
        if self.explorer is None:
            return el("p", "No two systems here can be compared query by query.")
        return Markup(self.place)


class Beside(Protocol):
    """A section on something that is no run, such as a load; a package brings it."""

    @property
    def heading(self) -> str:
        """Its heading."""

    @property
    def folder(self) -> Path | None:
        """The folder of its record, None where it was not saved."""

    @property
    def label(self) -> str:
        """What its picture shows."""

    def picture(self, width: int) -> Spec:
        """The picture of it."""

    def tables(self, *, with_text: bool) -> list[Table]:
        """Its tables, without what may quote a query unless ``with_text``."""


def beside_parts(
    sections: Sequence[Beside], figures: Figures, *, with_text: bool
) -> Iterator[Part]:
    """A part for each section that is no dataset: its picture and its tables.

    Args:
        with_text: False leaves out warnings, which may quote a query.
    """
    for at, section in enumerate(sections, start=1):
        picture = [figure for _, figure in figures.of(f"load{at}")]
        if figures.why_not:
            picture = []
        content = [*picture, *map(whole, section.tables(with_text=with_text))]
        yield Part(f"load{at}", section.heading, joined(content))
