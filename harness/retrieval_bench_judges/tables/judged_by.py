"""Tables of a judge: is it fit, and then each pair by people alone and by people and model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrieval_bench.comparison.pairs.delta import Delta
from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Verdict
from retrieval_bench.metrics import one_metric
from retrieval_bench.metrics.names import label_of
from retrieval_bench.reports.render.cells import COUNT, SHORT_DIFFERENCE, Content
from retrieval_bench.reports.render.table import AnyNote, Table, next_step, result, warning
from retrieval_bench.reports.render.words import verdict_label, word_beside
from retrieval_bench.stats.intervals import levels_text
from retrieval_bench_judges.alarms import told, untested
from retrieval_bench_judges.estimate import DIFFER, GAIN
from retrieval_bench_judges.fit import Fit, Rate, fits_of
from retrieval_bench_judges.judged_by import JudgedComparison, sentence
from retrieval_bench_judges.verdicts import JudgedPair
from retrieval_bench_labels.agreement import Agreement
from retrieval_bench_labels.store import Store

MOST = 6
"""Pairs of which that is said."""


def judged_tables(made: JudgedComparison, *, verbose: bool = True) -> list[Table]:
    """The fit, then the verdicts; of the deciding metric, or of all."""
    of = made.fit.judge
    whose = f"People judged {counted(made.queries_people, 'query')}, {of} {made.queries_both:,} of "
    whose += f"these and {made.queries_model:,} more."
    if made.queries_alike:
        whose += f" On {made.queries_alike:,} others all return the same."
    return [fit_table(made.fit, whose), _verdicts(made, verbose=verbose)]


def judge_tables(store: Store) -> list[Table]:
    """The fit of each model whose labels are beside people's; no verdict."""
    return [fit_table(fit) for fit in fits_of(store)]


def fit_table(fit: Fit, whose: str = "") -> Table:
    """Agreement with people, how far it follows them, what it costs, and alarms."""
    if not fit.documents:
        title = f"Is {fit.judge} fit to judge? Nobody knows: people judged nothing that it judged"
        return Table(title, (), (), (), [next_step("next:  retrieval-bench label start")])
    rows: list[Sequence[Content]] = [
        ("relevant, by people (base rate)", _share(fit.base_rate)),
        ("both say the same", _share(fit.agreement)),
        ("an answer that is always the same", _share(fit.constant)),
        ("Cohen's kappa", _kappa(fit.kappa)),
    ]
    rows += [
        (f"  {of.name}, {counted(of.queries, 'query')}", _kappa(of.kappa)) for of in fit.strata
    ]
    rows += [
        ("sensitivity (of what people call relevant)", _rate(fit.sensitivity)),
        ("specificity (of what they do not)", _rate(fit.specificity)),
    ]
    if fit.consistent is not None:
        of = counted(fit.repeated, "document")
        rows.append(("says the same again", f"{_share(fit.consistent)} of {of}"))
    if fit.tokens is not None:
        rows.append(("tokens an answer", COUNT(fit.tokens)))
    if fit.cost is not None:
        rows.append(("cost an answer", f"{fit.cost:.3g}"))
    title = (
        f"Is {fit.judge} fit to judge? It and people both judged "
        f"{counted(fit.documents, 'document')} of {counted(fit.queries, 'query')}"
    )
    notes: list[AnyNote] = [result(whose)] if whose else []
    notes += map(result, _followed(fit))
    if text := told(fit.judge, fit.alarms):
        below = (
            "What stands below by people and model corrects for it as far as people's labels do."
        )
        notes.append(warning(f"{text} {below}" if whose else text))
    elif fit.alarms:
        of = untested(fit.alarms)
        rest = f" No document tells whether it follows {of}." if of else ""
        notes.append(result(f"No alarm rang.{rest}"))
    notes += [
        warning(
            f"It fails on {stratum.name} ({counted(stratum.queries, 'query')}): nothing there "
            "shows agreement beyond chance."
        )
        for stratum in fit.strata
        if stratum.fails
    ]
    means = ["Brackets: 95 %, of whole queries drawn anew. Kappa does not say whether it misleads."]
    return Table(title, ("", ""), rows, (), means, (0, 1), notes)


def _followed(fit: Fit) -> list[str]:
    """How far the judge's differences follow people's, and what that is worth."""
    known = [
        f"{b} against {a}: rho {pair.rho:.2f}, both together worth {pair.worth:,.0f} questions "
        "judged by people."
        for pair in fit.differences
        for a, b in [pair.systems]
        if pair.rho is not None and pair.worth is not None
    ]
    return [*known[:MOST], *[f"{len(known) - MOST} more pairs in JSON."] * (len(known) > MOST)]


