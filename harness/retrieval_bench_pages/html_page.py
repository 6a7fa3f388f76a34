"""The whole page: one HTML file that loads nothing, and opens with the answer.

The parts of each dataset stand in one order: quality against time, the systems, their differences,
times and costs, slices, single queries. What could not be made is said where it would have been.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.core.errors import counted
from retrieval_bench.core.installed.version import VERSION
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.reports.tables.run_facts import corpus, without_folders
from retrieval_bench.reports.tables.understand.comparison import board_tables, queries_of
from retrieval_bench.runs.records import to_json
from retrieval_bench.runs.run import Run, relative_folder
from retrieval_bench_pages.analysis import Analysis
from retrieval_bench_pages.answer import answers_html, headline
from retrieval_bench_pages.drawings import Figures, Planned, planned_of
from retrieval_bench_pages.html import notes_html, whole
from retrieval_bench_pages.markup import Markup, el, joined, own_direction
from retrieval_bench_pages.provenance import Source, rules_table, runs_table
from retrieval_bench_pages.sections import Beside, GroupPage, Part, beside_parts
from retrieval_bench_pictures.vega import NARROW, WIDTH

LARGEST = 1_900_000
"""Bytes of the page; the explorer of each dataset gets an equal share of what is left."""

_MANIFESTS = 100_000
"""Bytes of manifests: of some fifteen runs."""

_LEAST = 60_000
"""Bytes of an explorer, however large the rest of the page is."""

_WITHOUT_TEXTS = "warnings left out with --no-text, for they may quote one; summary.json has them"


def report_page(
    analysis: Analysis,
    beside: Sequence[Beside] = (),
    *,
    title: str = "",
    with_text: bool = True,
    source: Source | None = None,
    no_pictures: Callable[[str], None] | None = None,
) -> str:
    """The page of ``analysis``. Equal input gives equal text: no time is read, no file.

    Args:
        beside: sections on something that is no run.
        title: instead of the names of the datasets.
        with_text: False = no text of a query and no title or text of a document anywhere, nor
            what may quote one.
        source: the saved runs behind it, so that the page can be checked and made again; None
            where they were not saved.
        no_pictures: is told why none could be drawn; the page says only that there are none.
    """
    analysis = _with_runs(analysis, _placeless if with_text else _silent)
    comparison, answers = analysis.comparison, analysis.recommendations
    numbered = [(f"d{at}", group) for at, group in enumerate(analysis.groups, start=1)]
    planned = [plan for id_, group in numbered for plan in planned_of(id_, group)]
    for at, section in enumerate(beside, start=1):
        wide, narrow = map(section.picture, (WIDTH, NARROW))
        planned.append(Planned(f"load{at}", section.label, wide, narrow))
    figures = Figures(planned)
    if figures.why_not and no_pictures is not None:
        no_pictures(figures.why_not)
    groups = [
        GroupPage(comparison, group, id_, figures, with_text=with_text) for id_, group in numbered
    ]
    name = title or _title(comparison)
    several = len(groups) > 1
    heading = "The answer" if several else headline(answers[0])
    parts = [Part("answer", heading, answers_html(comparison, answers))]
    if several and (boards := board_tables(comparison)):
        parts.append(Part("datasets", "All datasets", joined(map(whole, boards))))
    for page in groups:
        parts += page.parts(several=several)
    parts += beside_parts(beside, figures, with_text=with_text)
    parts.append(Part("rules", "What the figures rest on", _rules(comparison)))
    parts.append(Part("runs", "Runs and manifests", _runs(comparison)))
    page_text = _page(name, comparison, parts, source)
    explorers = [page for page in groups if page.explorer is not None]
    for at, page in enumerate(explorers):
        # What an earlier one did not need is there for the others.
        room = (LARGEST - len(page_text.encode())) // (len(explorers) - at)
        page_text = page_text.replace(page.place, page.explorer_html(max(_LEAST, room)))
    return page_text


def _rules(comparison: Comparison) -> Markup:
    return joined(
        [
            whole(rules_table(comparison), sortable=False),
            notes_html(
                ["Nothing is judged, so no system is better or worse than another."]
                if not comparison.judged
                else [
                    "Better, worse: p after Holm's correction is below the level.",
                    "Equivalent: two one-sided tests show a difference within the margin.",
                    "Can't tell: neither is shown; it does not mean equal.",
                    "The recommendation follows from the verdicts on the first metric.",
                ]
            ),
        ]
    )


def _runs(comparison: Comparison) -> Markup:
    """The runs, and as many of their manifests as :data:`_MANIFESTS` allows."""
    blocks = [whole(runs_table(comparison))]
    surroundings: dict[str, str] = {}
    room, left_out = _MANIFESTS, 0
    for group in comparison.groups:
        for name, run in zip(group.names, group.runs, strict=True):
            label = f"{name} {on_dataset(group.dataset)}"
            text = _manifest(run, label, surroundings)
            room -= len(text.encode(errors="replace"))
            if room < 0:
                left_out += 1
                continue
            summary = el("summary", "Manifest of ", own_direction(label))
            blocks.append(el("details", summary, el("pre", text, dir="ltr")))
    if left_out:
        message = f"{counted(left_out, 'manifest')} left out, to keep the page small: each lies in "
        blocks.append(el("p", f"{message}the folder of its run.", class_="aside"))
    return joined(blocks)


def _manifest(run: Run, label: str, surroundings: dict[str, str]) -> str:
    """The manifest as JSON; an environment that an earlier one has as well is only named."""
    manifest: dict[str, Any] = dict(run.manifest)
    environment = json.dumps(manifest.get("environment"), sort_keys=True, default=str)
    first = surroundings.setdefault(environment, label)
    if first != label:
        manifest["environment"] = f"as of {first}"
    return to_json(manifest)


def _silent(run: Run) -> Run:
    """A run whose sentences cannot quote a text; how many warnings there were is told."""
    n = len(run.summary.warnings)
    notes = [f"{n:,} {_WITHOUT_TEXTS}"] if n else []
    return _placeless(replace(run, summary=run.summary.replace(health=[], warnings=notes)))


def _placeless(run: Run) -> Run:
    """A run that does not say where anything lies outside of the folder that the reader is in."""
    return replace(
        run,
        summary=run.summary.with_texts(without_folders),
        manifest=without_folders(run.manifest),
        folder=None if run.folder is None else Path(without_folders(relative_folder(run))),
    )


def _with_runs(analysis: Analysis, changed: Callable[[Run], Run]) -> Analysis:
    groups = tuple(
        replace(
            group,
            group=replace(
                group.group.rewritten(without_folders, with_texts=changed is not _silent),
                runs=tuple(map(changed, group.group.runs)),
            ),
            without_dataset=without_folders(group.without_dataset),
        )
        for group in analysis.groups
    )
    comparison = replace(analysis.comparison, groups=tuple(group.group for group in groups))
    return Analysis(comparison, groups)


def _title(comparison: Comparison) -> str:
    datasets = [group.dataset for group in comparison.groups]
    shown = ", ".join(datasets[:3]) + (f" and {len(datasets) - 3} more" * (len(datasets) > 3))
    of = "dataset" if len(datasets) == 1 else f"{len(datasets)} datasets:"
    return f"{counted(len(comparison.names), 'system')} on {of} {shown}"


def _page(name: str, comparison: Comparison, parts: Sequence[Part], source: Source | None) -> str:
    style, script = (_file(file) for file in ("style.css", "script.js"))
    sections = [
        el(
            "section",
            el("h2", part.whole_heading, id=f"{part.id}-h", dir="auto"),
            part.content,
            id=part.id,
            aria_labelledby=f"{part.id}-h",
        )
        for part in parts
    ]
    head = el(
        "head",
        el("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("link", rel="icon", href="data:,"),
        el("title", name),
        Markup(f"<style>{style}</style>"),
    )
    contents = _contents(parts)
    body = el(
        "body",
        el("a", "Skip to the answer", href="#answer", class_="skip"),
        el("header", el("h1", name, dir="auto"), el("p", *_about(comparison))),
        el("nav", contents, aria_label="Contents", class_="side"),
        el(
            "details",
            el("summary", "Contents"),
            el("nav", contents, aria_label="Contents"),
            class_="menu",
        ),
        el("main", *sections),
        el("footer", *_foot(comparison, source)),
        "" if source is None else el("script", Markup(source.to_html()), **source.ATTRIBUTES),
        Markup(f"<script>{script}</script>"),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def _foot(comparison: Comparison, source: Source | None) -> list[Markup]:
    """Say when and where it was measured, and how to make and check the page."""
    machines = dict.fromkeys(filter(None, map(_machine, comparison.runs)))
    lines = [
        f"Measured{_days(comparison)} on {'; '.join(machines) or 'some machine'}, one client.",
        f"Made by retrieval-bench {VERSION}. This file loads nothing.",
    ]
    blocks = [el("p", line) for line in lines]
    if source is not None:
        again = el("code", source.command, dir="ltr")
        blocks.append(el("p", "Make it again: ", again))
        check = el("code", "retrieval-bench report --verify FILE", dir="ltr")
        blocks.append(el("p", "Check the figures against the runs: ", check))
    return blocks


def _machine(run: Run) -> str:
    machine = run.manifest.get("environment", {}).get("machine", {})
    facts = [
        machine.get("processor"),
        f"{machine['usable_cores']} cores" if "usable_cores" in machine else None,
        machine.get("python"),
    ]
    return ", ".join(filter(None, facts))


def _contents(parts: Sequence[Part]) -> Markup:
    """Links to all parts, those of one dataset behind its name."""
    items = []
    for dataset, some in groupby(parts, key=lambda part: part.dataset):
        links = [el("a", part.heading, href=f"#{part.id}") for part in some]
        if dataset:
            items.append(el("li", el("bdi", dataset), ": ", joined(links, " ")))
        else:
            items += [el("li", link) for link in links]
    return el("ol", *items)


def _about(comparison: Comparison) -> list[str]:
    datasets = [
        f"{group.dataset}: {queries_of(group)}, {corpus(group.runs[0].summary.dataset)}"
        for group in comparison.groups
    ]
    runs = counted(len(comparison.runs), "run")
    return [f"{runs}; ", "; ".join(datasets), ", measured" * bool(_days(comparison)),
            _days(comparison), "."]  # fmt: skip


def _days(comparison: Comparison) -> str:
    made = sorted(str(run.manifest["created"])[:10] for run in comparison.runs
                  if "created" in run.manifest)  # fmt: skip
    days = list(dict.fromkeys([made[0], made[-1]])) if made else []
    return f" {' to '.join(days)}" if days else ""


def _policy(script: str) -> str:
    """Only this page's own script may run, and nothing may be loaded."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
