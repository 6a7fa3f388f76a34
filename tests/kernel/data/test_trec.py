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

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import Hit, Ranking
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.formats import trec_runs as trec
from retrieval_bench.data.formats.trec_runs import write_run
from retrieval_bench.runs.imported import read_rankings
from tests.builders import some
from tests.builders.files import save
from tests.builders.refusals import faults_of

IDS = st.text(
    st.characters(exclude_characters=" \t\n\r\v\f\ufeff", exclude_categories=["Cs"]),
    min_size=1,
    max_size=6,
).filter(lambda id_: not id_.startswith("#"))
ODD_SCORES = [1e300, 1e30, 3.4028235e38, 1.0, 0.1, 1e-30, 1e-45, 0.0, -0.0, -1e-45, -7.5, -1e300]
SCORES = st.one_of(
    st.sampled_from(ODD_SCORES),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)

SIX = "accepted: six columns: query Q0 document rank score tag"
UTF_8 = "accepted: UTF-8 text"
FINITE = "accepted: a finite number such as 1.5"


def _written(rankings: dict[str, Ranking], tag: str = "tag") -> str:
    text = io.StringIO()
    write_run(text, rankings, tag)
    return text.getvalue()


def _run_file(folder: Path, content: str | bytes) -> Path:
    return save(folder / "run.trec", content)


def read_run(path: str | Path) -> dict[str, list[Hit]]:
    return {query_id: list(ranking) for query_id, ranking in read_rankings(path).rankings.items()}


def _faults(path: Path) -> tuple[str, ...]:
    return faults_of(read_run, path)


def _plain(block: trec.Block) -> tuple[object, ...]:
    return block.query_id, block.doc_ids, block.scores.tolist(), block.lines.tolist()


def _odd_text(rng: Random, columns: tuple[str, ...]) -> str:
    """Mostly a run, with all that may stand between and in the cells."""
    text = "\t".join(columns) + "\n" if columns is trec.BEIR_COLUMNS else ""
    for _ in range(rng.randrange(1, 4)):
        blank = rng.choice("\t\t\t ")
        for name in columns:
            text += (
                str(rng.randrange(3))
                if name == "score"
                else rng.choice(["q1", "d", "7", "문서", "x y", " "][: rng.choice((4, 6))])
            )
            text += blank
            if rng.random() < 0.12:
                text += rng.choice(["\t", " ", "\r", "\v", "\u3000", "\n", "\t\t", "x y"])
        text = text[:-1] + rng.choice(["\n", "\r\n", "\n\n", " \n", "\n\t\n"])
    return text


def _scores(text: str) -> list[np.float32]:
    return [np.float32(float(line.split()[4])) for line in text.splitlines()]


