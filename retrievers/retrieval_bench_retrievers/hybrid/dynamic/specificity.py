"""How specific a query is, and what that makes of the weights of a sparse and a dense leg.

Specificity is the mean TF-IDF of the terms of the query, counted in the corpus it is asked of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from retrieval_bench.core.types import Document
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer

_Share = Annotated[StrictFloat | StrictInt, Field(ge=0, le=1)]


class Weighting(BaseModel):
    """``{specific, general, low, high, of, tokenizer}``: the sparse leg's share of the weight grows
    evenly from ``general`` at specificity ``low`` to ``specific`` at ``high``; the dense leg has
    the rest. Equal ``low`` and ``high`` make a step.

    Attributes:
        specific: share of the sparse leg for a specific query.
        general: the same for a general one.
        low, high: specificity at and below which a query is general, and from which on specific.
        of: what is weighed, the query as it was asked or with its synonyms.
        tokenizer: what a term is.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    specific: _Share = 0.7
    general: _Share = 0.3
    low: _Share = 0.0
    high: _Share = 1.0
    of: Literal["query", "expanded"] = "query"
    tokenizer: str | dict[str, Any] = "auto"

    @model_validator(mode="after")
    def _in_order(self) -> Weighting:
        if self.low > self.high:
            raise PydanticCustomError("order", "low is above high")
        return self

    def share(self, specificity: float | None) -> float:
        """The sparse leg's share; half way where nothing is known of a query."""
        if specificity is None:
            return (self.specific + self.general) / 2
        if self.low == self.high:
            return self.specific if specificity >= self.high else self.general
        position = (specificity - self.low) / (self.high - self.low)
        return self.general + (self.specific - self.general) * min(1.0, max(0.0, position))


class Weigher:
    """Counts in how many documents each term stands, and weighs queries by it.

    ``idf(t) = ln((1 + N) / (1 + df)) + 1``, as scikit-learn smooths it; tf is how often the query
    has the term; terms that the corpus does not have say nothing. The mean over the distinct terms
    is moved to 0 .. 1: 0 for terms that stand in every document, 1 for terms of one document.
    """

    def __init__(self, settings: Weighting) -> None:
        self.settings = settings
        self._tokenize = make_tokenizer(settings.tokenizer)
        self._documents = 0
        self._counts: dict[str, int] = {}

    def use_language(self, language: str | None) -> None:
        """Set the language of stems and stop words, where the tokenizer names none; before
        ``count``."""
        self._tokenize = make_tokenizer(self.settings.tokenizer, language)

    def count(self, documents: Iterable[Document]) -> None:
        """Replace the counts by those of ``documents``."""
        counts: Counter[str] = Counter()
        n = 0
        for document in documents:
            n += 1
            counts.update(set(self._tokenize(document.contents)))
        self._documents, self._counts = n, dict(counts)

    def specificity(self, text: str) -> float | None:
        """From 0 to 1; None where ``text`` has no term of the corpus, or a term cannot be rarer
        than another."""
        counts = self._counts
        terms = Counter(term for term in self._tokenize(text) if term in counts)
        lowest = self._idf(self._documents)
        span = self._idf(1) - lowest
        if not terms or span <= 0:
            return None
        mean = math.fsum(n * self._idf(counts[term]) for term, n in terms.items()) / len(terms)
        return min(1.0, max(0.0, (mean - lowest) / span))

    def share(self, text: str) -> float:
        """The sparse leg's share of the weight for a query with this text."""
        return self.settings.share(self.specificity(text))

    def describe(self) -> Mapping[str, Any]:
        """The settings and the formula, for the manifest."""
        own = self.settings.model_dump(exclude={"tokenizer"})
        formula = "mean of tf * (ln((1 + N) / (1 + df)) + 1) over distinct terms, 0 .. 1"
        return {**own, "specificity": formula, "tokenizer": self._tokenize.describe()}

    def _idf(self, count: int) -> float:
        return math.log((1 + self._documents) / (1 + count)) + 1
