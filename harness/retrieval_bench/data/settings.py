"""``dataset.yaml``: what a dataset folder says about itself. An unknown key is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from retrieval_bench.core import secrets
from retrieval_bench.core.config import read_yaml, validate
from retrieval_bench.core.types import KEEP, SelfHits

CONFIG_NAME = "dataset.yaml"

LANGUAGE = "^[a-z]{2,3}$"
"""A code of ISO 639."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class DocumentColumns(_Strict):
    """Keys or columns of a document; every other one becomes metadata. Without ``title`` documents
    have none."""

    id: str = "id"
    text: str = "text"
    title: str | None = "title"


class QueryColumns(_Strict):
    """Keys or columns of a query; every other one becomes metadata."""

    id: str = "id"
    text: str = "text"
    answerable: str = "answerable"
    filter: str = "filter"


class JudgementColumns(_Strict):
    """Keys or columns of a judgement; without ``grade`` every judgement has grade 1."""

    query: str = "query_id"
    document: str = "doc_id"
    grade: str | None = "grade"


class RowColumns(_Strict):
    """Keys or columns of a row with a question; a dotted name leads into objects, and what is not
    named here has the usual names of its format.

    Attributes:
        sources: texts that answer the question.
        documents: ids of documents that answer it.
        separator: between several ids in one cell; a cell that holds a list needs none.
        unfound: what becomes of a source that no document of the corpus contains: "refuse" makes it
            a fault, "drop" a warning.
    """

    id: str | None = None
    question: str | None = None
    answer: str | None = None
    sources: str | None = None
    documents: str | None = None
    separator: Annotated[str, Field(min_length=1)] | None = None
    unfound: Literal["refuse", "drop"] = "refuse"


class Columns(_Strict):
    """Names of columns, for the formats whose files do not fix them."""

    documents: DocumentColumns = DocumentColumns()
    queries: QueryColumns = QueryColumns()
    judgements: JudgementColumns = JudgementColumns()
    rows: RowColumns = RowColumns()


Names = str | tuple[str, ...] | None
"""A file, a folder or a pattern, or several of them."""


class FileNames(_Strict):
    """Paths from the dataset folder, or absolute ones; ``documents: null`` says "no corpus"."""

    documents: Names = None
    queries: Names = None


class SplitFiles(FileNames):
    """The judgements of one split, and its own documents or queries where it has any."""

    judgements: Names = None


class Judge(_Strict):
    """Judge, and how many judgements; None where that is not known."""

    kind: Literal["person", "model", "dataset"]
    judgements: int | None = None


class DatasetConfig(_Strict):
    """The content of ``dataset.yaml``.

    Attributes:
        format: a name of :func:`retrieval_bench.data.formats.formats`, or ``module:name`` of a
            :class:`retrieval_bench.data.DataFormat`.
        name: the folder's name when left out.
        files: documents and queries of all splits; a format knows its usual names.
        splits: name of a split -> its file of judgements, or a mapping that also names the
            documents or queries of that split only.
        unit_key: metadata key of a document that names the unit which judgements are on.
        judges: by name, where it is known who made the judgements.
        drawn_from: queries from which the judged ones were chosen, by how much systems differ on
            them.
        cluster_key: metadata key of a query that tells which queries belong together, such as turns
            of one conversation: tests and intervals take clusters for the unit.
        self_hits: "drop" leaves a hit whose id is that of the query out before the first k are
            scored, as BEIR does; "keep" counts it.
    """

    format: str
    name: str = ""
    description: str = ""
    language: str | None = Field(default=None, pattern=LANGUAGE)
    licence: str = ""
    source: str = ""
    version: str = ""
    files: FileNames = FileNames()
    splits: dict[str, SplitFiles] = {}
    columns: Columns = Columns()
    unit_key: str | None = None
    cluster_key: str | None = None
    judges: dict[str, Judge] = {}
    drawn_from: int | None = Field(default=None, ge=1)
    self_hits: SelfHits = KEEP

    @field_validator("language", mode="before")
    @classmethod
    def _quoted(cls, given: Any) -> Any:
        if given is False:
            raise ValueError("YAML reads `no` as false; for Norwegian write language: 'no'")
        return given

    @field_validator("splits", mode="before")
    @classmethod
    def _short_splits(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            split: {"judgements": files} if isinstance(files, str | list) else files
            for split, files in value.items()
        }


def read_dataset_config(path: Path) -> DatasetConfig:
    """The config in a ``dataset.yaml``, with ``${NAME}`` filled from the environment.

    Raises:
        ConfigError: unreadable, or all faults of its keys and values at once.
    """
    content = secrets.expand(read_yaml(path), str(path))
    return validate(DatasetConfig, content, where=str(path))
