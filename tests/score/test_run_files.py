"""Runs made elsewhere: every format, the order under each rule, and every fault with its place."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest
import pytrec_eval

from retrieval_bench.core.errors import DataError
from retrieval_bench_score.runs.imported import RunFile, read_rankings
from tests.builders import some
from tests.builders.files import save

HEADER = "query-id\tcorpus-id\tscore\n"
FINITE = "accepted: a finite number such as 1.5"
VALUE = "accepted: {document: score, ...} or [document, ...], best first"


def saved(folder: Path, content: str | bytes, name: str = "run") -> Path:
    data = content.encode() if isinstance(content, str) else content
    return save(folder / name, gzip.compress(data) if name.endswith(".gz") else data)


def plain(rankings: object) -> dict[str, list[tuple[str, float | None]]]:
    """Documents with their scores, None where there are none."""
    assert isinstance(rankings, dict)
    return {
        query_id: [
            (hit.doc_id, None if ranking.scores is None else hit.score) for hit in list(ranking)
        ]
        for query_id, ranking in rankings.items()
    }


def orders(run: RunFile, ties: Literal["trec", "list"]) -> dict[str, list[str]]:
    return {query_id: list(one.doc_ids) for query_id, one in run.ordered(ties).items()}


def faults_in(path: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_rankings(path)
    return [text.removeprefix(str(path)) for text in caught.value.faults]


def run_folder(folder: Path, **changes: object) -> Path:
    """A run folder as ``bench`` writes it, as far as it is read here."""
    arrays: dict[str, object] = {
        "query_ids": np.array(["q2", "q1", "없음"]),
        "doc_ids": np.array(["문서", "b", "c"]),
        "ranking": np.array([[2, 0], [1, -1], [-1, -1]], dtype=np.int32),
        "scores": np.array([[1.0, 1.0], [np.nan, np.nan], [np.nan, np.nan]]),
        **changes,
    }
    folder.mkdir()
    np.savez_compressed(folder / "rankings.npz", **arrays)  # type: ignore[arg-type]
    (folder / "summary.json").write_text('{"schema_version": 1, "metrics": {"unheard@5": {}}}')
    return folder


class TestFormats:
    @pytest.mark.parametrize("name", ["run.trec", "run.json", "run.trec.gz"])
    def test_trec_text_is_told_by_its_content(self, tmp_path: Path, name: str) -> None:
        path = saved(tmp_path, "q2 Q0 b 1 1.5 x\nq1 Q0 문서 1 7 x\nq2 Q0 a 2 .5 x\n", name)
        run = read_rankings(path)
        assert (run.path, run.format, run.repeated, run.warnings) == (path, "trec", {}, ())
        assert plain(run.rankings) == {"q2": [("b", 1.5), ("a", 0.5)], "q1": [("문서", 7.0)]}
        assert list(run.rankings) == ["q2", "q1"]

    @pytest.mark.parametrize("name", ["run.tsv", "run.trec", "run.gz"])
    def test_a_beir_table_is_told_by_its_header(self, tmp_path: Path, name: str) -> None:
        content = "\ufeff\r\n" + HEADER + "q 1\td 1\t2e-3\r\n\r\nq2\td\t-1\nq 1\te\t1\n"
        run = read_rankings(saved(tmp_path, content, name))
        assert run.format == "beir"
        assert plain(run.rankings) == {"q 1": [("d 1", 0.002), ("e", 1.0)], "q2": [("d", -1.0)]}

    def test_a_json_object_may_hold_scores_or_lists(self, tmp_path: Path) -> None:
        content = {"q1": {"b": 1, "문서": 2.5}, "q2": ["c", 7, "a"], "q3": {}, "q4": []}
        expected = {
            "q1": [("b", 1.0), ("문서", 2.5)],
            "q2": [("c", None), ("7", None), ("a", None)],
            "q3": [],
            "q4": [],
        }
        for indent, name in ((None, "run.csv"), (1, "run.json"), (None, "run.gz")):
            text = "\ufeff\n" + json.dumps(content, indent=indent)
            run = read_rankings(saved(tmp_path, text, name))
            assert (run.format, plain(run.rankings)) == ("json", expected)

    def test_a_json_object_a_line_does_as_well(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, '{"q1": {"a": 1}}\n\n{"q2": ["b"], "q3": []}\n'))
        assert run.format == "json"
        assert plain(run.rankings) == {"q1": [("a", 1.0)], "q2": [("b", None)], "q3": []}

    @pytest.mark.parametrize("name", ["submission.csv", "x.jsonl", "x.json", "x.csv.gz"])
    def test_submission_lines_keep_questions_answered_with_nothing(
        self, tmp_path: Path, name: str
    ) -> None:
        content = (
            '{"eval_id": 78, "standalone_query": "물", "topk": ["b", "a"], "answer": "",'
            ' "references": [{"score": 1.5, "content": "x"}]}\r\n'
            '{"topk": [], "eval_id": "안녕"}\n'
        )
        run = read_rankings(saved(tmp_path, content, name))
        assert run.format == "submission"
        assert plain(run.rankings) == {"78": [("b", None), ("a", None)], "안녕": []}

    def test_one_submission_line_is_a_submission(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, '{"eval_id": 1, "topk": ["a"]}'))
        assert (run.format, list(run.rankings)) == ("submission", ["1"])

    def test_a_run_folder_keeps_its_order_and_needs_no_metric(self, tmp_path: Path) -> None:
        run = read_rankings(run_folder(tmp_path / "mine"))
        assert run.format == "run folder"
        expected = {"q2": [("c", 1.0), ("문서", 1.0)], "q1": [("b", None)], "없음": []}
        assert plain(run.ordered("trec")) == plain(run.ordered("list")) == expected

    def test_a_path_as_text_reads_the_same(self, tmp_path: Path) -> None:
        path = saved(tmp_path, "q Q0 a 1 1 x\n")
        assert plain(read_rankings(str(path)).rankings) == {"q": [("a", 1.0)]}
        folder = run_folder(tmp_path / "mine")
        assert list(read_rankings(str(folder)).rankings) == ["q2", "q1", "없음"]


class TestOrder:
    def test_scores_that_tie_in_single_precision_go_by_id_descending(self, tmp_path: Path) -> None:
        content = "q Q0 a 1 .700000001 x\nq Q0 c 2 9 x\nq Q0 b 3 .70 x\nq Q0 d 4 -1 x\n"
        run = read_rankings(saved(tmp_path, content))
        assert orders(run, "trec") == {"q": ["c", "b", "a", "d"]}
        assert orders(run, "list") == {"q": ["c", "a", "b", "d"]}
        scores = some(run.ordered("trec")["q"].scores)
        assert list(scores) == [9.0, 0.70, 0.700000001, -1.0]

    def test_the_rank_column_is_ignored(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, "q Q0 a 1 1 x\nq Q0 b 2 3 x\nr Q0 a 9 1 x\n"))
        assert orders(run, "trec") == orders(run, "list") == {"q": ["b", "a"], "r": ["a"]}
        (warning,) = run.warnings
        assert warning.startswith("for 1 of 2 queries the lines do not follow the scores")

    def test_many_equal_scores_keep_the_order_of_the_file_in_a_list(self, tmp_path: Path) -> None:
        rng = Random(1)
        scores = {f"d{n}": rng.choice([1, 2, 3]) for n in range(400)}
        run = read_rankings(saved(tmp_path, json.dumps({"q": scores})))
        assert orders(run, "list")["q"] == sorted(scores, key=lambda doc_id: -scores[doc_id])

    def test_a_query_that_is_scattered_over_a_large_file_is_one_ranking(
        self, tmp_path: Path
    ) -> None:
        lines = [f"q{n % 3} Q0 document-{n} 1 {90_000 - n} x\n" for n in range(90_000)]
        run = read_rankings(saved(tmp_path, "".join(lines)))
        expected = {f"q{q}": [f"document-{n}" for n in range(q, 90_000, 3)] for q in range(3)}
        assert orders(run, "trec") == orders(run, "list") == expected
        assert run.warnings == ()

    def test_ids_compare_as_bytes_of_utf_8(self, tmp_path: Path) -> None:
        ids = ["a", "é", "가", "\uffee", "😀", "Z", "aa"]
        run = read_rankings(saved(tmp_path, json.dumps({"q": dict.fromkeys(ids, 1)})))
        assert orders(run, "trec")["q"] == sorted(ids, key=str.encode, reverse=True)
        assert orders(run, "list")["q"] == ids

    def test_lists_without_scores_keep_their_order(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, '{"q": ["b", "c", "a"], "r": []}'))
        assert orders(run, "trec") == orders(run, "list") == {"q": ["b", "c", "a"], "r": []}

    def test_scores_beyond_single_precision_tie(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, '{"q": {"a": 1e300, "b": 1e299, "c": -1e300}}'))
        assert orders(run, "trec") == {"q": ["b", "a", "c"]}
        assert orders(run, "list") == {"q": ["a", "b", "c"]}

    def test_both_zeros_are_one_score(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, '{"q": {"a": 0.0, "b": -0.0, "c": 0}}'))
        assert orders(run, "trec") == {"q": ["c", "b", "a"]}
        assert orders(run, "list") == {"q": ["a", "b", "c"]}

    def test_ordering_changes_nothing_in_the_file_as_read(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, '{"q": {"a": 1, "b": 2, "c": 2}}'))
        before = plain(run.rankings)
        run.ordered("trec")
        run.ordered("list")
        assert plain(run.rankings) == before

    def test_trec_eval_ranks_every_document_where_we_do(self, tmp_path: Path) -> None:
        rng = Random(7)
        for _ in range(40):
            ids = rng.sample(["a", "b", "B", "é", "가", "나", "😀", "a1", "a10", "a2", "-", "0"], 9)
            values = [0.1, 0.1 + 1e-9, 0.1 + 1e-7, 2, 1e300, 1e200, -0.0, 0, 1e-50, -1e-50]
            scores = {doc_id: float(rng.choice(values)) for doc_id in ids}
            lines = [f"{query} Q0 {i} 0 {s!r} x\n" for query in ids for i, s in scores.items()]
            rng.shuffle(lines)
            run = read_rankings(saved(tmp_path, "".join(lines)))
            evaluator = pytrec_eval.RelevanceEvaluator({i: {i: 1} for i in ids}, {"recip_rank"})
            result = evaluator.evaluate(dict.fromkeys(ids, scores))
            ours = orders(run, "trec")
            for doc_id in ids:
                assert ours[doc_id].index(doc_id) + 1 == round(1 / result[doc_id]["recip_rank"])


class TestRepetitions:
    def test_documents_that_stand_repeatedly_are_reported_and_kept(self, tmp_path: Path) -> None:
        content = "q Q0 a 1 5 x\nq Q0 b 2 4 x\nr Q0 a 1 1 x\nq Q0 b 3 3 x\nq Q0 a 4 2 x\n" * 2
        run = read_rankings(saved(tmp_path, content))
        assert run.repeated == {"q": ("b", "a"), "r": ("a",)}
        assert orders(run, "list")["q"] == ["a", "a", "b", "b", "b", "b", "a", "a"]

    def test_a_list_may_hold_one_document_under_a_number_and_a_text(self, tmp_path: Path) -> None:
        run = read_rankings(saved(tmp_path, '{"q": ["1", "x", 1], "r": ["1"]}'))
        assert run.repeated == {"q": ("1",)}


class TestFaults:
    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ("", ": no rankings; accepted: TREC text (query Q0 document rank score tag), a table"),
            (" \n\t\n", ": no rankings; accepted: TREC text"),
            (HEADER, ": no rankings; accepted: TREC text"),
            ("{}", ": no rankings; accepted: TREC text"),
            ("q Q0 a 1 x\n", ":1: 5 columns in 'q Q0 a 1 x'; accepted: six columns: query Q0"),
            ("q\tQ0\ta b\t1 2\tx\n", ":1: more than 6 columns in 'q\\tQ0\\ta b\\t1 2\\tx'; "),
            ("q Q0 a 1 nan x\n", f":1: score is 'nan'; {FINITE}"),
            ("q\td\t.5\n", ":1: header is 'q\\td\\t.5'; accepted: query-id<TAB>corpus-id<TAB>"),
            (HEADER + "q\td\n", ":2: 2 columns in 'q\\td'; accepted: three columns separated by"),
            (HEADER + "q d 1\n", ":2: 1 column in 'q d 1'; accepted: three columns separated by"),
            (HEADER + "q\td\t1\t\n", ":2: more than 3 columns in 'q\\td\\t1\\t'; "),
            (HEADER + "q\t \t1\n", ":2: an empty id in 'q\\t \\t1'; "),
            (HEADER + "q\td\t-inf\n", f":2: score is '-inf'; {FINITE}"),
            ('{"q": {"d": true}}', f": query 'q': score of 'd' is True; {FINITE}"),
            ('{"q": {"d": "1"}}', f": query 'q': score of 'd' is '1'; {FINITE}"),
            ('{"q": {"d": 1e400}}', f": query 'q': score of 'd' is inf; {FINITE}"),
            ('{"q": {"d": null}}', f": query 'q': score of 'd' is None; {FINITE}"),
            ('{"q": {"d": [1]}}', f": query 'q': score of 'd' is [1]; {FINITE}"),
            ('{"q": {"d": %s}}' % ("9" * 400), ": query 'q': score of 'd' is 9999"),
            ('{"q": {"d": NaN}}', ": no JSON: NaN is no JSON value"),
            ('{"q": {"d": 1, "d": 2}}', ": no JSON: key 'd' given twice in one object"),
            ('{"q": [], "q": []}', ": no JSON: key 'q' given twice in one object"),
            ('{"q": "d"}', f": query 'q': the value is 'd'; {VALUE}"),
            ('{"q": null}', f": query 'q': the value is None; {VALUE}"),
            ('{"q": [["d", 1]]}', ": query 'q': document is ['d', 1]; accepted: text or a whole"),
            ('{"q": [1.5]}', ": query 'q': document is 1.5; accepted: text or a whole"),
            ('{" ": []}', ": query ' ': query is ' '; accepted: text or a whole number"),
            ('{"q": {"": 1}}', ": query 'q': document is ''; accepted: text or a whole number"),
            ('[{"eval_id": 1, "topk": []}]', ": [{'eval_id': 1, 'topk': []}]; accepted: one JSON"),
            ('{"q": ' + "[" * 100_000, ": no JSON: nested too deeply"),
            ('{"q": ["\\ud800"]}', ": no JSON: half of a surrogate pair"),
            ('{"q": ["d"]', ":1: no JSON: Expecting ',' delimiter"),
            ('{"eval_id": 1, "topk": "d"}', f":1: the value is 'd'; {VALUE}"),
            ('{"eval_id": true, "topk": []}', ":1: query is True; accepted: text or a whole"),
            ('{"eval_id": 1, "docs": []}', ":1: {'eval_id': 1, 'docs': []}; accepted: {\"eval_id"),
            ('{"eval_id": 1, "topk": []', ":1: no JSON: Expecting ',' delimiter"),
            (b"q Q0 d\xff 1 1 x\n", ":1: byte 0xff after 6 bytes is no UTF-8"),
            (b'{"q": ["\xff"]}', ":1: byte 0xff after 8 bytes is no UTF-8"),
            ("q Q0 d 1 1 x\n".encode("utf-16"), ": UTF-16 text; accepted: UTF-8 text"),
            ('{"q": ["d"]}'.encode("utf-16"), ": UTF-16 text; accepted: UTF-8 text"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ":1: byte 0x89 after 0 bytes is no UTF-8"),
            (
                gzip.compress(b"q Q0 d 1 1 x\n", mtime=0),
                ": gzip data in a file that is not named .gz",
            ),
        ],
    )
    def test_what_cannot_be_used_is_told_with_its_place(
        self, tmp_path: Path, content: str | bytes, fault: str
    ) -> None:
        told = faults_in(saved(tmp_path, content))
        assert told[0].startswith(fault)
        assert len(told[0]) < 500

    def test_all_faults_of_a_file_come_at_once(self, tmp_path: Path) -> None:
        content = (
            '{"eval_id": 1, "topk": ["a"]}\n{"eval_id": 1, "topk": []}\n{"topk": []}\n[]\n'
            '{"eval_id": 2, "topk": [null, "a", 1.5]}\n{"eval_id": 3, "topk": [],}\n'
        )
        path = saved(tmp_path, content)
        told = faults_in(path)
        assert [text.split(":")[1] for text in told] == ["2", "3", "4", "5", "5", "6"]
        assert told[0] == f":2: query '1' again, first at {path}:1; accepted: each once"

    def test_the_error_says_what_to_do(self, tmp_path: Path) -> None:
        path = saved(tmp_path, "q Q0 a 1 nan x\nq Q0 a\n")
        with pytest.raises(DataError, match="the run has 2 faults") as caught:
            read_rankings(path)
        assert f"where: {path}\n  do: correct the lines named below" in str(caught.value)

    @pytest.mark.slow
    def test_ten_megabytes_in_a_line_give_one_short_line(self, tmp_path: Path) -> None:
        size = 10**7
        for content in (
            b"a" * size,
            b"q Q0 d 1 2 x\n" + b"a " * (size // 2),
            HEADER.encode() + b"a\t" * (size // 2),
            b'{"q": "' + b"a" * size + b'"}',
            b'{"eval_id": 1, "topk": "' + b"a" * size + b'"}',
            b"{" * size,
        ):
            told = faults_in(saved(tmp_path, content))
            assert len(told) == 1
            assert len(told[0]) < 500

    def test_what_is_no_file_is_told(self, tmp_path: Path) -> None:
        assert faults_in(tmp_path / "absent") == [": no such file"]
        assert faults_in(tmp_path)[0].startswith(
            ": a folder without summary.json and rankings.npz; accepted: TREC text"
        )
        os.mkfifo(tmp_path / "pipe")
        assert faults_in(tmp_path / "pipe")[0].startswith(": a pipe or a device; accepted: a file")

    @pytest.mark.parametrize("cut", [4, 12, -5])
    def test_a_damaged_packed_file_is_told(self, tmp_path: Path, cut: int) -> None:
        for content in (b"q Q0 d 1 1 x\n", b'{"q": ["d"]}', b'{"eval_id": 1, "topk": []}\n'):
            path = tmp_path / "run.gz"
            path.write_bytes(gzip.compress(content)[:cut])
            assert "damaged gzip data" in faults_in(path)[0]
        path.write_bytes(b"no gzip")
        assert "damaged gzip data" in faults_in(path)[0]


class TestRunFolders:
    @pytest.mark.parametrize(
        ("summary", "fault"),
        [
            ('{"schema_version": 99}', "run of schema version 99; accepted: versions up to 2"),
            ('{"schema_version": true}', "run of schema version True; accepted"),
            ("[]", "run of schema version None; accepted"),
            ("{", "summary.json:1: no JSON"),
        ],
    )
    def test_a_summary_that_cannot_be_understood_is_told(
        self, tmp_path: Path, summary: str, fault: str
    ) -> None:
        folder = run_folder(tmp_path / "mine")
        (folder / "summary.json").write_text(summary)
        assert fault in faults_in(folder)[0]

    @pytest.mark.parametrize(
        "changes",
        [
            {"ranking": np.array([[9, 0], [1, -1], [-1, -1]])},
            {"ranking": np.array([1, 2])},
            {"scores": np.zeros(2)},
            {"query_ids": np.array(["q", None], dtype=object)},
        ],
    )
    def test_arrays_that_do_not_fit_are_told(
        self, tmp_path: Path, changes: dict[str, object]
    ) -> None:
        told = faults_in(run_folder(tmp_path / "mine", **changes))
        assert told[0].startswith("/rankings.npz: damaged: ")

    def test_a_cut_file_is_told(self, tmp_path: Path) -> None:
        folder = run_folder(tmp_path / "mine")
        content = (folder / "rankings.npz").read_bytes()
        (folder / "rankings.npz").write_bytes(content[:-30])
        assert "/rankings.npz: damaged: " in faults_in(folder)[0]
        (folder / "rankings.npz").unlink()
        assert "a folder without summary.json and rankings.npz" in faults_in(folder)[0]
