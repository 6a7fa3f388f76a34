"""First lines of commands against warnings: no cell is open, and what is void is not claimed."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, cast

import pytest

from retrieval_bench.comparison.claims import (
    SHARED,
    VOIDS,
    Claim,
    Void,
    first_lines,
    in_doubt,
    left_open,
    unless_open,
)
from retrieval_bench.core.notices import Code, Notice

CELLS = [(command, code) for command, line in first_lines().items() if line.claims for code in Code]


def _said(code: Code) -> list[Notice]:
    return [Notice(f"It says {code.value}. Do this.", code)]


@pytest.mark.parametrize(("command", "code"), CELLS)
def test_each_cell_says_whether_the_claim_stands(command: str, code: Code) -> None:
    line = first_lines()[command]
    parts = dict(zip(Claim, VOIDS[code], strict=True))
    void = any(parts[of] in (*what, Void.ALL) for of, what in line.claims.items())
    void = void and not (line.itself and code in SHARED)
    assert bool(left_open(command, _said(code))) is void
    assert in_doubt(command, _said(code)) == (" (in doubt)" if void else "")
    answer = unless_open(command, "It is best.", _said(code))
    why = f"Nothing is claimed while this is open: It says {code.value}."
    assert answer == (why if void else "It is best.")


def test_a_title_goes_on_in_small_letters_and_a_question_ends_as_one() -> None:
    question = [Notice("1.000 on 140 of 140 queries: does it see the judgements?", Code.TOO_GOOD)]
    assert unless_open("bench", "tuning helps", question) == (
        "nothing is claimed while this is open: "
        "1.000 on 140 of 140 queries: does it see the judgements?"
    )


@pytest.mark.needs("retrieval_bench_duet")
def test_a_gate_says_that_a_warning_makes_its_verdict_doubtful() -> None:
    from retrieval_bench_duet.tables.duet import duet_tables

    about, data = Namespace(name="x"), Namespace(name="d", k=10)
    duet = cast("Any", Namespace)(
        blocks=None, word="PASS", a=about, b=about, gates=(), dataset=data, queries=1, calls=1,
        launches=1, measured_s=1.0, total_s=1.0, one_core=0, median_ns=None, other_rankings=0,
        reason="", interrupted=False, warnings=_said(Code.REMEMBERED),
    )  # fmt: skip
    assert duet_tables(duet)[0].title == "PASS (in doubt): b = x beside a = x"