def _verdicts(made: JudgedComparison, *, verbose: bool) -> Table:
    pairs = list(made.pairs) if verbose else made.deciding
    rows: list[Sequence[Content]] = []
    for pair in pairs:
        of = f"{label_of(pair.both.metric)}: " * (verbose and len(made.metrics) > 1)
        row: list[Content] = [
            f"{of}{pair.both.b} against {pair.both.a}",
            *_cells(pair.people),
            *_together(pair),
        ]
        if verbose:
            row += ["-" if pair.rho is None else f"{pair.rho:.2f}"]
            row += ["-" if pair.worth is None else f"{pair.worth:,.0f}"]
        rows.append(row)
    columns = [label_of(made.metrics[0]), "people alone", "", "people and model", ""]
    columns += ["rho", "worth"] * verbose
    notes: list[AnyNote] = [*_left_out(made), *_method(made)]
    lead: list[AnyNote] = [*map(warning, made.warnings)]
    if made.why_people and not made.why_nothing:
        lead.append(warning(f"People alone decide: {made.why_people}."))
    elif not made.why_nothing and any(pair.decided_by == "people" for pair in made.deciding):
        metric = one_metric(made.metrics[0])
        text = (
            f"People alone decide: {metric} is a geometric mean."
            if metric.geometric
            else "Where people decide, the model's labels narrow the interval by less than "
            f"{100 * (1 - GAIN):.0f} %, rest on too few queries, hang on one, or differ from "
            f"people's on fewer than {DIFFER}."
        )
        lead.append(result(text))
    notes.append(next_step(f"labels: {made.labels}"))
    return Table(_answer(made), columns, rows, (), notes, (0, 2, 4), lead)


def _answer(made: JudgedComparison) -> str:
    pairs = made.deciding
    if len(pairs) == 1:
        return f"{made.dataset}: {sentence(made, pairs[0])}"
    shown = (Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT)
    closed, n = sum(pair.both.verdict in shown for pair in pairs), counted(len(pairs), "pair")
    return f"{made.dataset}: {closed} of {n} decided in {label_of(made.metrics[0])}"


def _cells(delta: Delta) -> tuple[Content, Content]:
    return (
        SHORT_DIFFERENCE(delta.difference, delta.ci),
        word_beside(verdict_label(delta.verdict), delta.bound),
    )


def _together(pair: JudgedPair) -> tuple[Content, Content]:
    """The verdict of both, or that people decide."""
    if pair.decided_by == "people" and pair.both.difference is not None:
        return "people decide", verdict_label(pair.both.verdict)
    return _cells(pair.both)


def _left_out(made: JudgedComparison) -> Iterator[str]:
    of, judge = made.left_out, made.fit.judge
    out = {
        "people began and did not finish": of.begun,
        f"neither people nor {judge} judged to the end": of.unlabelled,
    }
    alone = {
        f"stood in the prompt of {judge}": of.prompted,
        f"{judge} did not judge": of.judged_alone,
    }
    for what, queries in (("Left out", out), ("For people alone", alone)):
        if shown := [f"{counted(n, 'query')} that {which}" for which, n in queries.items() if n]:
            yield f"{what}: {'; '.join(shown)}."


def _method(made: JudgedComparison) -> Iterator[str]:
    yield made.judged_by
    if made.strata:
        shares = [f"{name or 'none'} {100 * share:.0f} %" for name, share in made.strata.items()]
        yield f"Strata, each by its share of the queries: {', '.join(shares)}."
    pairs = [pair.both for pair in made.deciding]
    test = "Student's t" if made.strata else "paired randomisation test, as in `compare`"
    levels = levels_text(pair.level for pair in pairs if pair.level is not None)
    brackets = f"; brackets: {levels}, each by its own test"
    yield (
        f"People alone: {test}. People and model: prediction-powered (PPI++), Student's t with "
        "leverage-corrected errors. Both: p < .05"
        f"{' after Holm' * (len(pairs) > 1)}"
        f"{brackets * any(pair.level is not None for pair in pairs)}."
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _rate(rate: Rate) -> str:
    if rate.ci95 is None:
        return _share(rate.share)
    return f"{_share(rate.share)} [{100 * rate.ci95[0]:.0f}, {100 * rate.ci95[1]:.0f}]"


def _kappa(kappa: Agreement) -> str:
    if kappa.known is None:
        return "no spread"
    ends = kappa.ci95
    shown = "too few to tell" if ends is None else f"[{ends[0]:.2f}, {ends[1]:.2f}]"
    return f"{kappa.value:.2f} {shown}"
