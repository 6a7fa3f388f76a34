"""The figures that independent tools and published tables give on real collections.

The encoder's vectors of a collection are kept in the user's cache: the first time takes minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench import bench, compare, load_dataset
from retrieval_bench.api.results import ComparisonResult
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_retrievers.text.languages import language_advice
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer

pytestmark = [pytest.mark.realdata, pytest.mark.slow]

ONCE = Protocol(rounds=1, warm_up_s=0.01)


def ndcg(retriever: object, dataset: Path, **options: object) -> float:
    result = bench(retriever, dataset, k=100, protocol=ONCE, **options)  # type: ignore[arg-type]
    return float(result.summary["metrics"]["nDCG@10"]["mean"])


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("scifact", 0.665, 0.690),
        ("time", 0.7001, 0.7201),
        ("halubench-mala299", 0.7547, 0.7747),
        ("autorag-ko", 0.90, 1.0),
    ],
)
@pytest.mark.parametrize("retriever", ["bm25", "bm25s"])
def test_bm25_with_its_defaults(
    bench_data: Path, retriever: str, name: str, low: float, high: float
) -> None:
    assert low <= ndcg(retriever, bench_data / "beir" / name) <= high


def test_rank_bm25_s_own_setting_on_white_space(bench_data: Path) -> None:
    config = {
        "target": "bm25",
        "params": {"k1": 1.5, "b": 0.75, "tokenizer": {"name": "whitespace", "lower": True}},
    }
    value = ndcg(config, bench_data / "beir" / "scifact")
    assert value == pytest.approx(0.5597, abs=0.001)


def test_rank_bm25_s_own_setting_on_korean_bigrams(bench_data: Path) -> None:
    config = {"target": "bm25", "params": {"k1": 1.5, "b": 0.75}}
    result = bench(config, bench_data / "beir" / "autorag-ko", k=100, protocol=ONCE)
    assert result.summary["metrics"]["RR@100"]["mean"] > 0.88


def test_single_characters_changed_no_ranking_of_korean_queries(bench_data: Path) -> None:
    data = load_dataset(bench_data / "beir" / "autorag-ko")
    tokenize = make_tokenizer("auto")
    terms = [tokenize(query.text) for query in data.queries]
    assert any(len(term) == 1 for query in terms for term in query)
    assert not any(map(tokenize.are_parts, terms))


def test_french_questions_gain_from_their_language_and_are_advised_of_it(bench_data: Path) -> None:
    piaf = bench_data / "beir" / "piaf-v1.0"
    plain, told = (bench("bm25", piaf, protocol=ONCE, language=code) for code in (None, "fr"))
    assert plain.summary["metrics"]["nDCG@10"]["mean"] == pytest.approx(0.7794, abs=1e-4)
    assert told.summary["metrics"]["nDCG@10"]["mean"] == pytest.approx(0.7991, abs=1e-4)
    (advice,) = (text for text in plain.summary["warnings"] if "look French" in text)
    assert "--language fr" in advice
    assert not any("look French" in text for text in told.summary["warnings"])


@pytest.mark.parametrize(
    "name", ["scifact", "time", "squad2-dev", "halubench-mala299", "autorag-ko"]
)
def test_no_language_is_advised_where_none_is_missing(bench_data: Path, name: str) -> None:
    queries = load_dataset(bench_data / "beir" / name).queries
    assert language_advice("auto", [query.text for query in queries]) == ""


@pytest.mark.dense
class TestDense:
    @pytest.mark.parametrize(
        ("name", "dense", "rrf", "convex"),
        [
            ("time", 0.6554, 0.7402, 0.7817),
            # What encodes a larger collection waits for `make test-all`: minutes, or many of them
            # on a busy machine.
            pytest.param(*("halubench-mala299", 0.7044, 0.7548, 0.7987), marks=pytest.mark.long),
        ],
    )
    def test_legs_and_fusions_lie_in_their_bands(
        self, bench_data: Path, name: str, dense: float, rrf: float, convex: float
    ) -> None:
        names = ["dense", "hybrid", "hybrid-convex"]
        result = compare(names, bench_data / "beir" / name, k=100, protocol=ONCE)
        values = _ndcg(result)
        assert values["dense"] == pytest.approx(dense, abs=0.002)
        assert values["hybrid"] == pytest.approx(rrf, abs=0.01)
        assert values["hybrid-convex"] == pytest.approx(convex, abs=0.01)

    @pytest.mark.long
    def test_scifact_reproduces_the_published_encoder_and_the_gain_of_fusion(
        self, bench_data: Path
    ) -> None:
        names = ["bm25", "dense", "hybrid", "hybrid-convex"]
        values = _ndcg(compare(names, bench_data / "beir" / "scifact", k=100, protocol=ONCE))
        assert 0.665 <= values["bm25"] <= 0.690
        assert values["dense"] == pytest.approx(0.6451, abs=0.002)
        assert values["hybrid"] > 0.70
        assert values["hybrid-convex"] > 0.715

    @pytest.mark.long
    def test_an_english_encoder_is_announced_as_unfit_for_korean(self, bench_data: Path) -> None:
        result = bench("dense", bench_data / "beir" / "autorag-ko", k=100, protocol=ONCE)
        assert result.summary["metrics"]["nDCG@10"]["mean"] < 0.10
        assert any("does not fit" in warning for warning in result.summary["warnings"])


def _ndcg(result: ComparisonResult) -> dict[str, float]:
    return {run.name: run.summary.metrics["nDCG@10"].mean or 0.0 for run in result.runs}
