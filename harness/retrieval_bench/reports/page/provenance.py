"""The tables that only the page has: what the figures rest on, and the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.holm import QUALITY_ALPHA
from retrieval_bench.metrics.conventions import CONVENTIONS
from retrieval_bench.reports.render.table import Table
from retrieval_bench.reports.tables.comparison import patterns
from retrieval_bench.runs.run import relative_folder


def rules_table(comparison: Comparison) -> Table:
    """What the figures rest on, dataset by dataset."""
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
        return all_of([summary["dataset"].get(name, "?") for summary in summaries])

    used = list(dict.fromkeys(summary.get("convention", "?") for summary in summaries))
    sources = [f"{name} ({CONVENTIONS[name].source})" for name in used if name in CONVENTIONS]
    return {
        "split": data("split"),
        "documents": data("n_documents"),
        "evaluated queries": data("n_queries"),
        "unanswerable queries": data("n_unanswerable"),
        "fingerprint": data("fingerprint"),
        "hits per query (k)": all_of([summary.get("k", "?") for summary in summaries]),
        "convention": " / ".join(sources or map(str, used)),
        "ties": all_of([summary.get("tie_rule", "?") for summary in summaries]),
        "version of the metrics": all_of([s.get("metrics_version", "?") for s in summaries]),
        "intervals of means": "95 %, percentile bootstrap over queries",
        "test": f"paired randomisation, {patterns(group)}, two-sided",
        "family (Holm)": "the pairs of one metric on one dataset",
        "level": f"{QUALITY_ALPHA:g}",
        "margin of equivalence": f"{comparison.margin:g}",
        "compared": (
            "every pair" if comparison.baseline is None else f"all with {comparison.baseline}"
        ),
    }


def runs_table(comparison: Comparison) -> Table:
    """Which runs the page is made from."""
    rows = []
    for group in comparison.groups:
        for name, run in zip(group.names, group.runs, strict=True):
            git = run.manifest.get("environment", {}).get("git") or {}
            retriever = run.manifest.get("retriever", {})
            rows.append(
                [
                    name,
                    group.dataset,
                    str(run.summary.get("status", "?")),
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
