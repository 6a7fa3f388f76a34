"""``configs/published/*.yaml``: numbers that somebody published, and what would make them again.

A figure names its source, its dataset, the system and the convention. Paths start at the folder
that ``BENCH_DATA`` names. An unknown key is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from retrieval_bench.core.config import read_yaml, validate
from retrieval_bench.core.errors import ConfigError, HarnessError, near_names
from retrieval_bench.core.installed.installation import config_folders
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.metrics.measures import DEFAULT_CONVENTION
from retrieval_bench_answers.outcomes import RATES
from retrieval_bench_score.conventions import convention


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Values = Annotated[dict[str, Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1)]


class PublishedDataset(_Strict):
    """Dataset that was searched.

    Attributes:
        path: folder of a dataset, or a file of judgements; None = nobody can have it here.
        fingerprint: of the split, or the first 32 digits of the SHA-256 of a file; another one is
            another dataset. None = not known, so that nothing measured on it is judged.
        about: for people, such as its size and licence.
    """

    path: str | None = None
    split: str = "test"
    fingerprint: str | None = None
    about: str = ""


class PublishedSystem(_Strict):
    """System that searched: a retriever of this project, or a run that somebody saved.

    Attributes:
        retriever: name of a config, or ``{target, params}``.
        run: file of a run.
        about: for people: which setting this is, and where it is from.
    """

    retriever: str | dict[str, Any] | None = None
    run: str | None = None
    about: str = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> PublishedSystem:
        if (self.retriever is None) == (self.run is None):
            raise PydanticCustomError("system", "give a retriever or a run")
        return self


class PublishedFigure(_Strict):
    """Means of one system on one dataset.

    Attributes:
        source: where the values are printed.
        values: metric, as the convention names it -> value.
        system: of this project or saved; what comes nearest where the published one is not here.
        differs: how that system differs from the published one; then nothing is judged.
        beside: another dataset, on which the system is measured and shown where ``dataset`` is not
            at hand; never judged.
    """

    name: str
    source: str
    dataset: str
    system: str
    k: Annotated[int, Field(ge=1)]
    convention: str = DEFAULT_CONVENTION
    values: Values
    differs: str = ""
    beside: str | None = None

    @model_validator(mode="after")
    def _metrics_exist(self) -> PublishedFigure:
        try:
            convention(self.convention).parse(list(self.values))
        except HarnessError as problem:
            raise PydanticCustomError(
                "metric", "{told}", {"told": f"{problem.given}; {problem.accepted}"}
            ) from None
        return self


class PublishedLists(_Strict):
    """Rankings of one system, document by document.

    The queries of ``run`` are asked by their ids, as long as its longest list; the system must do
    without a corpus, such as a fusion of saved runs.

    Attributes:
        source: where the run is from.
        run: file of the published run.
        system: of this project; a saved run, or a retriever over saved runs.
    """

    name: str
    source: str
    run: str
    system: str


class PublishedOutcomes(_Strict):
    """Rates of labelled answers of one system, see :mod:`retrieval_bench_answers.outcomes`.

    Attributes:
        records: file of records.
        by: field that makes groups; None = all items.
        group: value of that field, or "mean": the mean over the groups.
        values: accuracy, hallucination_rate, rejection_rate -> value from 0 to 1.
    """

    name: str
    source: str
    records: str
    system: str
    by: str | None = None
    group: str | None = None
    values: Values

    @model_validator(mode="after")
    def _group_of_a_field(self) -> PublishedOutcomes:
        if (self.by is None) != (self.group is None):
            raise PydanticCustomError("group", "give both `by` and `group`, or neither")
        for name in self.values:
            if name not in RATES:
                told = {"name": repr(name), "near": near_names(name, RATES)}
                raise PydanticCustomError("rate", "no rate {name}; {near}", told)
        return self


class PublishedTable(_Strict):
    """Systems beside each other on one dataset, by group and convention; nothing is judged."""

    dataset: str
    k: Annotated[int, Field(ge=1)]
    by: str
    metrics: list[str]
    conventions: list[str]
    systems: list[str]


class Published(_Strict):
    """One file: what one paper, page or tool says.

    Attributes:
        remarks: what reproduces, what does not and what cannot be known, a sentence or two each.
    """

    title: str
    url: str
    about: str = ""
    datasets: dict[str, PublishedDataset] = {}
    systems: dict[str, PublishedSystem] = {}
    figures: list[PublishedFigure] = []
    lists: list[PublishedLists] = []
    outcomes: list[PublishedOutcomes] = []
    table: PublishedTable | None = None
    remarks: list[str] = []

    @model_validator(mode="after")
    def _names_exist(self) -> Published:
        uses: list[tuple[str, str, Any]] = []
        for figure in self.figures:
            uses += [("dataset", figure.dataset, self.datasets)]
            uses += [("system", figure.system, self.systems)]
            uses += [("dataset", figure.beside, self.datasets)] if figure.beside else []
        uses += [("system", published.system, self.systems) for published in self.lists]
        if self.table:
            uses.append(("dataset", self.table.dataset, self.datasets))
            uses += [("system", name, self.systems) for name in self.table.systems]
        for kind, name, known in uses:
            if name not in known:
                raise PydanticCustomError(
                    "name",
                    "no {kind} {name}; {near}",
                    {"kind": kind, "name": repr(name), "near": near_names(name, known)},
                )
        return self


def published_names() -> list[str]:
    """List the names that :func:`load_published` takes, without the paths."""
    return sorted(_files())


def load_published(name_or_path: str) -> Published:
    """Load ``configs/published/NAME.yaml`` (the user's own first), or a file.

    Raises:
        ConfigError: no such name; unreadable, or all faults of the file.
    """
    path = _files().get(name_or_path)
    if path is None and name_or_path.endswith((".yaml", ".yml")):
        path = user_path(name_or_path)
    if path is None:
        raise ConfigError(
            f"no published numbers {name_or_path!r}",
            where="configs/published",
            kind="unknown-name",
            accepted=near_names(name_or_path, published_names()) + "; or a path ending in .yaml",
            fix="correct the name",
        )
    return validate(Published, read_yaml(path), where=str(path))


def _files() -> dict[str, Path]:
    files: dict[str, Path] = {}
    for folder in config_folders("published"):
        for path in sorted(folder.glob("*.yaml")):
            files.setdefault(path.stem, path)
    return files
