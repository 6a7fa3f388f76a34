"""Tables of tuning: the answer, the gap, the best settings, and each parameter by itself."""

from __future__ import annotations

from retrieval_bench.comparison.claims import left_open, unless_open
from retrieval_bench.comparison.recommendation import maybe_chance
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import p_text, short_ms, signed
from retrieval_bench.core.types import Verdict
from retrieval_bench.reports.render.cells import COUNT, DIFFERENCE, QUALITY, Cell, Content
from retrieval_bench.reports.render.table import (
    AnyNote,
    Note,
    NoteKind,
    Table,
    in_short,
    legend,
    result,
    warning,
)
from retrieval_bench.reports.render.words import (
    BOUND,
    bound_text,
    metric_label,
    on_dataset,
    unit_note,
)
from retrieval_bench.stats.clusters import number_of
from retrieval_bench.stats.intervals import graded, method
from retrieval_bench_tune.grid import Setting, as_yaml
from retrieval_bench_tune.price import Price
from retrieval_bench_tune.tuned import Tuning

SETTINGS_SHOWN = 10
"""The JSON document has all."""


def tuning_tables(tuning: Tuning) -> list[Table]:
    """The answer first; then the best settings, and what each parameter does."""
    return [answer_table(tuning), settings_table(tuning), *parameter_tables(tuning)]


def tuning_brief(tuning: Tuning) -> list[Table]:
    """The answer alone."""
    return in_short([answer_table(tuning)], "the best settings, each parameter, how it was chosen")


def answer_table(tuning: Tuning) -> Table:
    """Default and tuned on the tuning queries and on others, and the gap between the two."""
    chosen = tuning.selection
    gain, promised = tuning.held_out - tuning.default, chosen.tuning - chosen.default_tuning
    default = QUALITY(tuning.default, tuning.default_ci95)
    tuned = QUALITY(tuning.held_out, tuning.held_out_ci95)
    held_out = DIFFERENCE(gain, tuning.delta.ci)
    rows: list[list[Content]] = [
        ["default", QUALITY(chosen.default_tuning), default, DIFFERENCE(chosen.default_gap)],
        ["tuned", QUALITY(chosen.tuning), tuned, DIFFERENCE(chosen.gap)],
        ["tuned - default", DIFFERENCE(promised), held_out, DIFFERENCE(promised - gain)],
        ["naive", Cell(None), QUALITY(chosen.naive_mean), ""],
    ]
    return Table(
        sentence(tuning),
        [metric_label(tuning.metric), "tuning queries", "held out", "optimism gap"],
        rows,
        (2, 3),
        _notes(tuning),
    )


def sentence(tuning: Tuning) -> str:
    """The answer in one sentence."""
    name, data = tuning.retriever.name, tuning.dataset.name
    answer = {
        Verdict.BETTER: "tuning helps",
        Verdict.WORSE: f"tuning does harm, keep {name} as it is",
        Verdict.EQUIVALENT: "tuning changes nothing that matters",
    }.get(tuning.delta.verdict, "no gain from tuning is shown")
    if tuning.delta.doubted:
        answer += maybe_chance()
    gain = f"{signed(tuning.held_out - tuning.default)} {metric_label(tuning.metric)}"
    answer += f" ({gain} on held-out queries)"
    if tuning.winner.as_is and not tuning.delta.difference:
        answer = f"nothing that was tried is better than {name} as it is"
    return f"{name} {on_dataset(data)}: {unless_open('tune', answer, tuning.warnings)}"


def _notes(tuning: Tuning) -> list[AnyNote]:
    naive = _named(tuning.grid.settings[tuning.selection.naive])
    how = method(graded(tuning.metric.scale))
    return [
        result(_verdict(tuning)),
        result(_choice(tuning)),
        *([] if tuning.price is None else [result(_price(tuning.price))]),
        *(_cross_validation(tuning) if tuning.plan.dev_split is None else _dev_split(tuning)),
        legend(
            f"Naive: the best setting on the very queries that are reported ({naive}), as a search "
            "without held-out queries reports it."
        ),
        f"Brackets: 95 % over held-out queries ({how}), the choices taken as they are.",
        *unit_note(number_of(tuning.clusters)),
        *([] if tuning.delta.bound is None else [BOUND]),
        *map(warning, tuning.warnings),
    ]


def _choice(tuning: Tuning) -> str:
    """Recommend a setting: the winner only where it is shown to be worth it."""
    winner = _named(tuning.winner)
    if left_open("tune", tuning.warnings):
        return f"Nothing is recommended. Best on the tuning queries: {winner}."
    if tuning.winner.as_is or tuning.delta.verdict is Verdict.BETTER:
        return f"Recommended: {winner}."
    return (
        f"Recommended: {tuning.retriever.name} as it is, since no gain is shown. Best on the "
        f"tuning queries: {winner}."
    )


def _price(price: Price) -> str:
    """Compare the cost of the best setting with that of the default."""
    return (
        f"Its price: p50 {short_ms(price.tuned)} ms, the default {short_ms(price.default)} ms; "
        f"{price.ratio:.2f} times the default over {price.n:,} paired calls."
    )


