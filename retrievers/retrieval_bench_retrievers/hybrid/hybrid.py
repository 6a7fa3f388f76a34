"""Two or more retrievers as one: every leg is asked, one fused ranking comes back.

Each leg is asked for ``max(depth, k)`` hits, and its rank and score of every fused hit are kept in
``Ranking.legs``, beside its whole list. Legs run in turn, or in threads: the ranking is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Annotated, Any

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from retrieval_bench.core.config import validate
from retrieval_bench.core.errors import ConfigError, distinct_names
from retrieval_bench.core.notices import with_text
from retrieval_bench.core.ranking import checked_ranking, top_k
from retrieval_bench.core.retriever import (
    Answers,
    Capabilities,
    DocumentEncoder,
    Part,
    Retriever,
    Rung,
    require_index,
    require_k,
)
from retrieval_bench.core.types import Document, Documents, LegTrace, Query, Ranking
from retrieval_bench_retrievers.hybrid.asking import Asking, Plan
from retrieval_bench_retrievers.hybrid.fusion import RRF, Convex, Pool, with_method, with_texts
from retrieval_bench_retrievers.hybrid.legs import (
    Leg,
    LegSpec,
    WritesToLegs,
    built,
    close_all,
    sources_of,
    steps_inside,
    told_from,
    usage_of_legs,
)
from retrieval_bench_retrievers.hybrid.parts import WHOLE, hybrid_parts

Progress = Callable[[int, int], None]
"""Called with (documents done, documents in all)."""

_DEPTHS = (50, 100, 200)
"""Worth trying."""

_DEEPEST = 1000
"""Hits of a leg beyond which no fusion is held against."""


class _Settings(BaseModel):
    """Every parameter but the legs, whose names stand in the validation context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fusion: Annotated[RRF | Convex, Field(discriminator="method")]
    depth: tuple[Annotated[StrictInt, Field(ge=1)], ...]
    parallel: StrictBool

    @field_validator("fusion", mode="before")
    @classmethod
    def _spell_out_method(cls, given: Any) -> dict[str, Any]:
        return with_method(given)

    @field_validator("depth", mode="before")
    @classmethod
    def _one_per_leg(cls, given: Any, info: ValidationInfo) -> Any:
        n_legs = len((info.context or {})["legs"])
        if not isinstance(given, list | tuple):
            return (given,) * n_legs
        if len(given) != n_legs:
            raise PydanticCustomError(
                "depth", "{given} depths for {legs} legs", {"given": len(given), "legs": n_legs}
            )
        return given


