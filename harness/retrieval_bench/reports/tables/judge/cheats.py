"""Tables of an audit of metric code: a row for each cheat, and what is wrong in words."""

from __future__ import annotations

from retrieval_bench.core.errors import counted
from retrieval_bench.reports.render.cells import QUALITY, Content
from retrieval_bench.reports.render.table import Table, result, warning
from retrieval_bench.scoring.cheats import ScorerAudit


def cheat_tables(audit: ScorerAudit) -> list[Table]:
    """One table, with how many are wrong above it, and why below."""
    rows: list[list[Content]] = [
        [
            outcome.cheat,
            outcome.what,
            QUALITY(outcome.got),
            QUALITY(outcome.fair),
            outcome.verdict,
        ]
        for outcome in audit.outcomes
    ]
    wrong = [outcome for outcome in audit.outcomes if outcome.verdict == "wrong"]
    others = [outcome for outcome in audit.outcomes if outcome.says and outcome.verdict != "wrong"]
    answer = (
        f"{audit.scorer} gets {counted(audit.wrong, 'cheat')} of {len(audit.outcomes)} wrong."
        if wrong
        else f"None of {len(audit.outcomes)} cheats wins with {audit.scorer}."
    )
    return [
        Table(
            f"Inputs that must not win, scored by {audit.scorer}",
            ("cheat", "what is given", "value", "to compare", "verdict"),
            rows,
            notes=[
                *(warning(f"{outcome.cheat}: {outcome.says}.") for outcome in wrong),
                *(f"{other.cheat}: {other.says}." for other in others),
                f"An ordinary run is worth {audit.honest:.4f}.",
                "A cheat is to be worth at most the value beside it.",
            ],
            lead=[result(answer)],
            words=(0, 1),
        )
    ]
