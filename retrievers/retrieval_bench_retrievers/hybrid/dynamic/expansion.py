"""Query expansion: synonyms from WordNet behind the text of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from retrieval_bench.core.plugins import beside_config
from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.hybrid.dynamic.wordnet import WordNet, find_wordnet
from retrieval_bench_retrievers.text.terms import stop_words
from retrieval_bench_retrievers.text.tokenizers import make_tokenizer


class Expansion(BaseModel):
    """``{synonyms, legs, wordnet}``.

    Attributes:
        synonyms: at most so many are added for each term of the query.
        legs: which legs are asked with them.
        wordnet: folder of WordNet; None = where it is usually installed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    synonyms: Annotated[StrictInt, Field(ge=1)] = 2
    legs: Literal["all", "sparse", "dense"] = "all"
    wordnet: str | None = None


class Expander:
    """Adds synonyms to queries; stop words get none.

    Raises:
        ConfigError: no WordNet in the folder that was named.
        MissingDependencyError: there is no WordNet; the message says how to install it.
    """

    def __init__(self, settings: Expansion) -> None:
        self.settings = settings
        given = settings.wordnet
        self._place = find_wordnet(None if given is None else beside_config(given))
        self._wordnet: WordNet | None = None
        self._words = make_tokenizer("word")
        self._ignored: frozenset[str] = frozenset()

    def prepare(self) -> WordNet:
        """Read WordNet, once."""
        if self._wordnet is None:
            self._ignored = stop_words("english")
            self._wordnet = WordNet(self._place)
        return self._wordnet

    def synonyms(self, text: str) -> list[str]:
        """Find the words to add to ``text``: the synonyms of each term in turn, none that it has
        already. The first for a term is of its most frequent meaning."""
        wordnet = self.prepare()
        terms = dict.fromkeys(self._words(text))
        known = set(terms)
        added: list[str] = []
        for term in terms:
            if term in self._ignored:
                continue
            for synonym in wordnet.synonyms(term, self.settings.synonyms):
                if synonym.lower() not in known:
                    known.add(synonym.lower())
                    added.append(synonym)
        return added

    def expanded(self, query: Query) -> Query:
        """``query`` with its synonyms behind its text, which stays as it is."""
        added = self.synonyms(query.text)
        return replace(query, text=" ".join([query.text, *added])) if added else query

    def describe(self) -> Mapping[str, Any]:
        """The settings, with version and hash of WordNet instead of its folder."""
        own = self.settings.model_dump(exclude={"wordnet"})
        return {**own, "wordnet": self.prepare().describe()}
