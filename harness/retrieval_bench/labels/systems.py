"""The lists that are pooled: of saved runs, of other programs' runs, of retrievers asked now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retrieval_bench.core.errors import ConfigError, HarnessError, counted, distinct_names
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.selves import DROP
from retrieval_bench.core.types import Dataset
from retrieval_bench.data import found_at, load_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.labels.pool import Lists
from retrieval_bench.measure.calls import NOT_RUN, OK
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.runs.dataset import self_hits_of
from retrieval_bench.runs.find import find_runs, is_run
from retrieval_bench.runs.imported import read_rankings
from retrieval_bench.runs.records import read_run
from retrieval_bench.runs.run import Run

_CONFIGS = (".yaml", ".yml", ".py")


@dataclass(frozen=True, slots=True)
class Gathered:
    """Systems with their lists.

    Attributes:
        dataset: what they searched.
        source: where it was found.
        lists: of each system, by its name, told apart.
        failed: of each system the queries that it failed on; their lists are empty.
        warnings: what may surprise.
    """

    dataset: Dataset
    source: str
    lists: Mapping[str, Lists]
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = field(default=())


def gather(
    systems: Sequence[str],
    dataset: str | Path | None = None,
    *,
    split: str | None = None,
    self_hits: str | None = None,
    depth: int = 10,
    overrides: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> Gathered:
    """The lists of ``systems`` and the dataset that they are of.

    Args:
        systems: saved runs (a folder, ``@last``, ``NAME@latest``, the start of an id), files of
            runs that other programs wrote, or retrievers, which are asked now.
        dataset: where it is; None = where the first saved run found it.
        split: of the dataset; None = that of the first saved run, or test.
        self_hits: whether hits with the id of their query are pooled ("keep") or not ("drop");
            None = as in the first saved run, or as the dataset has it.
        depth: documents to ask retrievers for.
        overrides: parameters of the retrievers.

    Raises:
        HarnessError: a system that is none of these, or whose dataset is not known.
    """
    names: list[str] = []
    lists: list[Lists] = []
    failures: list[Sequence[str]] = []
    warnings: list[str] = []
    runs = [read_run(folder) for name in systems if _kind(name) == "run" for folder in _found(name)]
    splits = sorted({str(run.summary.dataset.split) for run in runs})
    if len(splits) > 1:
        raise ConfigError(
            f"runs of the splits {' and '.join(splits)}",
            accepted="runs of one split",
            fix="give those of one split at a time",
        )
    source = _source(runs, dataset)
    if self_hits is None and runs:
        self_hits = self_hits_of(runs[0])
    data = load_dataset(source, split or _split(runs), self_hits=self_hits)
    for run in runs:
        names.append(run.name)
        lists.append(_lists(run))
        failed = _failed(run.rankings.query_ids, run.status)
        failures.append(failed)
        if run.summary.dataset.fingerprint != data.fingerprint:
            warnings.append(
                f"{run.name} was measured before documents, queries or judgements of the dataset "
                "changed: where texts did, measure it again."
            )
        if failed:
            warnings.append(
                f"{run.name} did not answer {counted(len(failed), 'query')}: they count as empty "
                "lists."
            )
        if run.summary.k < depth:
            warnings.append(
                f"{run.name} has {run.summary.k} documents a query: it is pooled to that depth."
            )
    for name in systems:
        if _kind(name) == "file":
            run_file = read_rankings(Path(name))
            names.append(run_file.label or Path(name).stem)
            unit_of = data.unit_of
            ordered = run_file.within(data.documents).ordered("trec")
            lists.append(
                {q: [unit_of.get(doc, doc) for doc in of.doc_ids] for q, of in ordered.items()}
            )
            failures.append(())
            warnings += run_file.warnings
    for name in systems:
        if _kind(name) == "retriever":
            called, answers, failed, told = _asked(name, data, depth, overrides, reporter)
            names.append(called)
            lists.append(answers)
            failures.append(failed)
            warnings += told
    if data.self_hits == DROP:
        lists = [{q: [doc for doc in docs if doc != q] for q, docs in of.items()} for of in lists]
    told_apart = distinct_names(names)
    common, left_out = _asked_of_all(dict(zip(told_apart, lists, strict=True)), data)
    of_systems = {name: of for name, of in zip(told_apart, failures, strict=True) if of}
    return Gathered(data, source, common, of_systems, (*warnings, *left_out))


def _asked_of_all(lists: Mapping[str, Lists], data: Dataset) -> tuple[dict[str, Lists], list[str]]:
    """``lists`` of the queries that every system was asked, and which were left out: a query that
    a system was never asked is no empty answer."""
    queries = {query.id for query in data.queries}
    asked = [queries & of.keys() for of in lists.values()]
    every = set.union(*asked) if asked else set()
    common = set.intersection(*asked) if asked else set()
    if every and not common:
        raise ConfigError(
            "no query that all of the systems were asked",
            where=", ".join(lists),
            accepted="runs of the same queries",
            fix="measure them together: retrieval-bench compare A B",
        )
    warnings = []
    if len(common) < len(every):
        few = min(lists, key=lambda name: len(queries & lists[name].keys()))
        n = counted(len(every) - len(common), "query")
        warnings.append(f"Left out {n}: not all systems have a list for them ({few} the fewest).")
    return {name: {q: of[q] for q in of if q in common} for name, of in lists.items()}, warnings


def _kind(name: str) -> str:
    """Name the kind of a word: "run", "file" or "retriever"."""
    path = Path(name).expanduser()
    if path.is_file() and path.suffix not in _CONFIGS:
        return "file"
    return "run" if is_run(name) else "retriever"


def _found(name: str) -> list[Path]:
    return find_runs(name)


def _source(runs: Sequence[Run], dataset: str | Path | None) -> str:
    if dataset is not None:
        return found_at(dataset)
    if not runs:
        raise ConfigError(
            "no dataset to pool from",
            where="--dataset",
            accepted="name or folder of a dataset; a saved run knows its own",
            fix="add --dataset my/folder",
        )
    source = runs[0].manifest.get("dataset", {}).get("source")
    if source is None:
        raise ConfigError(
            f"run {runs[0].name!r} does not say where its dataset is",
            where=str(runs[0].folder or ""),
            accepted="its name or folder",
            fix="say where it is with --dataset",
        )
    return str(source)


def _split(runs: Sequence[Run]) -> str:
    return str(runs[0].summary.dataset.split) if runs else "test"


def _lists(run: Run) -> Lists:
    return {
        query_id: list(run.rankings.row(at).doc_ids) if run.status[at] == OK else []
        for at, query_id in enumerate(run.rankings.query_ids)
        if run.status[at] != NOT_RUN
    }


def _asked(
    name: str,
    data: Dataset,
    depth: int,
    overrides: Sequence[str],
    reporter: Reporter | None,
) -> tuple[str, Lists, list[str], list[str]]:
    """The name of a retriever, its lists, the queries it failed on, and what may surprise."""
    once = Protocol(RANKINGS_ONLY, rounds=1, warm_up_s=0.0)
    experiment = prepare(
        [name],
        data,
        k=depth,
        overrides=overrides,
        protocol=once,
        save=False,
        every_query=True,
    )
    answers = experiment.search(reporter)
    failed = _failed([query.id for query in experiment.queries], answers.status)
    if len(failed) == len(answers.status):
        raise HarnessError(
            f"{answers.name} answered no query",
            where=answers.status[0] if failed else "",
            fix="try it: retrieval-bench bench NAME --probe 3",
        )
    told = []
    if failed:
        queries = counted(len(failed), "query")
        told = [f"{answers.name} did not answer {queries}: they count as empty lists."]
    pairs = zip(experiment.queries, answers.rankings, strict=True)
    lists = {query.id: [] if ranking is None else list(ranking.doc_ids) for query, ranking in pairs}
    return answers.name, lists, failed, told


def _failed(query_ids: Sequence[str], status: Sequence[str]) -> list[str]:
    """List the queries that were asked and not answered."""
    return [q for q, of in zip(query_ids, status, strict=True) if of not in (OK, NOT_RUN)]
