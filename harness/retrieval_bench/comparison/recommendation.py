"""What a comparison comes to: which system to take, and why; in words that its verdicts carry.

The highest mean is no proof. A system is only called better where a test says so; where a faster
one is shown to be equivalent, it is preferred; where nothing is shown, that is said. What a warning
makes void (:data:`.claims.VOIDS`) is not decided: the rest is, if there is any.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from retrieval_bench.comparison.claims import Claim
from retrieval_bench.comparison.group import DatasetComparison, Recommendation
from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.comparison.pairs.judged_gap import judged_gap
from retrieval_bench.comparison.pairs.speed import TYPICAL
from retrieval_bench.comparison.pairs.voided import void
from retrieval_bench.comparison.phrases import NAMED, faster_text, is_are, named, what_helps
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import end_text, p_text, signed
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.metrics.names import label_of
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.randomization import ROUNDING

_BY_QUESTION = "Here queries of nearly the same text count as one question."

LEAST_MS = 1.0
"""By less than this nobody waits less: a p50 that is lower by less decides between no systems."""


def recommended(
    group: DatasetComparison, margin: float, baseline: str | None = None
) -> Recommendation:
    """Return which system of ``group`` to take, by the verdicts on its first metric.

    Others are held against it, but it against ``baseline`` where there is one, as in the table.
    """
    if group.by_question:  # copies of a question would turn the verdict
        as_one = replace(group, deltas=group.by_question, by_question=())
        answer = recommended(as_one, margin, baseline)
        return replace(answer, reasons=(_BY_QUESTION, *answer.reasons))
    view = _View(group, group.metrics[0], margin)
    if not view.pairs:
        refusals = dict.fromkeys(d.reason for d in group.of(view.metric) if d.reason)
        return Recommendation(
            group.dataset,
            None,
            "Nothing here can be compared, so nothing is recommended.",
            tuple(f"Not comparable: {reason}." for reason in refusals),
        )
    if failures := view.resting_on_failures():
        return Recommendation(
            group.dataset,
            None,
            "Nothing is recommended: only queries that failed tell these systems apart.",
            (*failures, "Find out why they failed, and measure again."),
        )
    if why := view.void():
        return _without_void(view, why)
    reasons = [
        *(f"But {view.between_orders(name)}." for name in view.decided_by_ties()),
        *view.void_times(),
        *view.doubts(),
        *view.cost(),
        *view.rivals(baseline),
        *view.hybrids(),
    ]
    leaders = view.leaders
    open_ = len(leaders) == len(view.names)
    return Recommendation(
        group.dataset,
        None if open_ or view.undivided else view.taken,
        view.sentence(),
        tuple(reasons),
        () if open_ else (*leaders, *view.untested()),
    )


def _without_void(view: _View, why: Mapping[str, str]) -> Recommendation:
    """No system, ``why`` nothing is decided by each that is void, and what is left to say."""
    told = dict(why)
    while view.pairs and why:
        view = _View(view.group, view.metric, view.margin, without=told)
        why = view.void() if view.pairs else {}
        told |= why
    first, *others = (text if text.endswith("?") else f"{text}." for text in told.values())
    of_others = [f"Of the others: {view.sentence()}"] if view.pairs else []
    reasons = (*of_others, *(f"This is open, too: {text}" for text in others))
    sentence = f"Nothing is recommended while this is open: {first}"
    return Recommendation(view.group.dataset, None, sentence, reasons)


def maybe_chance(which: str = "") -> str:
    """Continue a verdict that few queries carry: the careful interval, of ``which``, holds 0."""
    return f", but with so few queries that may be chance: the careful interval{which} includes 0"


class _View:
    """One metric of a group, looked at from the system that is ``taken``: the ``best`` mean, or the
    fastest of those that are shown to be equivalent to it and faster. ``tied`` have its mean, and
    are ``undivided`` unless all are shown to be slower."""

    def __init__(
        self,
        group: DatasetComparison,
        metric: Metric,
        margin: float,
        without: Collection[str] = (),
    ) -> None:
        self.group, self.metric, self.margin = group, metric, margin
        names = [name for name in group.names if name not in without]
        self.pairs: dict[tuple[str, str], Delta] = {}
        for delta in group.of(metric):
            if delta.difference is not None and {delta.a, delta.b} <= {*names}:
                self.pairs[delta.a, delta.b] = delta
        compared = {name for pair in self.pairs for name in pair}
        known = [name for name in names if name in compared]
        self.best = max(known, key=lambda name: group.mean(name, metric), default="")
        self.taken = self._fastest_of_the_best() if known else ""
        self.tied = self._ties() if known and self.taken == self.best else []
        self.undivided = not all(self.worth_it(self.best, name) for name in self.tied)
        self.names = known
        self.leaders: list[str] = self._leaders() if known else []

    def _fastest_of_the_best(self) -> str:
        best, ties = self.best, self._ties()
        equals = [
            name
            for name in self.group.names
            if name != best
            and (self._equivalent(best, name) or name in ties)
            and self.worth_it(name, best)
            and not any(
                self._wins(other, name) and not self._equivalent(other, name)
                for other in self.group.names
                if other != name
            )
        ]
        return max(equals, key=lambda name: self._times(name, best), default=best)

    def _ties(self) -> list[str]:
        """The other systems with the mean of the best."""
        mean = self.group.mean(self.best, self.metric)
        return [
            name
            for name in self.group.names
            if self._delta(self.best, name) is not None
            and abs(self.group.mean(name, self.metric) - mean) <= ROUNDING
        ]

    def _leaders(self) -> list[str]:
        """All that may be the best, the one to take first and the others by their means."""
        _, unbeaten = self._beaten(self.taken)
        if self.taken != self.best:
            return [self.taken]
        if all(self._equivalent(self.taken, name) for name in unbeaten):
            unbeaten = []
        tied = self.tied if self.undivided else []
        return [self.taken, *tied, *(name for name in unbeaten if name not in self.tied)]

    def untested(self) -> list[str]:
        """The others that nobody held against the one to take, and none is better than."""
        return [
            name
            for name in self.names
            if name != self.taken
            and self._delta(self.taken, name) is None
            and not any(self._wins(other, name) for other in self.names)
        ]

    def worth_it(self, name: str, than: str) -> bool:
        """Return whether ``name`` was shown to be faster, and not by a p50 that nobody notices."""
        saved = self.group.saved_ms(name, than)
        return self.group.is_faster(name, than) and (saved is None or saved >= LEAST_MS)

    def sentence(self) -> str:
        """Say which system to take, and why."""
        taken, tied = self.taken, self.tied
        metric, value = label_of(self.metric), self._value(taken)
        if tied and not self.undivided:
            ties = f"it ties with {named(tied)} at the highest {metric} ({value})"
            if all(self._identical(taken, name) for name in tied):
                ties = f"it returns the same rankings as {named(tied)} ({metric} {value})"
            return f"Use {taken}: {ties}, and is the fastest of them."
        if len(self.leaders) == len(self.names) or tied:
            return self._open()
        if taken != self.best:
            return f"Use {taken}: {self._instead(taken, self.best)}."
        beaten, unbeaten = self._beaten(taken)
        if unbeaten and len(self.leaders) == 1:
            return (
                f"Use {taken}: it has the highest {metric} ({value}); {named(unbeaten)} "
                f"{is_are(unbeaten)} equivalent within {self.margin:g}."
            )
        if unbeaten:
            return self._open()
        others = named(beaten)
        if len(beaten) > 1 and len(beaten) == len(self.names) - 1:
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
        if seen := [name for name in beaten if self._seen_more(taken, name)]:
            but += f"{' and' if but else ', but'} the judges saw more of its hits than of "
            but += f"{named(seen)}'s"
        return f"Use {taken}: its {metric} of {value} is {better} than {others} ({why}){but}."

    def _open(self) -> str:
        """Name the systems that may each be the best; where that is all of them, say so."""
        leaders, metric, value = self.leaders, label_of(self.metric), self._value(self.taken)
        every = [self.taken, *self.tied]
        if self.tied and all(self._identical(self.taken, name) for name in self.tied):
            same = f"{named(every)} return identical rankings ({metric} {value})"
            return f"{same}." if len(every) == len(self.names) else f"{same}, the highest."
        if self.tied and (len(every) < len(self.names) or len(every) == 2):
            return f"{named(every)} have the same, highest {metric}: {value}."
        if len(leaders) < len(self.names):
            return f"{named(leaders)} lead in {metric}; these queries can't separate them."
        if len(leaders) == 2:
            return f"{named(leaders)}: these queries can't tell which is better in {metric}."
        of = named(leaders) if len(leaders) <= NAMED else f"the {len(leaders)} systems"
        if len(every) == len(leaders):
            return f"Nothing is recommended: {of} have the same {metric}, {value}."
        return f"Nothing is recommended: these queries can't tell {of} apart in {metric}."

    def void(self) -> dict[str, str]:
        """Return why nothing is decided: system -> what makes void of what it is held against
        others by; empty where the decision stands, or there is none."""
        told: dict[str, str] = {}
        others = [name for name in self.names if name not in self.leaders]
        claims = [(leader, name) for leader in self.leaders for name in others]
        if self.taken != self.best:
            claims.append((self.best, self.taken))
        run_of = dict(zip(self.group.names, self.group.runs, strict=True))
        for pair in claims:
            if why := void(Claim.QUALITY, run_of[pair[0]], run_of[pair[1]], pair):
                told.setdefault(why.partition(": ")[0], why)
        if told or not others:
            return told
        return {name: self.between_orders(name) for name in self.decided_by_ties()}

    def _seen_more(self, name: str, other: str) -> bool:
        """Return whether ``name`` may look better because more of its hits are judged."""
        pair = (self.group.names.index(name), self.group.names.index(other))
        return bool(judged_gap(self.group.names, self.group.runs, [pair], self.metric))

    def void_times(self) -> list[str]:
        """Say where times would decide between equally good systems, and a warning makes them
        void."""
        equals = {*self.leaders, *self.tied, self.best}
        equals |= {name for name in self.names if self._equivalent(self.taken, name)}
        whys = [
            delta.reason
            for delta in self.group.latency
            if delta.void and delta.what == TYPICAL and {delta.a, delta.b} <= equals
        ]
        return [f"No decision by these times: {why}." for why in whys[:1]]

    def _instead(self, taken: str, best: str) -> str:
        """Return why not the highest mean."""
        metric, value = label_of(self.metric), self._value(taken)
        faster = faster_text(self.group.speed_up(taken, best))
        there = f"{best}, {self._value(best)}"
        if self._identical(best, taken):
            return f"it returns the same rankings as {best} ({metric} {value}), and is {faster}"
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
        lines = [f"{delta.b} against {delta.a}: {delta.reason}." for delta in pairs[:NAMED]]
        if len(pairs) > NAMED:
            lines.append(f"The same holds for {counted(len(pairs) - NAMED, 'more pair')}.")
        return lines

    def doubts(self) -> list[str]:
        """Say why the choice is in doubt, whatever its mean is."""
        taken, lines = self.taken, []
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

    def decided_by_ties(self) -> list[str]:
        """Systems that another order of equal scores would put on the other side of the one to
        take, or that itself; empty where no such order would turn the answer."""
        taken = self.taken
        value = self.group.mean(taken, self.metric)
        others = [name for name in self.names if name != taken]
        decided = []
        for name in others:
            best = self._in_other_orders(name, "best")
            if best is not None and self.group.mean(name, self.metric) < value <= best + ROUNDING:
                decided.append(name)
        worst = self._in_other_orders(taken, "worst")
        rival = max((self.group.mean(name, self.metric) for name in others), default=np.nan)
        if worst is not None and worst - ROUNDING <= rival < value:
            decided.append(taken)
        return decided

    def between_orders(self, name: str) -> str:
        """Say between which means the order of the tied hits of a system decides."""
        worst, best = (self._in_other_orders(name, end) for end in ("worst", "best"))
        return (
            f"{name} has tied hits, and their order alone decides which mean is higher: its "
            f"{label_of(self.metric)} is {worst:.3f} to {best:.3f}"
        )

    def _in_other_orders(self, name: str, end: str) -> float | None:
        """The best or worst mean of a system over the orders of its equal scores, where known."""
        summary = self.group.runs[self.group.names.index(name)].summary
        if summary.ties is None or summary.ties.metric != str(self.metric):
            return None
        return summary.ties.best if end == "best" else summary.ties.worst

    def cost(self) -> list[str]:
        """Say how much time the choice costs beside the fastest other one."""
        taken, best = self.taken, self.best
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

    def rivals(self, baseline: str | None) -> list[str]:
        """Name the systems that nothing is shown about, the highest mean first, with the queries it
        takes."""
        taken = self.taken
        deltas = [(name, self._delta(taken, name)) for name in self.group.names if name != taken]
        open_ = [(n, d) for n, d in deltas if d and d.verdict.open and not d.identical]
        open_.sort(key=lambda pair: -self.group.mean(pair[0], self.metric))
        lines = []
        for name, delta in open_[:NAMED]:
            one, other = (taken, name) if name == baseline else (name, taken)
            difference = self._difference(other, one) or 0.0
            gap, text = abs(difference), f"{one} against {other}: {signed(difference, 3)}"
            if delta.ci is not None:
                low, high = delta.ci if delta.b == one else (-delta.ci[1], -delta.ci[0])
                text += f" [{end_text(low)}, {end_text(high)}]"
            if delta.p_adjusted is not None:
                text += f", p {p_text(delta.p_adjusted)}"
            text += ", can't tell."
            lines.append(text + what_helps(delta, gap))
        if len(open_) > NAMED:
            lines.append(f"{len(open_) - NAMED:,} more systems can't be told from {taken}.")
        return lines

    def hybrids(self) -> list[str]:
        """Return where a hybrid is not better than one of its own legs, exactly that."""
        lines = []
        for name, run in zip(self.group.names, self.group.runs, strict=True):
            for leg in self._legs(run):
                delta = self._delta(leg, name)
                if delta is None or self._wins(name, leg):
                    continue
                verdict = "is worse than"
                if delta.verdict.open:
                    verdict = "is not significantly better than"
                elif delta.verdict is Verdict.EQUIVALENT:
                    verdict = "is equivalent to"
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
        delta, won = self._delta(name, other), (Verdict.WORSE, Verdict.BETTER)
        return delta is not None and delta.verdict is won[delta.b == name]

    def _equivalent(self, name: str, other: str) -> bool:
        delta = self._delta(name, other)
        return delta is not None and (delta.verdict is Verdict.EQUIVALENT or delta.within_margin)

    def _identical(self, name: str, other: str) -> bool:
        delta = self._delta(name, other)
        return delta is not None and bool(delta.identical)

    def _times(self, name: str, than: str) -> float:
        speed_up = self.group.speed_up(name, than)
        return 1.0 if speed_up is None else speed_up.times

    def _value(self, name: str) -> str:
        mean = self.group.mean(name, self.metric)
        return "-" if np.isnan(mean) else f"{mean:.3f}"
