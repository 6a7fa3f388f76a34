"""The header that says how a run was made."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from retrieval_bench import bench
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.run import Run
from retrieval_bench_exchange.ir_metadata import END, START, header, ir_metadata, write_annotated
from retrieval_bench_score.runs.imported import read_rankings

ONE_ROUND = Protocol(rounds=1, warm_up_s=0.0)


@pytest.fixture(scope="module")
def run() -> Run:
    return bench("bm25", overrides=["k1=1.2"], protocol=ONE_ROUND).run


def read_back(text: str) -> object:
    """As repro_eval 0.5 reads it: the lines between start and end without their signs."""
    first, *lines, last = text.splitlines()
    assert (first, last) == (START, END)
    assert all(line.startswith("#") for line in lines)
    return yaml.safe_load("\n".join(line.lstrip("#") for line in lines))


@pytest.mark.slow
def test_a_header_reads_back_as_what_the_run_and_its_author_know(run: Run) -> None:
    given = {
        "actor": {"name": "김하늘", "team": "검색 #1"},
        "research goal": {"hypothesis": "BM25: enough?"},
        "data": {"test collection": {"source": "https://example.org"}},
    }
    metadata = ir_metadata(run, given)
    assert read_back(header(metadata)) == metadata
    assert metadata["actor"]["name"] == "김하늘"
    collection = metadata["data"]["test collection"]
    assert collection["name"] == "science-mini"
    assert collection["source"] == "https://example.org"
    (stage,) = metadata["method"]["retrieval"]
    assert (stage["method"], stage["k1"]) == ("bm25", 1.2)
    assert any(
        one.startswith("rank-bm25==")
        for one in metadata["platform"]["software"]["libraries"]["python"]
    )


@pytest.mark.slow
def test_a_hybrid_names_its_legs_and_what_combines_them() -> None:
    legs = ["bm25", {"name": "words", "target": "bm25", "params": {"tokenizer": "word"}}]
    hybrid = {"name": "both", "target": "hybrid", "params": {"legs": legs}}
    stages = ir_metadata(bench(hybrid, protocol=ONE_ROUND).run)["method"]["retrieval"]
    assert [stage["name"] for stage in stages] == ["bm25", "words", "both"]
    assert stages[2]["interpolates"] == ["bm25", "words"]
    assert stages[2]["fusion"].startswith("rrf k=60")


def test_an_annotated_run_is_read_as_the_run_itself(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "shared.run"
    write_annotated(path, run, {"actor": {"name": "김하늘"}})
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"{START}\n# tag: bm25\n# actor:\n#   name: 김하늘\n")
    found = read_rankings(path).rankings
    for at, query_id in enumerate(run.rankings.query_ids):
        ranking = run.rankings.row(at)
        if len(ranking):
            assert list(found[query_id].doc_ids) == list(ranking.doc_ids)
    with pytest.raises(ConfigError, match="exists already"):
        write_annotated(path, run)


def test_a_part_that_the_schema_does_not_have_is_refused(run: Run) -> None:
    with pytest.raises(ConfigError, match="part 'acter'"):
        ir_metadata(run, {"acter": {}})
