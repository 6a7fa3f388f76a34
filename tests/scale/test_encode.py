"""``data encode``: the same bytes whoever makes them, and nothing but whole blocks."""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench import Document
from retrieval_bench.core.errors import ConfigError, ContractError, Interrupted, RecordError
from retrieval_bench.core.progress import Phase, Task
from retrieval_bench_scale import cluster as clusters
from retrieval_bench_scale.shards import executors
from retrieval_bench_scale.shards.blocks import BlockFolder, Reader
from retrieval_bench_scale.shards.encode import EncodedCorpus, Job, encode_corpus
from retrieval_bench_scale.shards.exact import Search, nearest
from retrieval_bench_scale.tables.encode import encode_tables
from tests.builders import some
from tests.builders.fake_encoder import Hashed, _full, many
from tests.builders.files import json_lines, save_all
from tests.builders.reporters import Remembering

N = 2_500
"""Documents: two whole blocks, and one of 452."""


def corpus(folder: Path, n: int = N, more: str = "") -> Path:
    queries = [{"_id": f"q{at}", "text": f"text {at * 31}"} for at in range(20)]
    save_all(
        folder,
        {
            "corpus.jsonl": json_lines(many(n)) + more,
            "queries.jsonl": json_lines(queries),
            "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq0\td000000\t1\n",
        },
    )
    return folder


