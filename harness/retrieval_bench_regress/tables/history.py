"""Tables of a history: the subjects, or the runs of one and the duets beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval_bench.core.config import flat
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import ms_text, quality_text
from retrieval_bench.core.installed.installation import typed
from retrieval_bench.reports.render.cells import COUNT, MILLISECONDS, QUALITY, RATIO, Content, Label
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result
from retrieval_bench.reports.render.text import cut
from retrieval_bench.reports.render.words import metric_label, on_dataset
from retrieval_bench_regress.history.facts import Figure, Records, Same, SavedDuet
from retrieval_bench_regress.history.history import P50, P95, Subject

_QUALITY, _TIMES = Label("quality", "same_quality"), Label("times", "same_times")
"""Columns of keys."""

_SHORT, _FACTS, _CELLS, _KEYS = 6, 3, 80, 8
"""Characters of a key or a config; facts that tell two of them apart, and columns of each."""


def history_tables(
    subjects: Sequence[Subject], records: Records, notes: Sequence[str] = ()
) -> list[Table]:
    """One table of runs and one of duets; of several subjects a line each.

    Args:
        notes: to stand at the end, such as where the picture is.
    """
    last: list[AnyNote] = [*records.notes, *notes]
    if len(subjects) != 1:
        return [_overview(subjects).with_notes(last)]
    (subject,) = subjects
    if subject.newest_pair:
        command = typed("compare", *(str(run.folder) for run in subject.newest_pair))
        last.append(next_step("To compare the two newest runs that have the same keys:"))
        last.append(next_step(command))
    tables = [_runs(subject)] if subject.runs else []
    tables += [_duets(subject)] if subject.duets else []
    return [*tables[:-1], tables[-1].with_notes(last)]


def _overview(subjects: Sequence[Subject]) -> Table:
    names = list(dict.fromkeys(subject.retriever for subject in subjects))
    dataset = subjects[0].dataset if len(names) == 1 else None
    # As words: of an option whose usual value it is nothing would be written.
    more = [] if dataset is None else ["--dataset", dataset]
    command = typed("data", "history", *(names[:1] or ["NAME"]), *more)
    newest = [(subject.newest, "".join(subject.metrics[:1])) for subject in subjects]
    return _table(
        f"Saved runs of {counted(len(names), 'retriever')}",
        {
            "retriever": [subject.retriever for subject in subjects],
            "dataset": [subject.dataset for subject in subjects],
            "runs": [COUNT(subject.n_runs) for subject in subjects],
            "last, UTC": [_minute(subject.last) for subject in subjects],
            "metric": [metric_label(name) for _, name in newest],
            "mean": [QUALITY(_value(run.metrics if run else {}, name)) for run, name in newest],
            "p50 ms": [MILLISECONDS(_value(run.latency if run else {}, P50)) for run, _ in newest],
        },
        [
            "mean and p50 are those of the newest run.",
            next_step(f"To see one over time, with a picture: {command}"),
        ],
    )


def _runs(subject: Subject) -> Table:
    runs = subject.runs
    notes = ["p50, p95: milliseconds of a call. Whether a time moved is decided by a duet."]
    if any(run.dirty for run in runs):
        notes.append("+: files differed from the commit.")
    notes += _apart("config:", {_config(run.config): run.params for run in runs})
    notes += _keyed(_QUALITY, [run.same_quality for run in runs])
    notes += _keyed(_TIMES, [run.same_times for run in runs])
    if partial := sum(run.same_quality is None for run in runs):
        notes.append(
            f"{counted(partial, 'run')} cut short: comparable with none, since the means are over "
            "other queries."
        )
    if failed := sum(run.failed > 0 for run in runs):
        notes.append(f"Calls failed in {counted(failed, 'run')}: see n_failed in --format json.")
    columns: dict[str, Sequence[Content]] = {
        "date, UTC": [_minute(run.created) for run in runs],
        "revision": [run.revision for run in runs],
        **_if_several("config", [_config(run.config) for run in runs]),
    }
    for metric in subject.metrics:
        columns[metric_label(metric)] = [QUALITY(_value(run.metrics, metric)) for run in runs]
    for level in (P50, P95):
        columns[level] = [MILLISECONDS(_value(run.latency, level)) for run in runs]
    columns |= _if_several(_QUALITY, [_key(run.same_quality, run.status) for run in runs])
    columns |= _if_several(_TIMES, [_key(run.same_times) for run in runs])
    title = _title(subject, len(runs), subject.n_runs, "run")
    return _table(title, columns, notes, _newest(subject))


def _newest(subject: Subject) -> list[AnyNote]:
    """The figures of the last whole run, as a sentence."""
    run, metric = subject.newest, "".join(subject.metrics[:1])
    if run is None:
        return []
    mean, p50 = _value(run.metrics, metric), _value(run.latency, P50)
    figures = [] if mean is None else [f"{metric_label(metric)} {quality_text(mean)}"]
    figures += [] if p50 is None else [f"p50 {ms_text(p50)} ms"]
    return [result(f"The newest run ({_minute(run.created)}): {', '.join(figures)}.")]


def _duets(subject: Subject) -> Table:
    duets = subject.duets
    sides = ", ".join(dict.fromkeys(map(_side_a, duets)))
    notes = [f"Latency ratio, revision / side a, with its 98 % interval. Side a: {sides}."]
    notes += _keyed("key", [duet.same_times for duet in duets])
    if free := sum(duet.same_times is None for duet in duets):
        notes.append(
            f"{counted(free, 'duet')} comparable with none: side a is not a revision (--rev-a)."
        )
    columns: dict[str, Sequence[Content]] = {
        "date, UTC": [_minute(duet.created) for duet in duets],
        "revision": [duet.revision for duet in duets],
    }
    for gate in (P50, P95):
        ratios = [duet.ratios.get(gate) for duet in duets]
        columns[gate] = [RATIO(r.value, r.interval) if r else RATIO(None) for r in ratios]
    columns["verdict"] = [duet.verdict for duet in duets]
    columns |= _if_several("key", [_key(duet.same_times, "none") for duet in duets])
    return _table(_title(subject, len(duets), subject.n_duets, "duet"), columns, notes)


def _side_a(duet: SavedDuet) -> str:
    same = duet.same_times
    return duet.against if same is None else f"{duet.against} ({str(same.facts['commit'])[:7]})"


def _table(
    title: str,
    columns: Mapping[str, Sequence[Content]],
    notes: Sequence[AnyNote],
    lead: Sequence[AnyNote] = (),
) -> Table:
    """Of columns that hold words or figures."""
    words = [at for at, cells in enumerate(columns.values()) if isinstance((*cells, "")[0], str)]
    rows = list(zip(*columns.values(), strict=True))
    return Table(title, list(columns), rows, notes=notes, words=words, lead=lead)


def _title(subject: Subject, shown: int, there: int, noun: str) -> str:
    some = "" if shown == there else f"the newest {shown:,} of "
    return f"{subject.retriever} {on_dataset(subject.dataset)}: {some}{counted(there, noun)}"


def _minute(created: str) -> str:
    return created[:16].replace("T", " ")


def _value(figures: Mapping[str, Figure], name: str) -> float | None:
    return figures[name].value if name in figures else None


def _config(config: str | None) -> str:
    return (config or "object")[:_SHORT]


def _key(same: Same | None, otherwise: str = "-") -> str:
    return otherwise if same is None else str(same)[:_SHORT]


def _if_several(head: str, cells: Sequence[str]) -> dict[str, Sequence[Content]]:
    """A column, where it tells rows apart; a figure that is missing tells nothing."""
    return {head: cells} if len({*cells} - {"-"}) > 1 else {}


def _keyed(head: str, keys: Sequence[Same | None]) -> list[str]:
    """Lines on how rows with different keys differ."""
    named = {_key(key): dict(flat({**key.facts, **key.words})) for key in keys if key is not None}
    return _apart(f"{head}: compare only rows with the same key.", named)


def _apart(head: str, named: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What tells those apart that have a name each; nothing of one alone."""
    if len(named) < 2:
        return []
    other: dict[str, tuple[str | None, ...]] = {}
    for name in dict.fromkeys(name for facts in named.values() for name in facts):
        column = tuple(facts.get(name) for facts in named.values())
        same = other.get(name.removeprefix("protocol.")) == column  # threads stand there, too
        if len(set(column)) > 1 and not same:
            other[name] = column
    telling: list[str] = []
    for name in other:
        if _n_apart(other, [*telling, name]) > _n_apart(other, telling):
            telling.append(name)
    more = [name for name in other if name not in telling][: max(0, _FACTS - len(telling))]
    shown = [name for name in other if name in (*telling, *more)]
    left = [f"{len(other) - len(shown)} more"] if len(other) > len(shown) else []
    if _n_apart(other, telling) < len(named):
        left.append("or other legs")
    each = []
    for key, facts in list(named.items())[-_KEYS:]:
        values = [(name, cut(facts.get(name, "not set") or "none", _CELLS)) for name in shown]
        told = [f"{name.removeprefix('protocol.')} {value}" for name, value in values]
        each.append(f"{key} = {', '.join(told + left).removeprefix('or ')}")
    older = [f"{len(named) - _KEYS} older: --format json"] if len(named) > _KEYS else []
    return [f"{head} {'; '.join(older + each)}."]


def _n_apart(columns: Mapping[str, tuple[str | None, ...]], names: Sequence[str]) -> int:
    """Count what the facts of these names tell apart."""
    return len(set(zip(*(columns[name] for name in names), strict=True))) if names else 1
