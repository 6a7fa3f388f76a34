"""Kinds of truth that are no judged documents, and what is refused of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Qrels

TRUTHS: Mapping[str, tuple[str, str]] = {
    "rules": ("by rule", "the dataset says with expect and forbid what hits must have"),
    "spans": ("by spans", "the dataset says which characters of documents answer a query"),
}
"""Kind of slots -> how truth is given, and where it comes from."""


class Decided(NamedTuple):
    """Slots decided for the hits of a run.

    Attributes:
        qrels: the slots, which know these hits.
        kept: what the manifest of the run keeps, under a key for the kind of truth.
        notices: worth saying of them.
    """

    qrels: Qrels
    kept: Mapping[str, Any]
    notices: Sequence[str]


def scores_refused(kind: str) -> ConfigError:
    """The error for a run of scores, whose hits are documents."""
    how, where = TRUTHS[kind]
    return ConfigError(
        f"a run of scores against truth {how}",
        where=where,
        accepted="judged documents: such a run has ids alone",
        fix="measure it: `retrieval-bench bench` with `target: trec_run` reads a saved run",
    )


def of_documents(metric: str, kind: str, defined: Collection[str]) -> ConfigError:
    """The error for a metric that slots do not have."""
    how, where = TRUTHS[kind]
    return ConfigError(
        f"metric {metric} where truth is {how}",
        where=where,
        accepted=f"{', '.join(defined)}: others need documents that are judged",
        fix="name some of these",
    )


def of_grades(metric: str, name: str, params: Sequence[str], kind: str) -> ConfigError:
    """The error for parameters that slots do not have."""
    how, where = TRUTHS[kind]
    return ConfigError(
        f"metric {metric} where truth is {how}",
        where=where,
        accepted=f"{name} without {', '.join(params)}: no document is judged, and slots have no "
        "grades",
        fix="leave it out",
    )


def of_slots(metric: str) -> ConfigError:
    """The error for a metric of slots where documents are judged."""
    return ConfigError(
        f"metric {metric} where documents are judged",
        where="--metrics",
        accepted="metrics of documents, such as nDCG@10 and R@10",
        fix="name one of these; queries with `expect` and `forbid`, or with `spans`, and no "
        "judgements beside them, have slots",
    )
