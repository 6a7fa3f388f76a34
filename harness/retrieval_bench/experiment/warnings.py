"""Warnings that a run gives of itself that makes its figures less than they seem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from itertools import chain

import numpy as np

from retrieval_bench.core.calls.usage import FIELDS
from retrieval_bench.core.errors import NothingMeasuredError, counted
from retrieval_bench.core.figures import BELOW_CLOCK, LEAST_SHOWN_MS
from retrieval_bench.core.notices import Code, Notice, coded, says
from retrieval_bench.core.retriever import Capabilities
from retrieval_bench.core.types import EMPTY, KEEP, Dataset, Qrels, Query, Ranking, hits_are_ranges
from retrieval_bench.data.build import UNJUDGED
from retrieval_bench.data.id_spaces import apart, known_ids, unmet
from retrieval_bench.data.self_queries import dropped, self_hit_warnings
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.experiment.filtered import cut_under_filters, filtered, leaks
from retrieval_bench.measure.calls import NOT_RUN, OK, Measurement, Timings
from retrieval_bench.measure.steady import WINDOW, WINDOWS
from retrieval_bench.metrics.names import label_of
from retrieval_bench.runs.dataset import n_alike, told_alike
from retrieval_bench.runs.evaluation import Evaluation, averaged
from retrieval_bench.runs.run import Rankings, Run, relative_folder
from retrieval_bench.runs.timing_facts import LatencyFacts

REMEMBERED = 5.0
"""From this ratio of a query's first call to its later ones on, a warning speaks of a cache."""

_MONEY = FIELDS.index("money")

_EXAMPLES = 3
"""Messages of one kind of failure that are shown."""


def remembered(latency: LatencyFacts, others: Sequence[str] = ()) -> list[str]:
    """Warn of a retriever whose later answers come far sooner than the first, or
    sooner than a clock can tell. Where ``others`` say that nothing was found, nothing is there to
    be remembered."""
    if says(others, Code.NOTHING_FOUND):
        return []
    warnings = remembers(latency.first_visit.ratio)
    p50 = latency.at("p50").value
    if p50 is not None and p50 < LEAST_SHOWN_MS:
        warnings.append(Notice(f"The p50 is {BELOW_CLOCK}.", Code.REMEMBERED))
    return warnings


def remembers(ratio: float | None) -> list[str]:
    """Warn where the first call of a query took so many times as long as later ones."""
    if ratio is None or ratio < REMEMBERED:
        return []
    message = f"The first call of a query took {ratio:,.0f} times as long as later ones"
    text = f"{message}: answers may be remembered. The times are those of repeated queries."
    return [Notice(text, Code.REMEMBERED)]


def of_answers(
    data: Dataset,
    queries: Sequence[Query],
    rankings: Sequence[Ranking | None],
    can: Capabilities,
    health: Sequence[str],
    *,
    rows: Sequence[int],
    corpus: Collection[str] | None,
    k: int,
) -> list[str]:
    """Warn of what the answers say, and what the retriever says of itself: for every command that
    measures calls.

    Args:
        rankings: one for each query, None where there is none.
        health: see :meth:`.Retriever.health`, and what was switched on beside it.
        rows: queries that count.
        corpus: see :func:`foreign_ids`.
    """
    warnings = [
        *nothing_found(data, queries, rankings, can, health),
        *suspicious(data, queries, rankings, k, health),
        *self_hits(data, [queries[at] for at in rows], [rankings[at] for at in rows]),
        *leaks(filtered(data, queries, rankings, can)),
        *cut_under_filters(data, queries, rankings, k),
        *coded(health, Code.RETRIEVER),
    ]
    if can.external:
        warnings += foreign_ids(rankings, data, corpus)
    return warnings


def unsteady(candidate: Candidate, measurement: Measurement) -> list[str]:
    """Warn where times had not settled when the first one counted, or nobody can tell."""
    if measurement.steady_after is not None or candidate.capabilities.replays:
        return []
    n = counted(measurement.warm_up_calls, "warm-up call")
    least = len(measurement.status) + WINDOW * WINDOWS
    text = (
        f"Times had not settled after {n}: trust large ratios, but no difference of a few per "
        "cent. Repeat before you quote them."
    )
    if measurement.warm_up_calls < least:
        text = (
            f"The warm-up was too short to tell whether times had settled ({n}, it takes "
            f"{least:,}): raise --warm-up, or repeat before you quote them."
        )
    return [Notice(text, Code.UNSTEADY)]


