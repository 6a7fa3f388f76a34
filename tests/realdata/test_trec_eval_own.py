"""NIST's own test of trec_eval: what it prints for its own run, to the four decimals printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.cli import main
from retrieval_bench.metrics import Judgements
from retrieval_bench_score.conventions import convention
from retrieval_bench_score.runs.imported import read_rankings
from retrieval_bench_score.scoring import Answers, Scored, score

pytestmark = pytest.mark.realdata

TREC = convention("trec")

PREFIXES = ("P_", "recall_", "ndcg_cut_", "map_cut_", "success_")
NAMES = {
    "map": "AP",
    "gm_map": "GMAP",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "recip_rank": "RR",
    "ndcg": "nDCG",
    "set_P": "set_P",
    "set_recall": "set_R",
    "set_F": "set_F",
    "rbp": "RBP(p=0.9)",
}


def _columns(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue("bench_data") / "trec_eval"
    return found


@pytest.fixture(scope="module")
def judgements(folder: Path) -> Judgements:
    qrels: dict[str, dict[str, int]] = {}
    for query_id, _, doc_id, grade in _columns(folder / "qrels.test"):
        qrels.setdefault(query_id, {})[doc_id] = int(grade)
    return Judgements(qrels)


@pytest.fixture(scope="module")
def scores(folder: Path) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    for query_id, _, doc_id, _, points, _ in _columns(folder / "results.test"):
        run.setdefault(query_id, {})[doc_id] = float(points)
    return run


def _printed(path: Path) -> dict[str, float]:
    """Name -> mean over the queries, of what is printed for all of them and is a number."""
    return {
        name: float(value)
        for name, query_id, value in _columns(path)
        if query_id == "all" and name != "runid"
    }


def _ours(printed: dict[str, float]) -> dict[str, str]:
    """trec_eval's name -> ours, of every printed metric that this project has."""
    return {n: NAMES.get(n, n) for n in printed if n in NAMES or n.startswith(PREFIXES)}


def _mean(scored: Scored, at: int) -> str:
    return f"{scored.evaluation.means[at].mean:.4f}"


@pytest.mark.parametrize(("file", "lines"), [("out.test.a", 49), ("out.test", 14)])
def test_every_line_that_the_project_has_a_metric_for(
    folder: Path,
    judgements: Judgements,
    scores: dict[str, dict[str, float]],
    file: str,
    lines: int,
) -> None:
    printed = _printed(folder / file)
    names = _ours(printed)
    assert len(names) == lines
    scored = score(Answers(scores=scores), judgements, TREC, TREC.parse([*names.values()]))
    assert scored.counts.evaluated == printed["num_q"] == 3
    for at, name in enumerate(names):
        assert _mean(scored, at) == f"{printed[name]:.4f}", name


def test_the_file_as_the_project_reads_it_scores_the_same(
    folder: Path, judgements: Judgements, scores: dict[str, dict[str, float]]
) -> None:
    metrics = TREC.parse([*_ours(_printed(folder / "out.test.a")).values()])
    rankings = read_rankings(folder / "results.test").ordered("trec")
    lists = {query_id: list(ranking.doc_ids) for query_id, ranking in rankings.items()}
    from_lists = score(Answers(lists=lists), judgements, TREC, metrics).evaluation
    from_scores = score(Answers(scores=scores), judgements, TREC, metrics).evaluation
    assert (from_lists.per_query == from_scores.per_query).all()


@pytest.mark.parametrize("cut", [5, 10, 20])
def test_what_is_not_judged_is_what_trec_eval_calls_unjudged(
    folder: Path, judgements: Judgements, scores: dict[str, dict[str, float]], cut: int
) -> None:
    printed = _printed(folder / "out.test.a")[f"unj_{cut}"]
    scored = score(Answers(scores=scores), judgements, TREC, TREC.parse([f"Judged@{cut}"]))
    assert f"{1 - scored.evaluation.means[0].mean:.4f}" == f"{printed:.4f}"


@pytest.mark.parametrize(
    ("file", "measures"), [("out.test", "official"), ("out.test.a", "all_trec")]
)
def test_the_lines_of_trec_eval_are_printed_as_nist_has_them(
    folder: Path, capsys: pytest.CaptureFixture[str], file: str, measures: str
) -> None:
    run, qrels = str(folder / "results.test"), str(folder / "qrels.test")
    options = ["--metrics", measures, "--format", "trec"]
    assert main(["score", "run", run, "--qrels", qrels, *options]) == 0
    assert capsys.readouterr().out == (folder / file).read_text(encoding="utf-8")
