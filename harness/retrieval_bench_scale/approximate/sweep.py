"""``bench --sweep``: one retriever at several values of a parameter, held against an exhaustive
search of its own vectors. All values are measured together, call by call in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from retrieval_bench.comparison.claims import left_open
from retrieval_bench.core import secrets
from retrieval_bench.core.config import parse_value
from retrieval_bench.core.errors import ConfigError, counted
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.types import Dataset
from retrieval_bench.data import given_dataset
from retrieval_bench.experiment.candidate import ask, unused_indexes
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.experiment.warnings import drawn
from retrieval_bench.measure.environment import environment
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.records import SWEEP, check_destination, new_record, record_id, to_json
from retrieval_bench.stats.recall import check_tail
from retrieval_bench_scale.approximate.level import measured_level
from retrieval_bench_scale.approximate.selectivity import FilterSetting, filter_settings
from retrieval_bench_scale.approximate.swept import Sweep, SweptLevel, Wanted
from retrieval_bench_scale.approximate.variants import EXACT, SearchVariants, search_variants

RECALL = Wanted().share
ROOT = Path("results") / "sweeps"
_MOST = 50


def parse_sweep(text: str) -> tuple[str, tuple[float, ...]]:
    """A parameter and its values, from ``ef_search=16,32,64``; each value once, from low to high.

    Raises:
        ConfigError: no parameter, no value, more than fifty, or a value that is not a number.
    """
    path, equals, written = text.partition("=")
    values = parse_value(f"[{written.strip('[]')}]", f"--sweep {text}") if equals else []
    wrong = [one for one in values if isinstance(one, bool) or not isinstance(one, int | float)]
    if not path or path != path.strip() or not values or wrong or len(values) > _MOST:
        what = f": {wrong[0]!r} is not a number" if wrong else ""
        raise ConfigError(
            f"--sweep {text}{what}",
            accepted=f"a parameter and up to {_MOST} numbers",
            fix="such as --sweep ef_search=16,32,64,128",
        )
    return path, tuple(sorted(set(values)))


def sweep(
    retriever: Any,
    dataset: str | Path | Dataset,
    parameter: str,
    values: Sequence[float],
    *,
    recall: float = RECALL,
    tail: float | None = None,
    filters: Sequence[str] = (),
    split: str = "test",
    language: str | None = None,
    self_hits: str | None = None,
    k: int = 10,
    overrides: Sequence[str] = (),
    protocol: Protocol | None = None,
    out: Path | None = None,
    save: bool = True,
    reporter: Reporter | None = None,
) -> Sweep:
    """Recall against exact search and p50 at each value, as asked and under ``filters``.

    Args:
        retriever, dataset, split, language, self_hits, k, overrides: as for
            :func:`.prepare`; where nothing is judged, all queries are asked.
        recall: that is wanted, above 0 and below 1: the mean, with ``tail`` the share of queries
            that have it.
        tail: recall of one query, above 0 and at most 1; None = the mean decides, and the share of
            queries with 0.9 is shown.
        filters: as :func:`.filter_settings` takes them.
        out: folder of the record; None = a new one under ``results/sweeps``.

    Raises:
        HarnessError: what was given cannot be used, or a value cannot be had.
    """
    protocol = protocol or Protocol()
    wanted = Wanted(recall, Wanted().tail if tail is None else tail, tail is not None)
    _check(wanted, protocol)
    if save:
        check_destination(out, ROOT, "sweep")
    data = given_dataset(dataset, split, language=language, self_hits=self_hits)
    together, asked = filter_settings(data, filters)
    experiment = prepare(
        [retriever], together, k=k, overrides=overrides, protocol=protocol, save=False
    )
    if filters:
        _check_filtering(experiment)
    changes = [EXACT, *({parameter: value} for value in values)]
    ways = search_variants(experiment, retriever, overrides, changes)
    levels, told = _levels(ways, asked, values, wanted, reporter or Silent())
    if not levels:
        raise KeyboardInterrupt  # there is nothing to keep
    whole = len(levels) == len(asked) and not levels[-1].partial
    (base,) = experiment.candidates
    result = Sweep(
        base.name,
        data.name,
        data.fingerprint,
        data.split,
        k,
        parameter,
        recall,
        wanted.tail,
        "tail" if wanted.by_tail else "recall",
        "complete" if whole else "partial",
        tuple(query.id for query in data.asked),
        tuple(levels),
        {"name": base.name, **base.config},
        (*drawn(data), *_failed(levels), *_alike(parameter, levels), *_once(told)),
        environment(protocol.threads),
    )
    return _saved(result, out) if save else result


def _levels(
    ways: SearchVariants,
    asked: Sequence[FilterSetting],
    values: Sequence[float],
    wanted: Wanted,
    reporter: Reporter,
) -> tuple[list[SweptLevel], list[str]]:
    """All that were measured before the user stopped it, and what is to be told of them."""
    experiment, levels, told = ways.experiment, list[SweptLevel](), list[str]()
    (base,) = experiment.candidates
    with ways.ready(reporter) as (exact, *systems):
        for layer in asked:
            with reporter.phase(Phase(Step.SEARCHING, f"{base.name}, {layer.name}")) as task:
                level, warned = measured_level(
                    exact,
                    dict(zip(values, systems, strict=True)),
                    layer,
                    experiment,
                    wanted=wanted,
                    progress=task,
                )
            told += warned
            if level is not None:
                levels.append(level)
            if level is None or level.partial:
                break
        first = replace(base, retriever=systems[0].retriever)
        facts = ask(first, "describe", told, {})
        health = ask(first, "health", told, (), experiment.queries)
    flat = [
        Notice(f"The index is {used}: every value searches exhaustively.", Code.NO_GRAPH)
        for used in unused_indexes(facts)
    ]
    told = [*flat, *health, *told]
    if left_open("bench --sweep", told):
        levels = [replace(level, cheapest=None, undecided=()) for level in levels]
    return levels, told


def _check(wanted: Wanted, protocol: Protocol) -> None:
    if not 0 < wanted.share < 1:
        raise ConfigError(
            f"--recall {wanted.share:g}",
            accepted="a share above 0 and below 1: that all is found, no sample shows",
            fix="such as --recall 0.95",
        )
    check_tail(wanted.tail)
    for name, limit in (("--max-minutes", protocol.max_s), ("--max-cost", protocol.max_cost)):
        if limit is not None:
            raise ConfigError(
                f"{name} with --sweep",
                accepted="a sweep to its end; Ctrl-C keeps the filters that were measured",
                fix=f"leave {name} out, or choose fewer values, filters or calls (--rounds)",
            )
    if protocol.launches:
        raise ConfigError(
            f"{counted(protocol.launches, 'launch')} with --sweep",
            accepted="one process, in which the values take turns",
            fix="leave --launches out, or name another --profile",
        )


def _check_filtering(experiment: Experiment) -> None:
    (base,) = experiment.candidates
    can = base.capabilities
    if can.external or not can.filters:
        experiment.close()
        why = "holds its documents already" if can.external else "does not say that it filters"
        raise ConfigError(
            f"--filters with {base.name}, which {why}",
            accepted="a retriever that is given the documents, with the fields to filter by, and "
            "has the capability `filters`",
            fix="leave --filters out; queries of the dataset may have filters of their own",
        )


def _failed(levels: Sequence[SweptLevel]) -> list[str]:
    failed = max(one.failed for level in levels for one in level.values)
    what = (
        f"{counted(failed, 'query')} without an answer at one value: each counts as a recall of 0."
    )
    return [what] if failed else []


def _once(told: Sequence[str]) -> list[str]:
    """Of what levels say of their times in much the same words, the first."""
    found: dict[str, str] = {}
    for text in told:
        code = text.code if isinstance(text, Notice) else text
        found.setdefault(code, text)
    return [*found.values()]


def _alike(parameter: str, levels: Sequence[SweptLevel]) -> list[str]:
    """Which values change nothing as asked, such as those below the hits that are asked for."""
    values = levels[0].values
    same = [
        one.value
        for one, other in pairwise(values)
        if one.recalls == other.recalls and one.recall != 1
    ]
    told = (
        f"{parameter} {', '.join(f'{value:g}' for value in same)}: the next value finds the same."
    )
    return [Notice(told, Code.NOTE)] if same else []


def _saved(result: Sweep, out: Path | None) -> Sweep:
    record = record_id(datetime.now(UTC), result.retriever, result.dataset)
    folder = (ROOT / record if out is None else out).absolute()
    head = {"schema_version": result.schema_version, "sweep_id": record}
    text = to_json(secrets.redact({**head, **result.as_dict()}))
    with new_record(folder, record, "sweep") as new:
        (new / SWEEP).write_text(text + "\n", encoding="utf-8")
    return replace(result, folder=folder)
