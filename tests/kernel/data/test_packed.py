"""Compressed files of every kind, and files that are something else than their names say."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, DataError, MissingDependencyError
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.data import load_dataset
from retrieval_bench.data.faults import EXAMPLES, Faults
from retrieval_bench.data.files.lines import json_lines, kind_of, lines
from retrieval_bench.data.files.packed import COMPRESSIONS, ENDINGS, unpacked, unpacked_name
from retrieval_bench.data.needs_judgements import require_corpus
from retrieval_bench.data.qrels import read_qrels
from tests.builders.files import save, save_all
from tests.builders.refusals import dataset_faults


def zstd(content: bytes) -> bytes:
    import zstandard

    packed: bytes = zstandard.compress(content)
    return packed


PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}
LINE = b'{"a": "\xea\xb0\x80"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq\td\t1\n"
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea42\nsize 3091\n"


def faults_in(path: Path) -> tuple[str, ...]:
    faults = Faults()
    list(lines(path, faults))
    with pytest.raises(DataError) as caught:
        faults.raise_if_any("it", "here")
    return tuple(text.removeprefix(str(path)) for text in caught.value.faults)


def beir(folder: Path, **changes: str | bytes) -> Path:
    files: dict[str, str | bytes] = {
        "corpus.jsonl": '{"_id": "d", "text": "t"}\n',
        "queries.jsonl": '{"_id": "q", "text": "t"}\n',
        "qrels/test.tsv": QRELS,
    }
    return save_all(folder, files | changes)


EACH = [
    pytest.param(end, marks=pytest.mark.needs("zstandard")) if end == ".zst" else end
    for end in ENDINGS
]


@pytest.mark.parametrize("ending", EACH)
class TestEachCompression:
    def test_is_read_as_its_name_says(self, tmp_path: Path, ending: str) -> None:
        assert set(PACK) == set(COMPRESSIONS)
        path = save(tmp_path / f"x.jsonl{ending}", PACK[ending](LINE * 50_000))
        assert sum(1 for _ in json_lines(path, Faults())) == 50_000
        assert (kind_of(path), unpacked_name(path.name)) == (".jsonl", "x.jsonl")

    def test_may_come_in_several_pieces(self, tmp_path: Path, ending: str) -> None:
        pack = PACK[ending]
        path = save(tmp_path / f"x.jsonl{ending}", pack(LINE) + pack(b"") + pack(LINE * 2))
        assert [number for number, _ in json_lines(path, Faults())] == [1, 2, 3]

    @pytest.mark.parametrize("cut", [3, 15, -12, -4, None])
    def test_that_is_cut_off_or_is_none_is_a_fault_and_no_shorter_file(
        self, tmp_path: Path, ending: str, cut: int | None
    ) -> None:
        content = b"".join(b'{"a": %d}\n' % number for number in range(9_999))
        packed = content if cut is None else PACK[ending](content)[:cut]
        path = save(tmp_path / f"x.jsonl{ending}", packed)
        assert f"damaged {COMPRESSIONS[ending].name} data" in faults_in(path)[-1]

    def test_without_its_name_is_named(self, tmp_path: Path, ending: str) -> None:
        path = save(tmp_path / "x.jsonl", PACK[ending](LINE))
        (fault,) = faults_in(path)
        name = COMPRESSIONS[ending].name
        assert fault.startswith(f": {name} data in a file that is not named {ending}; accepted: ")

    @pytest.mark.needs("retrieval_bench_score")
    def test_is_read_in_datasets_and_runs(self, tmp_path: Path, ending: str) -> None:
        from retrieval_bench_score.runs.imported import read_rankings

        folder = beir(tmp_path)
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            path = folder / name
            save(folder / f"{name}{ending}", PACK[ending](path.read_bytes()))
            path.unlink()
        run = save(tmp_path / f"r.run{ending}", PACK[ending](b"q Q0 d 1 2.5 t\n"))
        assert load_dataset(folder).qrels == {"q": {"d": 1}}
        assert list(read_rankings(run).rankings["q"].doc_ids) == ["d"]
        assert read_qrels(folder / f"qrels/test.tsv{ending}") == {"q": {"d": 1}}

    def test_is_known_on_standard_input_by_its_first_bytes(
        self, tmp_path: Path, ending: str
    ) -> None:
        assert unpacked(PACK[ending](LINE), "standard input").read() == LINE


def test_without_the_package_a_zst_file_says_which_one_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = save(tmp_path / "qrels.tsv.zst", b"\x28\xb5\x2f\xfd")
    with pytest.raises(MissingDependencyError) as caught:
        read_qrels(path)
    told = caught.value.render()
    assert "a .zst file needs the package zstandard, which is not installed" in told
    assert f"where: {path}" in told
    assert "pip install zstandard" in told


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (LFS, ": a pointer of Git LFS, not the file itself; accepted: the file: `git lfs pull`"),
        ("/annex/objects/SHA256E-s1--a.jsonl\n", ": a pointer of git-annex, not the file itself"),
        (b"PK\x03\x04\x14\x00", ": a zip archive or a spreadsheet"),
        (b"\x04\x22\x4d\x18\x64\n", ": lz4 data; accepted: the file unpacked, or as .gz, .bz2"),
        (b"PAR1\x15\x04\n", ": a parquet file; accepted: UTF-8 text; parquet where it is named"),
        (b"ARROW1\x00\x00", ": an Arrow file"),
        (b"\x80\x04\x95\x10\n", ": a pickle of Python"),
        ("  <!DOCTYPE html>\n<html>\n", ": a web page; accepted: the file that it was to be"),
        ('{"a": 1}'.encode("utf-16"), ": UTF-16 text"),
        (b'{"a": "\x00"}\n', ": binary data"),
        (b"corpus.jsonl".ljust(257, b"\x00") + b"ustar\x0000", ": a tar archive"),
    ],
)
def test_what_is_no_text_is_named_once(tmp_path: Path, content: str | bytes, says: str) -> None:
    path = save(tmp_path / "x.jsonl", content)
    (fault,) = faults_in(path)
    assert fault.startswith(says)


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "corpus.jsonl.bz2"])
def test_a_pointer_in_place_of_any_file_is_one_fault(tmp_path: Path, name: str) -> None:
    folder = beir(tmp_path, **{name: LFS})
    if name != "corpus.jsonl":
        (folder / "corpus.jsonl").unlink()
    told = dataset_faults(folder)
    assert [fault.split("; ")[0] for fault in told] == [
        f"{name}: a pointer of Git LFS, not the file itself"
    ]


@pytest.mark.parametrize(
    ("content", "sign"),
    [
        ("query-id,corpus-id,score\nq,d,1\n", "commas"),
        ("q,0,d,1\n" * 150, "commas"),
        ("query-id;corpus-id;score\nq;d;1\n", "semicolons"),
    ],
)
def test_judgements_with_another_separator_are_one_fault(
    tmp_path: Path, content: str, sign: str
) -> None:
    (fault,) = dataset_faults(beir(tmp_path, **{"qrels/test.tsv": content}))
    assert fault.startswith(f"qrels/test.tsv: columns separated by {sign} in '")


def test_a_table_of_commas_that_is_named_tsv_says_so(tmp_path: Path) -> None:
    described = "format: plain\nfiles: {documents: d.tsv, queries: q.csv}\nsplits: {test: j.csv}\n"
    files = {"d.tsv": "id,text\nd,t\n", "q.csv": "id|text\nq|t\n", "dataset.yaml": described}
    folder = save_all(tmp_path, {**files, "j.csv": "query_id,doc_id,grade\nq,d,1\n"})
    first, second, *_ = dataset_faults(folder)
    assert first.startswith("d.tsv:1: a table of columns separated by commas, whose header is 'id")
    assert first.endswith("separated by tabs, or by commas in a file named .csv")
    assert second.startswith("q.csv:1: a table of columns separated by bars, whose header")


def test_semicolons_of_a_spreadsheet_separate_columns(tmp_path: Path) -> None:
    """N8: decided by the first line, so that commas in texts stay commas."""
    described = "format: plain\nfiles: {documents: d.csv, queries: q.csv}\nsplits: {test: j.csv}\n"
    files = {
        "dataset.yaml": described,
        "d.csv": '\ufeffid;text\nd1;"red; or green"\nd2;one, two\n',
        "q.csv": '"id";"text"\nq1;red, green\n',
        "j.csv": "query_id;doc_id;grade\nq1;d1;1\n",
    }
    data = load_dataset(save_all(tmp_path, files))
    assert [d.text for d in data.documents or ()] == ["red; or green", "one, two"]
    assert [query.text for query in data.queries] == ["red, green"]
    assert data.qrels == {"q1": {"d1": 1}}
    save(tmp_path / "q.csv", "id,text\nq1;red\n")
    assert "q.csv:2: 1 column" in dataset_faults(tmp_path)[0], "commas in the first line decide"


class TestShards:
    """N8: files that hold a corpus in pieces are named, where the folder is read without one."""

    NAMES = ("docs-00.jsonl.gz", "docs-01.jsonl.gz")

    @pytest.mark.parametrize(
        ("names", "pattern"),
        [
            (NAMES, '"docs-*.jsonl.gz"'),
            (("passages_1_of_2.jsonl", "passages_2_of_2.jsonl"), '"passages_*_of_2.jsonl"'),
            (("collection.tsv",), "collection.tsv"),
        ],
    )
    def test_beside_queries_of_beir(
        self, tmp_path: Path, names: tuple[str, ...], pattern: str
    ) -> None:
        folder = beir(tmp_path)
        (folder / "corpus.jsonl").unlink()
        save_all(folder, dict.fromkeys(names, '{"_id": "d", "text": "t"}\n'))
        data = load_dataset(folder)
        assert f"files: {{documents: {pattern}}}" in data.warnings[-1]
        with pytest.raises(DataError, match="is not read: if it holds the documents"):
            require_corpus(data, {"bm25": Capabilities()})

    @pytest.mark.needs("retrieval_bench_exchange")
    def test_where_no_layout_is_recognised(self, tmp_path: Path) -> None:
        rows = '{"_id": "d", "text": "t"}\n'
        save_all(tmp_path, {**dict.fromkeys(self.NAMES, rows), "questions.jsonl": rows})
        with pytest.raises(ConfigError, match=r'documents: "docs-\*\.jsonl\.gz"'):
            load_dataset(tmp_path)

    def test_a_folder_that_says_it_has_no_corpus_is_not_asked_again(self, tmp_path: Path) -> None:
        folder = beir(tmp_path)
        save(folder / "dataset.yaml", "format: beir\nfiles: {documents: null}\n")
        assert not any("is not read" in text for text in load_dataset(folder).warnings)


def test_one_cause_in_many_lines_is_told_once_with_its_number(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": "d{n}", "text": "t"}}\n' for n in range(200))
    told = dataset_faults(beir(tmp_path, **{"corpus.jsonl": rows}))
    cause = "no '_id'; found: 'id', 'text'"
    assert told[:EXAMPLES] == tuple(f"corpus.jsonl:{n}: {cause}" for n in (1, 2, 3))
    assert told[EXAMPLES:] == (f"corpus.jsonl: the same 197 more times: {cause}",)