def encoded(here: Path, out: str = "blocks", **more: Any) -> EncodedCorpus:
    """One call with the encoder of hashes; its parameters are what no option is."""
    options = {"shard", "merge", "on", "exact", "reporter"}
    params = {name: value for name, value in more.items() if name not in {*options, "data"}}
    if not (here / "data").exists():
        corpus(here / "data")
    return encode_corpus(
        {"target": "tests.builders.fake_encoder:Hashed", "params": {"folder": str(here), **params}},
        more.get("data", here / "data"),
        out=here / out,
        **{name: value for name, value in more.items() if name in options},
    )


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def calls(here: Path) -> int:
    path = here / "calls"
    return path.read_text("utf-8").count("\n") if path.exists() else 0


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one process made everything."""
    folder = tmp_path_factory.mktemp("whole")
    with chdir(folder):
        made = encoded(folder, "one", on="local:1", exact=10)
    assert (made.blocks, made.made, made.missing, made.merged) == (3, 3, 0, True)
    (folder / "calls").unlink()
    (folder / "kept").rename(folder / "kept-one")
    return folder


@pytest.fixture
def whole(made_once: Path, here: Path) -> dict[str, bytes]:
    """What one process makes; with its data in a folder of the test."""
    shutil.copytree(made_once, here, dirs_exist_ok=True)
    return files(here / "one")


def test_two_processes_make_the_bytes_of_one(here: Path, whole: dict[str, bytes]) -> None:
    encoded(here, on="local:2", exact=10)
    assert files(here / "blocks") == whole
    assert set(whole) == {
        "000000.npy",
        "000001.npy",
        "000002.npy",
        "exact-10.run",
        "exact-10.qrels",
    }
    assert (here / "kept").read_bytes() == (here / "kept-one").read_bytes()


@pytest.mark.usefixtures("in_here")
def test_shards_make_the_same_and_a_merge_wants_all_of_them(
    here: Path, whole: dict[str, bytes]
) -> None:
    assert encoded(here, shard="2/2").missing == 1
    with pytest.raises(ConfigError, match="of 3 blocks 0 is missing"):
        encoded(here, merge=True)
    assert not (here / "kept").exists()
    first = encoded(here, shard="1/2")
    assert (first.made, first.missing, first.merged) == (1, 0, False)
    assert encoded(here, merge=True, exact=10).made == 0
    assert calls(here) == 3
    assert files(here / "blocks") == whole
    assert (here / "kept").read_bytes() == (here / "kept-one").read_bytes()


def test_each_text_is_kept_once_with_the_vector_of_its_first_document(
    here: Path, whole: dict[str, bytes]
) -> None:
    lines = (here / "kept-one").read_bytes().splitlines()
    texts = [line.split(b"\t")[0] for line in lines]
    wanted = [one["text"].encode() for one in many(N)]
    assert sorted(texts) == sorted(set(wanted))
    assert len(wanted) > len(texts)
    blocks = [np.load(here / "one" / f"00000{at}.npy") for at in range(3)]
    rows = dict(zip(wanted[::-1], np.concatenate(blocks)[::-1], strict=True))
    assert all(
        bytes.fromhex(vector.decode()) == rows[text].tobytes()
        for text, vector in (line.split(b"\t") for line in lines)
    )


@pytest.mark.usefixtures("in_here")
def test_more_shards_than_blocks_are_empty_ones(here: Path) -> None:
    made = [encoded(here, shard=f"{at}/5").made for at in range(1, 6)]
    assert sorted(made) == [0, 0, 1, 1, 1]


@pytest.mark.usefixtures("in_here")
@pytest.mark.parametrize("at", ["head", "vectors", "facts", "checksum"])
def test_a_flipped_byte_is_seen_and_only_its_block_made_anew(
    here: Path, whole: dict[str, bytes], at: str
) -> None:
    encoded(here)
    path = here / "blocks" / "000001.npy"
    raw = bytearray(path.read_bytes())
    place = {"head": 70, "vectors": 3000, "facts": len(raw) - 90, "checksum": len(raw) - 3}
    raw[place[at]] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match="of 3 blocks 1 is missing or damaged"):
        encoded(here, merge=True)
    (here / "calls").unlink()
    made = encoded(here, exact=10)
    assert (made.made, made.damaged, calls(here)) == (1, 1, 1)
    for damaged, words in ((1, "1 block was damaged, and"), (2, "2 blocks were damaged, and")):
        (table,) = encode_tables(replace(made, damaged=damaged), "bench")
        assert f"{words} made anew." in table.notes
    assert files(here / "blocks") == whole


@pytest.mark.usefixtures("in_here")
def test_a_cut_off_file_is_damaged(here: Path, whole: dict[str, bytes]) -> None:
    encoded(here)
    for left in (0, 10, 4000):
        (here / "blocks" / "000002.npy").write_bytes(whole["000002.npy"][:left])
        assert encoded(here, exact=10).damaged == 1
    assert files(here / "blocks") == whole


@pytest.mark.usefixtures("in_here")
def test_blocks_of_another_model_and_of_other_texts_are_refused(here: Path) -> None:
    encoded(here)
    with pytest.raises(ConfigError, match=r"000000.npy has other revision: 1; here 2") as caught:
        encoded(here, merge=True, revision="2")
    assert "--out" in caught.value.fix
    corpus(here / "other", N - 1)
    with pytest.raises(ConfigError, match=r"000002.npy is block 2 of other texts"):
        encoded(here, merge=True, data=here / "other")
    (here / "blocks" / "000000.npy").replace(here / "blocks" / "000001.npy")
    with pytest.raises(ConfigError, match=r"000001.npy is block 0"):
        encoded(here, merge=True)


@pytest.mark.usefixtures("in_here")
def test_blocks_of_another_processor_or_version_are_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded(here, shard="1/1")
    for name, value in (("processor", "made-up avx9"), ("numpy", "0.1")):
        with monkeypatch.context() as patch:
            if name == "numpy":
                patch.setattr(np, "__version__", value)
            else:
                patch.setattr(
                    "retrieval_bench_scale.shards.blocks.processor", lambda: "made-up avx9"
                )
            with pytest.raises(ConfigError, match=f"has other {name}: .*; here {value}"):
                encoded(here, merge=True)


def test_a_worker_with_other_files_is_refused_before_it_makes_anything(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus(here / "data")
    ours = clusters.facts()
    monkeypatch.setattr(clusters, "facts", lambda: {**ours, "files of this project": "0" * 16})
    with pytest.raises(ConfigError, match="has other files of this project") as caught:
        encoded(here)
    assert "one installation" in caught.value.fix
    assert files(here / "blocks") == {}


def test_a_full_disk_is_said_and_what_was_finished_stays(
    here: Path, whole: dict[str, bytes]
) -> None:
    with pytest.raises(RecordError, match="cannot write the vectors: No space left") as caught:
        encoded(here, on="local:1", trouble="full")
    assert "--out" in caught.value.fix
    assert files(here / "blocks") == {"000000.npy": whole["000000.npy"]}


@pytest.fixture
def small_disk(here: Path) -> Iterator[Path]:
    """A file system of 20 MB, in memory, with room for one block and the head of another."""
    disk = here / "disk"
    disk.mkdir()
    try:
        mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(disk)]
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nobody but root can mount one")
    try:
        (disk / "filler").write_bytes(bytes((20 << 20) - (64 << 10)))
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_full_keeps_whole_blocks_and_the_same_command_goes_on(
    here: Path, small_disk: Path, whole: dict[str, bytes]
) -> None:
    with pytest.raises(RecordError, match="cannot write the vectors: No space left"):
        encoded(here, "disk/blocks", on="local:1")
    assert files(small_disk / "blocks") == {"000000.npy": whole["000000.npy"]}
    (small_disk / "filler").unlink()
    made = encoded(here, "disk/blocks", on="local:2", exact=10)
    assert made.made == 2
    assert files(small_disk / "blocks") == whole


@pytest.mark.usefixtures("in_here")
def test_numbers_that_are_none_and_no_encoder_are_refused(here: Path) -> None:
    with pytest.raises(ContractError, match="finite"):
        encoded(here, trouble="wrong")
    with pytest.raises(ConfigError, match="bm25 has no encoder of documents"):
        encode_corpus("bm25", here / "data", out=here / "blocks")


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3"])
def test_a_shard_that_is_none_is_refused(here: Path, shard: str) -> None:
    with pytest.raises(ConfigError, match=f"--shard {shard}"):
        encoded(here, shard=shard)


def test_words_that_contradict_each_other_are_refused(here: Path) -> None:
    with pytest.raises(ConfigError, match="--merge with --shard"):
        encoded(here, shard="1/2", merge=True)
    with pytest.raises(ConfigError, match="--exact with --shard"):
        encoded(here, shard="1/2", exact=3)
    with pytest.raises(ConfigError, match="--on local:0"):
        encoded(here, on="local:0")


@pytest.mark.slow
def test_a_process_that_dies_each_time_is_given_up(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "_TRIES", 3)
    corpus(here / "data", more='{"_id": "p", "text": "poison"}\n')
    with pytest.raises(ConfigError, match="the workers failed with BrokenProcessPool"):
        encoded(here, trouble="die", on="local:1")
    assert set(files(here / "blocks")) == {"000000.npy", "000001.npy"}
    assert calls(here) == 2 + 3


class Meddling(Remembering):
    """Does something to the processes once a first block is there."""

    def __init__(self, folder: Path, times: int, number: int) -> None:
        super().__init__()
        self.folder, self.times, self.number = folder, times, number
        self.done = 0
        self.over = threading.Event()

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[Task]:
        thread = threading.Thread(target=self._meddle)
        thread.start()
        try:
            with super().phase(phase) as task:
                yield task
        finally:
            self.over.set()
            thread.join()

    def _meddle(self) -> None:
        chance = random.Random(7)
        for at in range(self.times):
            while not self.over.is_set() and len([*self.folder.glob("*.npy")]) <= at:
                time.sleep(0.005)
            self.over.wait(chance.random())
            if not self.over.is_set() and (children := active_children()):
                victims = sorted(one.pid or 0 for one in children)
                os.kill(chance.choice(victims), self.number)
                self.done += 1


@pytest.mark.slow
@pytest.mark.long
def test_processes_that_are_killed_cost_a_block_each_and_no_byte_is_wrong(here: Path) -> None:
    corpus(here / "data", 7 * 1024)
    encoded(here, "one", on="local:2")
    (here / "calls").unlink()
    (here / "blocks").mkdir()
    killing = Meddling(here / "blocks", 5, signal.SIGKILL)
    encoded(here, on="local:2", takes_s=0.001, reporter=killing)
    assert killing.done >= 3
    assert calls(here) <= 7 + killing.done
    assert files(here / "blocks") == files(here / "one")


@pytest.mark.slow
def test_after_ctrl_c_the_same_command_goes_on(here: Path) -> None:
    corpus(here / "data", 5 * 1024)
    (here / "blocks").mkdir()

    class Interrupting(Meddling):
        def _meddle(self) -> None:
            while not [*self.folder.glob("*.npy")]:
                time.sleep(0.005)
            signal.pthread_kill(some(threading.main_thread().ident), signal.SIGINT)

    interrupting = Interrupting(here / "blocks", 1, signal.SIGINT)
    with pytest.raises(Interrupted, match=r"of 5 blocks are in .*: the same command goes on"):
        encoded(here, on="local:2", takes_s=0.001, reporter=interrupting)
    there = files(here / "blocks")
    assert 1 <= len(there) < 5
    assert all(not name.startswith(".") for name in there)
    assert not active_children()
    made = encoded(here, on="local:2", takes_s=0.0)
    assert made.made == 5 - len(there)
    encoded(here, "one")
    assert files(here / "blocks") == files(here / "one")


def test_exact_lists_are_those_of_a_naive_search_with_ties_by_id(
    here: Path, whole: dict[str, bytes]
) -> None:
    lines = [line.split() for line in whole["exact-10.run"].decode().splitlines()]
    documents = [*many(N)]
    encoder = Hashed(str(here))

    def unit(text: str) -> Any:
        vector = encoder.query(text)
        wide = vector.astype(np.float64)
        return (vector / np.sqrt(np.einsum("i,i", wide, wide))).astype(np.float32)

    units = np.stack([unit(one["text"]) for one in documents]).astype(np.float64)
    ties = 0
    for at in range(20):
        asked = unit(f"text {at * 31}").astype(np.float64)
        scores = [math.fsum(row) for row in (units * asked).tolist()]
        order = sorted(range(N), key=lambda one: (-scores[one], documents[one]["_id"]))[:10]
        found = [line[2] for line in lines if line[0] == f"q{at}"]
        assert found == [documents[one]["_id"] for one in order]
        ties += len({scores[one] for one in order}) < 10
    qrels = [line.split() for line in whole["exact-10.qrels"].decode().splitlines()]
    assert [[line[0], line[2]] for line in qrels] == [[line[0], line[2]] for line in lines]
    assert ties > 5, "equal texts are among the best"


@pytest.mark.usefixtures("in_here")
def test_lists_of_other_queries_do_not_replace_those_that_are_there(
    here: Path, whole: dict[str, bytes]
) -> None:
    queries = here / "data" / "queries.jsonl"
    queries.write_text(json_lines([{"_id": "q0", "text": "another text"}]), encoding="utf-8")
    run = encoded(here, "one", exact=10).exact_run
    assert run is not None
    assert re.fullmatch(r"exact-10-[0-9a-f]{8}\.run", run.name)
    assert run.with_suffix(".qrels").read_text("utf-8").count("\n") == 10
    assert {name: files(here / "one")[name] for name in whole} == whole


@pytest.mark.usefixtures("in_here")
def test_lists_are_written_whole_or_not_at_all(
    here: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "write_bytes", _full)
    with pytest.raises(RecordError, match="No space left"):
        encoded(here, "one", on="local:1", exact=7)
    assert files(here / "one") == whole


def test_an_array_that_is_no_block_is_refused_and_left_alone(here: Path) -> None:
    (here / "blocks").mkdir()
    theirs = here / "blocks" / "000000.npy"
    np.save(theirs, np.arange(12.0))
    before = theirs.read_bytes()
    with pytest.raises(ConfigError, match=r"000000\.npy is an array of numpy that does not say"):
        encoded(here)
    assert theirs.read_bytes() == before


def test_only_what_was_left_long_ago_is_taken_away(tmp_path: Path) -> None:
    names = (".000000.npy.7.ab", ".exact-old", ".000001.npy.8.cd", ".exact-new")
    left, left_folder, written, used = (tmp_path / name for name in names)
    for folder in (left_folder, used):
        folder.mkdir()
    for file in (left, written):
        file.touch()
    for old in (left, left_folder):
        os.utime(old, (1, 1))
    BlockFolder(tmp_path, {}, 3).clear()
    assert set(tmp_path.iterdir()) == {written, used}


@pytest.mark.usefixtures("in_here")
def test_a_corpus_that_changes_meanwhile_makes_no_block(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Job.make

    def meddled(job: Job, *given: Any) -> Any:
        corpus(here / "data", N, more='{"_id": "p", "text": "more"}\n')
        return make(job, *given)

    corpus(here / "data")
    monkeypatch.setattr(Job, "make", meddled)
    with pytest.raises(ConfigError, match="block 2 has other texts on the worker"):
        encoded(here, on="local:1")
    assert set(files(here / "blocks")) == {"000000.npy", "000001.npy"}


def test_a_walk_that_fails_begins_anew() -> None:
    class Failing(list[Document]):
        def __iter__(self) -> Iterator[Document]:
            yield from super().__iter__()
            raise OSError("gone")

    failing = Failing(Document(f"d{at}", f"text {at}") for at in range(5))
    reader = Reader(failing)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            reader.texts(0)


@pytest.mark.usefixtures("in_here")
@pytest.mark.parametrize("trouble", ["shape", "finite"])
def test_vectors_of_queries_that_are_none_are_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    encoded(here)
    given = np.full(13 if trouble == "shape" else 12, 1 if trouble == "shape" else np.inf)
    monkeypatch.setattr(Hashed, "query", lambda *_: given)
    with pytest.raises(ContractError, match="finite numbers of shape"):
        encoded(here, merge=True, exact=3)


def test_a_worker_with_another_processor_finds_no_exact_lists(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(BlockFolder(here, {"processor": "made-up"}, 3), clusters.facts(), None, True, 1)
    with pytest.raises(ConfigError, match="has other processor"):
        nearest(search, str(here), 0, 1)
