"""Names on the screen: of metrics, verdicts, and of systems in superscripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import end_text
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import Metric
from retrieval_bench.metrics.names import label_of
from retrieval_bench.reports.render.cells import Cell, Content, Label

_VERDICTS = {
    Verdict.UNDECIDED: "can't tell",
    Verdict.UNRESOLVABLE: "can't tell",
    Verdict.MISSING: "not known",
}
_TIMES = {
    Verdict.BETTER: "faster",
    Verdict.WORSE: "slower",
    Verdict.EQUIVALENT: "equally fast",
    Verdict.MISSING: "no times",
}

BOUND = (
    "Where a careful interval is printed, quote it: so few queries make the difference that the "
    "other may be too narrow. The careful one assumes nothing but the range of the metric "
    "(Gaffke's bound)."
)

_CAREFUL = "careful interval"

LETTERS = "abcdefghijklmnoprstuvwxyz"
"""Without q, whose raised form many fonts lack."""


_WORDS = (
    "all average balance both cost demand dev hold latency line memory paper purpose quality "
    "queries record schedule speed target test time top track train trial"
)
"""Names of datasets that a heading would turn into something else: "faster on average"."""


def unit_note(clusters: int | None, key: str | None = None) -> list[str]:
    """Say what tests and intervals are of; nothing where it is queries."""
    by = f" (by {key})" if key else ""
    of = f"{counted(clusters, 'cluster')}{by}" if clusters else ""
    return [f"Tests and intervals are of {of}; means are of queries."] if of else []


def on_dataset(name: str) -> str:
    """``on NAME``, as headings say it; a common word is said to be the name of a dataset."""
    return f"on {'dataset ' if name.casefold() in _WORDS.split() else ''}{name}"


def metric_label(metric: Metric | str) -> Label:
    """The name that people use: MRR@10 for RR@10, MAP for AP, recall@100 for R@100."""
    return Label(label_of(metric), str(metric))


def verdict_label(verdict: Verdict, *, identical: bool | None = None) -> Label:
    """A verdict on quality in words; of ``identical`` rankings, that they are."""
    if identical and verdict.open:
        return Label("identical rankings", verdict.value)
    return Label(_VERDICTS.get(verdict, verdict.value), verdict.value)


def speed_label(verdict: Verdict) -> Label:
    """A verdict on time in words."""
    words = _TIMES.get(verdict, _VERDICTS.get(verdict, verdict.value))
    return Label(words, words if verdict in _TIMES else verdict.value)


def letter(place: int, of: int) -> str:
    """Name system ``place``, from 0, of ``of``: letters, numbers where they run out."""
    return LETTERS[place] if of <= len(LETTERS) else str(place + 1)


def marks(places: Sequence[int], of: int) -> str:
    """Mark several systems, rising; four or more in a row as a range: "abd", "a-e". Where letters
    run out, only how many they are: of numbers nobody would find one again."""
    if of > len(LETTERS):
        return str(len(places)) if places else ""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    parts: list[str] = []
    for run in runs:
        names = [letter(place, of) for place in run]
        parts += [f"{names[0]}-{names[-1]}"] if len(run) > 3 else names
    return "".join(parts)


def meaning(of: int) -> str:
    """Explain superscripts, as a note."""
    what = "that many" if of > len(LETTERS) else "those"
    return (
        f"Superscripts: significantly better than {what} systems (p < .05, Holm-corrected within "
        "each metric)."
    )


def bound_text(bound: tuple[float, float]) -> str:
    """The bound that stands beside an interval."""
    return f"{_CAREFUL} {ends_text(bound)}"


def ends_text(interval: tuple[float, float]) -> str:
    """The interval of a difference."""
    return "[{}, {}]".format(*map(end_text, interval))


def word_beside(word: Label, bound: tuple[float, float] | None) -> Content:
    """``word`` with the bound behind it, where there is one."""
    return Cell(word, remark=bound_remark(bound)) if bound else word


def quoting(rows: Iterable[Iterable[Content]]) -> list[str]:
    """Advice on the bounds that stand in ``rows``; nothing where none does."""
    shown = (cell.remark for row in rows for cell in row if isinstance(cell, Cell))
    return [BOUND] if any(_CAREFUL in remark for remark in shown) else []


def bound_remark(bound: tuple[float, float] | None) -> str:
    """The same behind a word; empty where there is none."""
    return "" if bound is None else f"({bound_text(bound)})"
