"""``history`` from words to what is shown of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench.data import dataset_name
from retrieval_bench.metrics import parse_metrics
from retrieval_bench_regress.history.facts import (
    Found,
    SavedDuet,
    SavedRun,
    called,
    called_data,
    read_history,
)
from retrieval_bench_regress.history.trends import SCHEMA_VERSION, Subject, subjects

_NAMED, _LEFT_OUT = 8, 3


@dataclass(frozen=True, slots=True)
class History(Documented):
    """Saved runs and duets over time.

    Attributes:
        subjects: those that were asked for, each a retriever on a dataset.
        records: all that lies in the folders.
        retriever, dataset: that were asked for; None = all.
        schema_version: of the document.
    """

    KEYS = "schema_version subjects left_out=records.left_out copies=records.copies"

    schema_version: ClassVar[int] = SCHEMA_VERSION
    subjects: tuple[Subject, ...]
    records: Found
    retriever: str | None = None
    dataset: str | None = None

    @property
    def subject(self) -> Subject:
        """The only one.

        Raises:
            ConfigError: there is another number of them.
        """
        if len(self.subjects) != 1:
            raise ConfigError(
                f"--out for {len(self.subjects)} retrievers or datasets",
                accepted="a picture of one retriever on one dataset",
                fix="name them with --retriever and --dataset",
            )
        return self.subjects[0]

    @property
    def nothing_there(self) -> list[str]:
        """The runs looked for, the runs there in their place, and what to do: a line each."""
        wanted = [
            f"{name} {value!r}"
            for name, value in (("retriever", self.retriever), ("dataset", self.dataset))
            if value is not None
        ]
        lines = [f"no saved run{' of ' if wanted else ''}{' and '.join(wanted)}"]
        there = sorted(
            {(run.retriever, run.dataset) for run in self.records.runs}
            | {(duet.retriever, duet.dataset) for duet in self.records.duets}
        )
        if there:
            names = ", ".join(f"{retriever} on {data}" for retriever, data in there[:_NAMED])
            more = f" and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
            lines.append(f"  there are: {names}{more}")
        lines += [
            f"  left out: {left_out.folder}: {left_out.reason}"
            for left_out in self.records.left_out[:_LEFT_OUT]
        ]
        command = ["retrieval-bench", "bench", self.retriever or "NAME"]
        command += ["--dataset", self.dataset] if self.dataset else []
        return [*lines, f"  do: measure one: {shlex.join(command)}"]


def history(
    *,
    retriever: str | None = None,
    dataset: str | None = None,
    metrics: Sequence[str] = (),
    folders: Sequence[Path] = (),
    last: int | None,
) -> History:
    """Read saved runs and duets, and put each on its line.

    Args:
        retriever, dataset: by name or file; None = all.
        metrics: none = the first of the newest run.
        folders: that hold runs or duets; none = ``results/runs`` and ``results/duets``.
        last: so many of the newest of each; None = all.

    Raises:
        HarnessError: a folder that is none, a metric that is none or that no run has.
    """
    if last is not None and last < 1:
        raise ConfigError(f"--last {last}", accepted="a number above 0, or `all`", fix="correct it")
    names = list(dict.fromkeys(map(str, parse_metrics(metrics)))) if metrics else []
    records = read_history(folders)
    runs, duets = _named(records, retriever, dataset)
    chosen = tuple(subjects(runs, duets, metrics=names, last=last))
    known = {name for run in runs for name in run.metrics}
    for name in names if known else ():
        what = f"metric {name!r}, which no saved run has"
        fix = "name one of these, or measure with bench --metrics"
        check_known(name, known, what, where="--metric", fix=fix)
    return History(chosen, records, retriever, dataset)


def _named(
    records: Found, retriever: str | None, dataset: str | None
) -> tuple[Sequence[SavedRun], Sequence[SavedDuet]]:
    """Runs by name or file. Duets by name: their files lay in the checkout of a revision."""
    runs, duets = records.runs, records.duets
    if dataset is not None:
        data = called_data(dataset)
        runs = tuple(run for run in runs if dataset == run.dataset or data == run.data)
        names = {dataset, dataset_name(dataset), *(run.dataset for run in runs)}
        duets = tuple(duet for duet in duets if duet.dataset in names)
    if retriever is not None:
        name, source = called(retriever)
        runs = tuple(run for run in runs if retriever == run.retriever or source == run.source)
        duets = tuple(duet for duet in duets if duet.retriever in (retriever, name))
    return runs, duets
