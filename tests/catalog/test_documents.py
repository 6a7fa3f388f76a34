"""Records and the JSON Schemas of their documents come from the same declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict

import jsonschema
import pytest
from pydantic import BaseModel

from retrieval_bench import load_dataset
from retrieval_bench.core.as_json.document import (
    LEFT_OUT,
    MISSING,
    SPREAD,
    AsText,
    Documented,
    OnDataset,
    Spelt,
    plain,
)
from retrieval_bench.core.notices import Code, Notice, to_document
from retrieval_bench_catalog.schemas import fields_of, schema


class Colour(Enum):
    RED = "red"


class Named(AsText):
    def __str__(self) -> str:
        return "a name"


class Row(TypedDict):
    """A row."""

    n: int
    note: NotRequired[str]


@dataclass(frozen=True)
class Inner(Documented):
    """Something inside.

    Attributes:
        value: None where it is not known.
        words: of it.
    """

    value: float | None
    words: tuple[str, ...] = ()


Figure = Annotated[str, Spelt("^p_[a-z]+$")]


@dataclass(frozen=True)
class Outer(Documented):
    """All forms.

    Attributes:
        inner: another record.
        why: empty where nothing is wrong.
    """

    KEYS = (
        "kind colour path named renamed=inner.value pair inner? *spread *figures by_name "
        "rows why? warnings"
    )

    kind: ClassVar[Literal["outer"]] = "outer"
    colour: Colour
    path: Path
    named: Named
    pair: tuple[int, str]
    spread: Inner
    by_name: Mapping[str, Inner]
    rows: list[Row]
    inner: Inner = Inner(None)
    why: str = ""
    warnings: tuple[str, ...] = ()
    hidden: list[Any] = field(default_factory=list)

    @property
    def figures(self) -> dict[Figure, float]:
        """Some more."""
        return {"p_t": 0.5}


def outer(**changed: Any) -> Outer:
    given: dict[str, Any] = {
        "colour": Colour.RED,
        "path": Path("a") / "b",
        "named": Named(),
        "pair": (1, "x"),
        "spread": Inner(2.0, ("w",)),
        "by_name": {"q-17": Inner(0.25)},
        "rows": [{"n": 1}],
        "warnings": (Notice("odd", Code.TIES),),
    }
    return Outer(**given | changed)


def test_a_document_has_the_keys_in_their_order() -> None:
    document = outer().as_dict()
    names = "kind colour path named renamed pair inner value words p_t by_name rows warnings"
    assert list(document) == names.split()
    assert document["path"] == str(Path("a") / "b")
    assert (document["named"], document["colour"], document["pair"]) == ("a name", "red", [1, "x"])
    assert (document["renamed"], document["inner"]["value"]) == (None, None)
    assert document["value"] == 2.0
    assert outer(why="broken").as_dict()["why"] == "broken"


@pytest.mark.slow
def test_a_document_is_valid_and_a_broken_one_is_not() -> None:
    made = schema([Outer], "outer", 3)
    document = {"schema_version": 3, **to_document(outer(why="broken").as_dict())}
    jsonschema.validate(document, made)
    wrong = {
        "schema_version": 2, "kind": "inner", "colour": "blue", "path": 1, "named": None,
        "renamed": "many", "pair": [1], "value": "2", "words": [1], "p_t": "half",
        "by_name": {"q-17": {"value": None}}, "rows": [{"n": 1, "note": 2}], "why": None,
        "warnings": ["odd"],
    }  # fmt: skip
    for key, value in wrong.items():
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, key: value}, made)
    for key in set(document) - {"inner", "why", "p_t"}:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({k: v for k, v in document.items() if k != key}, made)
    jsonschema.validate({k: v for k, v in document.items() if k not in ("inner", "why")}, made)


def test_an_empty_mapping_is_no_missing_one() -> None:
    @dataclass
    class Asked(Documented):
        KEYS = "found? why? of?"
        found: dict[str, int] | None
        why: str = ""
        of: tuple[str, ...] = ()

    assert Asked({}).as_dict() == {"found": {}}
    assert Asked(None, "x", ("y",)).as_dict() == {"why": "x", "of": ["y"]}


def test_names_from_data_are_no_properties() -> None:
    made = schema([Outer], "outer", 1)
    assert "q-17" not in str(made)
    assert made["properties"]["by_name"] == {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Inner"},
    }


def test_a_key_means_what_its_docstring_says_in_words_of_json() -> None:
    properties = schema([Outer], "outer", 1)["properties"]
    assert properties["renamed"]["description"] == "null where it is not known."
    assert properties["inner"]["description"] == "another record."
    assert schema([Inner], "inner", 1)["description"] == "Something inside."


def test_a_record_of_a_dataset_has_both() -> None:
    @dataclass
    class All(Documented):
        """All of them."""

        of: list[OnDataset[Inner]]

    All.__annotations__["of"] = list[OnDataset[Inner]]
    made = schema([All], "all", 1)
    document = {"schema_version": 1, **All([OnDataset("d", Inner(1.0))]).as_dict()}
    assert document["of"] == [{"dataset": "d", "value": 1.0, "words": []}]
    jsonschema.validate(document, made)
    del document["of"][0]["value"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, made)


class Model(BaseModel):
    """What models mark."""

    always: int | None = None
    never_null: Annotated[int | None, LEFT_OUT] = None
    may_lack: Annotated[int | None, MISSING] = None
    levels: Annotated[dict[Annotated[str, Spelt("^p[0-9]+$")], float], SPREAD] = {}


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ({"always": None, "p50": 1.0}, True),
        ({"always": None, "may_lack": None}, True),
        ({"always": None, "never_null": None}, False),
        ({"may_lack": 1}, False),
        ({"always": 1, "p50": "slow"}, False),
    ],
)
def test_a_model_says_what_may_be_missing(document: dict[str, Any], valid: bool) -> None:
    validator = jsonschema.Draft202012Validator(schema([Model], "model", 1))
    assert validator.is_valid({"schema_version": 1, **document}) is valid


def test_a_key_without_a_type_is_an_error() -> None:
    @dataclass
    class Untyped(Documented):
        KEYS = "nowhere"

    with pytest.raises(TypeError, match=r"Untyped\.nowhere has no type"):
        list(fields_of(Untyped))


def test_what_json_knows_stays_as_it_is() -> None:
    assert plain({"a": [None, True, 1, 0.1, "x"]}) == {"a": [None, True, 1, 0.1, "x"]}


def test_a_dataset_is_one_line_for_people() -> None:
    said = repr(load_dataset("science-mini"))
    counts = "220 documents, 166 queries, 140 of them judged"
    assert said == f"Dataset('science-mini', split 'test': {counts})"
