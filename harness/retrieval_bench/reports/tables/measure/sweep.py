"""What is shown of a sweep: the cheapest value that finds enough, then every value."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.approximate.swept import Reach, Sweep, SweptLevel, SweptValue
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import end_text, short_ms, times_text
from retrieval_bench.reports.render.cells import (
    PERCENT,
    SHORT_MS,
    SHORT_QUALITY,
    Cell,
    Content,
    count,
)
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result, warning
from retrieval_bench.reports.render.words import on_dataset
from retrieval_bench.runs.run import relative_folder

_SHOWN = 10
"""Values of one level that are shown in short: those around the chosen one."""


def sweep_tables(found: Sweep, *, full: bool = False) -> list[Table]:
    """Of one level its values, of several a row each.

    Args:
        full: also the values of each level.
    """
    first = found.levels[0]
    if len(found.levels) == 1:
        return [_values(found, first, f"{_head(found)}: {_answer(found, first)}", full=full)]
    main = Table(
        f"{_head(found)}: {_answer(found, first)}",
        ["filter", "fits", found.parameter, _column(found), "p50 ms", "exact ms", "leaked hits"],
        [_level_row(level) for level in found.levels],
        notes=_notes(found),
        lead=_lead(found),
    )
    rest = [_values(found, level, f"Under {level.name}", full=True) for level in found.levels]
    return [main, *(rest if full else [])]


def _head(found: Sweep) -> str:
    return f"{found.retriever} {on_dataset(found.dataset)}"


def _column(found: Sweep) -> str:
    return f"exact top {found.k} found"


def _answer(found: Sweep, level: SweptLevel) -> str:
    top, chosen = f"{found.wanted:g} of the exact top {found.k}", level.chosen
    if chosen is not None:
        name = f"{found.parameter} {chosen.value:g}"
        return f"{name} is the cheapest that finds {top}: {_found(chosen)}, {_price(chosen)}"
    best = max(level.values, key=lambda one: one.recall or 0.0)
    words = {
        Reach.BELOW: f"no value finds {top}",
        Reach.OPEN: f"no value is shown to find {top}",
        Reach.REACHED: f"what finds {top} has no p50",
    }
    return f"{words[best.reach]}; {found.parameter} {best.value:g} finds {_found(best)}"


def _found(one: SweptValue) -> str:
    if one.recall is None:
        return "nothing that can be judged"
    ends = "" if one.ci95 is None else " [{}, {}]".format(*(end_text(e)[1:] for e in one.ci95))
    return f"{one.recall:.3f}{ends}"


def _price(one: SweptValue) -> str:
    bare = "" if one.search_ms is None else " without encoding"
    return f"p50 {short_ms(one.ms or 0.0)} ms{bare}"


def _lead(found: Sweep) -> list[AnyNote]:
    told: list[AnyNote] = []
    first, name = found.levels[0], found.parameter
    chosen = first.chosen
    if chosen is not None and chosen.ms and first.exact_ms:
        took = f"An exhaustive search takes {short_ms(first.exact_ms)} ms"
        times = f", {times_text(first.exact_ms / chosen.ms)} as much"
        told.append(result(f"{took}{times if first.exact_ms >= chosen.ms else ': it is faster'}."))
    if first.may_do:
        values = ", ".join(f"{value:g}" for value in first.may_do)
        told.append(warning(f"{name} {values} may do, too: more queries would tell."))
    leaked = sum(one.leaked or 0 for level in found.levels for one in level.values)
    if leaked:
        text = f"{counted(leaked, 'hit')} leaked: the filter of their query does not allow them."
        told.append(warning(text))
    if found.status == "partial":
        told.append(warning("It was stopped: figures are of the calls that were made."))
    return [*told, *map(warning, found.warnings)]


def _values(found: Sweep, level: SweptLevel, title: str, *, full: bool) -> Table:
    bare = any(one.search_ms is not None for one in level.values)
    columns = [found.parameter, _column(found), f"{found.wanted:g}", "p50 ms"]
    columns += ["without encoding"] * bare
    shown = list(level.values) if full else _nearest(level)
    rows = [_value_row(one, level, bare=bare) for one in shown]
    exact: list[Content] = ["exhaustive", Cell("1"), "", Cell(level.exact_p50_ms, SHORT_MS)]
    rows.append([*exact, *([Cell(level.exact_search_ms, SHORT_MS)] * bare)])
    single = len(found.levels) == 1
    notes = _notes(found) if single else []
    if hidden := len(level.values) - len(shown):
        notes = [f"{counted(hidden, 'more value')}: -v", *notes]
    lead = _lead(found) if single else [result(_answer(found, level))]
    return Table(title, columns, rows, (len(rows) - 1,), notes, words=(0, 2), lead=lead)


def _nearest(level: SweptLevel) -> list[SweptValue]:
    values = list(level.values)
    at = next((i for i, one in enumerate(values) if one.value == level.cheapest), 0)
    start = max(0, min(at - _SHOWN // 2, len(values) - _SHOWN))
    return values[start : start + _SHOWN]


def _value_row(one: SweptValue, level: SweptLevel, *, bare: bool) -> list[Content]:
    chosen = one.value == level.cheapest
    word = "cheapest" if chosen else str(one.reach)
    row: list[Content] = [
        f"{one.value:g}",
        Cell(one.recall, SHORT_QUALITY, one.ci95, strong=chosen),
        word,
        Cell(one.p50_ms, SHORT_MS),
    ]
    return [*row, *([Cell(one.search_ms, SHORT_MS)] * bare)]


def _level_row(level: SweptLevel) -> Sequence[Content]:
    chosen = level.chosen
    best = chosen or max(level.values, key=lambda one: one.recall or 0.0)
    leaked = max((one.leaked for one in level.values if one.leaked is not None), default=None)
    value = f"{best.value:g}" if chosen else f"none; {best.value:g}"
    return [
        level.name,
        Cell(level.share, PERCENT),
        value,
        Cell(best.recall, SHORT_QUALITY, best.ci95),
        Cell(best.ms, SHORT_MS),
        Cell(level.exact_ms, SHORT_MS),
        count(leaked),
    ]


def _notes(found: Sweep) -> list[AnyNote]:
    first = found.levels[0]
    bare = any(one.search_ms is not None for one in first.values)
    notes: list[AnyNote] = [
        (
            f"{counted(first.queries, 'query')}; what ties with the last of the exact top "
            f"{found.k} counts as found. It says nothing of relevance: `bench` does."
        ),
        (
            f'"Finds" goes by the lower end of the 95 % interval, "cheapest" by p50'
            f"{' without encoding the query' if bare else ''}; values were timed in turn, call by "
            "call, the exhaustive search before them."
        ),
    ]
    if found.folder is not None:
        notes.append(next_step(f"saved: {relative_folder(found)}"))
    return notes
