"""TREC run text, which every tool ranks in the order that we write."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from random import Random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Hit, Ranking
from retrieval_bench.data.formats.trec_runs import write_run

ODD_SCORES = [1e300, 1e30, 3.4028235e38, 1.0, 0.1, 1e-30, 1e-45, 0.0, -0.0, -1e-45, -7.5, -1e300]
SCORES = st.one_of(
    st.sampled_from(ODD_SCORES),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)


def _written(rankings: dict[str, Ranking], tag: str = "tag") -> str:
    text = io.StringIO()
    write_run(text, rankings, tag)
    return text.getvalue()


def _scores(text: str) -> list[np.float32]:
    return [np.float32(float(line.split()[4])) for line in text.splitlines()]


class TestWriting:
    def test_a_run_is_six_columns_in_the_order_given(self) -> None:
        rankings = {"q2": Ranking(["b", "a"], [2.5, 14.1e-3]), "q1": Ranking(["c"], [1])}
        assert _written(rankings, "my run") == (
            "q2 Q0 b 1 2.5 my_run\nq2 Q0 a 2 0.0141 my_run\nq1 Q0 c 1 1.0 my_run\n"
        )

    def test_ties_go_down_by_one_step_of_single_precision(self) -> None:
        one = np.float32(1)
        step = np.nextafter(one, np.float32(0))
        text = _written({"q": Ranking(["b", "a", "c"], [1, 1, 0.5])})
        assert _scores(text) == [one, step, np.float32(0.5)]

    def test_scores_that_differ_only_in_double_precision_stay_apart(self) -> None:
        text = _written({"q": Ranking(["b", "a"], [0.1 + 1e-12, 0.1])})
        first, second = _scores(text)
        assert first > second

    def test_a_ranking_without_scores_gets_one_over_rank(self) -> None:
        for ranking in (Ranking(["b", "a"]), Ranking(["b", "a"], [float("nan")] * 2)):
            assert _scores(_written({"q": ranking})) == [1.0, 0.5]

    def test_hits_do_as_well_as_a_ranking(self) -> None:
        text = io.StringIO()
        write_run(text, {"q": [Hit("d", 3.0)]}, "x")
        assert text.getvalue() == "q Q0 d 1 3.0 x\n"

    def test_an_id_that_others_would_split_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "run.trec"
        with pytest.raises(DataError, match="id 'my document' cannot stand in a TREC run"):
            write_run(path, {"q2": Ranking(["my document"], [1.0])}, "x")

    def test_a_query_without_hits_leaves_no_line(self) -> None:
        assert _written({"q": Ranking([]), "r": Ranking([], [])}) == ""

    def test_an_order_that_contradicts_the_scores_is_kept(self) -> None:
        first, second = _scores(_written({"q": Ranking(["a", "b"], [1, 2])}))
        assert first > second

    def test_packing_gives_the_same_bytes_each_time(self, tmp_path: Path) -> None:
        paths = [tmp_path / "a.trec.gz", tmp_path / "b.trec.gz"]
        for path in paths:
            write_run(path, {"q": Ranking(["é"], [1.0])}, "x")
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert paths[0].read_bytes()[4:8] == bytes(4)  # no time stamp
        assert gzip.decompress(paths[0].read_bytes()).decode() == "q Q0 é 1 1.0 x\n"

    @pytest.mark.parametrize("bad", ["", "a\tb", "a\nb", "a\rb", "a\udc80", " a", "a\f", " "])
    def test_an_id_that_a_line_cannot_hold_is_an_error(self, bad: str) -> None:
        with pytest.raises(DataError, match="cannot stand in a TREC run"):
            _written({"q": Ranking([bad], [1.0])})
        with pytest.raises(DataError, match="cannot stand in a TREC run"):
            _written({bad: Ranking(["d"], [1.0])})

    def test_a_score_that_is_not_finite_is_an_error(self) -> None:
        with pytest.raises(DataError, match="score nan of document 'b', query 'q'"):
            _written({"q": Ranking(["a", "b"], [1.0, float("nan")])})

    def test_the_low_end_of_the_range_makes_room_for_all(self) -> None:
        lowest = float(np.finfo(np.float32).min)
        scores = _scores(_written({"q": Ranking(["a", "b", "c"], [lowest, lowest, -1e300])}))
        assert scores[0] > scores[1] > scores[2] == np.float32(lowest)


class TestReadByOthers:
    @settings(deadline=None, derandomize=True)
    @given(st.lists(SCORES, min_size=1, max_size=12), st.randoms(use_true_random=False))
    def test_trec_eval_ranks_every_document_where_we_did(
        self, scores: list[float], rng: Random
    ) -> None:
        ids = [f"d{i}" for i in range(len(scores))]
        rng.shuffle(ids)
        scores.sort(reverse=True)
        text = _written({"q": Ranking(ids, scores)})
        run = {
            doc_id: float(score) for _, _, doc_id, _, score, _ in map(str.split, text.splitlines())
        }
        evaluator = pytrec_eval.RelevanceEvaluator({i: {i: 1} for i in ids}, {"recip_rank"})
        result = evaluator.evaluate(dict.fromkeys(ids, run))
        ranks = [round(1 / result[doc_id]["recip_rank"]) for doc_id in ids]
        assert ranks == list(range(1, len(ids) + 1))

    @settings(deadline=None, derandomize=True)
    @given(st.lists(SCORES, min_size=1, max_size=12))
    def test_scores_that_already_fall_in_single_precision_are_only_rounded(
        self, scores: list[float]
    ) -> None:
        limit = float(np.finfo(np.float32).max)
        single = np.clip(np.array(scores), -limit, limit).astype(np.float32)
        falling = sorted({float(value) for value in single}, reverse=True)
        text = _written({"q": Ranking([f"d{i}" for i in range(len(falling))], falling)})
        assert _scores(text) == falling