def silent(timings: Timings) -> list[str]:
    """Warn where some answers say what they used up and others do not: sums are of the former."""
    if not timings.usage:
        return []
    mask = np.any([~np.isnan(rows).all(axis=1) for rows in timings.usage.values()], axis=0)
    answered, told = ~timings.failed, list[str]()
    if missing := int(np.count_nonzero(answered & ~mask)):
        told.append(
            f"{missing:,} of {counted(int(np.count_nonzero(answered)), 'answer')} said nothing of "
            "what they used up: they count as nothing."
        )
    money = {name: not np.isnan(rows[:, _MONEY]).all() for name, rows in timings.usage.items()}
    unpriced = [name for name, known in money.items() if not known]
    if unpriced and any(money.values()):
        told.append(
            f"{', '.join(unpriced)} tells what it used up and no money: what is shown is that of "
            "the other stages. A `price` beside the step or the retriever says it."
        )
    return list(coded(told, Code.NO_USAGE))


def failures(status: Sequence[str]) -> list[str]:
    """Failed queries by kind of failure, with some of the messages: a service that puts a request
    id into each of them would otherwise fill the screen."""
    kinds: dict[str, list[str]] = {}
    for failure in status:
        if failure not in (OK, NOT_RUN):
            kinds.setdefault(failure.partition(":")[0], []).append(failure)
    lines: list[str] = []
    for messages in kinds.values():
        distinct = list(dict.fromkeys(messages))
        shown = " / ".join(distinct[:_EXAMPLES])
        more = f" / and {len(distinct) - _EXAMPLES} more" if len(distinct) > _EXAMPLES else ""
        text = f"{counted(len(messages), 'query')} failed: {shown}{more}"
        lines.append(Notice(text, Code.FAILED))
    return lines


def self_hits(
    data: Dataset, queries: Sequence[Query], rankings: Sequence[Ranking | None]
) -> list[str]:
    """Warn where most queries find themselves; where such hits are dropped, of what that took.

    Args:
        queries: those that count.
        rankings: theirs, None where there is none.
    """
    lists = {
        query.id: ranking
        for query, ranking in zip(queries, rankings, strict=True)
        if ranking is not None
    }
    if data.self_hits == KEEP:
        docs = {query_id: ranking.doc_ids for query_id, ranking in lists.items()}
        return self_hit_warnings(data.selves, docs, docs)
    own = [query_id for query_id, ranking in lists.items() if ranking.self_hits]
    relevant = [query_id for query_id in own if data.qrels[query_id].get(query_id, 0) > 0]
    if own and not relevant:
        return []
    return [Notice(dropped(len(own), relevant), Code.SELF_HITS)]


NOTHING = 0.1
"""From this share of the queries that could be answered on, empty lists are told."""


def nothing_found(
    data: Dataset,
    queries: Sequence[Query],
    rankings: Sequence[Ranking | None],
    can: Capabilities,
    health: Sequence[str],
) -> list[str]:
    """Warn where a considerable share of the queries that have an answer got an empty list.

    Args:
        queries: all that were asked.
        rankings: theirs, None where there is none.
        health: what the retriever says of itself: one whose every search found nothing says so.
    """
    lists = [
        ranking
        for query, ranking in zip(queries, rankings, strict=True)
        if ranking is not None and _has_answer(query, data)
    ]
    if not any(lists) and says(health, Code.NOTHING_FOUND):
        return []
    remedy = "" if can.replays else " Look at the index, the analyzer and thresholds."
    return empty_lists(lists, remedy, judged=data.judged)


def empty_lists(lists: Sequence[Sized], remedy: str = "", *, judged: bool = True) -> list[str]:
    """Warn where a considerable share of ``lists``, those of queries with an answer, is empty."""
    empty = sum(not len(sized) for sized in lists)
    if not empty or empty < NOTHING * len(lists):
        return []
    of = f"Nothing was found for {empty:,} of {counted(len(lists), 'query')}"
    counts = f" with a relevant document: {'it counts' if empty == 1 else 'they count'} 0"
    return [Notice(f"{of}{counts if judged else ''}.{remedy}", Code.NOTHING_FOUND)]


def _has_answer(query: Query, data: Dataset) -> bool:
    """Return whether a document answers the query and its filter allows that; where nothing is
    judged, whether nothing speaks against it."""
    if not data.judged:
        return query.filter is None
    grades = data.qrels.get(query.id, {}) if query.answerable else {}
    relevant = [doc_id for doc_id, grade in grades.items() if grade > 0]
    if query.filter is None or data.filtering is None:
        return bool(relevant)
    return any(data.filtering.fits(query.filter, relevant))


def deep(k: int, data: Dataset) -> list[str]:
    """Warn where more hits are asked for than there are documents."""
    if not 0 < data.n_documents < k or hits_are_ranges(data.qrels):
        return []
    documents = counted(data.n_documents, "document")
    text = f"k = {k:,} is more than the {documents}: no ranking can be that long."
    return [Notice(text, Code.DEEP)]


