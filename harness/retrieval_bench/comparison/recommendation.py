"""What a comparison comes to: which system to take, and why; in words that its verdicts carry.

The highest mean is no proof. A system is only called better where a test says so; where a faster
one is shown to be equivalent, it is preferred; where nothing is shown, that is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrieval_bench.comparison.group import DatasetComparison, Recommendation, SpeedUp
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import (
    about,
    end_text,
    p_text,
    signed,
    times_text,
)
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.metrics.names import label_of
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.randomization import ROUNDING

_NAMED = 4
"""Systems that a sentence names before it counts the rest."""

LEAST_MS = 1.0
"""By less than this nobody waits less: a p50 that is lower by less decides between no systems."""


def recommended(
    group: DatasetComparison, margin: float, baseline: str | None = None
) -> Recommendation:
    """Return which system of ``group`` to take, by the verdicts on its first metric.

    Others are held against it, but it against ``baseline`` where there is one, as in the table.
    """
    view = _View(group, group.metrics[0], margin)
    if not view.pairs:
        refusals = dict.fromkeys(d.reason for d in group.of(view.metric) if d.reason)
        return Recommendation(
            group.dataset,
            None,
            "Nothing here can be compared, so nothing is recommended.",
            tuple(f"Not comparable: {reason}." for reason in refusals),
        )
    best = view.best()
    taken = view.fastest_of_the_best(best)
    if failures := view.resting_on_failures():
        return Recommendation(
            group.dataset,
            None,
            "Nothing is recommended: only queries that failed tell these systems apart.",
            (*failures, "Find out why they failed, and measure again."),
        )
    reasons = [
        *view.decided_by_ties(taken),
        *view.doubts(taken),
        *view.cost(taken, best),
        *view.rivals(taken, baseline),
        *view.hybrids(),
    ]
    tied = [name for name in view.tied(best) if name != best] if taken == best else []
    told_apart = all(view.worth_it(best, name) for name in tied)
    return Recommendation(
        group.dataset,
        taken if told_apart else None,
        view.sentence(taken, best, tied),
        tuple(reasons),
        (taken, *(view.unbeaten(taken, best) if told_apart else tied)),
    )


def maybe_chance(which: str = "") -> str:
    """Continue a verdict that few queries carry: the careful interval, of ``which``, holds 0."""
    return f", but with so few queries that may be chance: the careful interval{which} includes 0"


class _View:
    """One metric of a group, looked at from any of its systems."""

    def __init__(self, group: DatasetComparison, metric: Metric, margin: float) -> None:
        self.group, self.metric, self.margin = group, metric, margin
        self.pairs: dict[tuple[str, str], Delta] = {}
        for delta in group.of(metric):
            if delta.difference is not None:
                self.pairs[delta.a, delta.b] = delta

    def best(self) -> str:
        """The highest mean of those that are compared with something."""
        compared = {name for pair in self.pairs for name in pair}
        names = [name for name in self.group.names if name in compared]
        return max(names, key=lambda name: self.group.mean(name, self.metric))

    def fastest_of_the_best(self, best: str) -> str:
        """``best``, or the fastest of those that are shown to be equivalent to it and faster."""
        equals = [
            name
            for name in self.group.names
            if name != best
            and (self._equivalent(best, name) or name in self.tied(best))
            and self.worth_it(name, best)
        ]
        return max(equals, key=lambda name: self._times(name, best), default=best)

    def tied(self, best: str) -> list[str]:
        """All systems with the mean of ``best``, if there are several."""
        mean = self.group.mean(best, self.metric)
        same = [
            name
            for name in self.group.names
            if (name == best or self._delta(best, name) is not None)
            and abs(self.group.mean(name, self.metric) - mean) <= ROUNDING
        ]
        return same if len(same) > 1 else []

    def worth_it(self, name: str, than: str) -> bool:
        """Return whether ``name`` was shown to be faster, and not by a p50 that nobody notices."""
        saved = self.group.saved_ms(name, than)
        return self.group.is_faster(name, than) and (saved is None or saved >= LEAST_MS)

    def sentence(self, taken: str, best: str, tied: Sequence[str]) -> str:
        """Say which system to take, and why."""
        metric, value = label_of(self.metric), self._value(taken)
        if tied and all(self.worth_it(best, name) for name in tied):
            return (
                f"Use {taken}: it ties with {named(tied)} at the highest {metric} ({value}), and "
                "is the fastest of them."
            )
        if tied:
            return f"{named([best, *tied])} have the same, highest {metric}: {value}."
        if taken != best:
            return f"Use {taken}: {self._instead(taken, best)}."
        beaten, unbeaten = self._beaten(taken)
        if not unbeaten:
            others = named(beaten)
            if len(beaten) > 1 and len(beaten) == len(self.group.names) - 1:
                others = "both others" if len(beaten) == 2 else f"all {len(beaten)} others"
            if len(beaten) == 1:
                others = f"{others}'s {self._value(beaten[0])}"
            deltas = {name: delta for name in beaten if (delta := self._delta(taken, name))}
            known = [d.p_adjusted for d in deltas.values() if d.p_adjusted is not None]
            p = p_text(max(known, default=1.0))
            p += " or less" if len(known) > 1 and not p.startswith("<") else ""
            better, why = "significantly better", f"p {p}"
            if not known:
                better, why = "better", "anytime-valid interval"
            but = ""
            if doubted := [name for name, delta in deltas.items() if delta.doubted]:
                against = f" against {named(doubted)}" if len(beaten) > 1 else ""
                but = maybe_chance(against)
            return f"Use {taken}: its {metric} of {value} is {better} than {others} ({why}){but}."
        if not self.unbeaten(taken, best):
            return (
                f"Use {taken}: it has the highest {metric} ({value}); {named(unbeaten)} "
                f"{_is_are(unbeaten)} equivalent within {self.margin:g}."
            )
        return self._open([taken, *unbeaten])

    def unbeaten(self, taken: str, best: str) -> list[str]:
        """Return the systems that may be as good as ``taken``, the highest mean first; none where
        it is one of several equivalent ones."""
        _, unbeaten = self._beaten(taken)
        if taken != best or all(self._equivalent(taken, name) for name in unbeaten):
            return []
        return unbeaten

    def _open(self, names: Sequence[str]) -> str:
        """Name the systems that may each be the best."""
        leaders, metric = named(names), label_of(self.metric)
        if len(self.group.names) == 2:
            return f"{leaders}: these queries can't tell which is better in {metric}."
        return f"{leaders} lead in {metric}; these queries can't separate them."

    def _instead(self, taken: str, best: str) -> str:
        """Return why not the highest mean."""
        metric, value = label_of(self.metric), self._value(taken)
        faster = faster_text(self.group.speed_up(taken, best))
        there = f"{best}, {self._value(best)}"
        if abs(self._difference(best, taken) or 0.0) <= ROUNDING:
            return f"it ties with {best} at the highest {metric} ({value}), and is {faster}"
        if self._wins(best, taken):
            less = f"but by less than {self.margin:g}, and it is {faster}"
            return f"its {metric} of {value} is lower than the highest ({there}), {less}"
        return (
            f"its {metric} of {value} is equivalent to the highest ({there}; within "
            f"{self.margin:g}), and it is {faster}"
        )

    def resting_on_failures(self) -> list[str]:
        """Pairs that only their failed queries tell apart, a sentence each."""
        pairs = [delta for delta in self.pairs.values() if delta.rests_on_failures]
        lines = [f"{delta.b} against {delta.a}: {delta.reason}." for delta in pairs[:_NAMED]]
        if len(pairs) > _NAMED:
            lines.append(f"The same holds for {counted(len(pairs) - _NAMED, 'more pair')}.")
        return lines

    def doubts(self, taken: str) -> list[str]:
        """Say why the choice is in doubt, whatever its mean is."""
        lines = []
        untested = [
            name for name in self.group.names if name != taken and self._delta(taken, name) is None
        ]
        if untested:
            lines.append(f"{taken} was not compared with {named(untested)}.")
        summary = self.group.runs[self.group.names.index(taken)].summary
        if summary.n_failed:
            failed = counted(summary.n_failed, "query")
            lines.append(f"{taken} FAILED on {failed}: each evaluated one counts 0.")
        return lines

    def decided_by_ties(self, taken: str) -> list[str]:
        """Systems that another order of equal scores would put on the other side of ``taken``, or
        ``taken`` itself, a sentence each; empty where no such order would turn the answer."""
        value = self.group.mean(taken, self.metric)
        others = [name for name in self.group.names if name != taken]
        lines = []
        for name in others:
            best = self._in_other_orders(name, "best")
            if best is not None and self.group.mean(name, self.metric) < value <= best + ROUNDING:
                lines.append(self._between_orders(name))
        worst = self._in_other_orders(taken, "worst")
        rival = max((self.group.mean(name, self.metric) for name in others), default=np.nan)
        if worst is not None and worst - ROUNDING <= rival < value:
            lines.append(self._between_orders(taken))
        return lines

    def _between_orders(self, name: str) -> str:
        """Say between which means the order of the tied hits of a system decides."""
        worst, best = (self._in_other_orders(name, end) for end in ("worst", "best"))
        return (
            f"But {name} has tied hits, and their order alone decides which mean is higher: its "
            f"{label_of(self.metric)} is {worst:.3f} to {best:.3f}."
        )

    def _in_other_orders(self, name: str, end: str) -> float | None:
        """The best or worst mean of a system over the orders of its equal scores, where known."""
        summary = self.group.runs[self.group.names.index(name)].summary
        if summary.ties is None or summary.ties.metric != str(self.metric):
            return None
        return summary.ties.best if end == "best" else summary.ties.worst

    def cost(self, taken: str, best: str) -> list[str]:
        """Say how much time the choice costs beside the fastest other one."""
        rivals = [
            n for n in self.group.names if n not in (taken, best) and self.group.is_faster(n, taken)
        ]
        if not rivals:
            return []
        fastest = max(rivals, key=lambda name: self._times(name, taken))
        difference = self._difference(taken, fastest)
        if difference is None:
            return []
        faster = faster_text(self.group.speed_up(fastest, taken))
        faster += "" if self.worth_it(fastest, taken) else f", by less than {LEAST_MS:g} ms,"
        if not self._wins(taken, fastest) and not self._equivalent(taken, fastest):
            return [f"{fastest} is {faster.removesuffix(',')}."]
        size = end_text(abs(difference)).removeprefix("+")
        change = f"{size} {'lower' if difference < 0 else 'higher'}"
        gap = "the same" if abs(difference) <= ROUNDING else change
        return [f"{fastest} is {faster} and {gap} in {label_of(self.metric)}."]

    def rivals(self, taken: str, baseline: str | None) -> list[str]:
        """Name the systems that nothing is shown about, the highest mean first, with the queries it
        takes."""
        deltas = [(name, self._delta(taken, name)) for name in self.group.names if name != taken]
        open_ = [(n, d) for n, d in deltas if d is not None and d.verdict.open]
        open_.sort(key=lambda pair: -self.group.mean(pair[0], self.metric))
        lines = []
        for name, delta in open_[:_NAMED]:
            one, other = (taken, name) if name == baseline else (name, taken)
            difference = self._difference(other, one) or 0.0
            gap, text = abs(difference), f"{one} against {other}: {signed(difference, 3)}"
            if delta.ci is not None:
                low, high = delta.ci if delta.b == one else (-delta.ci[1], -delta.ci[0])
                text += f" [{end_text(low)}, {end_text(high)}]"
            if delta.p_adjusted is not None:
                text += f", p {p_text(delta.p_adjusted)}"
            text += ", can't tell."
            lines.append(text + _what_helps(delta, gap))
        if len(open_) > _NAMED:
            lines.append(f"{len(open_) - _NAMED:,} more systems can't be told from {taken}.")
        return lines

    def hybrids(self) -> list[str]:
        """Return where a hybrid is not better than one of its own legs, exactly that."""
        lines = []
        for name, run in zip(self.group.names, self.group.runs, strict=True):
            for leg in self._legs(run):
                delta = self._delta(leg, name)
                if delta is None or self._wins(name, leg):
                    continue
                verdict = {
                    Verdict.UNDECIDED: "is not significantly better than",
                    Verdict.UNRESOLVABLE: "is not significantly better than",
                    Verdict.EQUIVALENT: "is equivalent to",
                }.get(delta.verdict, "is worse than")
                p = "" if delta.p_adjusted is None else f", p {p_text(delta.p_adjusted)}"
                lines.append(
                    f"{name} {verdict} its leg {leg} alone: {self._value(name)} against "
                    f"{self._value(leg)}{p}."
                )
        return lines

    def _legs(self, hybrid: Run) -> list[str]:
        """Systems that are legs of ``hybrid``: built from the same target and parameters. A name
        alone says nothing: somebody may have measured it with other parameters."""
        facts: Mapping[str, Any] = hybrid.manifest.get("retriever", {}).get("facts", {})
        legs = facts.get("legs", {})
        if not isinstance(legs, Mapping):
            return []
        wanted = [(leg.get("target"), leg.get("params")) for leg in legs.values()]
        built = [run.manifest.get("retriever", {}) for run in self.group.runs]
        return [
            name
            for name, made in zip(self.group.names, built, strict=True)
            if "params" in made and (made.get("target"), made["params"]) in wanted
        ]

    def _beaten(self, name: str) -> tuple[list[str], list[str]]:
        others = [other for other in self.group.names if self._delta(name, other) is not None]
        beaten = [other for other in others if self._wins(name, other)]
        unbeaten = [other for other in others if other not in beaten]
        return beaten, sorted(unbeaten, key=lambda other: -self.group.mean(other, self.metric))

    def _delta(self, name: str, other: str) -> Delta | None:
        return self.pairs.get((name, other)) or self.pairs.get((other, name))

    def _difference(self, a: str, b: str) -> float | None:
        delta = self._delta(a, b)
        if delta is None or delta.difference is None:
            return None
        return delta.difference if delta.b == b else -delta.difference

    def _wins(self, name: str, other: str) -> bool:
        delta = self._delta(name, other)
        if delta is None:
            return False
        return delta.verdict is (Verdict.BETTER if delta.b == name else Verdict.WORSE)

    def _equivalent(self, name: str, other: str) -> bool:
        delta = self._delta(name, other)
        return delta is not None and (delta.verdict is Verdict.EQUIVALENT or delta.within_margin)

    def _times(self, name: str, than: str) -> float:
        speed_up = self.group.speed_up(name, than)
        return 1.0 if speed_up is None else speed_up.times

    def _value(self, name: str) -> str:
        mean = self.group.mean(name, self.metric)
        return "-" if np.isnan(mean) else f"{mean:.3f}"


def named(names: Sequence[str]) -> str:
    """Some systems in a sentence, which counts the rest."""
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[:-1] else names)


def faster_text(speed_up: SpeedUp | None) -> str:
    """Return how much faster, with the two digits that hold from one session to the next, and the
    interval where these show one."""
    if speed_up is None:
        return "faster"
    value = _few_digits(speed_up.times)
    ends = [] if speed_up.ci98 is None else list(map(_few_digits, speed_up.ci98))
    return f"{value} faster" + (f" ({' to '.join(ends)})" if ends and value not in ends else "")


def _few_digits(times: float) -> str:
    return f"{about(round(times))}x" if times >= 10 else times_text(times)


def _is_are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _what_helps(delta: Delta, gap: float) -> str:
    """Return how many queries would tell two systems apart whose true difference is ``gap``."""
    if delta.resolvable_from is not None:
        return (
            f" {counted(delta.n, 'query')} can't show any difference, whatever they say; "
            f"{delta.resolvable_from:,} could."
        )
    if delta.queries_needed is None:
        return ""
    total = about(delta.n + delta.queries_needed)
    if not delta.wins and not delta.losses:
        return f" No query differs; about {total} such queries would show that they are equivalent."
    shown = f"If the true gap is {gap:.3f}, about {total} queries in all would show it"
    if delta.needed_for == "equivalence":
        shown = f"About {total} queries in all would show that they are equivalent"
    differ = (delta.wins or 0) + (delta.losses or 0)
    return f" {shown} (80 % power); you have {delta.n:,}, of which {differ:,} tell the two apart."
