"""The published figures that ``configs/published`` names, on the data they were published for."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.types import Dataset
from retrieval_bench.data import load_dataset
from retrieval_bench_answers.reproduction import Published, Reproduction, load_published, reproduce
from retrieval_bench_answers.reproduction.check import Status
from retrieval_bench_retrievers.text.terms import Tokenizer
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer
from tests.builders import some

pytestmark = pytest.mark.realdata


def _found(name: str, bench_data: Path, monkeypatch: pytest.MonkeyPatch) -> Reproduction:
    monkeypatch.setenv("BENCH_DATA", str(bench_data))
    return reproduce(load_published(name), bench_data)


def test_trec_eval_prints_what_we_compute(
    bench_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = _found("trec-eval", bench_data, monkeypatch).figures
    assert len(figures) == 49
    for one in figures:
        assert one.status is Status.OK, one
        assert f"{one.measured:.4f}" == f"{one.published:.4f}", one


def test_the_fused_lists_are_those_of_pyserini_and_one_score_is_not(
    bench_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, scores = _found("fusion", bench_data, monkeypatch).figures
    assert (lists.status, lists.measured, lists.n) == (Status.OK, 1.0, 3)
    # The column of ranks says 3 for the second document of a list; see the remark in the file.
    assert scores.status is Status.CLOSE
    assert scores.measured == pytest.approx(2 / 62 / (1 / 62 + 1 / 63) - 1)


@pytest.mark.slow
def test_bm25_on_scifact_is_the_published_one_with_the_tokenizer_it_was_made_with(
    bench_data: Path,
) -> None:
    paper = load_published("scifact")
    lexical = [one for one in paper.figures if not one.differs and one.system != "MiniLM"]
    found = reproduce(paper.model_copy(update={"figures": lexical}), bench_data)
    assert {one.status for one in found.figures} == {Status.OK}
    values = {(one.name, one.metric): round(one.measured or 0.0, 4) for one in found.figures}
    assert values["Anserini, flat", "nDCG@10"] == 0.6777
    assert values["Anserini, flat", "R@100"] == 0.9253
    assert values["Anserini, flat", "R@1000"] == 0.9767
    assert values["bm25s", "nDCG@10"] == 0.6762
    assert values["rank-bm25", "nDCG@10"] == 0.6839


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.dense
def test_the_encoder_on_scifact_is_judged_and_other_encoders_stand_beside(
    bench_data: Path,
) -> None:
    paper = load_published("scifact")
    names = ("MiniLM", "BGE-base")
    figures = [one for one in paper.figures if one.name in names]
    small = Published.model_validate(paper.model_dump() | {"figures": figures})
    own, other = reproduce(small, bench_data).figures
    assert (own.status, round(own.measured or 0.0, 4)) == (Status.OK, 0.6451)
    assert other.status is Status.NOT_MEASURED
    assert other.beside == own.measured


def test_bm25s_cuts_scifact_into_as_many_terms_as_its_tables_say(bench_data: Path) -> None:
    data = load_dataset(bench_data / "beir" / "scifact")
    tokenize = make_tokenizer("bm25s")
    assert sum(len(tokenize(document.contents)) for document in some(data.documents)) == 812_074


@pytest.mark.slow
def test_with_lengths_in_one_byte_the_terms_of_lucene_give_anserini_s_figure(
    bench_data: Path,
) -> None:
    data = load_dataset(bench_data / "beir" / "scifact")
    tokenize = make_tokenizer("lucene")
    assert round(_lucene_ndcg(data, tokenize, rounded=True), 4) == 0.6789
    assert round(_lucene_ndcg(data, tokenize, rounded=False), 4) == 0.6777


def _lucene_ndcg(data: Dataset, tokenize: Tokenizer, *, rounded: bool) -> float:
    """nDCG@10 of BM25 as Lucene computes it; ``rounded``: with the lengths that it keeps."""
    ids = [document.id for document in some(data.documents)]
    counts = [Counter(tokenize(document.contents)) for document in some(data.documents)]
    lengths = np.array([sum(count.values()) for count in counts])
    kept = np.array([_one_byte(int(n)) for n in lengths]) if rounded else lengths
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for at, count in enumerate(counts):
        for term, frequency in count.items():
            postings[term].append((at, frequency))
    norm = 0.9 * (1 - 0.4 + 0.4 * kept / lengths.mean())
    order_of_ids = np.argsort(np.array(ids))
    total = 0.0
    for query in data.evaluated:
        scores = np.zeros(len(ids))
        for term, times in Counter(tokenize(query.text)).items():
            if term in postings:
                at, frequency = np.array(postings[term]).T
                idf = math.log(1 + (len(ids) - len(at) + 0.5) / (len(at) + 0.5))
                scores[at] += times * idf * frequency / (frequency + norm[at])
        best = order_of_ids[np.argsort(-scores[order_of_ids], kind="stable")][:10]
        grades = data.qrels[query.id]
        gains = [grades.get(ids[at], 0) for at in best]
        ideal = sorted(grades.values(), reverse=True)[:10]
        total += _dcg(gains) / _dcg(ideal)
    return total / len(data.evaluated)


def _dcg(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


def _one_byte(length: int) -> int:
    """A length as Lucene's norms keep it: exact to 24 + 15, then with four binary digits."""
    exact = 24
    if length < exact:
        return length
    rest = length - exact
    shift = max(0, rest.bit_length() - 4)
    return exact + (rest >> shift << shift)
