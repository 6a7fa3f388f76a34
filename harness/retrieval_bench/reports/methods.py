"""``report --methods``: how a comparison was made, as a paragraph and a table for an article, with
the sources that it cites.

Only what was done is said, and only what is said is cited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from retrieval_bench.comparison.comparison import Comparison
from retrieval_bench.comparison.group import DatasetComparison
from retrieval_bench.comparison.pairs.holm import QUALITY_ALPHA
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.core.version import VERSION
from retrieval_bench.metrics.conventions import CONVENTIONS
from retrieval_bench.reports.render import latex
from retrieval_bench.reports.render.words import metric_label
from retrieval_bench.reports.tables.run_facts import corpus
from retrieval_bench.reports.tables.understand.comparison import patterns, quality_table
from retrieval_bench.runs.run import Run
from retrieval_bench.stats import intervals

SOURCES: Mapping[str, str] = {
    "retrievalbench": f"""@software{{retrievalbench,
  title = {{retrieval-bench: a retrieval benchmarking harness}},
  version = {{{VERSION}}}
}}""",
    "jarvelin2002": r"""@article{jarvelin2002,
  author = {J{\"a}rvelin, Kalervo and Kek{\"a}l{\"a}inen, Jaana},
  title = {Cumulated gain-based evaluation of {IR} techniques},
  journal = {ACM Transactions on Information Systems},
  volume = {20}, number = {4}, pages = {422--446}, year = {2002}
}""",
    "smucker2007": r"""@inproceedings{smucker2007,
  author = {Smucker, Mark D. and Allan, James and Carterette, Ben},
  title = {A comparison of statistical significance tests for information retrieval evaluation},
  booktitle = {Proceedings of CIKM},
  pages = {623--632}, year = {2007}
}""",
    "holm1979": r"""@article{holm1979,
  author = {Holm, Sture},
  title = {A simple sequentially rejective multiple test procedure},
  journal = {Scandinavian Journal of Statistics},
  volume = {6}, number = {2}, pages = {65--70}, year = {1979}
}""",
    "schuirmann1987": r"""@article{schuirmann1987,
  author = {Schuirmann, Donald J.},
  title = {A comparison of the two one-sided tests procedure and the power approach for assessing
    the equivalence of average bioavailability},
  journal = {Journal of Pharmacokinetics and Biopharmaceutics},
  volume = {15}, number = {6}, pages = {657--680}, year = {1987}
}""",
    "waudbysmith2024": r"""@article{waudbysmith2024,
  author = {Waudby-Smith, Ian and Ramdas, Aaditya},
  title = {Estimating means of bounded random variables by betting},
  journal = {Journal of the Royal Statistical Society Series B},
  volume = {86}, number = {1}, pages = {1--27}, year = {2024}
}""",
    "clopper1934": r"""@article{clopper1934,
  author = {Clopper, Charles J. and Pearson, Egon S.},
  title = {The use of confidence or fiducial limits illustrated in the case of the binomial},
  journal = {Biometrika},
  volume = {26}, number = {4}, pages = {404--413}, year = {1934}
}""",
    "gaffke2005": r"""@article{gaffke2005,
  author = {Gaffke, Norbert},
  title = {Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable},
  journal = {Mathematical Methods of Statistics},
  volume = {14}, number = {4}, pages = {451--467}, year = {2005}
}""",
    "efron1993": r"""@book{efron1993,
  author = {Efron, Bradley and Tibshirani, Robert J.},
  title = {An Introduction to the Bootstrap},
  publisher = {Chapman and Hall}, year = {1993}
}""",
    "robertson2009": r"""@article{robertson2009,
  author = {Robertson, Stephen and Zaragoza, Hugo},
  title = {The probabilistic relevance framework: {BM25} and beyond},
  journal = {Foundations and Trends in Information Retrieval},
  volume = {3}, number = {4}, pages = {333--389}, year = {2009}
}""",
    "cormack2009": r"""@inproceedings{cormack2009,
  author = {Cormack, Gordon V. and Clarke, Charles L. A. and B{\"u}ttcher, Stefan},
  title = {Reciprocal rank fusion outperforms {C}ondorcet and individual rank learning methods},
  booktitle = {Proceedings of SIGIR},
  pages = {758--759}, year = {2009}
}""",
}
"""Key -> BibTeX entry."""


def methods(comparison: Comparison) -> tuple[str, str]:
    """The LaTeX of a paragraph with one table a dataset, and the BibTeX of what it cites."""
    sentences = " ".join(_sentences(comparison))
    tables = [quality_table(comparison, group, letters=True) for group in comparison.groups]
    head, *rest = latex.render(tables).split("\n\n", 1)
    cited = [entry for key, entry in SOURCES.items() if f"{{{key}}}" in sentences]
    return "\n\n".join([head, sentences, *rest]), "\n\n".join(cited) + "\n"


def _sentences(comparison: Comparison) -> Iterator[str]:
    systems = ", ".join(map(latex.escaped, comparison.names))
    yield f"We compared {counted(len(comparison.names), 'retrieval system')} ({systems})."
    yield from _systems(comparison)
    for group in comparison.groups:
        yield from _data(group)
    metrics = ", ".join(latex.escaped(metric_label(one)) for one in comparison.metrics)
    nominal = r" \cite{jarvelin2002}" if any(m.name == "nDCG" for m in comparison.metrics) else ""
    rules = {str(run.summary.convention) for run in comparison.runs}
    sources = [CONVENTIONS[name].source for name in rules if name in CONVENTIONS]
    by = f" by the conventions of {latex.escaped('; '.join(sources))}" if sources else ""
    yield (
        f"We report {metrics}{nominal}, computed by retrieval-bench {VERSION} "
        rf"\cite{{retrievalbench}}{by}."
    )
    cited = {"Clopper": "clopper1934", "Gaffke": "gaffke2005", "bootstrap": "efron1993"}
    if any(group.asked is not None for group in comparison.groups):
        yield from _until_decided(comparison)
        return
    used = intervals.methods(metric.scale for metric in comparison.metrics)
    keys = ",".join(key for word, key in cited.items() if word in used)
    yield (
        rf"Intervals are at 95\,\% over queries ({used}) \cite{{{keys}}}; those of differences "
        "hold together for all pairs of one metric on one dataset."
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
        if group.asked is not None:
            name, asked = latex.escaped(group.dataset), group.asked
            yield (
                f"On {name} {asked.asked:,} of {counted(asked.queries, 'query')} were asked; what "
                f"is estimated is {asked.mean}."
            )


def _systems(comparison: Comparison) -> Iterator[str]:
    targets = [run.manifest.get("retriever", {}) for run in comparison.runs]
    if any(one.get("target") == "bm25" or _legs(one, "bm25") for one in targets):
        yield r"Sparse retrieval is BM25 \cite{robertson2009}."
    encoders = dict.fromkeys(filter(None, map(_encoder, targets)))
    if encoders:
        yield f"Dense retrieval encodes with {latex.escaped(', '.join(encoders))}."
    if any(_fusion(one) == "rrf" for one in targets):
        yield r"Rankings are fused by reciprocal rank fusion \cite{cormack2009}."
    if any(_fusion(one) == "convex" for one in targets):
        yield "Scores are fused by a convex combination after normalisation."


def _legs(retriever: Mapping[str, Any], target: str) -> list[Any]:
    legs = retriever.get("facts", {}).get("legs", {})
    legs = legs if isinstance(legs, Mapping) else {}
    return [leg for leg in legs.values() if leg.get("target") == target]


def _encoder(retriever: Mapping[str, Any]) -> str | None:
    """The model of a dense retriever or of a dense leg."""
    facts = [retriever.get("facts", {}), *_legs(retriever, "dense")]
    return next((str(one["model"]) for one in facts if one.get("model")), None)


def _fusion(retriever: Mapping[str, Any]) -> str | None:
    fusion = retriever.get("facts", {}).get("fusion")
    return fusion.get("method") if isinstance(fusion, Mapping) else None


def _data(group: DatasetComparison) -> Iterator[str]:
    data = group.runs[0].summary.dataset
    name = latex.escaped(f"{group.dataset} ({data.split})")
    depths = sorted({run.summary.k for run in group.runs})
    yield (
        f"On {name} we searched {corpus(data)} with {counted(data.n_queries, 'query')} "
        f"that have relevance judgements, to a depth of {' / '.join(map(str, depths))}."
    )


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
    yield (
        f"Latency is the wall time of one call by one client, after a warm-up, over {n} of "
        f"each system{f' on {machine}' if machine else ''}."
    )


def _machine(run: Run) -> str:
    machine = run.manifest.get("environment", {}).get("machine", {})
    facts = [machine.get("processor"), machine.get("system"), machine.get("python")]
    return latex.escaped(", ".join(filter(None, facts)))