COPIED = 0.6
"""Share of the words of known-item questions from which on they favour a search for words."""


def drawn(data: Dataset) -> list[str]:
    """Warn of queries that were chosen for their differences."""
    if data.drawn_from is None:
        return []
    text = (
        f"{len(data.evaluated):,} of {counted(data.drawn_from, 'query')} are judged, chosen by how "
        "much systems differ on them: means over them do not hold for all queries. "
        "`retrieval-bench label status` says what does."
    )
    return [Notice(text, Code.JUDGES)]


def origins(data: Dataset) -> list[str]:
    """Warn of queries chosen for their differences, of judgements of several kinds, and of
    questions worded after their answers."""
    origins = drawn(data)
    kinds = list(dict.fromkeys(data.judges.values()))
    if len(kinds) > 1:
        origins.append(
            f"The judgements are mixed: they come from a {' and a '.join(kinds)}. Figures by one "
            "kind alone can differ."
        )
    if data.known_items is not None and data.known_items[1] >= COPIED:
        n, copied = data.known_items
        origins.append(
            f"{counted(n, 'query')} were made from the document that answers them, and "
            f"{100 * copied:.0f} % of their words stand in it: that favours keyword search."
        )
    return list(coded(origins, Code.JUDGES))


def without_relevant(data: Dataset) -> list[str]:
    """Warn of evaluated queries that no document answers."""
    n = len(data.without_relevant)
    if not n:
        return []
    have, they = ("has", "it scores") if n == 1 else ("have", "they score")
    text = f"{counted(n, 'evaluated query')} {have} no relevant document: {they} 0 in any case."
    return [Notice(text, Code.NOTHING_RELEVANT)]


def of_data(data: Dataset, k: int) -> list[str]:
    """Warn of what the data alone say to a run that asks for ``k`` hits."""
    faults = coded([warning for warning in data.warnings if warning != UNJUDGED], Code.DATA)
    return [*faults, *origins(data), *without_relevant(data), *deep(k, data)]


def foreign_ids(
    rankings: Sequence[Ranking | None], data: Dataset, corpus: Collection[str] | None
) -> list[str]:
    """Warn where the returned ids are of another kind than those of the corpus, or, without one,
    than those of the judged documents; and of those among them that are, however few.

    Args:
        corpus: ids of all that can be returned, documents or units; None where there is no corpus.
    """
    lists = [ranking.doc_ids for ranking in rankings if ranking is not None]
    judged = known_ids(None, EMPTY, data.qrels)
    other = apart(chain.from_iterable(lists), judged if corpus is None else corpus)
    if other is not None:
        return [other.notice(corpus=corpus is not None)]
    remedy = "Load the corpus anew, or name the dataset that is searched."
    return list(unmet(lists, judged, corpus, remedy))


def unknown_ids(warnings: Iterable[str]) -> str:
    """Return the warning that no id that was returned is in the corpus; empty without it."""
    return next((text for text in warnings if says([text], Code.UNKNOWN_IDS)), "")


def refuse_elsewhere(runs: Sequence[Run], kept: Sequence[Run]) -> None:
    """Refuse answers from other documents: every figure of them is a confident 0.

    Args:
        kept: the other ones.

    Raises:
        NothingMeasuredError: one of ``runs`` has such answers.
    """
    saved = [f"{run.name} is saved in {relative_folder(run)}" for run in kept if run.folder]
    told = {run.name: run.summary.warnings for run in runs}
    refuse_unknown(told, runs[0].summary.dataset.name, saved)


def refuse_unknown(
    warnings: Mapping[str, Sequence[str]], dataset: str, saved: Sequence[str] = ()
) -> None:
    """Refuse answers of which no id is in the corpus, as ``warnings`` of retrievers say.

    Args:
        saved: what is told beside it.

    Raises:
        NothingMeasuredError: one of them has such answers.
    """
    told = {name: unknown for name, texts in warnings.items() if (unknown := unknown_ids(texts))}
    if not told:
        return
    where = ", ".join(f"retriever {name!r}" for name in told)
    raise NothingMeasuredError(
        " ".join(told.values()),
        where="; ".join([f"{where} on dataset {dataset!r}", *saved]),
        accepted="hits with the ids of this dataset's corpus",
        fix="name the dataset that it searches (--dataset), or return the ids of this one; "
        "`bench --probe 3` shows the hits",
    )


FEWEST_PERFECT = 25
"""Queries from which on a perfect answer to nearly all of them is told: fewer may be that easy."""
NEARLY_ALL = 0.95

