"""The diff explorer: what stood where for every query, as data for the script, and as HTML for the
queries with the largest differences, for readers without it.

A system is a place in ``Explorer.names``, a document a number; ids and titles are written once. The
script lets a reader choose any two systems, so that values and rankings are kept by system and not
by pair.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import signed
from retrieval_bench.metrics.judged import NONE
from retrieval_bench.reports.render.text import cut
from retrieval_bench.runs.dataset import titles_of
from retrieval_bench.runs.run import Run
from retrieval_bench_explain.kept_lists import FATES, fate
from retrieval_bench_pages.analysis import QueryValues
from retrieval_bench_pages.markup import Markup, el, harmless, joined

STATIC = 20
"""Queries that are there without the script."""

HITS_SHOWN = 10
"""Hits of a ranking that are seen at once."""

_TEXT_CELLS = 400
_TITLE_CELLS = 110

_TITLE_BYTES = 90
"""What a title is taken to need, with a little to spare."""


class Chosen(NamedTuple):
    """Queries that have room on the page.

    Attributes:
        queries: as the script gets them.
        ids, titles: of documents, by the numbers that stand for them in ``queries``; a title is
            empty where there is none.
    """

    queries: list[dict[str, Any]]
    ids: list[str]
    titles: list[str]


@dataclass(frozen=True)
class Explorer:
    """The queries of a dataset as the page shows them.

    Attributes:
        with_text: False = no query text and no title.
    """

    data: QueryValues
    with_text: bool = True

    @property
    def k(self) -> int:
        """Cut-off of the rankings."""
        return self.data.runs[0].summary.k

    @cached_property
    def _texts(self) -> dict[str, str]:
        return (
            {query.id: query.text for query in self.data.dataset.queries} if self.with_text else {}
        )

    @cached_property
    def _rows(self) -> list[dict[str, int]]:
        return [{q: at for at, q in enumerate(run.rankings.query_ids)} for run in self.data.runs]

    def query(self, at: int, number: dict[str, int]) -> dict[str, Any]:
        """One query as the script gets it; documents that are not in ``number`` yet join it."""
        query_id = self.data.query_ids[at]
        judged = self.data.dataset.qrels.get(query_id, {})
        relevant = [doc for doc, grade in judged.items() if grade >= 1]
        rankings, legs = [], {}
        for system, run in enumerate(self.data.runs):
            row = self._rows[system][query_id]
            ids = run.rankings.doc_ids
            hits = [ids[i] for i in run.rankings.ranking[row, : self.k].tolist() if i != NONE]
            rankings.append(hits)
            if run.rankings.leg_lists:
                legs[system] = _legs(run, row, hits, relevant, self.k)
        shown = dict.fromkeys(doc for hits in rankings for doc in hits)
        for doc in (*shown, *relevant):
            number.setdefault(doc, len(number))
        entry: dict[str, Any] = {"i": harmless(query_id)}
        if self.with_text:
            entry["t"] = _cut(self._texts.get(query_id, ""), _TEXT_CELLS)
        return entry | {
            "v": [round(value, 4) for value in self.data.values[at].tolist()],
            "p": [int(partition.member[at]) for partition in self.data.partitions],
            "r": [[number[doc] for doc in hits] for hits in rankings],
            "j": {
                number[doc]: grade for doc, grade in judged.items() if grade >= 1 or doc in shown
            },
            "l": {
                system: {number[doc]: ranks for doc, ranks in of_system.items()}
                for system, of_system in legs.items()
            },
        }

    def chosen(self, budget: int) -> Chosen:
        """The queries that fit into ``budget`` bytes with the documents they show, those first
        that tell most."""
        number: dict[str, int] = {}
        queries: list[dict[str, Any]] = []
        before = 0
        per_title = _TITLE_BYTES if self.with_text else 0
        for at in self.data.order():
            query = self.query(at, number)
            new = list(number)[before:]
            budget -= len(json_in_html(query).encode(errors="replace")) + 1
            budget -= sum(len(doc.encode(errors="replace")) + 5 + per_title for doc in new)
            if budget < 0:
                break
            before = len(number)
            queries.append(query)
        ids = list(number)[:before]
        titles = titles_of(self.data.dataset, set(ids)) if self.with_text else {}
        return Chosen(queries, ids, [_cut(titles.get(doc, ""), _TITLE_CELLS) for doc in ids])

    def document(self, chosen: Chosen) -> str:
        """The data for the script, as JSON that can stand in HTML."""
        return json_in_html(
            {
                "metric": str(self.data.metric),
                "k": self.k,
                "systems": list(map(harmless, self.data.names)),
                "pair": list(self.data.pair),
                "fates": list(FATES),
                "legs": [list(map(harmless, run.rankings.leg_lists)) for run in self.data.runs],
                "groups": [
                    {"of": self.data.names.index(p.of), "labels": list(map(harmless, p.labels))}
                    for p in self.data.partitions
                ],
                "docs": [
                    [harmless(doc), title] if title else [harmless(doc)]
                    for doc, title in zip(chosen.ids, chosen.titles, strict=True)
                ],
                "queries": chosen.queries,
            }
        )

    def without_script(self, chosen: Chosen) -> Markup:
        """The queries with the largest differences of the pair, to open and read."""
        a, b = self.data.pair
        order = sorted(
            chosen.queries,
            key=lambda query: (-abs(round(query["v"][b] - query["v"][a], 4)), query["i"]),
        )
        return joined(self._entry(query, chosen) for query in order[:STATIC])

    def _entry(self, query: dict[str, Any], chosen: Chosen) -> Markup:
        a, b = self.data.pair
        head = [
            el("b", signed(query["v"][b] - query["v"][a]), class_="gain"),
            el("bdi", query["i"], class_="id"),
        ]
        if query.get("t"):
            head.append(el("span", query["t"], dir="auto"))
        groups = [
            part.labels[at]
            for part, at in zip(self.data.partitions, query["p"], strict=True)
            if part.of in (self.data.names[a], self.data.names[b])
        ]
        return el(
            "details",
            el("summary", joined(head, " ")),
            *([el("p", "; ".join(groups), class_="groups")] if groups else []),
            el("div", *(self._ranking(query, system, chosen) for system in (b, a)), class_="pair"),
            class_="query",
        )

    def _ranking(self, query: dict[str, Any], system: int, chosen: Chosen) -> Markup:
        hits = query["r"][system]
        items = [self._hit(query, system, doc, chosen) for doc in hits[:HITS_SHOWN]]
        relevant = [doc for doc, grade in query["j"].items() if grade >= 1]
        parts = [
            el("h3", el("bdi", self.data.names[system]), f" {query['v'][system]:.4f}"),
            el("ol", *items) if items else el("p", "This system returned nothing."),
        ]
        below = [(hits.index(doc) + 1, doc) for doc in relevant if doc in hits[HITS_SHOWN:]]
        missed = [doc for doc in relevant if doc not in hits]
        if below:
            lines = (self._hit(query, system, doc, chosen, rank) for rank, doc in sorted(below))
            parts += [el("p", "Relevant documents further below:"), el("ul", *lines)]
        if missed:
            lines = (self._hit(query, system, doc, chosen) for doc in missed)
            parts += [
                el("p", f"Relevant documents that are not among its {self.k}:"),
                el("ul", *lines),
            ]
        return el("div", *parts)

    def _hit(
        self, query: dict[str, Any], system: int, doc: int, chosen: Chosen, rank: int = 0
    ) -> Markup:
        facts = [f"rank\u00a0{rank}"] if rank else []
        grade = query["j"].get(doc)
        if grade is not None:
            facts.append(f"grade\u00a0{grade}")
        ranks = query["l"].get(system, {}).get(doc)
        if ranks is not None:
            legs = list(self.data.runs[system].rankings.leg_lists)
            facts += [f"{leg}\u00a0{rank or '–'}" for leg, rank in zip(legs, ranks, strict=False)]
            if len(ranks) > len(legs):
                facts.append(FATES[ranks[-1]])
        title = chosen.titles[doc]
        return el(
            "li",
            *([el("span", title, dir="auto"), " "] if title else []),
            el("small", el("bdi", chosen.ids[doc]), *(f" · {fact}" for fact in facts)),
            class_="relevant" if (grade or 0) >= 1 else None,
        )


def json_in_html(document: Any) -> str:
    """``document`` as JSON that no HTML parser takes for anything else."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def shown_of(shown: int, n: int) -> str:
    """Return how many queries there are to look at."""
    if shown == n:
        return f"All {counted(n, 'query')}."
    return f"{shown:,} of {counted(n, 'query')}: those with the largest differences."


def _legs(
    run: Run, row: int, hits: Sequence[str], relevant: Sequence[str], k: int
) -> dict[str, list[int]]:
    """Document -> its rank in each leg (0 = not there), then, of a relevant one, what fusion did
    to it, as a place in ``FATES``."""
    ids = run.rankings.doc_ids
    ranks = [
        {ids[i]: rank for rank, i in enumerate(lists[row].tolist(), start=1) if i != NONE}
        for lists in run.rankings.leg_lists.values()
    ]
    legs = {}
    for doc in dict.fromkeys([*hits, *relevant]):
        places = [of_leg.get(doc, 0) for of_leg in ranks]
        fused = hits.index(doc) + 1 if doc in hits else 0
        end = [FATES.index(fate(fused, places, k))] if doc in relevant else []
        legs[doc] = [*places, *end]
    return legs


def _cut(text: str, cells: int) -> str:
    """Cut a text as :func:`cut`, and at once where it is plain ASCII."""
    line = " ".join(text.split())
    if not (line.isascii() and line.isprintable()):
        return cut(line, cells)
    return line if len(line) <= cells else line[: cells - 1].rstrip() + "…"
