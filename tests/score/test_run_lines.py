"""Lines of run files: what is read, what is refused, and that what we write comes back."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_bench.core.types import Hit
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.formats.trec_runs import write_run
from retrieval_bench_score.runs import run_lines
from retrieval_bench_score.runs.imported import read_rankings
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


def _run_file(folder: Path, content: str | bytes) -> Path:
    return save(folder / "run.trec", content)


def read_run(path: str | Path) -> dict[str, list[Hit]]:
    return {query_id: list(ranking) for query_id, ranking in read_rankings(path).rankings.items()}


def _faults(path: Path) -> tuple[str, ...]:
    return faults_of(read_run, path)


def _plain(block: run_lines.Block) -> tuple[object, ...]:
    return block.query_id, block.doc_ids, block.scores.tolist(), block.lines.tolist()


def _odd_text(rng: Random, columns: tuple[str, ...]) -> str:
    """Mostly a run, with all that may stand between and in the cells."""
    text = "\t".join(columns) + "\n" if columns is run_lines.BEIR_COLUMNS else ""
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


class TestReading:
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
        assert len(content) > 1.5 * run_lines._BATCH
        blocks = some(run_lines._clean_blocks(path, run_lines.TREC_COLUMNS))
        told = run_lines._told_blocks(path, Faults(), run_lines.TREC_COLUMNS)
        assert [n for block in blocks for n in block.lines] == list(range(1, 60_001))
        assert {d for block in blocks for d in block.doc_ids} == {
            d for block in told for d in block.doc_ids
        }

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

    @pytest.mark.slow
    @pytest.mark.parametrize("columns", [run_lines.TREC_COLUMNS, run_lines.BEIR_COLUMNS])
    def test_reading_in_pieces_gives_what_reading_by_lines_gives(
        self, tmp_path: Path, columns: tuple[str, ...]
    ) -> None:
        rng = Random(3)
        path = tmp_path / "run"
        clean_files = 0
        for _ in range(400):
            save(path, _odd_text(rng, columns).encode())
            faults = Faults()
            told = run_lines._told_blocks(path, faults, columns)
            clean = run_lines._clean_blocks(path, columns)
            if clean is not None:
                clean_files += 1
                assert faults.count == 0
                assert list(map(_plain, clean)) == list(map(_plain, told))
        assert 80 < clean_files < 320


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
