"""Tables of a self-test: what duets said of equal sides and of real extra work."""

from __future__ import annotations

from retrieval_bench.measure.machine.disturbances import STOLEN
from retrieval_bench.reports.render.cells import CHANGE, COUNT, PERCENT, Content
from retrieval_bench.reports.render.table import AnyNote, Table, result, warning
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench_duet.decision import FOUND
from retrieval_bench_duet.selftest import REPLAYS, Played, SelfTest

_WORDS = ("FAIL", "PASS", "INCONCLUSIVE")


def selftest_tables(test: SelfTest) -> list[Table]:
    """The duets by kind, and what is visible in how much time."""
    tables = [
        Table(
            f"Self-test: duets of {test.retriever} {on_dataset(test.dataset)}",
            ("side b", "duets", "launches", *_WORDS, "FAIL, replayed"),
            [_row(played) for played in test.played if played.results],
            notes=_notes(test),
        )
    ]
    if test.visible:
        rows: list[list[Content]] = [
            [f"{one.seconds:.0f} s", CHANGE("more than +50 %" if one.share is None else one.share)]
            for one in test.visible
        ]
        title = f"Smallest slow-down that {100 * FOUND:.0f} % of duets find"
        tables.append(Table(title, ("of measuring", "usual queries"), rows))
    return tables


def _row(played: Played) -> list[Content]:
    counts = (played.duets, played.launches, *map(played.count, _WORDS))
    return [played.kind.name, *map(COUNT, counts), PERCENT(played.replayed_fail)]


def _notes(test: SelfTest) -> list[AnyNote]:
    n = sum(played.duets for played in test.played if played.kind.equal)
    beyond = sum(played.duets for played in test.beyond_limit)
    notes: list[AnyNote] = [
        result(f"False alarms: {test.false_alarms} of {n} duets of equal sides failed."),
        result(
            f"Missed: {test.missed} of {beyond} duets with extra work beyond the limit in each "
            "query passed."
        ),
        f"Replayed: {REPLAYS} duets were put together from the launches that were measured.",
    ]
    if test.spread is not None:
        spread = PERCENT(test.spread).text
        notes.append(f"Launches of equal sides differ by {spread} (one standard deviation).")
    stolen = [duet.stolen or 0.0 for played in test.played for duet in played.results]
    if stolen and max(stolen) > STOLEN:
        shares = dict.fromkeys(f"{100 * share:.0f}" for share in (min(stolen), max(stolen)))
        time = f"{' to '.join(shares)} % of the cores' time"
        notes.append(warning(f"{time} went to other guests of the host meanwhile."))
    if test.interrupted:
        notes.append(warning("It was interrupted: only finished duets are counted."))
    return notes
