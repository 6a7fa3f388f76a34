"""The lists that are pooled: of saved runs, of other programs' runs, of retrievers asked now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from retrieval_bench.core.errors import ConfigError, HarnessError, counted, distinct_names
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import DROP, Dataset
from retrieval_bench.data import found_at, load_dataset
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.calls import NOT_RUN, OK
from retrieval_bench.measure.protocol import RANKINGS_ONLY, Protocol
from retrieval_bench.runs.dataset import self_hits_of
from retrieval_bench.runs.find import find_runs, is_run
from retrieval_bench.runs.records import read_run
from retrieval_bench.runs.run import Run
from retrieval_bench_labels.pool import Lists
from retrieval_bench_score.runs.imported import read_rankings

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


class _System(NamedTuple):
    """A system: its name, its lists, the queries that it failed on, and what may surprise."""

    name: str
    lists: Lists
    failed: Sequence[str] = ()
    warnings: Sequence[str] = ()


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
    kinds = [(name, _kind(name)) for name in systems]
    runs = [read_run(folder) for name, of in kinds if of == "run" for folder in find_runs(name)]
    splits = sorted({str(run.summary.dataset.split) for run in runs})
    if len(splits) > 1:
        raise ConfigError(
            f"runs of the splits {' and '.join(splits)}",
            accepted="runs of one split",
            fix="give those of one split at a time",
        )
    if split and splits and splits != [split]:
        raise ConfigError(
            f"--split {split} beside runs of {splits[0]}",
            accepted=f"the split of the runs, {splits[0]}",
            fix="leave --split out, or give runs of that split",
        )
    source = _source(runs, dataset)
    if self_hits is None and runs:
        self_hits = self_hits_of(runs[0])
    data = load_dataset(source, split or (splits or ["test"])[0], self_hits=self_hits)
    retrievers = [name for name, of in kinds if of == "retriever"]
    found = [
        *(_of_run(run, data, depth) for run in runs),
        *(_of_file(Path(name), data) for name, of in kinds if of == "file"),
        *(_asked(name, data, depth, overrides, reporter) for name in retrievers),
    ]
    lists = [system.lists for system in found]
    if data.self_hits == DROP:
        lists = [{q: [doc for doc in docs if doc != q] for q, docs in of.items()} for of in lists]
    names = distinct_names([system.name for system in found])
    common, left_out = _asked_of_all(dict(zip(names, lists, strict=True)), data)
    failed = {name: of.failed for name, of in zip(names, found, strict=True) if of.failed}
    warnings = [text for system in found for text in system.warnings]
    return Gathered(data, source, common, failed, (*warnings, *left_out))


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
    path = user_path(name)
    if path.is_file() and path.suffix not in _CONFIGS:
        return "file"
    return "run" if is_run(name) else "retriever"


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


def _of_run(run: Run, data: Dataset, depth: int) -> _System:
    ids, k = run.rankings.query_ids, run.summary.k
    lists = {
        query_id: list(run.rankings.row(at).doc_ids) if run.status[at] == OK else []
        for at, query_id in enumerate(ids)
        if run.status[at] != NOT_RUN
    }
    failed, warnings = _failed(run.name, ids, run.status)
    if run.summary.dataset.fingerprint != data.fingerprint:
        warnings.insert(
            0,
            f"{run.name} was measured before documents, queries or judgements of the dataset "
            "changed: where texts did, measure it again.",
        )
    if k < depth:
        warnings.append(f"{run.name} has {k} documents a query: it is pooled to that depth.")
    return _System(run.name, lists, failed, warnings)


def _of_file(path: Path, data: Dataset) -> _System:
    run_file, unit_of = read_rankings(path), data.unit_of
    ordered = run_file.within(data.documents).ordered("trec")
    lists = {q: [unit_of.get(doc, doc) for doc in of.doc_ids] for q, of in ordered.items()}
    return _System(run_file.label or path.stem, lists, warnings=run_file.warnings)


def _asked(
    name: str, data: Dataset, depth: int, overrides: Sequence[str], reporter: Reporter | None
) -> _System:
    once = Protocol(RANKINGS_ONLY, rounds=1, warm_up_s=0.0)
    experiment = prepare(
        [name], data, k=depth, overrides=overrides, protocol=once, save=False, every_query=True
    )
    answers = experiment.search(reporter)
    ids = [query.id for query in experiment.queries]
    failed, warnings = _failed(answers.name, ids, answers.status)
    if len(failed) == len(answers.status):
        raise HarnessError(
            f"{answers.name} answered no query",
            where=answers.status[0] if failed else "",
            fix="try it: retrieval-bench bench NAME --probe 3",
        )
    rankings = zip(ids, answers.rankings, strict=True)
    lists = {q: [] if ranking is None else list(ranking.doc_ids) for q, ranking in rankings}
    return _System(answers.name, lists, failed, warnings)


def _failed(
    name: str, query_ids: Sequence[str], status: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The queries that were asked and not answered, and a warning where there are some."""
    failed = [q for q, of in zip(query_ids, status, strict=True) if of not in (OK, NOT_RUN)]
    what = f"{name} did not answer {counted(len(failed), 'query')}: they count as empty lists."
    return failed, [what] * bool(failed)