def _cross_validation(tuning: Tuning) -> list[AnyNote]:
    plan, gaps = tuning.plan, tuning.selection.gaps
    times = "" if plan.repeats == 1 else f", {plan.repeats} times over"
    n = counted(len(tuning.query_ids), "query")
    tried = f"{_tried(tuning)} on {n} ({plan.split}), {plan.folds} folds{times}, seed {plan.seed}."
    notes: list[AnyNote] = [
        legend(tried),
        legend("Held out: each query by the setting that was best on the other folds."),
        "Tuning queries: these settings on the folds that they were chosen on.",
    ]
    if plan.repeats > 1:
        notes.append(f"The gap was {signed(gaps.min())} to {signed(gaps.max())} over the repeats.")
    return notes


def _dev_split(tuning: Tuning) -> list[AnyNote]:
    plan, n = tuning.plan, counted(tuning.values.shape[1], "query")
    others = f"{len(tuning.query_ids):,} others ({plan.split})"
    return [
        legend(f"{_tried(tuning)} and chosen on {n} ({plan.dev_split}); held out: {others}."),
        (
            "Optimism gap of the default, which was not chosen: how much the two splits differ. Of "
            "tuned - default: how much the choice promised too much."
        ),
    ]


def _tried(tuning: Tuning) -> str:
    n = len(tuning.grid.settings)
    of = f" of {tuning.grid.n_combinations:,}, drawn at random," if tuning.grid.sampled else ""
    return f"{counted(n, 'setting')}{of} were tried at k = {tuning.k}"


def _verdict(tuning: Tuning) -> str:
    delta = tuning.delta
    verdict = {
        Verdict.EQUIVALENT: "Tuned and default are equivalent",
        Verdict.UNDECIDED: "These queries can't tell tuned and default apart",
        Verdict.UNRESOLVABLE: "So few queries can't tell tuned and default apart",
        Verdict.MISSING: "Tuned and default could not be compared",
    }.get(delta.verdict, f"Tuned is {delta.verdict.value} than the default")
    won = f"{delta.wins:,} queries won, {delta.ties:,} tied, {delta.losses:,} lost"
    test = f"p {p_text(delta.p)}" if delta.p is not None else "no test"
    if delta.bound is not None:
        test = f"{test}, {bound_text(delta.bound)}"
    more = ""
    if delta.queries_needed is not None:
        queries = counted(delta.queries_needed, "more query")
        more = f" About {queries} would show {delta.needed_for}."
    return f"{verdict} (paired randomisation test, {test}; {won}).{more}"


def settings_table(tuning: Tuning) -> Table:
    """The best settings on the tuning queries."""
    chosen, settings = tuning.selection, tuning.grid.settings
    means = tuning.means.tolist()
    order = sorted(range(len(settings)), key=lambda at: (-round(means[at], 12), at))
    best = order[:SETTINGS_SHOWN]
    if 0 not in best:
        best.append(0)
    paths = list(tuning.grid.parameters)
    several = tuning.plan.dev_split is None
    rows: list[list[Content]] = [
        [
            COUNT(order.index(at) + 1),
            *(_value(settings[at], path) for path in paths),
            QUALITY(means[at]),
            *([COUNT(chosen.times_chosen(at))] if several else []),
            "default" if settings[at].as_is else "",
        ]
        for at in best
    ]
    notes: list[AnyNote] = [
        "On the tuning queries the order is in part luck, and the means promise too much."
    ]
    if several:
        notes.append(f"Chosen: in how many of {len(chosen.choices)} folds.")
    if tuning.legs:
        notes.append(f"Legs, and their weights: {', '.join(tuning.legs)}.")
    if len(settings) > len(best):
        text = f"{counted(len(settings) - len(best), 'more setting')}: --format json has all."
        notes.append(Note(text, NoteKind.MORE))
    columns = ["", *paths, metric_label(tuning.metric), *(["chosen"] if several else []), ""]
    return Table(
        f"Best of {counted(len(settings), 'setting')} on the tuning queries",
        columns,
        rows,
        [SETTINGS_SHOWN] if len(best) > SETTINGS_SHOWN else [],
        notes,
        words=(*range(1 + len(paths)), len(columns) - 1),
    )


def _value(setting: Setting, path: str) -> Content:
    return as_yaml(setting.values[path]) if path in setting.values else Cell(None)


def parameter_tables(tuning: Tuning) -> list[Table]:
    """Each parameter of several values by itself."""
    centre, tables = tuning.centre(), []
    for path, view in tuning.views().items():
        if len(view) < 2:
            continue
        rows: list[list[Content]] = [
            [as_yaml(value), QUALITY(mean, marks="*" if value == centre.values[path] else "")]
            for value, mean in view
        ]
        others = Setting({p: value for p, value in centre.values.items() if p != path})
        around = f", with {others}" if others.values else ""
        tables.append(Table(f"By {path}{around}", [path, metric_label(tuning.metric)], rows))
    if tables:
        tables[-1] = tables[-1].with_notes(["On the tuning queries. *: in the best setting."])
    return tables


def _named(setting: Setting) -> str:
    if not setting.as_is:
        return str(setting)
    return f"the default ({setting})" if setting.values else "the default"
