"""The steps of a pipeline as they are written down: checked, told apart, and built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
    field_validator,
)

from retrieval_bench.core.calls.usage import Price
from retrieval_bench.core.errors import ConfigError, distinct_names, near_names
from retrieval_bench.core.plugins import describe_faults
from retrieval_bench_retrievers.hybrid.fusion import RRF, Convex, with_method
from retrieval_bench_retrievers.rerank.named import RERANKERS

_WHERE = "steps of the pipeline"
STEPS = (
    "a list: any number of {rewrite: NAME, params, pass_query, keep, fusion, on, price}, then one "
    "{retrieve: RETRIEVER, depth}, then any number of {rerank: NAME, top, params, text: "
    "original|rewritten, on, price} and {filter: NAME, params, text, on, price}; each may have a "
    "name without / [ ] :. RETRIEVER is a name or YAML file, or {target, params}; NAME is "
    "module:function or file.py:function of (text), of rerankers and filters of (text, documents). "
    f"{RERANKERS}"
)
"""What may stand there, for messages."""


class Step(BaseModel):
    """Keys of all steps.

    Attributes:
        name: in stages and lists; None = what it does.
        on: False leaves it out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
    KIND: ClassVar[str]

    name: Annotated[str, Field(min_length=1, pattern=r"^[^/\[\]:]+$")] | None = None


class Optional(Step):
    """A step that a pipeline can do without.

    Attributes:
        params: what its function gets by keyword, or what makes it.
        price: of what it uses up.
    """

    on: StrictBool = True
    params: dict[str, Any] = {}
    price: Price | None = None


class RewriteStep(Optional):
    """``{rewrite, name, params, on, price, pass_query, keep, fusion}``.

    Attributes:
        pass_query: the rewriter gets the whole query.
        keep: the text of the query is asked, too.
        fusion: how lists of several texts become one.
    """

    KIND: ClassVar[str] = "rewrite"
    rewrite: Any
    pass_query: StrictBool = False
    keep: StrictBool = False
    fusion: dict[str, Any] | None = None

    @field_validator("fusion")
    @classmethod
    def _known(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        if given is not None:
            if "weights" in given:  # how many texts there will be, nobody knows before
                raise ValueError("no weights: all texts of a query count alike")
            fusion_of(given, 1)
        return given


class RetrieveStep(Step):
    """``{retrieve, name, depth}``.

    Attributes:
        depth: hits that the retriever is asked for, at least.
    """

    KIND: ClassVar[str] = "retrieve"
    retrieve: Any
    depth: Annotated[StrictInt, Field(ge=1)] | None = None


class _OfDocuments(Optional):
    """A step that reads documents.

    Attributes:
        text: of the query that it gets: as it was asked, or as it was rewritten.
    """

    text: Literal["original", "rewritten"] = "original"


class RerankStep(_OfDocuments):
    """``{rerank, name, params, on, price, text, top}``.

    Attributes:
        top: documents that it leaves at most; None = all.
    """

    KIND: ClassVar[str] = "rerank"
    rerank: Any
    top: Annotated[StrictInt, Field(ge=1)] | None = None


class FilterStep(_OfDocuments):
    """``{filter, name, params, on, price, text}``: documents that it does not keep are gone."""

    KIND: ClassVar[str] = "filter"
    filter: Any


AnyStep = RewriteStep | RetrieveStep | RerankStep | FilterStep
_KINDS: Mapping[str, type[AnyStep]] = {
    item.KIND: item for item in (RewriteStep, RetrieveStep, RerankStep, FilterStep)
}


def fusion_of(given: Mapping[str, Any] | None, n: int) -> RRF | Convex:
    """The fusion of ``n`` lists that ``given`` says, all with the same weight."""
    settings = with_method(given)
    legs = {"legs": [str(at) for at in range(n)]}
    if settings["method"] == "convex":
        return Convex.model_validate(settings, context=legs)
    return RRF.model_validate(settings, context=legs)


def steps_of(given: Any) -> tuple[list[AnyStep], list[str]]:
    """The steps with their names, told apart; any number that rewrite, one that retrieves, any
    number that rerank or filter.

    Raises:
        ConfigError: everything that is wrong with them.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise _wrong([f"steps given as {type(given).__name__}"])
    steps: list[AnyStep] = []
    faults: list[str] = []
    for at, step in enumerate(given, start=1):
        try:
            steps.append(_step(step))
        except ConfigError as problem:
            faults.append(f"step {at}: {problem.given}")
        except ValidationError as problem:
            faults += [f"step {at}: {fault}" for fault in describe_faults(problem)]
    if faults:
        raise _wrong(faults)
    kinds = [step.KIND for step in steps]
    if kinds.count("retrieve") != 1:
        raise _wrong([f"{kinds.count('retrieve')} steps that retrieve"])
    at = kinds.index("retrieve")
    if any(kind != "rewrite" for kind in kinds[:at]) or "rewrite" in kinds[at:]:
        raise _wrong([f"the order {', '.join(kinds)}"])
    return steps, distinct_names([step.name or step.KIND for step in steps])


def _step(given: Any) -> AnyStep:
    if not isinstance(given, Mapping):
        raise ConfigError(f"a {type(given).__name__}")
    kinds = [kind for kind in _KINDS if kind in given]
    if not kinds:
        keys = ", ".join(map(str, given)) or "none"
        raise ConfigError(f"keys {keys} ({near_names(str(next(iter(given), '')), _KINDS)})")
    if len(kinds) > 1:
        raise ConfigError(f"{' and '.join(kinds)} in one step")
    # YAML reads a bare `on` as true where nobody minds it.
    keys_as_text = {"on" if key is True else str(key): value for key, value in given.items()}
    return _KINDS[kinds[0]].model_validate(keys_as_text)


def _wrong(faults: Sequence[str]) -> ConfigError:
    return ConfigError(
        "; ".join(faults),
        where=_WHERE,
        accepted=STEPS,
        fix="correct `steps:`, such as [{retrieve: hybrid, depth: 100}, {rerank: rank.py:scores, "
        "top: 10}]",
    )
