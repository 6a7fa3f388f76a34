"""ir-measures gives what we give on generated runs, where its definitions are ours.

Much of it asks pytrec_eval, which ``test_trec_eval.py`` asks, too; its own are RR@k, Judged@k and,
through a Perl script that rounds to five decimals, ERR@k and the exponential nDCG@k. So ties,
where RR@k goes its own way, are compared apart.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_bench.metrics import Judgements, parse_metric
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.scoring import Answers, score
from tests.builders.generated import Generated, generated, in_order_up
from tests.lazily import Lazily

ir_measures: Any = Lazily("ir_measures")

pytestmark = pytest.mark.filterwarnings("ignore")

TREC = convention("trec")

NAMES = {
    "nDCG": "nDCG",
    "nDCG@10": "nDCG@10",
    "AP": "AP",
    "AP(rel=2)@3": "AP(rel=2)@3",
    "RR": "RR",
    "P@5": "P@5",
    "P(rel=2)@5": "P(rel=2)@5",
    "R@5": "R@5",
    "Success@5": "Success@5",
    "Rprec": "Rprec",
    "Rprec(rel=3)": "Rprec(rel=3)",
    "Bpref": "Bpref",
    "Bpref(rel=2)": "Bpref(rel=2)",
    "set_P": "SetP",
    "set_R": "SetR",
    "set_F": "SetF",
}

OWN = {f"Judged@{cut}": f"Judged@{cut}" for cut in (1, 3, 10, 1000)}
"""Does not depend on ties: none of its cut-offs is compared where they matter."""

RR = {f"RR@{cut}": f"RR@{cut}" for cut in (1, 3, 10, 1000)} | {"RR(rel=2)@10": "RR(rel=2)@10"}

ROUNDED = {
    "ERR@3": "ERR@3",
    "ERR@20": "ERR@20",
    "nDCG(gain=exp)@5": "nDCG(dcg='exp-log2')@5",
    "nDCG(gain=exp)@20": "nDCG(dcg='exp-log2')@20",
}


def _theirs(
    data: Generated, names: Sequence[str], query_ids: Sequence[str]
) -> dict[str, list[float]]:
    measures = [ir_measures.parse_measure(name) for name in names]
    found = {
        (str(one.measure), one.query_id): one.value
        for one in ir_measures.iter_calc(measures, data.qrels, data.scores)
    }
    return {
        name: [found[str(measure), query_id] for query_id in query_ids]
        for name, measure in zip(names, measures, strict=True)
    }


def _compare(
    data: Generated,
    names: Mapping[str, str],
    *,
    lists: Mapping[str, Sequence[str]] | None = None,
    within: float = 1e-9,
) -> None:
    answers = Answers(scores=data.scores) if lists is None else Answers(lists=lists)
    scored = score(answers, Judgements(data.qrels), TREC, TREC.parse([*names])).evaluation
    theirs = _theirs(data, list(names.values()), scored.query_ids)
    for (ours, name), column in zip(names.items(), scored.per_query.T, strict=True):
        assert np.abs(column - theirs[name]).max() < within, ours


@pytest.mark.slow
def test_rr_with_a_cut_off_is_as_in_ir_measures_where_scores_are_distinct() -> None:
    _compare(generated(410, 1000, kinds=("distinct",)), RR)


@pytest.mark.slow
def test_judged_is_as_in_ir_measures_where_no_grade_is_negative() -> None:
    _compare(generated(411, 1000, kinds=("distinct",), lowest=0), OWN)


@pytest.mark.slow
def test_err_and_the_exponential_ndcg_are_as_gdeval_rounds_them() -> None:
    if shutil.which("perl") is None:
        pytest.skip("perl is missing, which ir-measures calls for these")
    data = generated(412, 500, kinds=("distinct",), lowest=0, scripts=("d",))
    numbered = {query_id: str(i) for i, query_id in enumerate(data.qrels, start=1)}
    data = Generated(
        {numbered[q]: row for q, row in data.qrels.items()},
        {numbered[q]: row for q, row in data.scores.items()},
    )
    _compare(data, ROUNDED, within=5.1e-6)


@pytest.mark.slow
def test_rr_with_a_cut_off_goes_through_ties_upwards_and_through_doubles() -> None:
    data = generated(413, 500, kinds=("equal", "nearly equal"))
    upwards = {query_id: in_order_up(row) for query_id, row in data.scores.items()}
    _compare(data, RR, lists=upwards)
    with pytest.raises(AssertionError):
        _compare(data, RR)


@pytest.mark.parametrize(("ours", "theirs"), [*(NAMES | OWN | RR | ROUNDED).items()])
def test_a_name_of_ir_measures_is_the_metric_that_it_computes(ours: str, theirs: str) -> None:
    assert str(parse_metric(theirs)) == ours
    assert parse_metric(str(ir_measures.parse_measure(theirs))) == parse_metric(ours)
