"""``data encode`` in a user's folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.project import QUICK, Command, saved_runs

pytestmark = pytest.mark.usefixtures("project")

HASHED = "target: tests.builders.fake_encoder:Hashed\nparams: {folder: .}\n"


@pytest.fixture(autouse=True)
def hashed(project: Path) -> None:
    (project / "hashed.yaml").write_text(HASHED, encoding="utf-8")


def test_shards_are_made_merged_and_held_against_exact_lists(run: Command) -> None:
    words = "data encode hashed.yaml --dataset data --out blocks"
    assert run(f"{words} --shard 1/2 --on local:1") == 0
    assert "Blocks of vectors: 0 of 1 are there, 0 made now" in run.out
    assert "the same command with --merge in place of --shard" in " ".join(run.out.split())
    assert "of 1 block 0 is missing or damaged" in run.refused(f"{words} --merge")
    assert run(f"{words} --exact 2 --on local:1") == 0
    assert "1 of 1 are there, 1 made now" in run.out
    assert "exact-2.run" in run.out
    assert "next:  retrieval-bench bench hashed.yaml --dataset data" in run.out
    document = run.json(f"{words} --merge")
    assert (document["blocks"], document["made"], document["merged"]) == (1, 0, True)
    assert np.load("blocks/000000.npy").shape == (document["documents"], 12)
    assert run("score run blocks/exact-2.run --qrels blocks/exact-2.qrels --metrics R@2") == 0
    assert "recall@2 is 1.0000" in " ".join(run.out.split())


def test_the_command_that_comes_next_opens_what_was_made(project: Path, run: Command) -> None:
    (project / "data").rename(project / "my data")
    (project / "mine.yaml").write_text("name: okapi\ntarget: bm25\n", encoding="utf-8")
    assert run("data index mine.yaml --dataset 'my data' --set k1=1.4") == 0
    step = "bench mine.yaml --dataset 'my data' --set k1=1.4"
    assert f"next:  retrieval-bench {step}" in run.out
    assert run(step, *QUICK) == 0
    (folder,) = saved_runs(project)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["index"]["opened"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("hashed.yaml --dataset data --shard 3/2", "accepted: I/N, from 1/N to N/N"),
        ("hashed.yaml --dataset data --on here", "accepted: local:N for N processes"),
        ("hashed.yaml --dataset data --exact 0", "a whole number of at least 1"),
        ("bm25 --dataset data", "bm25 has no encoder of documents"),
        ("hashed.yaml --dataset data --on tcp://127.0.0.1", "accepted: the address of a Dask"),
    ],
)
def test_what_cannot_be_used_is_refused(words: str, message: str, run: Command) -> None:
    assert run(f"data encode {words} --out blocks") == 2
    assert message in " ".join(run.err.split())
