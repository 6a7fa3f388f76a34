"""Conventions: what the same metric name means in different places, as data.

A convention is a bundle of rules. What it says of single rankings is carried by explicit metrics:
where AP is divided by the hits found, ``AP@3`` *is* ``AP(norm=hits)@3``, and prints so. What it
says of queries and lists (ties, repetitions, queries without an answer, queries that a run leaves
out) is applied in one place, :mod:`retrieval_bench_score.scoring`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench.metrics.names import Metric, Param, named, parse_metric

Ties = Literal["trec", "list"]
Duplicates = Literal["error", "counted again", "first"]
WithoutRelevant = Literal["zero", "one if nothing returned", "error"]
Missing = Literal["zero", "left out"]
Unanswerable = Literal["apart", "counted"]

_SHOWN = ("nDCG@10", "AP", "RR", "R@10", "Success@1", "Judged@10")
_SHOWN_DEEP = ("nDCG@10", "AP", "RR", "R@10", "R@100", "Success@1", "Judged@10")
_DEEP = 100

TIES: Mapping[Ties, str] = {
    "trec": "score in single precision desc, id desc",
    "list": "order of the list",
}
"""Name of each rule for ties in outputs."""


@dataclass(frozen=True, slots=True)
class Convention:
    """One source's reading of the metric names.

    Attributes:
        name: what outputs call it.
        source: where the rules come from.
        metrics: plain name -> the explicit metric it stands for, without its cut-off; a name that
            is not here is not defined. None defines every metric as it is.
        shown: plain names that are reported when nothing is asked for.
        cut: the only cut-off there is, None where any will do.
        ties: order of equal scores; ``list`` leaves a list as it was given.
        duplicates: a document that stands in one ranking twice; ``first`` keeps its best hit.
        without_relevant: a query that counts and has no relevant document.
        unanswerable: whether a query whose judged set is empty counts, or is reported apart.
        missing: a query with judgements that the run does not have.
        also: parameters of every metric that knows them and was not given them.
    """

    name: str
    source: str
    metrics: Mapping[str, str] | None = field(default=None, hash=False)
    shown: tuple[str, ...] = ()
    cut: int | None = None
    ties: Ties = "trec"
    duplicates: Duplicates = "error"
    without_relevant: WithoutRelevant = "zero"
    unanswerable: Unanswerable = "apart"
    missing: Missing = "zero"
    also: Mapping[str, Param] = field(default_factory=dict, hash=False)

    @property
    def tie_rule(self) -> str:
        """The order of equal scores, in words."""
        return TIES[self.ties]

    def parse(self, names: Sequence[str] | str) -> tuple[Metric, ...]:
        """The metrics that ``names`` stand for here.

        Raises:
            ConfigError: a name that is unknown, or not defined by this convention.
        """
        names = [names] if isinstance(names, str) else names
        return tuple(dict.fromkeys(map(self.read, named(names))))

    def default_metrics(self, depth: int) -> tuple[Metric, ...]:
        """Choose the metrics where none are asked for, of rankings of up to ``depth`` hits: always
        the same names, and one more where rankings are deep."""
        if self.metrics is None:
            return self.parse(_SHOWN_DEEP if depth >= _DEEP else _SHOWN)
        return self.parse(self.shown)

    def read(self, metric: Metric) -> Metric:
        """The explicit metric that ``metric``, as somebody wrote it, stands for here.

        Raises:
            ConfigError: not defined by this convention, or with another cut-off than it has.
        """
        cut = metric.cut if metric.cut is not None else self.cut
        if self.cut is not None and cut != self.cut:
            raise self._undefined(metric)
        if self.metrics is None:
            return replace(metric, cut=cut).also(self.also)
        explicit = [parse_metric(text) for text in self.metrics.values()]
        given = replace(metric, cut=None)
        if metric.name in self.metrics and not metric.params:
            meant = parse_metric(self.metrics[metric.name])
        elif given in explicit:
            meant = given
        else:
            raise self._undefined(metric)
        return replace(meant, cut=cut).also(self.also)

    def _undefined(self, metric: Metric) -> ConfigError:
        end = "" if self.cut is None else f"@{self.cut}"
        known = ", ".join(f"{name}{end}" for name in (self.metrics or {"(every metric)": ""}))
        return ConfigError(
            f"metric {str(metric)!r} under the convention {self.name}",
            where="--metrics",
            accepted=known,
            fix="ask for one of them, or use --convention trec",
        )


CONVENTIONS: Mapping[str, Convention] = {
    convention.name: convention
    for convention in (
        Convention(
            name="trec",
            source="NIST trec_eval 9.0.8 with -c; queries that no document answers are kept apart",
        ),
        Convention(
            name="scienceqa",
            source="Scientific Knowledge Question Answering (Korean competition), calc_map",
            metrics={"AP": "AP(norm=hits)"},
            shown=("AP",),
            cut=3,
            ties="list",
            duplicates="counted again",
            without_relevant="one if nothing returned",
            unanswerable="counted",
            missing="left out",
        ),
        Convention(
            name="mala2025",
            source="hybrid retrieval against hallucination (arXiv 2504.05324), published code",
            metrics={"AP": "AP(norm=hits)", "nDCG": "nDCG(ideal=returned)"},
            shown=("AP", "nDCG"),
            cut=3,
            ties="list",
            duplicates="counted again",
            unanswerable="counted",
            missing="left out",
        ),
        Convention(
            name="piaf",
            source="PIAF evaluation metrics, Haystack 0.x: recall is the hit rate",
            metrics={"R": "Success", "AP": "AP", "RR": "RR"},
            shown=("R", "AP", "RR"),
            ties="list",
            duplicates="counted again",
            without_relevant="error",
        ),
        Convention(
            name="tutorial",
            source="LangChain notebook that benchmarks searching: recall on sets, DCG on lists",
            metrics={"R": "R", "nDCG": "nDCG"},
            shown=("R@10", "nDCG@10"),
            ties="list",
            duplicates="counted again",
            unanswerable="counted",
        ),
        Convention(
            name="blog",
            source="Document Retrieval Evaluation Metrics 2 (Korean article, 2024)",
            metrics={"RR": "RR", "AP": "AP", "nDCG": "nDCG", "Success": "Success"},
            shown=("RR@10", "AP@10", "nDCG@10", "Success@10"),
            ties="list",
            unanswerable="counted",
        ),
    )
}
"""Name -> convention; the first is what the kernel measures by."""


def convention(name: str) -> Convention:
    """The convention called ``name``.

    Raises:
        ConfigError: there is none; close names are offered.
    """
    what, fix = f"convention {name!r}", "correct the name"
    check_known(name, CONVENTIONS, what, where="--convention", fix=fix)
    return CONVENTIONS[name]
