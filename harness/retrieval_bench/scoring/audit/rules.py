"""The rules in which conventions differ, so that they can be switched over one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from retrieval_bench.core.errors import ConfigError
from retrieval_bench.metrics import Metric, parse_metric
from retrieval_bench.metrics.conventions import Convention


@dataclass(frozen=True, slots=True)
class Reading:
    """One plain name as one bundle of rules has it: the metric, and the rules around it."""

    metric: Metric
    rules: Convention

    def switched(self, names: Collection[str], to: Reading) -> Reading:
        """With the rules called ``names`` as ``to`` has them."""
        metric, rules = self.metric, self.rules
        if "definition" in names:
            metric = replace(to.metric, cut=metric.cut)
        if "cut" in names:
            metric = replace(metric, cut=to.metric.cut)
        for name in names:
            fields = FIELDS.get(name, ())
            rules = replace(rules, **{field: getattr(to.rules, field) for field in fields})
        return Reading(metric, rules)

    def says(self, name: str) -> str:
        """The rule called ``name``, in a few words."""
        if name == "definition":
            return str(replace(self.metric, cut=None))
        if name == "cut":
            return str(self.metric.cut)
        return ", ".join(str(getattr(self.rules, field)) for field in FIELDS[name])


FIELDS: Mapping[str, tuple[str, ...]] = {
    "ties": ("ties",),
    "duplicates": ("duplicates",),
    "queries without relevant documents": ("without_relevant", "unanswerable"),
    "missing queries": ("missing",),
}
"""Rule -> the fields of a convention that it is made of."""

RULES = ("definition", "cut", *FIELDS)
"""All rules in which two readings may differ."""


def reading(concept: str, convention: Convention, cut: int) -> Reading | None:
    """How ``convention`` reads a plain name; None where it does not define it.

    Args:
        cut: where the convention has no cut-off of its own.
    """
    try:
        metric = convention.read(parse_metric(concept))
    except ConfigError:
        return None
    return Reading(replace(metric, cut=convention.cut or cut), convention)
