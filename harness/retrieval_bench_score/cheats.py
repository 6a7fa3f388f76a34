"""Metric code of other people, tried on inputs that must not win.

A scorer is a function of a run ``{query: {document: score}}`` and judgements ``{query: {document:
grade}}``; it gives a mean, or a value for each query. Which metric it computes is not asked: it is
compared with itself. Each trial gives it an input that is no better than another one, or is the
same, and says what its two answers mean. Calls foreign code, prints nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from retrieval_bench.core import plugins
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import folder_kept, foreign_code, innermost, message_of
from retrieval_bench.core.errors import ConfigError, HarnessError

Scorer = Callable[[Any, Any], Any]
Run = dict[str, Any]
Qrels = dict[str, dict[str, int]]

QUERIES, ORDERS, SEED = 40, 25, 7
"""Queries of a trial; random orders of each, over which chance is averaged; of all of them."""

RELEVANT, JUDGED, UNJUDGED = 3, 2, 15
"""Documents of a ranking; one more relevant document is never returned."""

_SAME = 1e-6

Wanted = Literal["at most", "the same as", "less than"]


class Given(NamedTuple):
    """Arguments of a scorer."""

    run: Run
    qrels: Qrels

    def with_each(self, change: Callable[[str, dict[str, float]], dict[str, float]]) -> Given:
        """The same judgements, and what ``change`` makes of each query and its documents."""
        return Given({q: change(q, of) for q, of in self.run.items()}, self.qrels)


@dataclass(frozen=True, slots=True)
class Trial:
    """An input, and one that it is held against.

    Attributes:
        name: of the cheat.
        what: is given, in words.
        fair: what it is held against, in words.
        wanted: how its value is to stand to that of the other.
        wrong: what is said of code that lets it win.
    """

    name: str
    what: str
    fair: str
    wanted: Wanted
    wrong: str
    cheat: Given
    other: Given


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a scorer on a trial.

    Attributes:
        cheat: its name.
        what: is given.
        verdict: "right"; "wrong"; "refuses" where it raised an error, which is an answer, too; "by
            id" where equal scores are ordered by id, which is a rule and can be used all the same.
        got, fair: its values of both inputs; None where it gave none.
        chance: the mean over random orders, where scores tie.
        says: what is wrong, or what it raised.
    """

    cheat: str
    what: str
    verdict: Literal["right", "wrong", "refuses", "by id"]
    got: float | None
    fair: float | None
    chance: float | None = None
    says: str = ""


@dataclass(frozen=True, slots=True)
class ScorerAudit(Documented):
    """All trials of one scorer.

    Attributes:
        scorer: the function, as it was named.
        outcomes: each input that must not win.
        honest: its value of an ordinary run.
    """

    KEYS = "scorer honest cheats=outcomes"

    scorer: str
    honest: float
    outcomes: tuple[Outcome, ...]

    @property
    def wrong(self) -> int:
        """Trials that it gets wrong."""
        return sum(outcome.verdict == "wrong" for outcome in self.outcomes)


def audit_scorer(target: str) -> ScorerAudit:
    """Try the function that ``target`` names, ``module:function`` or ``file.py:function``.

    Raises:
        PluginError: there is no such function.
        ConfigError: it fails on an ordinary run, or gives no number.
    """
    with folder_kept():
        scorer = plugins.load(target)
    if not callable(scorer):
        raise ConfigError(
            f"{target!r}, which cannot be called",
            where="--scorer",
            accepted="a function (run, judgements) -> a mean, or a value for each query",
            fix="name a function",
        )
    return try_scorer(scorer, target)


def try_scorer(scorer: Scorer, name: str) -> ScorerAudit:
    """The same for a function at hand."""
    honest = _call(scorer, name, _ordinary())
    return ScorerAudit(
        name,
        honest,
        (
            *(_outcome(scorer, name, trial) for trial in trials()),
            _ties(scorer, name),
            _repeated(scorer, name),
            _unchanged(scorer, name),
        ),
    )