class TestReading:
    def test_hits_keep_the_order_of_the_file_not_that_of_the_scores(self, tmp_path: Path) -> None:
        path = _run_file(tmp_path, "q2 Q0 b 1 1.5 x\nq1 Q0 c 1 7 x\nq2 Q0 a 2 2.5e0 x\n")
        assert read_run(path) == {"q2": [Hit("b", 1.5), Hit("a", 2.5)], "q1": [Hit("c", 7.0)]}
        assert list(read_run(path)) == ["q2", "q1"]

    @pytest.mark.parametrize(
        ("content", "run"),
        [
            ("q 1\tQ0\tmy document\t1\t3\ta tag\n", {"q 1": [Hit("my document", 3.0)]}),
            ("q1\tQ0 d1  1\t3 \t x\n", {"q1": [Hit("d1", 3.0)]}),
            (
                "\ufeffq1 Q0 문서 1 3 x\r\n\r\n  \nq1 Q0 d2 2 1 x",
                {"q1": [Hit("문서", 3.0), Hit("d2", 1.0)]},
            ),
            ("q1 Q0 a\u3000b\u00a0c 1 3 x\n", {"q1": [Hit("a\u3000b\u00a0c", 3.0)]}),
            ("q1 \tQ0\t my document \t1\t 3\tx\n", {"q1": [Hit("my document", 3.0)]}),
        ],
        ids=["five tabs", "not five", "mark and blank lines", "other blanks", "blanks and tabs"],
    )
    def test_what_may_stand_in_a_line(
        self, tmp_path: Path, content: str, run: dict[str, list[Hit]]
    ) -> None:
        """Five tabs allow blanks in ids; else all white space, but no blank of Unicode, splits."""
        assert read_run(_run_file(tmp_path, content)) == run

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["run.trec", "run.trec.gz"])
    def test_a_large_file_without_faults_is_read_in_pieces(self, tmp_path: Path, name: str) -> None:
        content = "".join(f"q{n // 9} Q0 document-{n} 1 {n} x\r\n" for n in range(60_000)).encode()
        path = save(tmp_path / name, gzip.compress(content, 1) if name.endswith(".gz") else content)
        assert len(content) > 1.5 * trec._BATCH
        blocks = some(trec._clean_blocks(path, trec.TREC_COLUMNS))
        told = trec._told_blocks(path, Faults(), trec.TREC_COLUMNS)
        assert [n for block in blocks for n in block.lines] == list(range(1, 60_001))
        assert {d for block in blocks for d in block.doc_ids} == {
            d for block in told for d in block.doc_ids
        }

    @pytest.mark.slow
    def test_lines_of_a_query_need_not_stand_together(self, tmp_path: Path) -> None:
        lines = [f"q{n % 3} Q0 d{n} 1 {n} x\n" for n in range(90_000)]  # more than one batch
        run = read_run(_run_file(tmp_path, "".join(lines)))
        assert list(run) == ["q0", "q1", "q2"]
        assert run["q1"] == [Hit(f"d{n}", float(n)) for n in range(1, 90_000, 3)]

    @pytest.mark.parametrize(
        ("line", "fault"),
        [
            (b"q1 Q0 d1 1 3", f"5 columns in 'q1 Q0 d1 1 3'; {SIX}"),
            (b"q1", f"1 column in 'q1'; {SIX}"),
            (
                b"q1 Q0 my document 1 3 x",
                f"more than 6 columns in 'q1 Q0 my document 1 3 x'; {SIX}",
            ),
            (b"q1 Q0 d1 1 high x", f"score is 'high'; {FINITE}"),
            (b"q1 Q0 d1 1 NaN x", f"score is 'NaN'; {FINITE}"),
            (b"q1 Q0 d1 1 inf x", f"score is 'inf'; {FINITE}"),
            (b"q1 Q0 d1 1 1e999 x", f"score is '1e999'; {FINITE}"),
            (b"q1 Q0 d1 1 1_0 x", f"score is '1_0'; {FINITE}"),
            ("q1 Q0 d1 1 १ x".encode(), f"score is '१'; {FINITE}"),
            (
                b"q1 Q0 d\xff 1 3 x",
                f"byte 0xff after 7 bytes is no UTF-8, near b'q1 Q0 d\\xff 1 3 x\\n'; {UTF_8}",
            ),
            (b"q1\tQ0\t\t1\t3\tx", f"an empty id in 'q1\\tQ0\\t\\t1\\t3\\tx'; {SIX}"),
            (b" \tQ0\td 1\t1\t3\tx", f"an empty id in ' \\tQ0\\td 1\\t1\\t3\\tx'; {SIX}"),
        ],
    )
    def test_a_fault_is_told_with_file_and_line(
        self, tmp_path: Path, line: bytes, fault: str
    ) -> None:
        path = _run_file(tmp_path, b"q0 Q0 d0 1 2 x\n\n" + line + b"\n")
        assert _faults(path) == (f"{path}:3: {fault}",)

    def test_faults_of_all_lines_are_told_at_once(self, tmp_path: Path) -> None:
        path = _run_file(tmp_path, "q Q0 d 1 2 x\nq d 2\nq Q0 e 3 - x\nr Q0 d 1 2 x")
        assert {text.split(": ")[0] for text in _faults(path)} == {f"{path}:{n}" for n in (2, 3)}

    @pytest.mark.slow
    def test_a_line_of_ten_megabytes_is_told_in_one_short_line(self, tmp_path: Path) -> None:
        for line in (b"a" * 10**7, b"a " * 10**6, b"a\t" * 10**6):
            path = _run_file(tmp_path, b"q Q0 d 1 2 x\n" + line + b"\nq Q0 e 2 1 x\n")
            (fault,) = _faults(path)
            assert fault.startswith(f"{path}:2: ")
            assert len(fault) < 300

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("q Q0 d 1 2 x\n".encode("utf-16"), ": UTF-16 text; "),
            (
                gzip.compress(b"q Q0 d 1 2 x\n", mtime=0),
                ": gzip data in a file that is not named .gz; ",
            ),
        ],
    )
    def test_what_is_no_utf_8_is_called_by_its_name(
        self, tmp_path: Path, content: bytes, fault: str
    ) -> None:
        assert fault in _faults(_run_file(tmp_path, content))[0]

    def test_a_path_that_leads_to_no_run_is_an_error(self, tmp_path: Path) -> None:
        assert _faults(tmp_path / "absent.trec")[0].endswith("absent.trec: no such file")
        assert "a folder without summary.json" in _faults(tmp_path)[0]

    @pytest.mark.parametrize(
        "content", [b"no gzip", gzip.compress(b"q1 Q0 d1 1 3 x\n", mtime=0)[:-9]]
    )
    def test_a_damaged_packed_file_is_an_error(self, tmp_path: Path, content: bytes) -> None:
        path = save(tmp_path / "run.gz", content)
        assert "damaged gzip data" in _faults(path)[0]

    @pytest.mark.slow
    @pytest.mark.parametrize("columns", [trec.TREC_COLUMNS, trec.BEIR_COLUMNS])
    def test_reading_in_pieces_gives_what_reading_by_lines_gives(
        self, tmp_path: Path, columns: tuple[str, ...]
    ) -> None:
        rng = Random(3)
        path = tmp_path / "run"
        clean_files = 0
        for _ in range(400):
            save(path, _odd_text(rng, columns).encode())
            faults = Faults()
            told = trec._told_blocks(path, faults, columns)
            clean = trec._clean_blocks(path, columns)
            if clean is not None:
                clean_files += 1
                assert faults.count == 0
                assert list(map(_plain, clean)) == list(map(_plain, told))
        assert 80 < clean_files < 320


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
        assert read_run(paths[0]) == {"q": [Hit("é", 1.0)]}

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


class TestRoundTrip:
    @pytest.mark.slow
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
        again = read_run(path) if any(rankings.values()) else {}
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
