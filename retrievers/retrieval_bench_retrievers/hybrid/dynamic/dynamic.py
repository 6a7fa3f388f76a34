"""The hybrid of Mala, Gezici & Giannotti (2025), as far as it is published.

Two things are done for each query before a plain hybrid answers it: synonyms from WordNet are added
to its text, and the legs get weights by how specific it is. Each can be switched off, so that an
ablation is a matter of parameters.

The paper (arXiv 2504.05324) and its authors' code give: two synonyms for a term, specificity as the
mean TF-IDF of the terms, about 0.7 for the sparse leg when a query is specific, RRF with k = 60 and
ranks from 0, over the first 3 hits of each leg. Not published: the formula of the weights, how
TF-IDF is scaled, which synonyms are taken, and which leg is asked with them. The defaults for
these are choices of this project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from statistics import median
from time import perf_counter_ns
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from retrieval_bench.core.config import validate
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.retriever import Capabilities, Part, Retriever
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.hybrid.asking import Plan
from retrieval_bench_retrievers.hybrid.dynamic.expansion import Expander, Expansion
from retrieval_bench_retrievers.hybrid.dynamic.specificity import Weigher, Weighting
from retrieval_bench_retrievers.hybrid.hybrid import Hybrid
from retrieval_bench_retrievers.hybrid.legs import LegSpec

_ASKED = {"sparse": (True, False), "dense": (False, True)}
_SHARES = (0.5, 0.6, 0.7, 0.8)


class HybridDynamic(Hybrid):
    """A hybrid that adds synonyms to the query and weighs its legs by the query's specificity.

    Args:
        legs: two, the sparse one first; each as in :class:`.Hybrid`.
        fusion: as in Hybrid, without weights; RRF with k = 60 and ranks from 0 when nothing is
            said.
        depth: as in Hybrid.
        parallel: as in Hybrid.
        expansion: :class:`.Expansion`; True for its defaults, False for none.
        weighting: :class:`.Weighting`; True for its defaults, False for
            equal weights.

    Raises:
        ConfigError: parameters that cannot be used.
        MissingDependencyError: expansion without WordNet; the message says how to install it.
    """

    def __init__(
        self,
        *,
        legs: Sequence[LegSpec],
        fusion: Mapping[str, Any] | None = None,
        depth: int | list[int] = 3,
        parallel: bool = False,
        expansion: bool | Mapping[str, Any] = True,
        weighting: bool | Mapping[str, Any] = True,
    ) -> None:
        settings = validate(
            _Settings,
            {"expansion": expansion, "weighting": weighting},
            where="hybrid-dynamic",
            accepted="expansion true, false or {synonyms, legs: all|sparse|dense, wordnet}; "
            "weighting true, false or {specific, general, low, high: 0 to 1, low not above high, "
            "of: query|expanded, tokenizer}",
            fix="correct the parameters of the hybrid",
        )
        _check(legs, fusion)
        # Before the legs are built: they may hold a model.
        self._expander = Expander(settings.expansion) if settings.expansion else None
        self._weigher = Weigher(settings.weighting) if settings.weighting else None
        given = {} if fusion is None else fusion
        if given.get("method", "rrf") == "rrf":
            given = {"base": 0, **given}
        super().__init__(legs=legs, fusion=given, depth=depth, parallel=parallel)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of Hybrid; but weights need the corpus, even if the legs do without."""
        of_legs = super().capabilities
        return replace(of_legs, external=False) if self._weigher else of_legs

    def use_language(self, language: str | None) -> None:
        """Passed on to every leg, and to the terms that are weighed."""
        super().use_language(language)
        if self._weigher:
            self._weigher.use_language(language)

    def prepare(self) -> None:
        """Every leg loads what it can, and WordNet is read."""
        super().prepare()
        if self._expander:
            self._expander.prepare()

    def index(self, documents: Iterable[Document]) -> None:
        """Let every leg index ``documents``, and count their terms."""
        if iter(documents) is documents:
            documents = list(documents)
        if self._expander:
            self._expander.prepare()
        if self._weigher:
            self._weigher.count(documents)
        super().index(documents)

    def plan(self, query: Query) -> Plan:
        """Plan the query and depth of each leg, and the weights; with the stages ``expand`` and
        ``weigh``."""
        queries, fusion = [query, query], self._fusion
        stages: dict[str, int] = {}
        begin = perf_counter_ns()
        if self._expander:
            expanded = self._expander.expanded(query)
            asked = _ASKED.get(self._expander.settings.legs, (True, True))
            queries = [expanded if wanted else query for wanted in asked]
            stages["expand"] = perf_counter_ns() - begin
        if self._weigher:
            begin = perf_counter_ns()
            share = self._share(query)
            fusion = fusion.model_copy(update={"weights": (share, 1 - share)})
            stages["weigh"] = perf_counter_ns() - begin
        return Plan(queries, fusion, stages)

    def describe(self) -> Mapping[str, Any]:
        """Describe it as Hybrid does, with WordNet's version and hash, and the base of the
        weights."""
        facts = dict(super().describe())
        if self._weigher:
            sparse, dense = self._names()
            fusion = {**facts["fusion"]}
            fusion["text"] += f", weights of {sparse} and {dense} by specificity"
            del fusion["weights"]
            facts["fusion"] = fusion
        facts["expansion"] = self._expander.describe() if self._expander else None
        facts["weighting"] = self._weigher.describe() if self._weigher else None
        return facts

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """The legs' facts, how many synonyms were added, and the weights that came out."""
        facts = list(super().health_facts(queries))
        if self._expander and queries:
            added = [len(self._expander.synonyms(query.text)) for query in queries]
            facts.append(
                f"expansion: {sum(n > 0 for n in added):,} of {len(added):,} queries got synonyms, "
                f"{sum(added) / len(added):.1f} each on average"
            )
        if self._weigher and queries:
            shares = [self._share(query) for query in queries]
            facts.append(
                f"weight of {self._names()[0]}: {min(shares):.2f} to {max(shares):.2f}, median "
                f"{median(shares):.2f}"
            )
        return facts

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """The legs' warnings, and one where WordNet knows no word of the queries."""
        warnings = list(super().health(queries))
        expander = self._expander
        if expander and queries and not any(expander.synonyms(query.text) for query in queries):
            warnings.append(
                "no query has a word with synonyms in WordNet, which is English: expansion does "
                "nothing"
            )
        return warnings

    def search_space(self) -> Mapping[str, Sequence[Any]]:
        """Values that the paper does not give: of the weights, and the depth of the legs."""
        depths = [leg.depth for leg in self._legs]
        own = depths[0] if depths[0] == depths[1] else depths
        space: dict[str, Sequence[Any]] = {
            "depth": [own, *(depth for depth in (3, 10, 100) if depth != own)]
        }
        if self._weigher:
            settings = self._weigher.settings
            specific, general = settings.specific, settings.general
            space["weighting.specific"] = [specific, *(s for s in _SHARES if s != specific)]
            others = [round(1 - share, 2) for share in _SHARES]
            space["weighting.general"] = [general, *(s for s in others if s != general)]
        return space

    def parts(self, k: int) -> Sequence[Part]:
        """List the parts as Hybrid does, with the expansion and the weighting."""
        parts = list(super().parts(k))
        if self._expander:
            plain = copy(self)
            plain._expander = None
            parts.append(Part("expansion", "expansion", plain, stages=("expand",)))
        if self._weigher:
            even = copy(self)
            even._weigher = None
            parts.append(Part("weighting", "weighting", even, "equal weights", ("weigh",)))
        return parts

    def named_legs(self) -> Mapping[str, Retriever]:
        """None: answers that were remembered would be those to queries without synonyms."""
        return {}

    def _share(self, query: Query) -> float:
        """The sparse leg's share of the weight."""
        if self._weigher is None:
            return 0.5
        if self._expander and self._weigher.settings.of == "expanded":
            query = self._expander.expanded(query)
        return self._weigher.share(query.text)

    def _names(self) -> list[str]:
        return [leg.name for leg in self._legs]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    expansion: Expansion | None
    weighting: Weighting | None

    @field_validator("expansion", "weighting", mode="before")
    @classmethod
    def _on_or_off(cls, given: Any) -> Any:
        if isinstance(given, bool):
            return {} if given else None
        return given


def _check(legs: Any, fusion: Any) -> None:
    """Faults that only this hybrid has; the others are left to it."""
    if isinstance(legs, list | tuple) and len(legs) > 2:
        raise ConfigError(
            f"legs given: {len(legs)}",
            where="legs of hybrid-dynamic",
            accepted="two: the sparse one first, then the dense one",
            fix="leave the others out, or take target hybrid",
        )
    if fusion is not None and not isinstance(fusion, Mapping):
        raise ConfigError(
            f"fusion given as {type(fusion).__name__}",
            where="hybrid-dynamic",
            accepted="{method: rrf, k: 60, base: 0}",
            fix="correct the parameter",
        )
    if fusion and "weights" in fusion:
        raise ConfigError(
            f"fusion.weights {fusion['weights']!r}",
            where="hybrid-dynamic",
            accepted="no fixed weights: those of a query come from its specificity",
            fix="set weighting.specific and weighting.general to one value for a fixed share, or "
            "take target hybrid",
        )
