"""Answers that hardly come from a search: too good, too short, or the same whatever is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Sized

from retrieval_bench.core.errors import counted
from retrieval_bench.core.notices import Code, Notice, says
from retrieval_bench.core.types import Dataset, Qrels, Query, Ranking

FEWEST_PERFECT = 25
"""Queries from which on a perfect answer to nearly all of them is told: fewer may be that easy."""
NEARLY_ALL = 0.95

FEWEST_CUT = 3
"""Queries from which on a length that most lists have is no chance."""
MOST = 0.5
"""Share of the lists that are as long as the longest, or the same as another."""


def suspicious(
    data: Dataset,
    queries: Sequence[Query],
    rankings: Sequence[Ranking | None],
    k: int,
    health: Sequence[str],
) -> list[str]:
    """Warn of what a run does not stand for, whatever its figures are.

    Args:
        queries: all that were asked.
        rankings: theirs, None where there is none.
        health: what the retriever says of itself, which is not said again.
    """
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
    documents in front, as many as there are or were asked for.

    A search makes mistakes, unless the queries are very easy: who looks at such a figure has to
    know which of the two it is. Of known-item questions, which have the words of their document,
    it is known.
    """
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
    """Warn where no list is longer than some length below ``k``, and most of those with a hit are
    as long.

    Args:
        lists: of queries without a filter.
        size: of the corpus; None where it is not known.
    """
    lengths = [n for n in map(len, lists) if n]
    longest = max(lengths, default=0)
    if len(lengths) < FEWEST_CUT or longest >= min(k, size or k):
        return []
    if lengths.count(longest) < MOST * len(lengths):
        return []
    text = (
        f"Never more than {counted(longest, 'hit')} came back, of {k:,} asked for: figures of the "
        f"first {k:,} are too low, and fewer hits are found sooner. Mend what cuts the list, or "
        f"ask for {longest:,} (--k {longest})."
    )
    return [Notice(text, Code.FEWER)]


def same_answers(answers: Sequence[tuple[str, Ranking]], size: int | None) -> list[str]:
    """Warn where most queries of different texts got the same hits in the same order, two or more.

    Args:
        answers: text and hits of each query.
        size: of the corpus; None where it is not known.
    """
    texts = {text: tuple(ranking.doc_ids) for text, ranking in answers}
    lists = Counter(ids for ids in texts.values() if len(ids) > 1)
    if size == 1 or not lists:
        return []
    _, most = lists.most_common(1)[0]
    if most < max(FEWEST_CUT, MOST * len(texts)):
        return []
    text = (
        f"{most:,} of {counted(len(texts), 'different query')} got the same hits in the same "
        "order: does the search look at the query?"
    )
    return [Notice(text, Code.SAME_ANSWERS)]
