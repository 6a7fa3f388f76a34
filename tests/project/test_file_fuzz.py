"""Whatever the bytes of a run or of judgements: a result or a clear error, never anything else."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.data import read_qrels
from retrieval_bench_score.runs.imported import read_rankings

ROUNDS = 250
"""For each of the 24 cases below: 6,000 files."""

TOKENS = [
    *(b"nan", b"NaN", b"inf", b"-Infinity", b"1e400", b"-", b"", b"1_0", b"0x1", b"1,5", b"true"),
    *(b"null", b'"1"', b"[]", b"{}", b"[[1]]", b'{"a": {"b": [1]}}', b"9" * 400, b"9" * 5000),
    *(b"1.0", b"-0.0", b"1e-400", b"x" * 20_000, "한글".encode(), b'"\\ud800"', b'"\\u0000"'),
]
BYTES = [
    *(b"\x00", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\t", b" ", b"\x0b", b"\x1c", b"\xff"),
    *(b"\xc3", b"\xed\xa0\x80", "\u3000".encode(), "\u2028".encode(), b"\x1f\x8b", b'"', b"\\"),
    *(b"{", b"}", b"[", b"]", b":", b",", b"[" * 3000, b'{"a":' * 3000, b"\xff\xfe", b'"eval_id"'),
]

TREC = "".join(f"q{n // 3} Q0 문서{n} {n % 3} {9 - n / 7:.4f} tag\n" for n in range(9))
SUBMISSION = (
    '{"eval_id": 78, "standalone_query": "물", "topk": ["a", "b", "c"], "answer": "x"}\n'
    '{"eval_id": 79, "topk": [], "references": [{"score": 1.5, "content": "물"}]}\n'
    '{"eval_id": "80", "topk": ["b"]}\n'
)
RUNS = {
    "trec": TREC,
    "trec-tabs": "q 1\tQ0\td 1\t1\t3\tx\nq 1\tQ0\td2\t2\t2.5\tx\nq2\tQ0\td1\t1\t1e-3\tx\n",
    "beir": "query-id\tcorpus-id\tscore\n"
    + "".join(f"q{n // 2}\td {n}\t{n / 3}\n" for n in range(6)),
    "json": json.dumps({"q1": {"a": 1, "문서": 0.5}, "q2": {"b": 2e-3}, "q3": {}}),
    "json-lists": json.dumps({"q1": ["a", "b", 7], "q2": [], "q3": ["a"]}, indent=1),
    "submission": SUBMISSION,
}
QRELS = {
    "trec": "q1 0 d1 1\nq1 Q0 d2 0\nq2\t0\td 3\t2\n문서 0 d1 -1\n",
    "beir": "query-id\tcorpus-id\tscore\nq1\td 1\t1\nq1\td2\t0\nq2\td1\t3\n",
    "json": json.dumps({"q1": {"a": 1, "문서": 0}, "q2": {"b": 2}, "q3": {}}, indent=1),
    "json-lists": json.dumps({"q1": ["a", "b", 7], "q2": [], "q3": ["a"]}),
    "truth": '{"eval_id": 1, "docids": ["a"]}\n{"2": ["b", "c"]}\n{"eval_id": "3", "docid": []}\n',
}


def flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.choice((0, rng.randrange(len(data) + 1)))
    return data[:at] + rng.choice(BYTES) + data[at:]


def remove(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 1, 2, 10)) :]


def change_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(3)
    if action == 0:
        lines.insert(other, lines[one])
    elif action == 1:
        del lines[one]
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def change_cells(data: bytes, rng: random.Random) -> bytes:
    """Delete, repeat or replace what stands between two blanks."""
    cells = data.split(b" ") if rng.random() < 0.5 else data.split(b"\t")
    blank = b" " if data.split(b" ") == cells else b"\t"
    at = rng.randrange(len(cells))
    cells[at : at + 1] = rng.choice(([], [cells[at]] * 2, [rng.choice(TOKENS)]))
    return blank.join(cells)


def change_number(data: bytes, rng: random.Random) -> bytes:
    digits = [at for at, code in enumerate(data) if chr(code).isdecimal()]
    if not digits:
        return data
    at = rng.choice(digits)
    return data[:at] + rng.choice(TOKENS) + data[at + 1 :]


def change_blanks(data: bytes, rng: random.Random) -> bytes:
    old, new = rng.choice(((b"\t", b" "), (b" ", b"\t"), (b"\n", b"\r\n"), (b"\n", b"\r")))
    return data.replace(old, new, rng.choice((1, 2, -1)))


MUTATIONS = [*(flip, cut, insert, remove, change_lines, change_cells, change_number, change_blanks)]


def mutated(content: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 4))):
        content = rng.choice(MUTATIONS)(content, rng) or b"\n"
    return content


def packed(content: bytes, rng: random.Random) -> bytes:
    """Mutated before or after it is packed."""
    if rng.random() < 0.7:
        return gzip.compress(mutated(content, rng), 1, mtime=0)
    return mutated(gzip.compress(content, 1, mtime=0), rng)


def outcomes(
    path: Path, content: bytes, seed: str, check: Callable[[], None], told: Path | None = None
) -> tuple[int, int]:
    """How many mutations of the file were read, and how many refused with its name, or ``told``."""
    rng = random.Random(seed)
    messages = []
    with path.open("w+b", buffering=0) as file:  # opening it for each would be slow on some disks
        for _ in range(ROUNDS):
            file.seek(0)
            file.write((packed if path.suffix == ".gz" else mutated)(content, rng))
            file.truncate()
            try:
                check()
            except HarnessError as problem:
                messages.append(str(problem))
    for message in messages:
        assert str(told or path) in message
        assert len(message.encode()) < 100_000
    return ROUNDS - len(messages), len(messages)


def check_run(path: Path) -> None:
    run = read_rankings(path)
    assert run.rankings
    trec, listed = run.ordered("trec"), run.ordered("list")
    assert list(trec) == list(listed) == list(run.rankings)
    for query_id, ranking in run.rankings.items():
        doc_ids = list(ranking.doc_ids)
        assert query_id.strip()
        assert all(doc_id.strip() for doc_id in doc_ids)
        assert sorted(trec[query_id].doc_ids) == sorted(listed[query_id].doc_ids) == sorted(doc_ids)
        repeated = run.repeated.get(query_id, ())
        assert sorted(repeated) == sorted({doc for doc in doc_ids if doc_ids.count(doc) > 1})
        if ranking.scores is not None:
            assert np.isfinite(ranking.scores).all()
            scores = np.asarray(listed[query_id].scores)
            assert (scores[1:] <= scores[:-1]).all()
            assert len(scores) == len(doc_ids)


def check_qrels(path: Path) -> None:
    qrels = read_qrels(path)
    assert qrels
    for query_id, grades in qrels.items():
        assert query_id.strip()
        assert all(type(grade) is int and doc_id.strip() for doc_id, grade in grades.items())


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("name", RUNS)
def test_a_mutated_run_gives_rankings_or_a_clear_error(
    tmp_path: Path, name: str, suffix: str
) -> None:
    path = tmp_path / f"run{suffix}"
    read, refused = outcomes(path, RUNS[name].encode(), f"{name} 1", lambda: check_run(path))
    assert min(read, refused) > ROUNDS // 20


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("name", QRELS)
def test_mutated_judgements_give_judgements_or_a_clear_error(
    tmp_path: Path, name: str, suffix: str
) -> None:
    path = tmp_path / f"qrels{suffix}"
    read, refused = outcomes(path, QRELS[name].encode(), f"{name} 2", lambda: check_qrels(path))
    assert min(read, refused) > ROUNDS // 20


@pytest.mark.slow
def test_a_mutated_run_folder_gives_rankings_or_a_clear_error(tmp_path: Path) -> None:
    np.savez_compressed(
        tmp_path / "rankings.npz",
        query_ids=np.array(["q1", "q2"]),
        doc_ids=np.array(["a", "문서"]),
        ranking=np.array([[1, 0], [0, -1]], dtype=np.int32),
        scores=np.array([[2.0, 1.0], [3.0, np.nan]]),
    )
    (tmp_path / "summary.json").write_text('{"schema_version": 1, "metrics": {}}')
    for name in ("rankings.npz", "summary.json"):
        path = tmp_path / name
        content = path.read_bytes()
        read, refused = outcomes(path, content, name, lambda: check_run(tmp_path), tmp_path)
        assert min(read, refused) > ROUNDS // 20
        path.write_bytes(content)
