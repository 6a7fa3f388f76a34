"""``history``: the saved runs and duets of each retriever on each dataset, the oldest first.

Only what has the same key may be held against each other. Saved times of the same code lie apart by
more than what is looked for, so that nothing is judged here: a duet decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, check_known
from retrieval_bench.core.installed.installation import typed
from retrieval_bench.metrics import parse_metrics
from retrieval_bench.reports.render.text import cut
from retrieval_bench_regress.history.facts import Records, SavedDuet, SavedRun, chosen, read_history

P50, P95 = "p50", "p95"


@dataclass(frozen=True, slots=True)
class Subject(Documented):
    """One retriever on one dataset: its runs and duets, the oldest first.

    Attributes:
        retriever, dataset: names.
        runs, duets: the newest.
        metrics: those to show.
        n_runs, n_duets: how many there are; the older ones may be left out.
    """

    KEYS = "retriever dataset n_runs n_duets runs duets keys"

    retriever: str
    dataset: str
    runs: tuple[SavedRun, ...]
    duets: tuple[SavedDuet, ...]
    metrics: tuple[str, ...]
    n_runs: int
    n_duets: int

    @property
    def keys(self) -> dict[str, Mapping[str, Any]]:
        """What the runs, or duets, with each key have in common."""
        keys = [key for run in self.runs for key in (run.same_quality, run.same_times)]
        keys += [duet.same_times for duet in self.duets]
        return {str(key): key.facts for key in keys if key is not None}

    @property
    def last(self) -> str:
        """The time when it was measured last."""
        return max([run.created for run in self.runs] + [duet.created for duet in self.duets])

    @property
    def newest(self) -> SavedRun | None:
        """The newest run that was not cut short."""
        return next((run for run in reversed(self.runs) if run.same_quality), None)

    @property
    def newest_pair(self) -> tuple[SavedRun, SavedRun] | None:
        """The two newest runs that may be held against each other, the older one first."""
        newer: dict[tuple[str, str], list[SavedRun]] = {}
        for run in reversed([run for run in self.runs if run.same_quality]):
            alike = newer.setdefault((str(run.same_quality), str(run.same_times)), [])
            for other in alike:
                if run.metrics.keys() & other.metrics.keys():
                    return run, other
            alike.append(run)
        return None


def subjects(
    runs: Iterable[SavedRun],
    duets: Iterable[SavedDuet],
    *,
    metrics: Sequence[str] = (),
    last: int | None = None,
) -> list[Subject]:
    """Every retriever on every dataset, the one that was measured last first.

    Args:
        metrics: to show; none = the first of the newest run.
        last: keep only the newest runs, and duets, of each.
    """
    runs = sorted(runs, key=lambda run: (run.created, run.id))
    duets = sorted(duets, key=lambda duet: (duet.created, duet.id))
    kept = slice(None if last is None else -last, None)
    names = [(run.retriever, run.dataset) for run in runs]
    names += [(duet.retriever, duet.dataset) for duet in duets]
    subjects = []
    for name in dict.fromkeys(names):
        own = tuple(run for run in runs if (run.retriever, run.dataset) == name)
        pairs = tuple(duet for duet in duets if (duet.retriever, duet.dataset) == name)
        shown = tuple(metrics) or tuple(own[-1].metrics if own else ())[:1]
        subjects.append(Subject(*name, own[kept], pairs[kept], shown, len(own), len(pairs)))
    return sorted(subjects, key=lambda subject: subject.last, reverse=True)


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

    schema_version: ClassVar[int] = 2
    subjects: tuple[Subject, ...]
    records: Records
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
        asked = {"retriever": self.retriever, "dataset": self.dataset}
        wanted = [f"{what} {name!r}" for what, name in asked.items() if name is not None]
        lines = [f"no saved run{' of ' if wanted else ''}{' and '.join(wanted)}"]
        every = subjects(self.records.runs, self.records.duets)
        if there := ", ".join(sorted(f"{known.retriever} on {known.dataset}" for known in every)):
            lines.append(f"  there are: {cut(there, 300)}")
        lines += [f"  {note}" for note in self.records.notes]
        command = typed("bench", self.retriever or "NAME", dataset=self.dataset)
        return [*lines, f"  do: measure one: {command}"]


def history(
    *,
    retriever: str | None = None,
    dataset: str | None = None,
    metrics: Sequence[str] = (),
    folders: Sequence[Path] = (),
    last: int | None,
) -> History:
    """Read saved runs and duets.

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
    runs, duets = chosen(records, retriever, dataset)
    known = {name for run in runs for name in run.metrics}
    for name in names if known else ():
        what = f"metric {name!r}, which no saved run has"
        fix = "name one of these, or measure with bench --metrics"
        check_known(name, known, what, where="--metric", fix=fix)
    shown = tuple(subjects(runs, duets, metrics=names, last=last))
    return History(shown, records, retriever, dataset)
