"""A run and its judgements brought into one form: ids as text, hits as the units that are judged.

What Python users hand over is held to what files may hold: whole numbers and UUIDs become text, as
they do when they are read from JSON, and all else is refused in words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import numpy as np

from retrieval_bench.core.errors import DataError
from retrieval_bench.core.types import EMPTY, Qrels, Ranking
from retrieval_bench.data.id_spaces import FEW, Apart, apart
from retrieval_bench.metrics import JudgedRun
from retrieval_bench_score.data_frames import advice, named
from retrieval_bench_score.runs.as_units import units_in_order, units_with_best
from retrieval_bench_score.runs.imported import RunFile
from retrieval_bench_score.scored import finite_scores

RunGiven = Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[str]]

_PAIR = "give scores as {document: score}, or the ids alone, best first"
_FIXES: Mapping[type, str] = {
    bytes: "decode the ids, as in given.decode(): str() would write b'...'",
    float: "convert them with int(): pandas makes floats of whole numbers where one is missing",
    tuple: _PAIR,
    list: _PAIR,
    np.ndarray: _PAIR,
}
"""What to do where str() would make an id that is on no other side."""


def id_text(given: object, where: str) -> str:
    """An id as text.

    Raises:
        DataError: neither text nor a whole number nor a UUID.
    """
    if isinstance(given, str):
        return str(given)  # text of numpy is text
    if type(given) is not bool and isinstance(given, Integral | UUID):
        return str(given)
    raise DataError(
        f"the id {given!r} of type {type(given).__name__}",
        where=where,
        accepted="text, whole numbers or UUIDs as ids",
        fix=_FIXES.get(type(given), "convert ids with str() on both sides, in the same way"),
    )


def qrels_of(given: Any) -> Qrels:
    """Judgements from dictionaries, with ids as text and grades as whole numbers.

    Raises:
        DataError: another form, an id or a grade of another kind, or two ids that become one.
    """
    if not isinstance(given, Mapping) or not all(isinstance(of, Mapping) for of in given.values()):
        raise DataError(
            "judgements in another form than dictionaries of dictionaries"
            if isinstance(given, Mapping)
            else f"judgements of type {named(given)}",
            where="the judgements",
            accepted="{query: {document: grade}}, a file, or a dataset",
            fix=advice(given, "judgements", judgements=True)
            or "give {document: 1, ...} for a list of relevant documents",
        )
    where = "the judgements"
    plain = _with_text_ids(given, where)
    if all(set(map(type, grades.values())) <= {int} for grades in plain.values()):
        return plain
    return {
        query: {doc: _grade(grade, f"{where}: query {query!r}, document {doc!r}")
                for doc, grade in grades.items()}
        for query, grades in plain.items()
    }  # fmt: skip


def run_of(given: Any, unit_of: Mapping[str, str] = EMPTY) -> RunGiven:
    """A run from dictionaries, with ids as text: scores or lists, whatever it has; of units, where
    ``unit_of`` says which document is a part of which.

    Raises:
        DataError: another form, an id of another kind, or two ids that become one.
    """
    where = "the run"
    rankings = list(given.values()) if isinstance(given, Mapping) else [""]
    if all(isinstance(of, Mapping) for of in rankings):
        plain = _with_text_ids(given, where)
        if not unit_of:
            return plain
        finite_scores(list(plain), list(plain.values()))
        return {query: units_with_best(scores.items(), unit_of) for query, scores in plain.items()}
    if all(isinstance(of, Sequence | np.ndarray) and not isinstance(of, str) for of in rankings):
        lists = {
            id_text(query, where): docs
            if isinstance(docs, list) and _are_texts(docs)
            else [id_text(doc, f"{where}: query {query!r}") for doc in docs]
            for query, docs in given.items()
        }
        if len(lists) != len(given):
            _refuse_merged(given, where)
        if not unit_of:
            return lists
        return {query: units_in_order(docs, unit_of) for query, docs in lists.items()}
    kind, fix = f"a run of type {named(given)}", "give a dictionary, with an entry for each query"
    if isinstance(given, Mapping):
        other = [f"type {named(of)}" for of in rankings if not isinstance(of, Mapping | list)]
        kind = "a run that mixes dictionaries and lists, or has something else for a ranking"
        kind, fix = ": ".join([kind, *other[:1]]), "give every query the same form"
    raise DataError(
        kind,
        where=where,
        accepted="{query: {document: score}} or {query: [document, ...]}",
        fix=advice(given, "run") or fix,
    )


def _with_text_ids(
    given: Mapping[Any, Mapping[Any, Any]], where: str
) -> dict[str, Mapping[str, Any]]:
    plain: dict[str, Mapping[str, Any]] = {}
    for query, of in given.items():
        own = of if _are_texts(of) else {id_text(doc, where): of[doc] for doc in of}
        if len(own) != len(of):
            _refuse_merged(of, f"{where}: query {query!r}")
        plain[id_text(query, where)] = own
    if len(plain) != len(given):
        _refuse_merged(given, where)
    return plain


def _are_texts(ids: Iterable[Any]) -> bool:
    """Return whether all are texts; of many ways to ask, the one that takes least for each of
    them."""
    try:
        "".join(ids)
    except TypeError:
        return False
    return True


def _refuse_merged(ids: Iterable[Any], where: str) -> None:
    seen: dict[str, Any] = {}
    for item in ids:
        if (text := id_text(item, where)) in seen:
            raise DataError(
                f"the ids {seen[text]!r} and {item!r}",
                where=where,
                accepted="ids that are different as text: whole numbers become text",
                fix="keep one of them",
            )
        seen[text] = item


def _grade(given: object, where: str) -> int:
    if isinstance(given, Real) and float(given).is_integer():
        return int(float(given))
    raise DataError(
        f"the grade {given!r} of type {type(given).__name__}",
        where=where,
        accepted="whole numbers as grades, 1 or more for a relevant document",
        fix="round or scale the grades yourself: by which rule changes every metric",
    )


def without_selves(run: RunFile) -> tuple[RunFile, list[str]]:
    """``run`` without hits that have the id of their query, and the queries that had one."""
    own = [query for query, ranking in run.rankings.items() if query in ranking.doc_ids]
    rankings = {
        query: _others(ranking, query) if query in own else ranking
        for query, ranking in run.rankings.items()
    }
    repeated = {
        query: kept
        for query, docs in run.repeated.items()
        if (kept := tuple(doc for doc in docs if doc != query))
    }
    return replace(run, rankings=rankings, repeated=repeated), own


def _others(ranking: Ranking, query: str) -> Ranking:
    kept = [at for at, doc in enumerate(ranking.doc_ids) if doc != query]
    scores = None if ranking.scores is None else np.asarray(ranking.scores)[kept]
    return Ranking([ranking.doc_ids[at] for at in kept], scores)


def without_selves_in(run: RunGiven) -> tuple[RunGiven, list[str]]:
    """The same of dictionaries with ids as text."""
    own = [query for query, of in run.items() if query in of]
    left: dict[str, Any] = dict(run)
    for query in own:
        of = run[query]
        if isinstance(of, Mapping):
            left[query] = {doc: score for doc, score in of.items() if doc != query}
        else:
            left[query] = [doc for doc in of if doc != query]
    return left, own


def ids_apart(
    lists: Mapping[str, Sequence[str]], run: JudgedRun, known: Callable[[], Collection[str]]
) -> Apart | None:
    """Return whether the ids of a run are others than the known ones.

    Ids are looked at only where hardly any hit is judged.

    Args:
        lists: query id -> document ids, best first.
        run: the same, joined with the judgements.
        known: gives the ids of the corpus, or of the judged documents; asked where it is needed.
    """
    hits = int(run.lengths.sum())
    if not hits or len(run.judged.row) >= FEW * hits:
        return None
    return apart((doc for docs in lists.values() for doc in docs), known())
