"""``report --verify``: the figures of a page, worked out once more from the runs that it names.

The runs are found by their folders and known by the hash of their files. Their own figures are
worked out again from the rankings and the times of the calls; then the page is made again, and what
it says is compared with what the file says, section by section, but for what pictures say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.capabilities import service
from retrieval_bench.comparison.comparison import compare_runs
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import RecordError, counted
from retrieval_bench.core.types import Dataset, kind_of_truth
from retrieval_bench.reports.render.table import Table, next_step, result, warning
from retrieval_bench.runs.dataset import datasets_of
from retrieval_bench.runs.evaluation import evaluate
from retrieval_bench.runs.find import LOADS, RUNS, Kind
from retrieval_bench.runs.latency import latency_report
from retrieval_bench.runs.records import LOAD, read_run
from retrieval_bench.runs.run import Run, only_metrics
from retrieval_bench_pages.analysis import analyse
from retrieval_bench_pages.html_page import report_page
from retrieval_bench_pages.provenance import RUN_FILES, Saved, Source, hash_of

_SHOWN = 20
_SAME = 1e-9
_FIGURE = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the page, or a run, says something else than what comes out now."""

    where: str
    says: str
    recomputed: str


@dataclass(frozen=True, slots=True)
class Verification(Documented):
    """A page, held against what its runs give.

    Attributes:
        page: the file.
        n_figures: pieces of the page with a figure that were compared.
        n_unchecked: pieces that could not be compared; those of pictures are not counted.
        differences: of them, and of the runs from their own rankings and times.
        problems: runs that are not there, or are not those that the page was made from.
        unchecked: what could not be worked out again, and why.
    """

    KEYS = "holds page n_figures n_unchecked differences problems unchecked"

    page: str
    n_figures: int
    n_unchecked: int
    differences: tuple[Difference, ...]
    problems: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if all could be checked, and is what the runs give."""
        return not (self.differences or self.problems or self.unchecked)

    def tables(self) -> list[Table]:
        """The answer, and each difference."""
        pictures = "pictures are not compared"
        if self.holds:
            title = (
                f"{self.page}: all {self.n_figures:,} figures are those of its runs; {pictures}."
            )
        elif self.problems:
            title = f"{self.page}: the figures could not be checked against its runs."
        elif not self.differences:
            title = (
                f"{self.page}: {counted(self.n_figures, 'figure')} checked, as its runs give them; "
                f"{self.n_unchecked:,} could not be checked, and {pictures}."
            )
        else:
            n = counted(len(self.differences), "figure")
            title = f"{self.page}: {n} {'is' if n[:2] == '1 ' else 'are'} not what its runs give."
        shown = self.differences[:_SHOWN]
        notes = [warning(text) for text in self.problems]
        notes += [result(f"Not checked: {text}") for text in self.unchecked]
        if len(self.differences) > len(shown):
            more = f"{len(self.differences) - len(shown):,} more: --format json has all."
            notes.append(next_step(more))
        rows = [[item.where, item.says, item.recomputed] for item in shown]
        return [Table(title, ["where", "says", "recomputed"], rows, notes=notes, words=(0, 1, 2))]


def verify(
    page: Path, runs: Sequence[Path] = (), datasets: Sequence[str | Path | Dataset] = ()
) -> Verification:
    """Work out the figures of ``page`` once more.

    Args:
        runs: where its runs and loads are now, unless they lie where they lay, or in ``results``.
        datasets: where their datasets are now.

    Raises:
        RecordError: it is no report, or one of an earlier version.
    """
    text, source = _read(page)
    found, problems = _found(source.runs, [*runs], RUNS, RUN_FILES)
    under_load, more = _found(source.loads, [*runs], LOADS, (LOAD,))
    if problems or more:
        return Verification(str(page), 0, 0, (), (*problems, *more), ())
    # They stand in the page under the folders in which they lay when it was made.
    given = [
        replace(read_run(folder), folder=Path(saved.folder))
        for folder, saved in zip(found, source.runs, strict=True)
    ]
    loaded = given if not source.metrics else only_metrics(given, source.metrics)
    comparison = compare_runs(loaded, baseline=source.baseline, margin=source.margin)
    lie = datasets or [name for name in source.datasets if Path(name).is_dir()]
    sources = datasets_of([group.runs for group in comparison.groups], lie)
    analysis = analyse(comparison, sources)
    loads = [
        service("show a load in a report")(folder, shown_as=Path(saved.folder))
        for folder, saved in zip(under_load, source.loads, strict=True)
    ]
    again = report_page(
        analysis, loads, title=source.title, with_text=source.with_text, source=source
    )
    missing = [source for source in sources if isinstance(source, str)]
    said, now = (_parts(item, without_dataset=bool(missing)) for item in (text, again))
    differences = [
        *(difference for run in given for difference in _of_run(run, sources)),
        *_between(said, now),
    ]
    figures = _figures(now)
    left = _figures(_parts(text, without_dataset=False)) - _figures(said)
    return Verification(str(page), figures, left, tuple(differences), (), tuple(missing))


def _figures(parts: list[tuple[str, str]]) -> int:
    return sum(bool(_FIGURE.search(piece)) for _, piece in parts)


def _read(page: Path) -> tuple[str, Source]:
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise RecordError(
            f"cannot read the report: {problem}",
            where=str(page),
            accepted="an HTML file that `retrieval-bench report` wrote",
            fix="name the file",
        ) from None
    attributes = " ".join(f'{name}="{value}"' for name, value in Source.ATTRIBUTES.items())
    start = text.find(f"<script {attributes}>")
    body = text[start:].partition(">")[2].partition("</script>")[0]
    try:
        return text, Source.from_json(body)
    except (ValueError, TypeError, LookupError, AttributeError):
        raise RecordError(
            "this page does not name the runs that it was made from",
            where=str(page),
            accepted="a report on saved runs, of this version or a later one",
            fix="make it again from its runs: retrieval-bench report RUN RUN",
        ) from None


def _found(
    wanted: Sequence[Saved], given: Sequence[Path], of: Kind, files: Sequence[str]
) -> tuple[list[Path], list[str]]:
    """The folder of each record of the page, and which are not there or not the same."""
    folders, problems = [], []
    for run in wanted:
        places = [*_places(run, given, of)]
        hashes = [hash_of(place, files) for place in places]
        if run.sha256 in hashes:
            folders.append(places[hashes.index(run.sha256)])
        elif places:
            problems.append(
                f"{places[0]} is not the {of.noun} that the page was made from: it changed."
            )
        else:
            problems.append(f"{run.folder} is not there: say where it is, behind the file.")
    return folders, problems


def _places(run: Saved, given: Sequence[Path], of: Kind) -> Iterator[Path]:
    name = Path(run.folder).name
    for place in (*given, Path(run.folder), of.root / name):
        if place.name == name and (place / of.file).is_file():
            yield place


def _of_run(run: Run, sources: Sequence[Dataset | str]) -> Iterator[Difference]:
    """List the differences between what a run says of itself and its own rankings and times."""
    where = str(run.folder)
    latency = run.summary.latency_ms
    if latency.mean is not None:
        report = latency_report(run.timings).as_dict()
        for level in ("p50", "p95", "p99", "mean"):
            said, now = (_value(item.get(level)) for item in (latency.as_dict(), report))
            if said is not None and not _equal(said, now):
                yield Difference(f"{where}: {level}", f"{said}", f"{now}")
    fingerprint = run.summary.dataset.fingerprint
    for data in sources:
        if isinstance(data, Dataset) and data.fingerprint == fingerprint:
            yield from _of_rankings(run, data, where)


def _of_rankings(run: Run, data: Dataset, where: str) -> Iterator[Difference]:
    ids, metrics = run.evaluation.query_ids, run.evaluation.metrics
    place = {query_id: at for at, query_id in enumerate(run.rankings.query_ids)}
    rows = run.rankings.ranking[[place[query_id] for query_id in ids]]
    kind, qrels = kind_of_truth(data.qrels), data.qrels
    qrels = service(f"judge as kept by {kind}")(qrels, run) if kind else qrels
    again = evaluate(rows, run.rankings.doc_ids, ids, qrels, metrics)
    for metric in metrics:
        said, now = run.evaluation.values(metric), again.values(metric)
        for at in np.flatnonzero(~np.isclose(said, now, 0, _SAME, equal_nan=True)).tolist():
            yield Difference(f"{where}: {metric} of {ids[at]}", f"{said[at]}", f"{now[at]}")


def _value(entry: Any) -> Any:
    return entry.get("value") if isinstance(entry, dict) else entry


def _equal(a: Any, b: Any) -> bool:
    return b is not None and bool(abs(a - b) <= _SAME * max(abs(a), abs(b)))


def _between(said: list[tuple[str, str]], now: list[tuple[str, str]]) -> Iterator[Difference]:
    """Section by section."""
    for section in dict.fromkeys(name for name, _ in [*said, *now]):
        a, b = ([text for name, text in parts if name == section] for parts in (said, now))
        matcher = SequenceMatcher(None, a, b, autojunk=False)
        for kind, i, j, k, m in matcher.get_opcodes() if a != b else ():
            if kind != "equal":
                for old, new in zip_longest(a[i:j], b[k:m], fillvalue=""):
                    yield Difference(f"section {section}", old, new)


_OF_DATASET = ("alike", "systems", "differences", "legs", "slices", "queries")
"""Sections with something that a run alone does not know."""


def _parts(page: str, *, without_dataset: bool) -> list[tuple[str, str]]:
    """List the texts that the page shows, each behind its section; without a dataset not of those
    that take one."""
    parser = _Texts()
    parser.feed(page)
    left_out = _OF_DATASET if without_dataset else ()
    return [(name, text) for name, text in parser.found if name.partition("-")[2] not in left_out]


class _Texts(HTMLParser):
    """Texts of a page, each behind the id of its section, without what draws; the data of single
    queries are one text."""

    _SKIPPED = ("style", "svg")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._section = ""
        self._inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section" and (name := dict(attrs).get("id")):
            self._section = name
        self._inside += tag in self._SKIPPED

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in self._SKIPPED

    def handle_data(self, data: str) -> None:
        if text := " ".join(data.split()) * (not self._inside):
            self.found.append((self._section, text))
