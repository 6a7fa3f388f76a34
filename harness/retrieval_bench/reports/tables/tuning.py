"""What is shown of tuning: the answer, the gap, the best settings, and each parameter by itself."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import interval_of, p_text, quality_text, short_quality, signed
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.table import Table
from retrieval_bench.tuning.grid import Setting, as_yaml
from retrieval_bench.tuning.result import Tuning

SETTINGS_SHOWN = 10
"""The JSON document has all."""


def tuning_tables(found: Tuning) -> list[Table]:
    """The answer first; then the best settings, and what each parameter does."""
    return [answer_table(found), settings_table(found), *parameter_tables(found)]


def answer_table(found: Tuning) -> Table:
    """Default and tuned on the tuning queries and on others, and the gap between the two."""
    chosen, delta = found.selection, found.delta
    gain = found.held_out - found.default
    tuning_gain = chosen.tuning - chosen.default_tuning
    rows = [
        _row("default", chosen.default_tuning, found.default, chosen.default_gap),
        _interval(found.default_ci95),
        _row("tuned", chosen.tuning, found.held_out, chosen.gap),
        _interval(found.held_out_ci95),
        [
            "tuned - default",
            signed(tuning_gain),
            signed(gain),
            signed(tuning_gain - gain),
        ],
        ["", "", interval_of(delta.ci95, lambda value: f"{value:+.3f}"), ""],
        ["naive", "-", quality_text(chosen.naive_mean), ""],
    ]
    return Table(
        sentence(found),
        [str(found.metric), "tuning queries", "held out", "optimism gap"],
        rows,
        (4, 6),
        _notes(found),
    )


def sentence(found: Tuning) -> str:
    """The answer in one sentence."""
    name, data = found.retriever.name, found.dataset["name"]
    gain = f"{signed(found.held_out - found.default)} {found.metric} held out"
    if found.winner.as_is and not found.delta.difference:
        return f"{name} on {data}: nothing that was tried is better than {name} as it is"
    told = {
        Verdict.BETTER: f"tuning helps: {gain}",
        Verdict.WORSE: f"tuning does harm: {gain}; keep {name} as it is",
        Verdict.EQUIVALENT: f"tuning changes nothing that matters: {gain}",
    }.get(found.delta.verdict, f"no gain from tuning is shown: {gain}")
    return f"{name} on {data}: {told}"


def _row(name: str, tuning: float, held_out: float, gap: float) -> list[str]:
    return [name, quality_text(tuning), quality_text(held_out), signed(gap)]


def _interval(ends: Sequence[float] | None) -> list[str]:
    return ["", "", interval_of(ends, short_quality), ""]


def _notes(found: Tuning) -> list[str]:
    naive = _shown(found.grid.settings[found.selection.naive])
    alike = f"naive: the best of all on the very queries that are reported ({naive}), as a search"
    return [
        _verdict(found),
        _choice(found),
        *(_cross_validation(found) if found.plan.dev_split is None else _dev_split(found)),
        f"{alike} reports it that holds nothing out",
        "intervals: percentile bootstrap over held-out queries, the choices taken as they are",
        *(f"warning: {text}" for text in found.warnings),
    ]


def _choice(found: Tuning) -> str:
    """What is recommended: the winner only where it is shown to be worth it."""
    winner = _shown(found.winner)
    if found.winner.as_is or found.delta.verdict is Verdict.BETTER:
        return f"recommended: {winner}"
    return (
        f"recommended: {found.retriever.name} as it is, since no gain is shown; best on the tuning "
        f"queries: {winner}"
    )


def _cross_validation(found: Tuning) -> list[str]:
    plan, gaps = found.plan, found.selection.gaps
    times = "" if plan.repeats == 1 else f", {plan.repeats} times over"
    n = counted(len(found.query_ids), "query")
    notes = [
        f"{_tried(found)} on {n} ({plan.split}), {plan.folds} folds{times}, seed {plan.seed}",
        "held out: each query by the setting that was best on the other folds",
        "tuning queries: these settings on the folds that they were chosen on",
    ]
    if plan.repeats > 1:
        notes.append(f"the gap was {signed(gaps.min())} to {signed(gaps.max())} over the repeats")
    return notes


def _dev_split(found: Tuning) -> list[str]:
    plan, n = found.plan, counted(found.values.shape[1], "query")
    reported = f"{len(found.query_ids):,} others ({plan.split})"
    differ = "gap: that of the default, which was not chosen, is what the two splits differ by"
    return [
        f"{_tried(found)}, chosen on {n} ({plan.dev_split}), held out: {reported}",
        f"{differ}; that of tuned - default is what choosing promised too much",
    ]


def _tried(found: Tuning) -> str:
    n = len(found.grid.settings)
    of = f" of {found.grid.n_combinations:,}, drawn at random," if found.grid.sampled else ""
    return f"{counted(n, 'setting')}{of} tried at k = {found.k}"


def _verdict(found: Tuning) -> str:
    delta = found.delta
    told = f"verdict: tuned is {delta.verdict.value}"
    told = {
        Verdict.EQUIVALENT: "verdict: tuned and default are equivalent",
        Verdict.UNDECIDED: "verdict: undecided",
    }.get(delta.verdict, f"{told} than the default")
    won = f"{delta.wins:,} queries won, {delta.ties:,} tied, {delta.losses:,} lost"
    test = f"p {p_text(delta.p)}" if delta.p is not None else "no test"
    if delta.queries_needed is not None:
        told += f", ~{delta.queries_needed:,} more queries would show {delta.needed_for}"
    return f"{told} (paired randomisation test, {test}; {won})"


def settings_table(found: Tuning) -> Table:
    """The best settings on the tuning queries."""
    chosen, settings = found.selection, found.grid.settings
    means = found.means.tolist()
    order = sorted(range(len(settings)), key=lambda at: (-round(means[at], 12), at))
    shown = order[:SETTINGS_SHOWN]
    if 0 not in shown:
        shown.append(0)
    total = len(chosen.choices)
    paths = list(found.grid.parameters)
    several = found.plan.dev_split is None
    rows = [
        [
            f"{order.index(at) + 1:,}",
            *_cells(settings[at], paths),
            quality_text(means[at]),
            *([f"{chosen.times_chosen(at)} of {total}"] if several else []),
            "default" if settings[at].as_is else "",
        ]
        for at in shown
    ]
    last = [len(rows) - 1] if len(shown) > SETTINGS_SHOWN else []
    notes = ["on the tuning queries: the order is in part luck, the means promise too much"]
    if found.legs:
        notes.append(f"legs, and their weights: {', '.join(found.legs)}")
    if len(settings) > len(shown):
        notes.append(f"{len(settings) - len(shown):,} more settings: --format json has all")
    return Table(
        f"Best of {counted(len(settings), 'setting')} on the tuning queries",
        ["", *paths, str(found.metric), *(["chosen"] if several else []), ""],
        rows,
        last,
        notes,
        words=(len(paths) + (3 if several else 2),),
    )


def _cells(setting: Setting, paths: Sequence[str]) -> list[str]:
    return [as_yaml(setting.values[path]) if path in setting.values else "-" for path in paths]


def parameter_tables(found: Tuning) -> list[Table]:
    """Each parameter of several values by itself."""
    centre = found.centre()
    tables = []
    for path, view in found.views().items():
        if len(view) < 2:
            continue
        rows = [
            [as_yaml(value), quality_text(mean), "*" if value == centre.values[path] else ""]
            for value, mean in view
        ]
        others = Setting({p: value for p, value in centre.values.items() if p != path})
        around = f", {others}" if others.values else ""
        tables.append(
            Table(f"By {path}{around}", [path, str(found.metric), ""], rows, words=(0, 2))
        )
    if tables:
        tables[-1] = tables[-1].with_notes(["on the tuning queries; *: in the best setting"])
    return tables


def _shown(setting: Setting) -> str:
    if not setting.as_is:
        return str(setting)
    return f"the default ({setting})" if setting.values else "the default"
