"""What is shown of a sweep: the cheapest value that finds enough, then every value."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.comparison.claims import left_open
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import share_text, short_ms, times_text
from retrieval_bench.reports.render.cells import (
    COUNT,
    PERCENT,
    SHORT_MS,
    SHORT_QUALITY,
    Cell,
    Content,
)
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result, warning
from retrieval_bench.reports.render.words import on_dataset, unit_note
from retrieval_bench.runs.run import relative_folder
from retrieval_bench_scale.approximate.swept import Reach, Sweep, SweptLevel, SweptValue

_SHOWN = 10
"""Values of one level that are shown in short: those around the chosen one."""


def sweep_tables(sweep: Sweep, *, full: bool = False) -> list[Table]:
    """Show of one level its values, of several a row each.

    Args:
        full: also the values of each level.
    """
    first = sweep.levels[0]
    if len(sweep.levels) == 1:
        return [_values(sweep, first, f"{_head(sweep)}: {_answer(sweep, first)}", full=full)]
    main = Table(
        f"{_head(sweep)}: {_answer(sweep, first)}",
        [
            *("filter", "fits", sweep.parameter, _column(sweep), _tail(sweep)),
            *("p50 ms", "exact ms", "leaked hits"),
        ],
        [_level_row(level, by_tail=sweep.decided_by == "tail") for level in sweep.levels],
        notes=_notes(sweep),
        lead=_lead(sweep),
    )
    rest = [_values(sweep, level, f"Under {level.name}", full=True) for level in sweep.levels]
    return [main, *(rest if full else [])]


def _head(sweep: Sweep) -> str:
    return f"{sweep.retriever} {on_dataset(sweep.dataset)}"


def _column(sweep: Sweep) -> str:
    return f"exact top {sweep.k} found"


def _tail(sweep: Sweep) -> str:
    return f"queries with {sweep.tail:g}"


def _answer(sweep: Sweep, level: SweptLevel) -> str:
    top, chosen = f"{sweep.target_recall:g} of the exact top {sweep.k}", level.chosen
    if by_tail := sweep.decided_by == "tail":
        of_queries = f"{100 * sweep.target_recall:g} % of queries"
        top = f"{sweep.tail:g} of the exact top {sweep.k} for {of_queries}"
    if chosen is not None:
        name, found = f"{sweep.parameter} {chosen.value:g}", _found(chosen, by_tail=by_tail)
        return f"{name} is the cheapest that finds {top}: {found}, {_price(chosen)}"
    best = _best(level, by_tail=by_tail)
    if best.reach is not Reach.BELOW and (why := left_open("bench --sweep", sweep.warnings)):
        return f"no value is the cheapest that finds {top}: {why[:1].lower()}{why[1:]}"
    words = {
        Reach.BELOW: f"no value finds {top}",
        Reach.OPEN: f"no value is shown to find {top}",
        Reach.REACHED: f"what finds {top} has no p50",
    }
    found = f"{sweep.parameter} {best.value:g} finds {_found(best, by_tail=by_tail)}"
    return f"{words[best.reach]}; {found}"


def _best(level: SweptLevel, *, by_tail: bool) -> SweptValue:
    return max(level.values, key=lambda value: (value.tail if by_tail else value.recall) or 0.0)


def _found(value: SweptValue, *, by_tail: bool) -> str:
    share, ci95 = (value.tail, value.tail_ci95) if by_tail else (value.recall, value.ci95)
    if share is None:
        return "nothing that can be judged"
    return share_text(share, ci95) + " of queries" * by_tail


def _price(value: SweptValue) -> str:
    bare = "" if value.search_ms is None else " without encoding"
    return f"p50 {short_ms(value.ms or 0.0)} ms{bare}"


def _lead(sweep: Sweep) -> list[AnyNote]:
    told: list[AnyNote] = []
    first, name = sweep.levels[0], sweep.parameter
    chosen = first.chosen
    if chosen is not None and chosen.ms and first.exact_ms:
        took = f"An exhaustive search takes {short_ms(first.exact_ms)} ms"
        times = f", {times_text(first.exact_ms / chosen.ms)} as much"
        told.append(result(f"{took}{times if first.exact_ms >= chosen.ms else ': it is faster'}."))
    if first.undecided:
        values = ", ".join(f"{value:g}" for value in first.undecided)
        too = "" if chosen is None else ", too"
        told.append(warning(f"{name} {values} may do{too}: more queries would tell."))
    leaked = sum(one.leaked or 0 for level in sweep.levels for one in level.values)
    if leaked:
        text = f"{counted(leaked, 'hit')} leaked: the filter of their query does not allow them."
        told.append(warning(text))
    if sweep.status == "partial":
        told.append(warning("It was stopped: figures are of the calls that were made."))
    return [*told, *map(warning, sweep.warnings)]


def _values(sweep: Sweep, level: SweptLevel, title: str, *, full: bool) -> Table:
    bare = any(one.search_ms is not None for one in level.values)
    columns = [sweep.parameter, _column(sweep), _tail(sweep), f"{sweep.target_recall:g}", "p50 ms"]
    columns += ["without encoding"] * bare
    shown = list(level.values) if full else _nearest(level)
    rows = [_value_row(one, level, bare=bare) for one in shown]
    exact: list[Content] = ["exhaustive", Cell("1"), Cell("1"), "", SHORT_MS(level.exact_p50_ms)]
    rows.append([*exact, *([SHORT_MS(level.exact_search_ms)] * bare)])
    single = len(sweep.levels) == 1
    notes = _notes(sweep) if single else []
    if hidden := len(level.values) - len(shown):
        notes = [f"{counted(hidden, 'more value')}: -v", *notes]
    lead = _lead(sweep) if single else [result(_answer(sweep, level))]
    return Table(title, columns, rows, (len(rows) - 1,), notes, words=(0, 3), lead=lead)


def _nearest(level: SweptLevel) -> list[SweptValue]:
    values = list(level.values)
    at = next((i for i, value in enumerate(values) if value.value == level.cheapest), 0)
    start = max(0, min(at - _SHOWN // 2, len(values) - _SHOWN))
    return values[start : start + _SHOWN]


def _value_row(value: SweptValue, level: SweptLevel, *, bare: bool) -> list[Content]:
    chosen = value.value == level.cheapest
    word = "cheapest" if chosen else str(value.reach)
    row: list[Content] = [
        f"{value.value:g}",
        SHORT_QUALITY(value.recall, value.ci95, strong=chosen),
        SHORT_QUALITY(value.tail, value.tail_ci95),
        word,
        SHORT_MS(value.p50_ms),
    ]
    return [*row, *([SHORT_MS(value.search_ms)] * bare)]


def _level_row(level: SweptLevel, *, by_tail: bool) -> Sequence[Content]:
    chosen = level.chosen
    best = chosen or _best(level, by_tail=by_tail)
    leaked = max((one.leaked for one in level.values if one.leaked is not None), default=None)
    value = f"{best.value:g}" if chosen else f"none; {best.value:g}"
    return [
        level.name,
        PERCENT(level.share),
        value,
        SHORT_QUALITY(best.recall, best.ci95),
        SHORT_QUALITY(best.tail, best.tail_ci95),
        SHORT_MS(best.ms),
        SHORT_MS(level.exact_ms),
        COUNT(leaked),
    ]


def _notes(sweep: Sweep) -> list[AnyNote]:
    first = sweep.levels[0]
    bare = any(one.search_ms is not None for one in first.values)
    notes: list[AnyNote] = [
        (
            f"{counted(first.queries, 'query')}; what ties with the last of the exact top "
            f"{sweep.k} counts as found. It says nothing of relevance: `bench` does."
        ),
        (
            f'"Finds" goes by the lower end of the 95 % interval, "cheapest" by p50'
            f"{' without encoding the query' if bare else ''}; values were timed in turn, call by "
            "call, the exhaustive search before them."
        ),
    ]
    notes += unit_note(first.clusters)
    if sweep.folder is not None:
        notes.append(next_step(f"saved: {relative_folder(sweep)}"))
    return notes
