"""Facts on the slots of a run: what stayed empty, what was forbidden and came, and how often that
may happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.reports.finish import Finished
from retrieval_bench.runs.run import Run
from retrieval_bench.stats.intervals import clopper_pearson
from retrieval_bench_rules.rules import Rule, in_time, is_forbidden

_SHOWN = 3
_ONE_SIDED = 0.10
"""The upper end of a two-sided 90 % interval is the one-sided bound of 95 %."""

Record = Mapping[str, Mapping[str, Sequence[int] | None]]
"""Query -> slot -> ranks of the hits that meet its rule; None where the query failed."""


@dataclass(frozen=True, slots=True)
class Place(Documented):
    """A slot of a query, and where hits met its rule.

    Attributes:
        query_id: the query.
        slot: its name.
        ranks: of hits; of a slot that is lost those that came too late.
    """

    query_id: str
    slot: str
    ranks: tuple[int, ...]

    @property
    def text(self) -> str:
        """On one line."""
        late = f" (at rank {self.ranks[0]})" if self.ranks else ""
        return f"{self.query_id}: {self.slot}{late}"


@dataclass(frozen=True, slots=True)
class Forbidden(Documented):
    """Forbidden hits.

    Attributes:
        queries: that forbid something and were answered.
        with_hit: of these, queries with a forbidden hit.
        upper95: exact upper bound of their share, one-sided 95 %.
        hits: where such hits were.
        failed: queries that forbid something and got no answer.
    """

    queries: int
    with_hit: int
    upper95: float
    hits: tuple[Place, ...]
    failed: int

    @property
    def of_failed(self) -> str:
        """How many queries got no answer."""
        return f"{counted(self.failed, 'query')} with `forbid`"

    @property
    def text(self) -> str:
        """On one line, with the bound."""
        if not self.queries:
            return f"Of {self.of_failed} none got an answer."
        had = f"{self.with_hit:,}" if self.with_hit else "None"
        queries = f"{counted(self.queries, 'query')} with `forbid`"
        most = f"at most {100 * self.upper95:.1f} % of such queries do (exact, one-sided 95 %)"
        more = f"; {self.failed:,} more got no answer" if self.failed else ""
        return f"{had} of {queries} had a forbidden hit; {most}{more}."


@dataclass(frozen=True, slots=True)
class SlotFacts(Documented):
    """Summed-up slots of a run.

    Attributes:
        slots: of all queries that count.
        filled: of these.
        lost: those that stayed empty.
        forbidden: None where nothing is.
    """

    KEYS = "slots filled lost forbidden"

    slots: int
    filled: int
    lost: tuple[Place, ...]
    forbidden: Forbidden | None


def facts_of(record: Record) -> SlotFacts:
    """Sum up the slots of the queries in ``record``."""
    n, lost, forbidding, hits, failed = 0, list[Place](), 0, list[Place](), 0
    for query_id, kept in record.items():
        if None in kept.values():
            failed += any(map(is_forbidden, kept))
            continue
        forbidding += any(map(is_forbidden, kept))
        for slot, ranks in kept.items():
            counting = in_time(slot, ranks or ())
            if is_forbidden(slot):
                hits += [Place(query_id, slot, counting)] * bool(counting)
                continue
            n += 1
            lost += [] if counting else [Place(query_id, slot, tuple(ranks or ()))]
    with_hit = len({hit.query_id for hit in hits})
    forbidden = None
    if forbidding or failed:
        bound = clopper_pearson(with_hit, forbidding, alpha=_ONE_SIDED)[1] if forbidding else 1.0
        forbidden = Forbidden(forbidding, with_hit, float(bound), tuple(hits), failed)
    return SlotFacts(n, n - len(lost), tuple(lost), forbidden)


def beyond(rules: Mapping[str, Sequence[Rule]], k: int) -> list[str]:
    """Warn of slots whose last rank is deeper than the hits that are asked for."""
    limits = {
        f"{query_id}: {rule.label}": rule.within
        for query_id, of in rules.items()
        for rule in of
        if rule.within is not None and rule.within > k and not rule.forbidden
    }
    if not limits:
        return []
    n, deepest = counted(len(limits), "slot"), max(limits.values())
    text = (
        f"{n} with `within` deeper than the {counted(k, 'hit')} asked for ({next(iter(limits))}): "
        f"what would come in time behind them counts as missing. Ask for more: --k {deepest}."
    )
    return [text]


def notices(record: Record, unknown: int, *, corpus: bool) -> list[str]:
    """Tell the slots that stayed empty, and forbidden hits with their bound.

    Args:
        unknown: hits without a text that a rule reads.
        corpus: whether there is one.
    """
    facts, told = facts_of(record), list[str]()
    if unknown:
        why = "the corpus does not have them" if corpus else "there is no corpus to look them up"
        fix = "" if corpus else ": let the retriever return texts, or name the documents"
        text = (
            f"{counted(unknown, 'hit')} came without a text, and {why}: no phrase is in them{fix}."
        )
        told.append(Notice(text, Code.NOTHING_FOUND))
    if (forbidden := facts.forbidden) is not None:
        if forbidden.with_hit:
            told.append(f"{forbidden.text[:-1]}: {_some(forbidden.hits)}.")
        else:
            told.append(Notice(forbidden.text, Code.NOTE))
    if facts.lost:
        n = f"{len(facts.lost):,} of {counted(facts.slots, 'slot')}"
        told.append(Notice(f"{n} stayed empty: {_some(facts.lost)}.", Code.NOTE))
    return told


def few(names: Sequence[str], shown: int = 5, where: str = "") -> str:
    """Name the first of many, and say how many more there are, and where."""
    more = len(names) - shown
    return "; ".join(names[:shown]) + (f"; and {more:,} more{where}" if more > 0 else "")


def _some(places: Sequence[Place]) -> str:
    return few([place.text for place in places], _SHOWN, " (`--format json` has all)")


@dataclass(frozen=True, slots=True)
class SlotsOfRun(Documented):
    """Keys beside those of a measured run.

    Attributes:
        finished: the run.
    """

    KEYS = "slots?=facts"

    finished: Finished

    @property
    def facts(self) -> SlotFacts | None:
        """None where truth is not by rule."""
        return facts_kept(self.finished.run)


def facts_kept(run: Run) -> SlotFacts | None:
    """The facts on the slots of a run; None where truth is not by rule."""
    record = run.manifest.get("slots")
    return None if record is None else facts_of(record)
