"""TREC run text: what is read, what is refused, and that every tool keeps the order we write."""

from __future__ import annotations

import gzip
import io
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import DataError
from harness.trec import read_run, write_run
from harness.types import Hit, Ranking

IDS = st.text(
    st.characters(exclude_characters="\t\n\r\ufeff", exclude_categories=["Cs"]),
    min_size=1,
    max_size=6,
)
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


def _run_file(folder: Path, content: str | bytes) -> Path:
    path = folder / "run.trec"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _scores(text: str) -> list[np.float32]:
    return [np.float32(float(line.split()[4])) for line in text.splitlines()]


class TestReading:
    def test_hits_keep_the_order_of_the_file_not_that_of_the_scores(self, tmp_path: Path) -> None:
        path = _run_file(tmp_path, "q2 Q0 b 1 1.5 x\nq1 Q0 c 1 7 x\nq2 Q0 a 2 2.5e0 x\n")
        assert read_run(path) == {"q2": [Hit("b", 1.5), Hit("a", 2.5)], "q1": [Hit("c", 7.0)]}
        assert list(read_run(path)) == ["q2", "q1"]

    def test_five_tabs_allow_blanks_in_ids(self, tmp_path: Path) -> None:
        path = _run_file(tmp_path, "q 1\tQ0\tmy document\t1\t3\ta tag\n")
        assert read_run(path) == {"q 1": [Hit("my document", 3.0)]}

    def test_tabs_beside_blanks_are_white_space_when_they_are_not_five(
        self, tmp_path: Path
    ) -> None:
        path = _run_file(tmp_path, "q1\tQ0 d1  1\t3 \t x\n")
        assert read_run(path) == {"q1": [Hit("d1", 3.0)]}

    def test_bom_carriage_returns_and_blank_lines_are_tolerated(self, tmp_path: Path) -> None:
        path = _run_file(tmp_path, "\ufeffq1 Q0 문서 1 3 x\r\n\r\n  \nq1 Q0 d2 2 1 x")
        assert read_run(path) == {"q1": [Hit("문서", 3.0), Hit("d2", 1.0)]}

    def test_a_packed_file_is_unpacked(self, tmp_path: Path) -> None:
        path = tmp_path / "run.trec.gz"
        path.write_bytes(gzip.compress(b"q1 Q0 d1 1 3 x\n"))
        assert read_run(str(path)) == {"q1": [Hit("d1", 3.0)]}

    def test_blanks_that_only_unicode_knows_do_not_split_an_id(self, tmp_path: Path) -> None:
        path = _run_file(tmp_path, "q1 Q0 a\u3000b\u00a0c 1 3 x\n")
        assert read_run(path) == {"q1": [Hit("a\u3000b\u00a0c", 3.0)]}

    @pytest.mark.parametrize(
        ("line", "fault"),
        [
            (b"q1 Q0 d1 1 3", "5 columns"),
            (b"q1 Q0 my document 1 3 x", "7 columns"),
            (b"q1 Q0 d1 1 high x", "score 'high' is no finite number"),
            (b"q1 Q0 d1 1 NaN x", "score 'NaN' is no finite number"),
            (b"q1 Q0 d1 1 inf x", "score 'inf' is no finite number"),
            (b"q0 Q0 d0 2 1 x", "document 'd0' a second time for query 'q0'"),
            (b"q1 Q0 d\xff 1 3 x", "not UTF-8 (invalid start byte)"),
            (b"q1\tQ0\t\t1\t3\tx", "an empty id"),
        ],
    )
    def test_a_fault_is_told_with_file_and_line(
        self, tmp_path: Path, line: bytes, fault: str
    ) -> None:
        path = _run_file(tmp_path, b"q0 Q0 d0 1 2 x\n\n" + line + b"\n")
        with pytest.raises(DataError) as caught:
            read_run(path)
        assert caught.value.faults == (f"{path}:3: {fault}",)
        assert "six columns: query Q0 document rank score tag" in str(caught.value)

    def test_all_faults_are_told_up_to_twenty(self, tmp_path: Path) -> None:
        path = _run_file(tmp_path, "x\n" * 25)
        with pytest.raises(DataError, match="25 unusable lines") as caught:
            read_run(path)
        assert len(caught.value.faults) == 21
        assert caught.value.faults[-1] == "and 5 more"

    def test_a_path_that_leads_to_no_run_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="No such file"):
            read_run(tmp_path / "absent.trec")
        with pytest.raises(DataError, match="directory"):
            read_run(tmp_path)

    @pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"q1 Q0 d1 1 3 x\n")[:-9]])
    def test_a_damaged_packed_file_is_an_error(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "run.gz"
        path.write_bytes(content)
        with pytest.raises(DataError, match="cannot read the run"):
            read_run(path)


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

    def test_one_id_with_a_blank_puts_tabs_in_the_whole_file(self, tmp_path: Path) -> None:
        rankings = {"q1": Ranking(["d1"], [2.0]), "q2": Ranking(["my document"], [1.0])}
        path = tmp_path / "run.trec"
        write_run(path, rankings, "x")
        assert path.read_text(encoding="utf-8").count("\t") == 10
        assert read_run(path) == {query: list(ranking) for query, ranking in rankings.items()}

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
        assert read_run(paths[0]) == {"q": [Hit("é", 1.0)]}

    @pytest.mark.parametrize("bad", ["", "a\tb", "a\nb", "a\rb", "a\udc80"])
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


class TestRoundTrip:
    @settings(deadline=None, derandomize=True)
    @given(
        st.dictionaries(
            IDS, st.lists(st.tuples(IDS, SCORES), unique_by=lambda hit: hit[0], max_size=8)
        )
    )
    def test_queries_and_order_come_back_and_scores_strictly_fall(
        self, tmp_path_factory: pytest.TempPathFactory, hits: dict[str, list[tuple[str, float]]]
    ) -> None:
        rankings = {q: sorted(found, key=lambda hit: -hit[1]) for q, found in hits.items()}
        path = tmp_path_factory.getbasetemp() / "round-trip.trec"
        write_run(path, rankings, "x")
        again = read_run(path)
        assert list(again) == [query for query, found in rankings.items() if found]
        for query, found in again.items():
            assert [hit.doc_id for hit in found] == [doc_id for doc_id, _ in rankings[query]]
            values = [np.float32(hit.score) for hit in found]
            assert all(a > b for a, b in pairwise(values))

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
