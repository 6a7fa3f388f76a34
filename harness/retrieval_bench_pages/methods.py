"""``report --methods``: how a comparison was made, as a paragraph and a table for an article, with
the sources that it cites.

Only what was done is said, and only what is said is cited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from retrieval_bench.capabilities import offered
from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.core.errors import counted
from retrieval_bench.core.installed.version import VERSION
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.reports.tables.run_facts import corpus
from retrieval_bench.reports.tables.understand.comparison import patterns, quality_table
from retrieval_bench.runs.run import Run
from retrieval_bench.stats import intervals
from retrieval_bench_pages import latex


def methods(comparison: Comparison) -> tuple[str, str]:
    """The LaTeX of a paragraph with one table a dataset, and the BibTeX of what it cites."""
    sentences = " ".join(_sentences(comparison))
    tables = [quality_table(comparison, group, letters=True) for group in comparison.groups]
    head, *rest = latex.render(tables).split("\n\n", 1)
    keys = {key for cite in re.findall(r"\\cite\{(.*?)\}", sentences) for key in cite.split(",")}
    cited = [entry for key, entry in _sources().items() if key in keys]
    return "\n\n".join([head, sentences, *rest]), "\n\n".join(cited) + "\n"


def _sources() -> dict[str, str]:
    """Key -> BibTeX entry."""
    text = resources.files(__package__).joinpath("sources.bib").read_text(encoding="utf-8")
    entries = text.replace("{VERSION}", f"{{{VERSION}}}").strip().split("\n\n")
    return {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}


def _sentences(comparison: Comparison) -> Iterator[str]:
    systems = ", ".join(map(latex.escaped, comparison.names))
    yield f"We compared {counted(len(comparison.names), 'retrieval system')} ({systems})."
    yield from _systems(comparison)
    for group in comparison.groups:
        yield from _data(group)
    metrics = ", ".join(latex.escaped(metric_label(metric)) for metric in comparison.metrics)
    nominal = r" \cite{jarvelin2002}" if any(m.name == "nDCG" for m in comparison.metrics) else ""
    judged = [run for run in comparison.runs if _truth(run) == _JUDGED]
    rules = {str(run.summary.convention) for run in judged}
    conventions = offered("name conventions") or {}
    sources = [conventions[name].source for name in rules if name in conventions]
    by = f" by the conventions of {latex.escaped('; '.join(sources))}" if sources else ""
    by += " where documents are judged" * (bool(by) and len(judged) < len(comparison.runs))
    yield (
        f"We report {metrics}{nominal}, computed by retrieval-bench {VERSION} "
        rf"\cite{{retrievalbench}}{by}."
    )
    cited = {"Clopper": "clopper1934", "Gaffke": "gaffke2005", "bootstrap": "efron1993"}
    if any(group.estimand for group in comparison.groups):
        yield from _until_decided(comparison)
        return
    used = intervals.methods(metric.scale for metric in comparison.metrics)
    keys = ",".join(key for word, key in cited.items() if word in used)
    yield (
        rf"Intervals are at 95\,\% over queries ({used}) \cite{{{keys}}}; those of differences "
        "are the test inverted, at the one level that Holm's correction leaves to the pairs of a "
        "metric and dataset; each holds by itself."
    )
    yield from _tests(comparison)
    yield from _times(comparison)


def _until_decided(comparison: Comparison) -> Iterator[str]:
    yield (
        "Queries were asked in random order until every pair was decided; verdicts rest on "
        r"betting confidence sequences \cite{waudbysmith2024}; the intervals of all pairs of one "
        r"metric on one dataset hold together, at every look, with 95\,\%."
    )
    for group in comparison.groups:
        if group.estimand:
            yield (
                f"On {latex.escaped(group.dataset)} {group.extent} were asked; what is estimated "
                f"is {group.estimand}."
            )


def _systems(comparison: Comparison) -> Iterator[str]:
    targets = [run.manifest.get("retriever", {}) for run in comparison.runs]
    if any(target.get("target") == "bm25" or _legs(target, "bm25") for target in targets):
        yield r"Sparse retrieval is BM25 \cite{robertson2009}."
    encoders = dict.fromkeys(filter(None, map(_encoder, targets)))
    if encoders:
        yield f"Dense retrieval encodes with {latex.escaped(', '.join(encoders))}."
    if any(_fusion(target) == "rrf" for target in targets):
        yield r"Rankings are fused by reciprocal rank fusion \cite{cormack2009}."
    if any(_fusion(target) == "convex" for target in targets):
        yield "Scores are fused by a convex combination after normalisation."


def _legs(retriever: Mapping[str, Any], target: str) -> list[Any]:
    legs = retriever.get("facts", {}).get("legs", {})
    legs = legs if isinstance(legs, Mapping) else {}
    return [leg for leg in legs.values() if leg.get("target") == target]


def _encoder(retriever: Mapping[str, Any]) -> str | None:
    """The model of a dense retriever or of a dense leg."""
    facts = [retriever.get("facts", {}), *_legs(retriever, "dense")]
    return next((str(fact["model"]) for fact in facts if fact.get("model")), None)


def _fusion(retriever: Mapping[str, Any]) -> str | None:
    fusion = retriever.get("facts", {}).get("fusion")
    return fusion.get("method") if isinstance(fusion, Mapping) else None


def _data(group: DatasetComparison) -> Iterator[str]:
    data = group.runs[0].summary.dataset
    name = latex.escaped(f"{group.dataset} ({data.split})")
    depths = sorted({run.summary.k for run in group.runs})
    yield (
        f"On {name} we searched {corpus(data)} with {counted(data.n_queries, 'query')} "
        f"that have {_truth(group.runs[0])}, to a depth of {' / '.join(map(str, depths))}."
    )


_JUDGED = "relevance judgements"
_TRUTHS = {"spans": "answer spans", "slots": "rules for their hits"}
"""Where documents are not judged: what the manifest keeps -> what queries have."""


def _truth(run: Run) -> str:
    return next((text for key, text in _TRUTHS.items() if key in run.manifest), _JUDGED)


def _tests(comparison: Comparison) -> Iterator[str]:
    tested = [group for group in comparison.groups if any(d.p is not None for d in group.deltas)]
    if not tested:
        return
    yield (
        "Differences were tested with two-sided paired randomisation tests over queries "
        rf"({patterns(tested[0])}) \cite{{smucker2007}}, corrected by Holm's method "
        r"\cite{holm1979} over the pairs of each metric and dataset, at a level of "
        f"{QUALITY_ALPHA:g}."
    )
    if any(d.verdict is Verdict.EQUIVALENT or d.within_margin for d in comparison.deltas):
        yield (
            r"Two systems are called equivalent where two one-sided tests \cite{schuirmann1987} "
            f"show a difference below {comparison.margin:g}."
        )


def _times(comparison: Comparison) -> Iterator[str]:
    timed = [run for run in comparison.runs if run.summary.latency_ms.mean is not None]
    if not timed:
        return
    calls = sorted({run.summary.latency_ms.n for run in timed})
    n = counted(calls[0], "call")
    if len(calls) > 1:
        n = f"{calls[0]:,} to {calls[-1]:,} calls"
    machine = _machine(timed[0])
    warm = [run.summary.latency_ms.warm_up_calls > 0 for run in timed]
    after = ", after a warm-up" if all(warm) else "" if any(warm) else ", without a warm-up"
    yield (
        f"Latency is the wall time of one call by one client{after}, over {n} of "
        f"each system{f' on {machine}' if machine else ''}."
    )


def _machine(run: Run) -> str:
    machine = run.manifest.get("environment", {}).get("machine", {})
    facts = [machine.get("processor"), machine.get("system"), machine.get("python")]
    return latex.escaped(", ".join(filter(None, facts)))