def trials() -> tuple[Trial, ...]:
    """Build the trials in which one value is held against another."""
    base, worst = _ordinary(), _relevant_last()
    hard = sorted(base.run)[QUERIES // 2 :]
    half = base.with_each(lambda q, of: of if q not in hard else worst.run[q])
    best = _best()
    spread = _collection(lambda rng, docs: [docs[0], *docs[:0:-1]])
    return (
        Trial(
            *("constant shift", "scores less 1,000, all below 0", "the same order"),
            *("the same as", "reads the size of scores, not their order"),
            base.with_each(lambda _, of: {doc: score - 1000.0 for doc, score in of.items()}),
            base,
        ),
        Trial(
            *("order of the dictionary", "the documents in another order", "the same scores"),
            *("the same as", "depends on the order of the dictionary, though no scores are equal"),
            Given(
                {q: dict(reversed(of.items())) for q, of in reversed(base.run.items())}, base.qrels
            ),
            base,
        ),
        Trial(
            *("reversed", "relevant documents last", "relevant documents first"),
            *("at most", "rewards a ranking that is upside down"),
            best.with_each(lambda _, of: {doc: -score for doc, score in of.items()}),
            best,
        ),
        Trial(
            *("short lists", "only the first hit of each query", "all 20 hits"),
            *("at most", "rewards short lists: what was not returned is forgiven"),
            spread.with_each(lambda _, of: _first(of, 1)),
            spread,
        ),
        Trial(
            *("padding", "1,000 more documents behind the last hit", "without them"),
            *("at most", "rewards more results"),
            base.with_each(lambda _, of: of | {f"pad{i}": -1e6 - i for i in range(1000)}),
            base,
        ),
        Trial(
            *("unjudged first", "10 unjudged documents in front", "without them"),
            *(
                "less than",
                "unjudged documents cost nothing: whatever nobody judged may stand first",
            ),
            best.with_each(lambda _, of: {f"new{i}": 1e6 - i for i in range(10)} | of),
            best,
        ),
        Trial(
            *("missing queries", "without the 20 queries that went badly", "all 40 queries"),
            *("at most", "rewards queries that are left out: they are in no mean"),
            Given({q: of for q, of in half.run.items() if q not in hard}, base.qrels),
            half,
        ),
        Trial(
            *("empty results", "nothing for the 20 queries that went badly", "results for all 40"),
            *("at most", "rewards empty results: they are in no mean"),
            half.with_each(lambda q, of: {} if q in hard else of),
            half,
        ),
        Trial(
            *("unknown queries", "40 more queries that nothing judges", "without them"),
            *("the same as", "counts queries that nothing judges"),
            Given({**base.run, **{f"more{i}": {"d": 1.0} for i in range(QUERIES)}}, base.qrels),
            base,
        ),
        Trial(
            *("NaN scores", "NaN for the relevant documents, which stood last", "their scores"),
            *("at most", "rewards scores that are not a number"),
            worst.with_each(lambda q, of: of | _nan_of_relevant(of, worst.qrels[q])),
            worst,
        ),
        Trial(
            *("nothing relevant", "judgements that are all 0", "relevant documents last"),
            *("at most", "rewards queries that nothing can answer"),
            Given(worst.run, {q: dict.fromkeys(of, 0) for q, of in worst.qrels.items()}),
            worst,
        ),
        Trial(
            *("negative grades", "documents of grade -2 first", "documents of grade 0 first"),
            *("at most", "rewards documents of a grade below 0"),
            Given(
                worst.run, {q: {d: g or -2 for d, g in of.items()} for q, of in worst.qrels.items()}
            ),
            worst,
        ),
        Trial(
            *("id of the query", "a relevant document named like its query", "another name"),
            *("the same as", "takes documents that are named like the query for something else"),
            _renamed(base),
            base,
        ),
    )


def _outcome(scorer: Scorer, name: str, trial: Trial) -> Outcome:
    try:
        got, fair = _call(scorer, name, trial.cheat), _call(scorer, name, trial.other)
    except HarnessError as refused:
        return Outcome(trial.name, trial.what, "refuses", None, None, says=refused.given)
    wrong = _why_wrong(got, fair, trial.wanted)
    if not wrong:
        return Outcome(trial.name, trial.what, "right", got, fair)
    says = f"{trial.wrong} ({trial.what}: {got:.4f}, {trial.fair}: {fair:.4f})"
    return Outcome(trial.name, trial.what, "wrong", got, fair, says=says)


def _why_wrong(got: float, fair: float, wanted: Wanted) -> bool:
    if math.isnan(got) or got > 1 + _SAME:
        return True
    if wanted == "at most":
        return got > fair + _SAME
    return abs(got - fair) > _SAME if wanted == "the same as" else got > fair - _SAME


def _ties(scorer: Scorer, name: str) -> Outcome:
    """All scores equal: in which place relevant documents stand must not matter."""
    cheat, what = "constant score", "one score for all documents"
    try:
        first, last, high, low = (
            _call(scorer, name, given) for given in (*_tied_by_place(), *_tied_by_id())
        )
        fair = abs(first - last) <= _SAME and abs(high - low) <= _SAME
        chance = None if fair else _call(scorer, name, _random_orders())
    except HarnessError as refused:
        return Outcome(cheat, what, "refuses", None, None, says=refused.given)
    if chance is None:
        return Outcome(cheat, what, "right", first, last)
    if abs(first - last) > _SAME:
        says = (
            f"rewards ties: with all scores equal it gives {max(first, last):.4f} or "
            f"{min(first, last):.4f}, as the dictionary has the relevant documents first or last; "
            f"the mean over orders is {chance:.4f}"
        )
        return Outcome(cheat, what, "wrong", first, last, chance, says)
    says = (
        f"equal scores are ordered by id: {high:.4f} or {low:.4f}, as the relevant documents have "
        f"the highest or the lowest ids; the mean over orders is {chance:.4f}"
    )
    return Outcome(cheat, what, "by id", high, low, chance, says)


def _repeated(scorer: Scorer, name: str) -> Outcome:
    """A relevant document twice, where lists are taken."""
    cheat, what = "repeated documents", "the first relevant document five times, in lists"
    base = _best()
    lists = {q: sorted(of, key=of.__getitem__, reverse=True) for q, of in base.run.items()}
    try:
        fair = _call(scorer, name, Given(lists, base.qrels))
        known = _call(scorer, name, base)
    except HarnessError:
        return Outcome(cheat, what, "right", None, None, says="takes no lists")
    if abs(fair - known) > _SAME:
        return Outcome(cheat, what, "right", None, None, says="takes no lists")
    # One relevant document and others, so that a copy takes no relevant one's place.
    once = {q: [of[0], *of[RELEVANT:]] for q, of in lists.items()}
    trial = Trial(
        *(cheat, what, "once", "at most", "rewards a document that stands in a list repeatedly"),
        Given({q: [of[0]] * 5 + of[1:] for q, of in once.items()}, base.qrels),
        Given(once, base.qrels),
    )
    return _outcome(scorer, name, trial)


def _unchanged(scorer: Scorer, name: str) -> Outcome:
    """Check that a call leaves the caller's data as they were."""
    cheat, what = "the caller's data", "the run and the judgements after the call"
    given = _renamed(_ordinary())
    kept = deepcopy(given)
    try:
        _call(scorer, name, given, copied=False)
    except HarnessError as refused:
        return Outcome(cheat, what, "refuses", None, None, says=refused.given)
    if given == kept:
        return Outcome(cheat, what, "right", None, None)
    return Outcome(cheat, what, "wrong", None, None, says="changes what the caller gave it")


def _call(scorer: Scorer, name: str, given: Given, *, copied: bool = True) -> float:
    """The mean that ``scorer`` gives; of values for each query, the mean over those it gives.

    Raises:
        ConfigError: it raised an error, or gave no number.
    """

    def failed(problem: BaseException) -> ConfigError:
        return ConfigError(
            f"{name} raised {message_of(problem)}",
            where=innermost(problem),
            accepted="a mean, or a value for each query",
            fix="see the function that --scorer names",
        )

    run, qrels = deepcopy(given) if copied else given
    with folder_kept(), foreign_code(failed):
        result: Any = scorer(run, qrels)
    with suppress(TypeError, ValueError):
        if isinstance(result, Mapping):
            return float(np.mean([float(value) for value in result.values()])) if result else 0.0
        if not isinstance(result, str):
            return float(result)
    raise ConfigError(
        f"{name} gave {type(result).__name__}",
        where="--scorer",
        accepted="a number, or a dictionary {query: number}",
        fix="return the mean, or a value for each query",
    )


def _ranking(rng: np.random.Generator) -> tuple[list[str], dict[str, int]]:
    """Documents with ids in no order, relevant ones first, and judgements."""
    n = RELEVANT + JUDGED + UNJUDGED
    docs = [f"d{number:03}" for number in rng.permutation(1000)[: n + 1].tolist()]
    grades = {docs[0]: 1, docs[1]: 2, docs[2]: 1, docs[n]: 1}
    return docs[:n], grades | dict.fromkeys(docs[RELEVANT : RELEVANT + JUDGED], 0)


def _collection(
    order: Callable[[np.random.Generator, list[str]], Sequence[str]], queries: int = QUERIES
) -> Given:
    """One query after the other, each with its documents in ``order``, best first."""
    drawn, rng = np.random.default_rng(SEED), np.random.default_rng(SEED + 1)
    run: Run = {}
    qrels: Qrels = {}
    for i in range(queries):
        docs, qrels[f"q{i:04}"] = _ranking(drawn)
        ranked = order(rng, docs)
        scores = {doc: float(len(docs) - rank) for rank, doc in enumerate(ranked)}
        shuffled = rng.permutation(len(docs)).tolist()
        run[f"q{i:04}"] = {docs[at]: scores[docs[at]] for at in shuffled}
    return Given(run, qrels)


def _shuffled(rng: np.random.Generator, docs: list[str]) -> list[str]:
    return [docs[at] for at in rng.permutation(len(docs)).tolist()]


def _ordinary() -> Given:
    return _collection(_shuffled)


def _random_orders() -> Given:
    return _collection(_shuffled, QUERIES * ORDERS)


def _best() -> Given:
    return _collection(lambda rng, docs: docs)


def _relevant_last() -> Given:
    return _collection(lambda rng, docs: docs[::-1])


def _first(of: Mapping[str, float], n: int) -> dict[str, float]:
    return {doc: of[doc] for doc in sorted(of, key=of.__getitem__, reverse=True)[:n]}


def _nan_of_relevant(of: Mapping[str, float], grades: Mapping[str, int]) -> dict[str, float]:
    return {doc: math.nan for doc in of if grades.get(doc, 0) > 0}


def _renamed(given: Given) -> Given:
    """In each query the first relevant document has the name of the query."""
    run, qrels = {}, {}
    for q, of in given.run.items():
        relevant = next(doc for doc, grade in given.qrels[q].items() if grade > 0)
        run[q] = {q if doc == relevant else doc: score for doc, score in of.items()}
        qrels[q] = {q if doc == relevant else doc: g for doc, g in given.qrels[q].items()}
    return Given(run, qrels)


def _tied_by_place() -> tuple[Given, Given]:
    """All scores equal, relevant documents first and last in the dictionaries."""
    base = _best()
    ranked = base.with_each(lambda _, of: _first(of, len(of)))
    last = ranked.with_each(lambda _, of: dict.fromkeys(reversed(of), 1.0))
    return ranked.with_each(lambda _, of: dict.fromkeys(of, 1.0)), last


def _tied_by_id() -> tuple[Given, Given]:
    """All scores equal, relevant documents with the highest and the lowest ids."""
    base = _tied_by_place()[0]
    given = []
    for sign in (-1, 1):
        run, qrels = {}, {}
        for q, of in base.run.items():
            new = {doc: f"{500 + sign * at:03}" for at, doc in enumerate(of)}
            run[q] = dict.fromkeys(sorted(new.values()), 1.0)
            qrels[q] = {new.get(doc, doc): grade for doc, grade in base.qrels[q].items()}
        given.append(Given(run, qrels))
    return given[0], given[1]
