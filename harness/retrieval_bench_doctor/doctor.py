"""Is everything ready to be measured? Data, judgements, retriever and machine, each looked at.

How much of what a retriever finds is judged takes its answers, so a sample of the evaluated queries
is asked: 200, which give a share to within .07 whatever it is, for as long as 20 seconds. A service
that is asked from afar or paid for is asked five: whoever only wants to know whether everything is
ready should neither wait nor pay. ``ask`` says another number, and then nothing ends it earlier.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrieval_bench.capabilities import offered, service
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, HarnessError, counted
from retrieval_bench.core.installed.installation import typed
from retrieval_bench.core.notices import Code, coded, is_note
from retrieval_bench.core.progress import Reporter
from retrieval_bench.core.types import Dataset, Query, Ranking, kind_of_truth
from retrieval_bench.data.build import UNJUDGED
from retrieval_bench.experiment.candidate import Candidate, Searched
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.layers import ready
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.experiment.warnings import drawn
from retrieval_bench.measure.calls import NOT_RUN, OK
from retrieval_bench.measure.environment import machine
from retrieval_bench.measure.machine import observers
from retrieval_bench.measure.machine.disturbances import disturbances
from retrieval_bench.measure.machine.noise import NoiseRecorder
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.dataset import clusters_in
from retrieval_bench.stats.resampling import SEED
from retrieval_bench_doctor.copies import look_into
from retrieval_bench_doctor.judgements import (
    Judgements,
    counts,
    nothing_relevant,
    one_question,
    queries_in_corpus,
)
from retrieval_bench_doctor.languages import languages_told
from retrieval_bench_doctor.pools import Lists, judged_at, pool, too_little_for_a_pool

ASKED = 200
"""Evaluated queries that a retriever is asked, at most."""

PROBED = 5
"""Queries that one is asked that is external, limited or paid for."""

_ASKING_S = 20.0
"""For which :data:`ASKED` queries are asked."""

_LARGEST = 200_000
"""Documents up to which a second system is built beside the retriever."""

_WATCHED_S = 1.0
"""Seconds for which the machine is watched."""

_FEW = 50
"""Below so many queries only large differences can be shown."""


@dataclass(frozen=True, slots=True)
class Check(Documented):
    """One thing that was looked at.

    Attributes:
        subject: "data", "judgements" (or "rules"), "retriever" or "machine".
        facts: what it is, in sentences.
        warnings: what would make figures less than they seem, with what to do.
        figures: what the sentences on judgements rest on; None for the other checks.
    """

    KEYS = "subject facts warnings figures?"

    subject: str
    facts: tuple[str, ...]
    warnings: tuple[str, ...]
    figures: Judgements | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis(Documented):
    """Result of :func:`doctor`.

    Attributes:
        checks: data, judgements, retriever, machine.
        answered: whether the retriever answered any query.
        next: the command to run next.
    """

    checks: tuple[Check, ...]
    answered: bool
    next: str

    @property
    def n_warnings(self) -> int:
        """Count the warnings of all checks; notes are none."""
        return sum(not is_note(text) for check in self.checks for text in check.warnings)


def doctor(
    retriever: Any,
    dataset: str | Path = "science-mini",
    *,
    split: str = "test",
    language: str | None = None,
    self_hits: str | None = None,
    k: int = 10,
    overrides: Sequence[str] = (),
    ask: int | None = None,
    reporter: Reporter | None = None,
) -> Diagnosis:
    """Load the data, build and index the retriever, ask it some queries, and watch the machine.

    Args:
        ask: queries to ask; None = :data:`ASKED`, or :data:`PROBED` where each may cost something.

    Raises:
        HarnessError: what is wrong with the data or the retriever, all at once.
    """
    if ask is not None and ask < 1:
        raise ConfigError(f"ask = {ask}", accepted="1 or more", fix="correct --ask")
    experiment = prepare(
        [retriever],
        dataset,
        split=split,
        language=language,
        self_hits=self_hits,
        k=k,
        overrides=overrides,
        protocol=_PROTOCOL,
        save=False,
    )
    data = experiment.dataset
    asked = _asked(experiment, ask)
    ids = {query.id for query in asked}
    rest = [query for query in experiment.queries if query.id not in ids]
    start = time.perf_counter()
    answers = replace(experiment, queries=(*asked, *rest)).search(
        reporter, first=len(asked), enough=_late() if ask is None else None
    )
    seconds = time.perf_counter() - start
    about_queries = (*queries_in_corpus(data), *one_question(data))
    if kind := kind_of_truth(data.qrels):
        facts, warnings = service(f"look at {kind}")(data, k, answers.rankings)
        truth = Check(kind, facts, (*warnings, *about_queries))
    else:
        judgements = _judgements(experiment, asked, answers, reporter)
        warnings = (*judgements.warnings, *about_queries, *nothing_relevant(data))
        truth = Check("judgements", judgements.facts, warnings, judgements)
    understood = offered("say what was understood")
    return Diagnosis(
        (
            _data(data, () if understood is None else understood(experiment.source)),
            truth,
            _retriever(answers, seconds, {*data.warnings, *drawn(data)}),
            _machine(),
        ),
        OK in answers.status,
        _next(
            experiment,
            str(retriever),
            overrides,
            dataset=str(dataset),
            split=split,
            k=k,
            language=language,
            self_hits=self_hits,
        ),
    )


_PROTOCOL = Protocol(rounds=1, warm_up_s=0.0)


def _asked(experiment: Experiment, ask: int | None) -> tuple[Query, ...]:
    """A sample of the queries that count, or of all where none does; the same at each call."""
    queries = experiment.dataset.evaluated or experiment.queries
    n = ask or (PROBED if _is_dear(experiment.candidates[0]) else ASKED)
    if n >= len(queries):
        return tuple(queries)
    rows = sorted(random.Random(SEED).sample(range(len(queries)), n))
    return tuple(queries[row] for row in rows)


def _is_dear(candidate: Candidate) -> bool:
    """Return whether nobody knows what a query takes or costs."""
    limited = candidate.price is not None or candidate.rate_limit is not None
    can = candidate.capabilities
    return limited or (can.external and not can.replays)


def _late() -> Callable[[int, Sequence[Ranking | None]], bool]:
    """Says after a query whether the time is up, which begins with the first one."""
    begun: list[float] = []

    def late(_at: int, _rankings: Sequence[Ranking | None]) -> bool:
        now = time.monotonic()
        begun.append(now)
        return now - begun[0] > _ASKING_S

    return late


def _retriever(answers: Searched, seconds: float, about_data: set[str]) -> Check:
    n_answered = sum(status == OK for status in answers.status)
    n_asked = sum(status != NOT_RUN for status in answers.status)
    hits = sum(len(ranking or ()) for ranking in answers.rankings)
    took = f"{seconds:.1f}" if seconds >= 0.1 else "under 0.1"
    probe = f"{answers.name} was ready in {took} s and answered {n_answered:,} of "
    probe += f"{counted(n_asked, 'query')} with {counted(hits, 'hit')}."
    about_it = (text for text in answers.warnings if text not in about_data)
    return Check("retriever", (probe,), tuple(about_it))


def _next(
    experiment: Experiment, retriever: str, overrides: Sequence[str], **given: str | int | None
) -> str:
    """Suggest a command on what was looked at; where nothing is judged, one to pool two systems if
    there is a corpus."""
    data = experiment.dataset
    if data.judged:
        return typed("bench", retriever, **given, set=overrides)
    words, of_pool = ["label", "pool", retriever], ("dataset", "split", "self_hits")
    if data.documents is not None:
        words.append("dense-light" if _is_lexical(experiment.candidates[0]) else "bm25")
        overrides = ()  # they would be of both
    command = typed(*words, **{name: given[name] for name in of_pool}, set=overrides)
    return ready(command, words[3:])


def _judgements(
    experiment: Experiment, asked: Sequence[Query], answers: Searched, reporter: Reporter | None
) -> Judgements:
    data, k = experiment.dataset, experiment.k
    if not data.evaluated:
        return Judgements(counts(data))
    looked = look_into(data)
    lists = _lists(asked, answers)
    labels = clusters_in(data, asked)
    judged = judged_at(answers.name, lists, data.qrels, k, labels)
    why = too_little_for_a_pool(lists, data.qrels) or _no_other(data)
    compared = None
    if not why:
        try:
            name, other = _other(experiment, [q for q in asked if q.id in lists], reporter)
        except HarnessError as problem:
            why = f"the system to compare with failed: {problem.given}"
        else:
            compared = pool((answers.name, lists), (name, other), data.qrels, k, labels)
            why = "" if compared else "the system to compare with found too little"
    return Judgements(counts(data), judged, compared, why, *(looked or ()))


def _lists(asked: Sequence[Query], answers: Searched) -> Lists:
    """The hits of the queries that have any."""
    pairs = zip(asked, answers.rankings, strict=True)
    return {query.id: ranking.doc_ids for query, ranking in pairs if ranking}


def _no_other(data: Dataset) -> str:
    """Return why no second system can be built; empty where one can."""
    if data.documents is None:
        return "the dataset has no corpus"
    if data.n_documents > _LARGEST:
        return f"the corpus has more than {_LARGEST:,} documents"
    return ""


def _is_lexical(candidate: Candidate) -> bool:
    return "bm25" in str(candidate.config.get("target", "")).casefold()


_BM25: Mapping[str, Any] = {"name": "plain bm25", "target": "bm25"}
_TRIGRAMS: Mapping[str, Any] = {
    "name": "bm25 on character trigrams",
    "target": "bm25",
    "params": {"tokenizer": {"name": "ngram", "n": 3}},
}


def _other(
    experiment: Experiment, queries: Sequence[Query], reporter: Reporter | None
) -> tuple[str, Lists]:
    """Search with a plain BM25 or, beside a BM25, with one whose terms are character trigrams: it
    is cheap, works in any script, and shares no term with the first."""
    lexical = _is_lexical(experiment.candidates[0])
    second = prepare(
        [_TRIGRAMS if lexical else _BM25],
        experiment.dataset,
        k=experiment.k,
        protocol=_PROTOCOL,
        save=False,
    )
    answers = replace(second, queries=tuple(queries)).search(reporter, enough=_late())
    return answers.name, _lists(queries, answers)


def _data(data: Dataset, understood: Sequence[str]) -> Check:
    n, unanswerable = len(data.evaluated), len(data.unanswerable)
    queries = f"{counted(n, 'evaluated query')}, {counted(unanswerable, 'unanswerable query')}"
    if not data.judged:
        queries = counted(len(data.queries), "query")
    summed = f"{data.name} ({data.split}): {counted(data.n_documents, 'document')}, {queries}."
    facts = (summed, *understood)
    few = [
        f"With {counted(n, 'query')} only large differences can be shown: judge more if you can."
    ]
    faults = (text for text in data.warnings if text != UNJUDGED)  # the judgements say it
    mixed = languages_told(data)
    return Check("data", facts, (*faults, *drawn(data), *mixed, *(few if 0 < n < _FEW else ())))


def _machine() -> Check:
    """Watched for a second, in which this process does nothing; and what else ran in its calls."""
    facts = machine()
    with NoiseRecorder() as noise:
        time.sleep(_WATCHED_S)
    memory = facts.get("memory_gib")
    ram = "" if memory is None else f", {memory} GiB of memory"
    return Check(
        "machine",
        (f"{facts['processor']}, {facts['usable_cores']} cores{ram}, {facts['python']}.",),
        (
            *coded(
                disturbances(noise.record, facts, during="in the second it was watched"), Code.BUSY
            ),
            *(observer.warning for observer in observers.seen()),
        ),
    )
