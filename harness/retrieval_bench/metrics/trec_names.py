"""trec_eval's measures by its own names: what each is here, and how trec_eval writes it.

``-m P.5,10`` asks for two, ``-m official`` for a set; a set also has rows that are no metric.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

_CUTS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
_ELEVEN = tuple(f"{tenth / 10}" for tenth in range(11))


class Row(NamedTuple):
    """A line that trec_eval prints.

    Attributes:
        name: what stands first in it.
        metric: ours; empty for what is no metric.
    """

    name: str
    metric: str


@dataclass(frozen=True, slots=True)
class _Measure:
    """Attributes:
    ours: a name here, with {} where the parameters stand.
    takes: what the parameters are: one value for each line (ranks, shares), or all for one.
    unless: its parameters where none are given; none where there need be none.
    bare: whether the name alone is read; where not, it means something else here, or nothing.
    """

    ours: str
    takes: Literal["nothing", "ranks", "shares", "numbers", "pairs"] = "nothing"
    unless: tuple[str, ...] = ()
    bare: bool = True


_MEASURES: Mapping[str, _Measure] = {
    "runid": _Measure("", bare=False),
    "num_q": _Measure("NumQ"),
    "num_ret": _Measure("NumRet"),
    "num_rel": _Measure("NumRel"),
    "num_rel_ret": _Measure("NumRelRet"),
    "map": _Measure("AP"),
    "gm_map": _Measure("GMAP"),
    "Rprec": _Measure("Rprec"),
    "bpref": _Measure("Bpref"),
    "recip_rank": _Measure("RR"),
    "iprec_at_recall": _Measure("IPrec@{}", "shares", _ELEVEN),
    "P": _Measure("P@{}", "ranks", _CUTS, bare=False),
    "relstring": _Measure("", bare=False),
    "recall": _Measure("R@{}", "ranks", _CUTS, bare=False),
    "infAP": _Measure("infAP"),
    "gm_bpref": _Measure("GMBpref"),
    "Rprec_mult": _Measure(
        "Rprec(mult={})", "shares", tuple(f"{tenth / 10}" for tenth in range(2, 21, 2))
    ),
    "utility": _Measure("Utility(weights=[{}])", "numbers"),
    "11pt_avg": _Measure("IAP(recalls=[{}])", "numbers"),
    "binG": _Measure("binG"),
    "G": _Measure("G(gains={{{}}})", "pairs"),
    "ndcg": _Measure("nDCG(gains={{{}}})", "pairs"),
    "ndcg_rel": _Measure("nDCG_rel(gains={{{}}})", "pairs"),
    "Rndcg": _Measure("Rndcg(gains={{{}}})", "pairs"),
    "ndcg_cut": _Measure("nDCG@{}", "ranks", _CUTS),
    "map_cut": _Measure("AP@{}", "ranks", _CUTS),
    "relative_P": _Measure("P(relative=True)@{}", "ranks", _CUTS),
    "success": _Measure("Success@{}", "ranks", ("1", "5", "10"), bare=False),
    "set_P": _Measure("set_P"),
    "set_relative_P": _Measure("set_P(relative=True)"),
    "set_recall": _Measure("set_R"),
    "set_map": _Measure("set_AP"),
    "set_F": _Measure("set_F(beta={})", "numbers"),
    "num_nonrel_judged_ret": _Measure("NumNonrelRet"),
    "yaap": _Measure("YAAP"),
    "rbp": _Measure("RBP({})", "pairs", ("p=0.9",)),
    "rbp_resid": _Measure("RBP_resid"),
    "unj": _Measure("Unjudged@{}", "ranks", ("5", "10", "20")),
}
"""In the order in which trec_eval prints them."""

SETS: Mapping[str, tuple[str, ...]] = {
    "official": tuple(_MEASURES)[:12],
    "all_trec": tuple(name for name in _MEASURES if name != "yaap"),
    "set": (
        *tuple(_MEASURES)[:5],
        *("utility", "set_P", "set_relative_P", "set_recall", "set_map", "set_F"),
    ),
}
"""trec_eval's names of several measures; its other sets need judgements of another form."""

_NAME = re.compile(rf"({'|'.join(sorted(_MEASURES, key=len, reverse=True))})(?:[._](.+))?")
_FORMS = {
    "ranks": r"\d+",
    "shares": r"\d*\.?\d+",
    "numbers": r"-?\d*\.?\d+",
    "pairs": r"\w+=-?\d*\.?\d+",
}


def expanded(text: str) -> tuple[Row, ...]:
    """The lines that ``-m text`` makes trec_eval print; none where it is no name of trec_eval's, or
    one that means something else here."""
    if text in SETS:
        return tuple(row for name in SETS[text] for row in _rows(name, _MEASURES[name].unless))
    match = _NAME.fullmatch(text)
    if match is None:
        return ()
    name, given = match[1], match[2]
    measure = _MEASURES[name]
    if given is None:
        return _rows(name, measure.unless) if measure.bare else ()
    values = tuple(given.split(","))
    form = _FORMS.get(measure.takes)
    if form is None or not all(re.fullmatch(form, value) for value in values):
        return ()
    return _rows(name, values, given=True)


def row_of(metric: str) -> Row:
    """The line of a metric with our name: trec_eval's, where it has the measure, else ours."""
    for name, measure in _MEASURES.items():
        form = re.escape(measure.ours.format("\0")).replace(re.escape("\0"), "(.+)")
        match = re.fullmatch(form, metric) if measure.ours else None
        if match is not None:
            values = tuple(match[1].replace(":", "=").split(",")) if match.groups() else ()
            return _rows(name, values, given=True)[0]._replace(metric=metric)
        if measure.takes in ("numbers", "pairs") and measure.ours.partition("(")[0] == metric:
            return Row(name, metric)
    return Row(metric, metric)


def in_order(rows: Sequence[Row]) -> list[Row]:
    """``rows`` as trec_eval prints them, each once; those that it does not have come last."""
    places = {name: place for place, name in enumerate(_MEASURES)}

    def place(row: Row) -> tuple[int, float]:
        match = _NAME.fullmatch(row.name)
        if match is None:
            return len(places), 0.0
        number = re.fullmatch(r"\d*\.?\d+", match[2] or "")
        return places[match[1]], float(match[2]) if number else 0.0

    return sorted(dict.fromkeys(rows), key=place)


def _rows(name: str, values: tuple[str, ...], *, given: bool = False) -> tuple[Row, ...]:
    measure = _MEASURES[name]
    if measure.takes in ("ranks", "shares"):
        ends = values if measure.takes == "ranks" else [f"{float(value):.2f}" for value in values]
        pairs = zip(ends, values, strict=True)
        return tuple(Row(f"{name}_{end}", measure.ours.format(value)) for end, value in pairs)
    if not values:
        return (
            Row(
                name, measure.ours.partition("(")[0] if measure.takes != "nothing" else measure.ours
            ),
        )
    inner = ",".join(values)
    if name != "rbp":
        inner = inner.replace("=", ":")
    return (Row(f"{name}_{','.join(values)}" if given else name, measure.ours.format(inner)),)