FEWEST_SAME = 3
"""Queries from which on one answer to most of them is no chance."""
FEWEST_CUT = 10
"""Likewise a length that most lists have; a search by words finds few documents of a small corpus.
"""
MOST = 0.5
"""Share of the lists that are as long as the longest, or the same as another."""


def suspicious(
    data: Dataset,
    queries: Sequence[Query],
    rankings: Sequence[Ranking | None],
    k: int,
    health: Sequence[str],
) -> list[str]:
    """Warn of answers that hardly come from a search, whatever ``health`` says already."""
    asked = [(q, r) for q, r in zip(queries, rankings, strict=True) if r is not None]
    lists = {query.id: ranking.doc_ids for query, ranking in asked if query.answerable}
    copied = data.known_items is not None
    size = data.n_documents or None
    unfiltered = [ranking for query, ranking in asked if query.filter is None]
    return [
        *([] if copied else too_good(lists, data.qrels)),
        *([] if says(health, Code.FEWER) else fewer_hits(unfiltered, k, size)),
        *same_answers([(query.text, ranking) for query, ranking in asked], size),
    ]


def too_good(lists: Mapping[str, Sequence[str]], qrels: Qrels) -> list[str]:
    """Ask where nearly all queries, :data:`FEWEST_PERFECT` at least, have nothing but relevant
    documents in front: a search makes mistakes, unless they are very easy."""
    relevant = {
        query_id: {doc_id for doc_id, grade in qrels.get(query_id, {}).items() if grade > 0}
        for query_id in lists
    }
    answered = [query_id for query_id, docs in relevant.items() if docs]
    firsts = {query_id: lists[query_id][: len(relevant[query_id])] for query_id in answered}
    perfect = sum(bool(ids) and relevant[q].issuperset(ids) for q, ids in firsts.items())
    if len(answered) < FEWEST_PERFECT or perfect < NEARLY_ALL * len(answered):
        return []
    text = (
        f"1.000 on {perfect:,} of {counted(len(answered), 'query')}, since all that is judged "
        "relevant comes first: does it see the judgements? If it does not, these queries are too "
        "easy to tell good systems apart."
    )
    return [Notice(text, Code.TOO_GOOD)]


def fewer_hits(lists: Sequence[Sized], k: int, size: int | None) -> list[str]:
    """Warn where no list is longer than some length below ``k`` and the ``size`` of the corpus,
    and most of those with a hit are as long."""
    lengths = [n for n in map(len, lists) if n]
    longest = max(lengths, default=0)
    rare = len(lengths) < FEWEST_CUT or lengths.count(longest) < MOST * len(lengths)
    if rare or longest >= min(k, size or k):
        return []
    text = (
        f"Never more than {counted(longest, 'hit')} came back, of {k:,} asked for: figures of the "
        f"first {k:,} are too low, and fewer hits are found sooner. Mend what cuts the list, or "
        f"ask for {longest:,} (--k {longest})."
    )
    return [Notice(text, Code.FEWER)]


def same_answers(answers: Sequence[tuple[str, Ranking]], size: int | None) -> list[str]:
    """Warn where most queries of different texts got the same hits in the same order, two or
    more; of a corpus of one document (``size``) nothing."""
    texts = {text: tuple(ranking.doc_ids) for text, ranking in answers}
    lists = Counter(ids for ids in texts.values() if len(ids) > 1)
    most = max(lists.values(), default=0)
    if size == 1 or most < max(FEWEST_SAME, MOST * len(texts)):
        return []
    text = (
        f"{most:,} of {counted(len(texts), 'different query')} got the same hits in the same "
        "order: does the search look at the query?"
    )
    return [Notice(text, Code.SAME_ANSWERS)]


def one_question(evaluation: Evaluation, rankings: Rankings, data: Dataset) -> list[str]:
    """Warn where queries that count are nearly the same question, and nothing says so."""
    ids, labels = evaluation.query_ids, rankings.labels
    n = n_alike([labels[query_id] for query_id in ids if labels])
    if not n or data.cluster_key is not None:
        return []
    metric, mean = evaluation.metrics[0], evaluation.means[0]
    values = evaluation.per_query[:, :1]
    ends = averaged(ids, [metric], values, clusters=labels).means[0].ci95
    if ends is None or mean.ci95 is None:
        return [told_alike(len(ids), n, "no interval holds that takes each for another")]
    own, other = (f"[{low:.3f}, {high:.3f}]" for low, high in (mean.ci95, ends))
    change = f"the interval of {label_of(str(metric))} is {other} in place of {own}"
    return [told_alike(len(ids), n, change)]
