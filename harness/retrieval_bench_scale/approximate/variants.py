"""One retriever searched in several ways: exhaustively, and with other values of a parameter. Where
it can, all ways share one index; else each is built from the config, with an index of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from retrieval_bench.core.calls.foreign import foreign_code
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.experiment.candidate import Candidate, close_all
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.calls import System

EXACT: Mapping[str, Any] = {"exact": True}


@dataclass(frozen=True, slots=True)
class SearchVariants:
    """SearchVariants to search that can be had, none indexed yet.

    Attributes:
        experiment: of the retriever as it is.
        changes: of each way, what it changes.
        own: number of a way -> the retriever of that way, where it has an index of its own.
    """

    experiment: Experiment
    changes: Sequence[Mapping[str, Any]]
    own: Mapping[int, Candidate]

    @contextmanager
    def ready(self, reporter: Reporter) -> Iterator[list[System]]:
        """All of them, ready to be asked; closed afterwards."""
        (base,) = self.experiment.candidates
        shared = len(self.own) < len(self.changes)
        if not shared:
            close_all([base])
        candidates = [base] * shared + list(self.own.values())
        together = replace(self.experiment, candidates=candidates)
        with together.ready(reporter) as known:
            made = []
            for at, changed in enumerate(self.changes):
                candidate = self.own.get(at, base)
                retriever = candidate.retriever if at in self.own else _searched(base, changed)
                assert retriever is not None
                made.append(candidate.system(known, _name(changed), retriever))
            yield made


def search_variants(
    experiment: Experiment,
    given: Any,
    overrides: Sequence[str],
    changes: Sequence[Mapping[str, Any]],
) -> SearchVariants:
    """How the one retriever of ``experiment`` can be searched.

    Args:
        given, overrides: what the experiment was prepared from.
        changes: of each way: parameter -> value; :data:`EXACT` is an exhaustive search.

    Raises:
        HarnessError: a way cannot be had; all that was built is closed.
    """
    (base,) = experiment.candidates
    own: dict[int, Candidate] = {}
    try:
        for at, changed in enumerate(changes):
            if _searched(base, changed) is None:
                own[at] = _built(experiment, given, overrides, changed)
    except BaseException:
        close_all([base, *own.values()])
        raise
    return SearchVariants(experiment, changes, own)


def _name(changed: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} {value}" for path, value in changed.items())


def _searched(candidate: Candidate, changed: Mapping[str, Any]) -> Retriever | None:
    with candidate.folder.lent(), foreign_code(candidate.failing("searching()")):
        return candidate.retriever.searching(changed)


def _built(
    experiment: Experiment, given: Any, overrides: Sequence[str], changed: Mapping[str, Any]
) -> Candidate:
    """The retriever from its config with other values."""
    (base,) = experiment.candidates
    params = base.config.get("params", {})
    written = [f"{_path(path, params)}={_yaml(value)}" for path, value in changed.items()]
    try:
        (candidate,) = prepare(
            [given],
            experiment.dataset,
            k=experiment.k,
            overrides=[*overrides, *written],
            protocol=experiment.protocol,
            save=False,
        ).candidates
    except HarnessError as problem:
        if changed == EXACT and (not params or "unknown key 'exact'" in problem.given):
            raise ConfigError(
                f"{base.name} does not say how it would search exactly",
                accepted="dense with an index of type hnsw or ivf, an engine with the parameter "
                "`exact`, or a retriever with searching()",
                fix="name one of these; of a hybrid or a pipeline the leg or step that has vectors",
            ) from None
        raise
    return replace(candidate, name=f"{base.name}, {_name(changed)}")


def _path(given: str, params: Mapping[str, Any]) -> str:
    """The dotted path of a parameter that is given by its last part, if one alone ends so."""
    if given in params:
        return given
    found = [path for path in _paths(params) if path.endswith(f".{given}")]
    if len(found) > 1:
        raise ConfigError(
            f"the parameter {given}, which {len(found)} places have",
            where="--sweep",
            accepted=", ".join(found),
            fix="write one of these",
        )
    return found[0] if found else given


def _paths(params: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in params.items():
        yield f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _paths(value, f"{before}{key}.")


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
