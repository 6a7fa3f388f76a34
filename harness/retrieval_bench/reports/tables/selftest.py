"""What is shown of a self-test: what duets said of equal sides and of real extra work."""

from __future__ import annotations

from retrieval_bench.core.figures import change_text
from retrieval_bench.duets.decision import FOUND
from retrieval_bench.duets.selftest import REPLAYS, Played, SelfTest
from retrieval_bench.measure.disturbances import STOLEN
from retrieval_bench.reports.render.table import Table


def selftest_tables(found: SelfTest) -> list[Table]:
    """The duets by kind, and what is visible in how much time."""
    tables = [
        Table(
            f"Self-test: duets of {found.retriever} on {found.dataset}",
            ("side b", "duets", "launches", "FAIL", "PASS", "INCONCLUSIVE", "FAIL, replayed"),
            [_row(found, one) for one in found.played if one.results],
            notes=_notes(found),
            words=(0,),
        )
    ]
    if found.visible:
        rows = [
            [f"{seconds:.0f} s", "more than +50 %" if share is None else change_text(share)]
            for seconds, share in found.visible
        ]
        title = f"Smallest slow-down that {100 * FOUND:.0f} % of duets find"
        tables.append(Table(title, ("of measuring", "usual queries"), rows, words=(0,)))
    return tables


def _row(found: SelfTest, one: Played) -> list[str]:
    rate = found.replayed.get(one.kind.name)
    words = [str(one.count(word)) for word in ("FAIL", "PASS", "INCONCLUSIVE")]
    replayed = "-" if rate is None else f"{100 * rate:.1f} %"
    launches = sum(result.launches for result in one.results)
    return [one.kind.name, str(len(one.results)), str(launches), *words, replayed]


def _notes(found: SelfTest) -> list[str]:
    n = sum(len(one.results) for one in found.played if one.kind.equal)
    beyond = sum(len(one.results) for one in found.beyond_limit)
    notes = [
        f"false alarms: {found.false_alarms} of {n} duets of equal sides",
        f"missed: {found.missed} of {beyond} duets with extra work beyond the limit in each query",
        f"replayed: {REPLAYS} duets put together from the launches that were measured",
    ]
    if found.spread is not None:
        notes.append(f"launches of equal sides differ by {100 * found.spread:.1f} % (one sd)")
    stolen = [one.stolen or 0.0 for played in found.played for one in played.results]
    if stolen and max(stolen) > STOLEN:
        shares = dict.fromkeys(f"{100 * share:.0f}" for share in (min(stolen), max(stolen)))
        told = f"{' to '.join(shares)} % of the cores' time"
        notes.append(f"{told} went to other guests of the host meanwhile")
    if found.interrupted:
        notes.append("interrupted: only duets that were finished are in it")
    return notes
