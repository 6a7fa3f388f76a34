"""Functions that measure retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.api.results import BenchResult, ComparisonResult, run_of
from retrieval_bench.capabilities import service
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.types import Dataset
from retrieval_bench.stats.defaults import EQUIVALENCE, MARGIN

if TYPE_CHECKING:  # a function that is called loads what it needs
    from retrieval_bench.core.progress import Reporter
    from retrieval_bench.experiment.experiment import Experiment
    from retrieval_bench.measure.protocol import Protocol


def bench(
    retriever: Any,
    dataset: str | Path | Dataset = "science-mini",
    *,
    split: str = "test",
    language: str | None = None,
    self_hits: str | None = None,
    k: int = 10,
    metrics: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protocol: Protocol | None = None,
    rounds: int | None = None,
    min_calls: int | None = None,
    out: str | Path | None = None,
    save: bool = False,
    reporter: Reporter | None = None,
) -> BenchResult:
    """Measure one retriever on one dataset.

    Args:
        retriever: name of a config, YAML file, inline mapping, a :class:`Retriever`, a function
            (query, k), or a retriever of LangChain, LlamaIndex, Haystack or PyTerrier.
        dataset: name, folder, or a :class:`Dataset`.
        split: of a dataset that is given by name or folder.
        language: ISO 639 code of the dataset's language, as if it named it; None = what it names.
        self_hits: "drop" leaves out a hit with the id of its query before the first k are scored,
            as BEIR does; "keep" counts it; None = what the dataset names.
        k: hits asked for per query.
        metrics: such as ``["nDCG@10", "R@100"]``; empty = the defaults for k.
        overrides: ``dotted.path=value`` into the parameters.
        protocol: how often to call; None = warm-up, then 1,000 calls.
        rounds, min_calls: instead of a protocol: measured rounds, measured calls at least.
        out: folder to save the run in; implies ``save``.
        save: write the run to a new folder under ``results/runs``.
        reporter: is told how far it is; None = in a notebook a line for each phase, else nothing.

    Returns:
        The run; in a notebook it shows itself as a table, and ``print`` shows the same as text.

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
    """
    from retrieval_bench.experiment.preparation import prepare
    from retrieval_bench.reports.finish import finish, keep_text
    from retrieval_bench.reports.progress_bar import in_notebook

    experiment = prepare(
        [retriever],
        dataset,
        split=split,
        language=language,
        self_hits=self_hits,
        k=k,
        metrics=metrics,
        overrides=overrides,
        protocol=_protocol(protocol, rounds, min_calls),
        out=Path(out) if out is not None else None,
        save=save or out is not None,
    )
    data = {experiment.dataset.fingerprint: experiment.dataset}
    done = finish(experiment.run(in_notebook(reporter), save=save or out is not None), data)
    keep_text(done)
    return BenchResult(done[0])


def compare(
    systems: Sequence[Any],
    dataset: str | Path | Dataset | Sequence[str | Path | Dataset] | None = None,
    *,
    split: str = "test",
    language: str | None = None,
    self_hits: str | None = None,
    k: int = 10,
    metrics: Sequence[str] = (),
    protocol: Protocol | None = None,
    rounds: int | None = None,
    min_calls: int | None = None,
    save: bool = False,
    reporter: Reporter | None = None,
    margin: float = MARGIN,
    baseline: str | None = None,
    tests: Sequence[str] = (),
    equivalence: str = EQUIVALENCE[0],
    fuse: Sequence[str] = (),
    until_decided: str | None = None,
) -> ComparisonResult:
    """Put two or more systems side by side, with paired differences and verdicts.

    Args:
        systems: runs, or saved runs by what names them on the command line; or retrievers as in
            :func:`bench`, which are measured together, alternating query by query.
        dataset: of retrievers, one or several, as in :func:`bench`; None = "science-mini".
        split, language, self_hits, k, metrics, protocol, rounds, min_calls, save, reporter: of
            retrievers, as in :func:`bench`.
        margin: up to this absolute difference of means two systems are as good as equal.
        baseline: compare all others with this system only; None = every pair.
        tests: further tests beside the randomisation test: "t", "wilcoxon".
        equivalence: the test of it: "bound" assumes nothing but the range of the metric, "tost"
            normal means.
        fuse: also their fusions, each saved as a run, as are the retrievers then: "rrf", "convex",
            "tuned-rrf", "tuned-convex". A tuned one answers each query by the parameters that are
            best on other queries.
        until_decided: of retrievers: ask query by query, in a random order, until every pair is
            decided, for "split" (the mean of all these queries) or "population" (of queries like
            these). Of ``protocol`` only ``timeout_s``, ``max_s``, ``threads`` and ``seed`` count.

    Raises:
        HarnessError: everything that is wrong with the input, in one message.
    """
    from retrieval_bench.comparison.compared import with_texts
    from retrieval_bench.comparison.comparison import check_asked, compare_runs
    from retrieval_bench.experiment.several import prepare_several, run_each
    from retrieval_bench.reports.finish import finish, keep_text
    from retrieval_bench.reports.progress_bar import in_notebook

    fuse = [fuse] if isinstance(fuse, str) else fuse
    if fuse:
        service("check fusions")(fuse)
    save = save or bool(fuse)
    rules: dict[str, Any] = {"margin": margin, "baseline": baseline, "tests": tests}
    rules["equivalence"] = equivalence
    refused = {
        "tests": bool(tests),
        "equivalence": equivalence != EQUIVALENCE[0],
        "fuse": bool(fuse),
        "rounds or min_calls": (rounds, min_calls) != (None, None),
        "saved runs": any(map(_is_run, systems)),
    }
    if until_decided is not None and any(refused.values()):
        what = next(name for name, given in refused.items() if given)
        raise ConfigError(
            f"until_decided={until_decided!r} with {what}",
            accepted="retrievers to measure, judged by the interval that allows a look after each "
            "query",
            fix="leave one of the two out",
        )
    if dataset is None and any(map(_is_run, systems)):
        runs = [run_of(system) for system in systems]
        if fuse:
            runs = service("fuse")(runs, fuse, (), in_notebook(reporter))
        return ComparisonResult(with_texts(compare_runs(runs, **rules)))
    if len(systems) < 2:
        raise ConfigError(
            f"{len(systems)} retriever to compare",
            accepted="two or more",
            fix="use bench for a single one",
        )

    def check(experiment: Experiment) -> None:
        check_asked(experiment.names, judged=experiment.dataset.judged, **rules)

    prepare = prepare_several
    if until_decided is not None:
        deciding = {"margin": margin, "baseline": baseline}
        prepare = partial(service("measure until decided"), until_decided, **deciding)
    named = "science-mini" if dataset is None else dataset
    experiments = prepare(
        systems,
        [named] if isinstance(named, str | Path | Dataset) else named,
        check,
        split=split,
        language=language,
        self_hits=self_hits,
        k=k,
        metrics=metrics,
        protocol=_protocol(protocol, rounds, min_calls),
        save=save,
    )
    runs = []
    for measured in run_each(experiments, in_notebook(reporter), save=save):
        if save:
            data = {each.dataset.fingerprint: each.dataset for each in experiments}
            keep_text(finish(measured, data))
        runs += measured
    if fuse:
        datasets = [experiment.dataset for experiment in experiments]
        runs = service("fuse")(runs, fuse, datasets, in_notebook(reporter))
    unjudged = [experiment.dataset for experiment in experiments if not experiment.dataset.judged]
    return ComparisonResult(with_texts(compare_runs(runs, **rules), unjudged))


def _protocol(
    protocol: Protocol | None, rounds: int | None, min_calls: int | None
) -> Protocol | None:
    from retrieval_bench.measure.protocol import Protocol

    if (rounds, min_calls) == (None, None):
        return protocol
    if protocol is not None:
        what = "a protocol beside rounds or min_calls"
        raise ConfigError(what, accepted="one of the two", fix="such as rounds=3 alone")
    return Protocol.of(rounds=rounds, min_calls=min_calls)


def _is_run(system: Any) -> bool:
    from retrieval_bench.runs.find import is_run
    from retrieval_bench.runs.run import Run

    if isinstance(system, str | Path):
        return is_run(system)
    return isinstance(system, Run | BenchResult)