class Hybrid(WritesToLegs, Retriever):
    """The fused ranking of two or more legs.

    A fused score's tolerance holds as long as the legs rank alike: where a leg's own scores tie
    within its tolerance, RRF turns a swap of two neighbours into a step of up to 1 / (k + rank) of
    their share, and min-max enlarges a difference by (highest score / range of scores).

    Args:
        legs: two or more of: the name or YAML file of a retriever config, an inline ``{target,
            params, name}``, a :class:`Retriever`, which then belongs to the hybrid and is called
            by its attribute ``name``, if any, or its class. Equal names are told apart as
            ``dense``, ``dense#2``.
        fusion: ``{method: rrf, k: 60, base: 1, weights}`` or ``{method: convex, normalize:
            min-max, weights}``; weights are a list in the order of the legs or ``{leg: weight}``.
        depth: hits that each leg is asked for, or more when k is larger; one number, or one per
            leg.
        parallel: run the legs at the same time, one thread each.

    Raises:
        ConfigError: parameters that cannot be used, all in one message.
    """

    def __init__(
        self,
        *,
        legs: Sequence[LegSpec],
        fusion: Mapping[str, Any] | None = None,
        depth: int | list[int] = 100,
        parallel: bool = False,
    ) -> None:
        sources = sources_of(legs)
        names = distinct_names([source.name for source in sources])
        settings = validate(
            _Settings,
            {"fusion": fusion, "depth": depth, "parallel": parallel},
            where=f"hybrid of {', '.join(names)}",
            accepted="fusion {method: rrf, k, base, weights} or {method: convex, normalize, "
            "weights}; depth of at least 1, or one per leg; parallel true or false",
            fix="correct the parameters of the hybrid",
            context={"legs": names},
        )
        scored = partial(_require_scores, names, settings.fusion)
        self._fusion: RRF | Convex = settings.fusion
        self._parallel = settings.parallel
        self._legs = [
            Leg(name, retriever, asked, source.facts)
            for name, retriever, asked, source in zip(
                names, built(sources, scored), settings.depth, sources, strict=True
            )
        ]
        self._indexed = False
        self._closed = False
        self._borrowed = False
        self._progress: Progress | None = None
        self._asked = Asking()

    @property
    def capabilities(self) -> Capabilities:
        """External or exact only if every leg is, a replay if any is; the widest tolerance."""
        of_legs = [leg.retriever.capabilities for leg in self._legs]
        return Capabilities(
            external=all(leg.external for leg in of_legs),
            exact=all(leg.exact for leg in of_legs),
            replays=any(leg.replays for leg in of_legs),
            filters=all(leg.filters for leg in of_legs),
            score_tolerance=max(leg.score_tolerance for leg in of_legs),
            deepens=all(leg.deepens for leg in of_legs),
            writes=all(leg.writes for leg in of_legs),
        )

    @property
    def legs(self) -> Sequence[Leg]:
        """The legs that it asks."""
        return self._legs

    @property
    def parallel(self) -> bool:
        """True if the legs run at the same time."""
        return self._parallel

    @property
    def progress(self) -> Progress | None:
        """Told how far ``index`` is, by every leg that can tell."""
        return self._progress

    @progress.setter
    def progress(self, told: Progress | None) -> None:
        self._progress = told
        for leg in self._legs:
            leg.retriever.progress = told

    def use_language(self, language: str | None) -> None:
        """Passed on to every leg."""
        for leg in self._legs:
            leg.retriever.use_language(language)

    def use_filters(self, fields: Sequence[str]) -> None:
        """Passed on to every leg."""
        for leg in self._legs:
            leg.retriever.use_filters(fields)

    def use_corpus(self, documents: Documents | None, unit_of: Mapping[str, str]) -> None:
        """Passed on to every leg; units only where none of them searches, since a search finds
        documents."""
        units = unit_of if all(leg.retriever.capabilities.replays for leg in self._legs) else {}
        for leg in self._legs:
            leg.retriever.use_corpus(documents, units)

    def use_k(self, k: int) -> None:
        """Every leg is told what it will be asked for."""
        for leg in self._legs:
            leg.retriever.use_k(max(leg.depth, k))

    def prepare(self) -> None:
        """Every leg loads what it can, one after the other."""
        for leg in self._legs:
            with told_from("leg", leg.name, "hybrid"):
                leg.retriever.prepare()

    def index(self, documents: Iterable[Document]) -> None:
        """Let every leg that is not external index ``documents``."""
        self._indexed = False
        if iter(documents) is documents:
            documents = list(documents)
        for leg in self._indexing():
            with told_from("leg", leg.name, "hybrid"):
                leg.retriever.index(documents)
        self._indexed = True

    def index_identity(self) -> Mapping[str, Any] | None:
        """Return the identities of the legs that are not external, in their order, which is that of
        the files; None where one has none, and of a class of a user's."""
        of_legs = [leg.retriever.index_identity() for leg in self._indexing()]
        if type(self) is not Hybrid or not all(of_legs):
            return None
        return {"kind": "hybrid", "legs": of_legs}

    def save(self, folder: Path) -> None:
        """Each leg in a folder of its own."""
        for at, leg in enumerate(self._indexing()):
            (folder / f"leg-{at}").mkdir()
            leg.retriever.save(folder / f"leg-{at}")

    def load(self, folder: Path) -> None:
        """Load what :meth:`save` wrote."""
        self._indexed = False
        for at, leg in enumerate(self._indexing()):
            with told_from("leg", leg.name, "hybrid"):
                leg.retriever.load(folder / f"leg-{at}")
        self._indexed = True

    def _indexing(self) -> list[Leg]:
        return [leg for leg in self._legs if not leg.retriever.capabilities.external]

    def search(self, query: Query, k: int) -> Ranking:
        """The ``k`` best of what the legs return, with their stages and traces.

        Stages keep their name when one leg has it and read ``leg.stage`` when several do, or when
        the leg is a hybrid with legs of its own; ``leg:NAME`` is the whole time of a leg's call,
        ``fuse`` what follows the last of them.

        Raises:
            ContractError: a leg broke the contract, or has no scores to combine; as any exception
                of a leg, it carries a note with the leg's name.
        """
        require_k(k)
        require_index(self._indexed or self.capabilities.external, self)
        plan = self.plan(query)
        together = self._parallel and not self._borrowed
        ask = self._asked.together if together else self._asked.in_turn
        answers = ask(self._legs, plan.queries, k)
        begin = perf_counter_ns()
        rankings = []
        for leg, (raw, _) in zip(self._legs, answers, strict=True):
            with told_from("leg", leg.name, "hybrid"):
                has_scores = leg.retriever.capabilities.has_scores
                rankings.append(checked_ranking(raw, max(leg.depth, k), has_scores=has_scores))
        pool = Pool.of(rankings)
        fused = plan.fusion.fuse(pool)
        order = top_k(fused, k)
        order = order[fused[order] > -np.inf]
        names = [leg.name for leg in self._legs]
        traces = {
            name: LegTrace(pool.ranks[i, order], pool.scores[i, order], own.doc_ids, own.scores)
            for i, (name, own) in enumerate(zip(names, rankings, strict=True))
        }
        own = {f"leg:{name}": ns for name, (_, ns) in zip(names, answers, strict=True)}
        own = {**plan.stages, **own}
        ids = [pool.doc_ids[i] for i in order.tolist()]
        kept, usage = steps_inside(names, rankings), usage_of_legs(names, rankings)
        own["fuse"] = perf_counter_ns() - begin
        stages = _stages(names, rankings, own)
        came = Ranking(ids, fused[order], stages, traces, steps=kept, usage=usage)
        return with_texts(came, rankings)

    def plan(self, query: Query) -> Plan:
        """Every leg is asked the query as it is, and the fusion is always the same; a subclass may
        decide for each query."""
        return Plan([query] * len(self._legs), self._fusion, {})

    def describe(self) -> Mapping[str, Any]:
        """The fusion as text and as data, depths, and what each leg says of itself."""
        names = [leg.name for leg in self._legs]
        data = self._fusion.model_dump(exclude={"weights"})
        weights = dict(zip(names, self._fusion.weights, strict=True))
        return {
            "fusion": {"text": self._fusion.text(names), **data, "weights": weights},
            "depth": {leg.name: leg.depth for leg in self._legs},
            "parallel": self._parallel,
            "legs": {leg.name: {**leg.facts, **leg.retriever.describe()} for leg in self._legs},
        }

    def health_facts(self, queries: Sequence[Query]) -> Sequence[str]:
        """Every leg's facts, each behind the leg's name."""
        return [
            f"{leg.name}: {fact}"
            for leg in self._legs
            for fact in leg.retriever.health_facts(queries)
        ]

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Every leg's warnings, each behind the leg's name."""
        return [
            with_text(warning, f"{leg.name}: {warning}")
            for leg in self._legs
            for warning in leg.retriever.health(queries)
        ]

    def search_space(self) -> Mapping[str, Sequence[Any]]:
        """The fusion's parameters, and the depth of all legs, unless their lists are saved ones."""
        space = {f"fusion.{name}": values for name, values in self._fusion.search_space().items()}
        if self.capabilities.replays:
            return space
        depths = [leg.depth for leg in self._legs]
        own = depths[0] if len(set(depths)) == 1 else depths
        return {**space, "depth": [own, *(depth for depth in _DEPTHS if depth != own)]}

    def named_legs(self) -> Mapping[str, Retriever]:
        """The legs by name."""
        return {leg.name: leg.retriever for leg in self._legs}

    def document_encoder(self) -> DocumentEncoder | None:
        """Return the document encoder of the one leg that has some."""
        encoders = [own for leg in self._legs if (own := leg.retriever.document_encoder())]
        return encoders[0] if len(encoders) == 1 else None

    def parts(self, k: int) -> Sequence[Part]:
        """Each leg; of three or more the fusion, with each leg alone in its place; the depth, where
        it is more than ``k``; and the parts of the legs."""
        return hybrid_parts(self, k)

    def rungs(self) -> Sequence[Rung]:
        """Return the rungs of each leg that has some, and how many of its hits are read."""
        of_legs = [leg.retriever.rungs() for leg in self._legs]
        legs = [
            replace(
                leg,
                retriever=(own and own[0].retriever) or leg.retriever,
                depth=max(leg.depth, _DEEPEST) if own else leg.depth,
            )
            for leg, own in zip(self._legs, of_legs, strict=True)
        ]
        told = {leg.name: own for leg, own in zip(self._legs, of_legs, strict=True) if own}
        if not told:
            return ()
        first = "; ".join(f"{name}: {own[0].what}" for name, own in told.items())
        made = [Rung("exact", f"{first}; {_DEEPEST:,} of its hits are read", self._asking(legs))]
        for at, leg in enumerate(self._legs):
            for rung in of_legs[at][1:]:
                if rung.retriever is not None:
                    legs[at] = replace(legs[at], retriever=rung.retriever)
                name = f"{leg.name}/{rung.name}" if len(told) > 1 else rung.name
                whole = rung.retriever and self._asking(legs)
                made.append(replace(rung, name=name, retriever=whole))
        read = " and ".join(f"{leg.depth:,}" for leg in self._legs if leg.name in told)
        served = [replace(new, depth=leg.depth) for new, leg in zip(legs, self._legs, strict=True)]
        return [*made, Rung("depth", f"{read} of {_DEEPEST:,}", self._asking(served))]

    def _asking(self, legs: Sequence[Leg]) -> Hybrid:
        """The same with other ``legs``, asked as its own are, which are not closed with it."""
        other = self.with_legs(legs)
        other._borrowed = False
        return other

    def over(self, memory: Answers, path: str = "") -> Hybrid:
        """The same with every leg over ``memory``."""
        before = f"{path}/" if path else ""
        return self.with_legs(
            [
                replace(leg, retriever=leg.retriever.over(memory, f"{before}{leg.name}"))
                for leg in self._legs
            ]
        )

    def with_legs(self, legs: Sequence[Leg], keep: Sequence[int] | None = None) -> Hybrid:
        """The same with other ``legs``, which are not closed with it and asked in turn.

        Args:
            keep: places of legs whose weights they have; None = as they are.
        """
        other = copy(self)
        other._legs = list(legs)
        if keep is not None:
            other._fusion = self._fusion.of(keep)
        other._borrowed = other._closed = True
        other._asked = Asking()
        return other

    def disk_bytes(self) -> int | None:
        """Sum over the legs that know theirs, None when none does."""
        known = [size for leg in self._legs if (size := leg.retriever.disk_bytes()) is not None]
        return sum(known) if known else None

    def close(self) -> None:
        """End the threads and close every leg; a second call does nothing."""
        self._asked.close()
        if not self._closed:
            self._closed = True
            close_all(leg.retriever for leg in self._legs)


def _stages(
    names: Sequence[str], rankings: Sequence[Ranking], own: Mapping[str, int]
) -> dict[str, int]:
    uses = Counter(own.keys())
    for ranking in rankings:
        uses.update(ranking.stages.keys())
    of_legs = {
        # A bare ``leg:`` or ``step:`` always says what this hybrid's own call is made of.
        stage if uses[stage] == 1 and not stage.startswith(WHOLE) else f"{name}.{stage}": ns
        for name, ranking in zip(names, rankings, strict=True)
        for stage, ns in ranking.stages.items()
    }
    return {**of_legs, **own}


def _require_scores(names: Sequence[str], fusion: RRF | Convex, legs: Sequence[Retriever]) -> None:
    unscored = [
        name for name, leg in zip(names, legs, strict=True) if not leg.capabilities.has_scores
    ]
    if unscored and isinstance(fusion, Convex):
        raise ConfigError(
            f"convex fusion over legs without scores: {', '.join(unscored)}",
            where="hybrid",
            accepted="legs with scores",
            fix="use fusion {method: rrf}, which needs ranks only",
        )
