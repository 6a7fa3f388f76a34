"""How specific a query is, and the weight that a sparse leg gets for it."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.hybrid.dynamic.specificity import Weigher, Weighting

TEXTS = ("alpha beta gamma", "alpha beta", "alpha beta", "alpha delta")


def weigher(*texts: str, **settings: object) -> Weigher:
    made = Weigher(Weighting.model_validate({"tokenizer": "word", **settings}))
    made.count([Document(str(at), text) for at, text in enumerate(texts or TEXTS)])
    return made


def test_a_term_of_one_document_is_specific_one_of_all_documents_is_not() -> None:
    assert weigher().specificity("gamma") == pytest.approx(1)
    assert weigher().specificity("alpha") == pytest.approx(0)


def test_it_is_the_mean_tf_idf_of_the_distinct_terms() -> None:
    def idf(count: int) -> float:
        return math.log(5 / (1 + count)) + 1

    mean = (2 * idf(3) + idf(1)) / 2
    expected = (mean - idf(4)) / (idf(1) - idf(4))
    assert weigher().specificity("beta delta") == pytest.approx(
        ((idf(3) + idf(1)) / 2 - idf(4)) / (idf(1) - idf(4))
    )
    assert weigher().specificity("beta delta beta") == pytest.approx(min(1.0, expected))


def test_terms_that_the_corpus_does_not_have_say_nothing() -> None:
    assert weigher().specificity("beta unknown") == weigher().specificity("beta")


@pytest.mark.parametrize("text", ["", "   ", "unknown words", "🙂"])
def test_without_a_known_term_there_is_no_specificity_and_the_share_is_half_way(text: str) -> None:
    assert weigher().specificity(text) is None
    assert weigher(specific=0.9, general=0.3).share(text) == pytest.approx(0.6)


def test_one_document_tells_no_term_from_another() -> None:
    assert weigher("one").specificity("one") is None
    assert weigher("same", "same").specificity("same") == 0


def test_the_share_grows_evenly_from_general_to_specific() -> None:
    settings = Weighting(specific=0.7, general=0.3, low=0.2, high=0.6)
    shares = [settings.share(value) for value in (0.0, 0.2, 0.4, 0.6, 1.0)]
    assert shares == pytest.approx([0.3, 0.3, 0.5, 0.7, 0.7])


def test_equal_bounds_make_a_step() -> None:
    settings = Weighting(low=0.5, high=0.5)
    assert [settings.share(value) for value in (0.49, 0.5)] == [0.3, 0.7]


def test_counting_again_replaces_and_the_order_does_not_matter() -> None:
    made = weigher("other texts", "here")
    made.count([Document(str(at), text) for at, text in enumerate(reversed(TEXTS))])
    assert made.specificity("beta delta") == weigher().specificity("beta delta")


def test_the_language_decides_on_stems() -> None:
    made = Weigher(Weighting())
    made.use_language("fr")
    made.count([Document("a", "les chevaux mangeaient"), Document("b", "rien")])
    assert made.specificity("cheval") == pytest.approx(1)


@pytest.mark.parametrize(
    "given", [{"specific": 1.5}, {"low": 0.6, "high": 0.4}, {"general": "x"}, {"what": 1}]
)
def test_settings_out_of_range_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Weighting.model_validate(given)
