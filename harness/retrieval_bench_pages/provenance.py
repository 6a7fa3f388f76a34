"""Origin of the page: what the figures rest on, the runs, and how to find them again."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from retrieval_bench.capabilities import offered
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.run_facts import without_folders
from retrieval_bench.reports.tables.understand.comparison import patterns
from retrieval_bench.runs.arrays import RANKINGS, TIMINGS
from retrieval_bench.runs.records import LOAD, MANIFEST, PER_QUERY, SUMMARY
from retrieval_bench.runs.run import relative_folder
from retrieval_bench.stats.defaults import MARGIN
from retrieval_bench.stats.intervals import methods
from retrieval_bench_pages.explorer import json_in_html
from retrieval_bench_pages.sections import Beside

RUN_FILES = (SUMMARY, MANIFEST, RANKINGS, PER_QUERY, TIMINGS)


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved run or load: where it lay, from where the page was made, and its files' hash."""

    folder: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Source:
    """Origin of a page; it stands in the page as JSON.

    Attributes:
        runs: in the order in which they were given.
        metrics: those that were chosen among the ones of the runs; empty = all.
        loads: those with a section of their own.
        datasets: where those of the runs were, as far as it was said.
    """

    ATTRIBUTES: ClassVar[Mapping[str, str]] = {"type": "application/json", "id": "source"}

    runs: tuple[Saved, ...]
    metrics: tuple[str, ...] = ()
    baseline: str | None = None
    margin: float = MARGIN
    title: str = ""
    with_text: bool = True
    loads: tuple[Saved, ...] = ()
    datasets: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that makes the page again."""
        words = ["retrieval-bench", "report", *(run.folder for run in self.runs)]
        words += ["--loads", *(load.folder for load in self.loads)] if self.loads else []
        words += ["--dataset", *self.datasets] if self.datasets else []
        words += ["--metrics", *self.metrics] if self.metrics else []
        words += ["--baseline", self.baseline] if self.baseline is not None else []
        words += ["--margin", f"{self.margin:g}"] if self.margin != MARGIN else []
        words += ["--title", self.title] if self.title else []
        return shlex.join(words + ([] if self.with_text else ["--no-text"]))

    def to_html(self) -> str:
        """Write the source as JSON that can stand in HTML."""
        return json_in_html(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Source:
        """Raises:
        ValueError, TypeError, LookupError: it is none.
        """
        record = json.loads(text)
        runs, loads = (
            tuple(Saved(str(item["folder"]), str(item["sha256"])) for item in record.pop(name, ()))
            for name in ("runs", "loads")
        )
        record |= {
            "metrics": tuple(record["metrics"]),
            "datasets": tuple(record.get("datasets", ())),
        }
        return cls(runs, loads=loads, **record)


def source_of(
    comparison: Comparison, beside: Sequence[Beside] = (), **options: Any
) -> Source | None:
    """Describe the source of a page on ``comparison``; None where a run was not saved.

    Args:
        beside: sections on saved loads.
        options: the other fields of :class:`Source`.
    """
    folders = [run.folder for run in comparison.runs]
    if any(folder is None for folder in folders):
        return None
    runs = [
        Saved(str(without_folders(relative_folder(run))), hash_of(run.folder))
        for run in comparison.runs
        if run.folder is not None
    ]
    baseline, margin = comparison.baseline, comparison.margin
    under_load = tuple(
        Saved(str(without_folders(relative_folder(load))), hash_of(load.folder, (LOAD,)))
        for load in beside
        if load.folder is not None
    )
    return Source(tuple(runs), baseline=baseline, margin=margin, loads=under_load, **options)


def hash_of(folder: Path, files: Sequence[str] = RUN_FILES) -> str:
    """SHA-256 over the files of a saved run, or load, that figures are made from.

    Raises:
        OSError: one of them cannot be read.
    """
    digest = hashlib.sha256()
    for name in files:
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def rules_table(comparison: Comparison) -> Table:
    """Show the rules that the figures rest on, dataset by dataset."""
    facts = {group.dataset: _rules(comparison, group) for group in comparison.groups}
    names = dict.fromkeys(name for of_group in facts.values() for name in of_group)
    return Table(
        "Data, conventions and tests",
        ["", *facts],
        [[name, *(of_group.get(name, "-") for of_group in facts.values())] for name in names],
        words=tuple(range(len(facts) + 1)),
    )


def _rules(comparison: Comparison, group: DatasetComparison) -> dict[str, str]:
    summaries = [run.summary for run in group.runs]

    def all_of(values: Sequence[Any]) -> str:
        return " / ".join(dict.fromkeys(str(value) for value in values))

    def data(name: str) -> str:
        return all_of([getattr(summary.dataset, name) for summary in summaries])

    used = list(dict.fromkeys(summary.convention for summary in summaries))
    conventions = offered("name conventions") or {}
    sources = [f"{name} ({conventions[name].source})" for name in used if name in conventions]
    tested = group.method or {
        "intervals of means": f"95 %, {methods(m.scale for m in group.metrics)}",
        "test": f"paired randomisation, {patterns(group)}, two-sided",
        "family (Holm)": "the pairs of one metric on one dataset",
    }
    if not group.judged:
        return {
            "split": data("split"),
            "documents": data("n_documents"),
            "evaluated queries": "none: nothing is judged",
            "fingerprint": data("fingerprint"),
            "hits per query (k)": all_of([summary.k for summary in summaries]),
            "ties": all_of([summary.tie_rule for summary in summaries]),
            **group.method,
        }
    return {
        "split": data("split"),
        "documents": data("n_documents"),
        "evaluated queries": data("n_queries"),
        "unanswerable queries": data("n_unanswerable"),
        "fingerprint": data("fingerprint"),
        "hits per query (k)": all_of([summary.k for summary in summaries]),
        "convention": " / ".join(sources or map(str, used)),
        "ties": all_of([summary.tie_rule for summary in summaries]),
        "version of the metrics": all_of([s.metrics_version for s in summaries]),
        **tested,
        "level": f"{QUALITY_ALPHA:g}",
        "margin of equivalence": f"{comparison.margin:g}",
        "compared": (
            "every pair" if comparison.baseline is None else f"all with {comparison.baseline}"
        ),
    }


def runs_table(comparison: Comparison) -> Table:
    """Return which runs the page is made from."""
    rows = []
    for group in comparison.groups:
        for name, run in zip(group.names, group.runs, strict=True):
            git = run.manifest.get("environment", {}).get("git") or {}
            retriever = run.manifest.get("retriever", {})
            rows.append(
                [
                    name,
                    group.dataset,
                    str(run.summary.status),
                    str(run.manifest.get("created", "?"))[:16].replace("T", " "),
                    str(retriever.get("hash") or "-"),
                    str(git.get("commit") or "-")[:12] if isinstance(git, dict) else "-",
                    relative_folder(run),
                ]
            )
    return Table(
        "Runs",
        ["system", "dataset", "status", "made (UTC)", "configuration", "revision", "folder"],
        rows,
        words=tuple(range(7)),
    )
