"""Questions with their answers and sources on the way out, for the formats that have rows of them.

The corpus goes along, and a row names its documents by their ids, so that they are the same when
they are read. The texts beside the ids are those of the documents; of a unit those of all its
documents, each on a new line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrieval_bench.core.errors import counted
from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.data.faults import Faults, shown
from retrieval_bench.data.files.literals import looks_listed, may_be_listed
from retrieval_bench.data.passages import folded
from retrieval_bench.data.source import Outgoing
from retrieval_bench_exchange.outgoing import document_lines, lost, lost_grades, relevant
from retrieval_bench_exchange.questions.incoming import Usual

CORPUS = "corpus.jsonl"

_RIGHT = "PASS"


@dataclass(frozen=True, slots=True)
class Answered:
    """One question.

    Attributes:
        query: as it is in the dataset.
        answers: distinct, none blank.
        documents: ids of the relevant ones.
        texts: of each of ``documents``; empty where there is none.
    """

    query: Query
    answers: Sequence[str]
    documents: Sequence[str]
    texts: Sequence[str]


def answered(
    dataset: Dataset, usual: Usual, faults: Faults, *, unanswerable: bool
) -> list[Answered]:
    """The queries with a relevant document, and with ``unanswerable`` those that none answers."""
    judged = relevant(dataset, faults)
    texts = _texts(dataset, {document for of in judged.values() for document in of})
    report = faults.of("queries")
    answered = []
    for query in dataset.queries:
        if query.id not in judged and (query.answerable or not unanswerable):
            continue
        if query.text.lstrip().startswith("[{") and looks_listed(query.text):
            text = f"text {shown(query.text)} would be read as the turns of a conversation"
            report.error(f"query {shown(query.id)}", text, "a text that is no list; beir holds it")
        documents = judged.get(query.id, [])
        own = [texts.get(document, "") for document in documents]
        own = [text if folded(usual.source(text)) else "" for text in own]
        answered.append(Answered(query, answers_of(query), documents, own))
    return answered


def _texts(dataset: Dataset, wanted: Collection[str]) -> dict[str, str]:
    """The texts of documents or units, one walk over the corpus."""
    texts_of: defaultdict[str, list[str]] = defaultdict(list)
    for document in dataset.documents or ():
        name = dataset.unit_of.get(document.id, "") if dataset.unit_key else document.id
        if name in wanted:
            texts_of[name].append(document.text)
    return {name: "\n".join(texts) for name, texts in texts_of.items()}


def answers_of(query: Query) -> list[str]:
    """The texts of the answers in the metadata of a query, distinct; none that is labelled as
    wrong."""
    texts = (_answer(item) for item in _given(query))
    return list(dict.fromkeys(text for text in texts if text is not None and text.strip()))


def _given(query: Query) -> list[Any]:
    given = query.metadata.get("answers", [])
    return given if isinstance(given, list) else [given]


def _answer(given: Any) -> str | None:
    if isinstance(given, Mapping):
        given = given.get("answer" if given.get("label") == _RIGHT else "text")
    return given if isinstance(given, str) else None


def one_or_all(texts: Sequence[str]) -> str | list[str]:
    """One text as it is, unless it could be read as a list; several as a list; empty for none."""
    if len(texts) == 1 and not may_be_listed(texts[0]):
        return texts[0]
    return list(texts) or ""


def other_metadata(query: Query) -> dict[str, Any]:
    """The metadata of a query under their key, without its answers; nothing where it has none."""
    kept = {key: value for key, value in query.metadata.items() if key != "answers"}
    return {"metadata": kept} if kept else {}


def outgoing(
    dataset: Dataset,
    questions: Sequence[Answered],
    lines: Callable[[Answered], Iterable[str]],
    *,
    columns: Mapping[str, str] | None = None,
    gone: Sequence[str] = (),
    metadata: bool = False,
    conversations: bool = False,
) -> Outgoing:
    """The rows of all questions and the corpus.

    Args:
        lines: the rows of one question.
        columns: names that ``dataset.yaml`` must give.
        gone: what else is lost.
        metadata, conversations: what is not lost, as of :func:`.outgoing.lost`.
    """
    name = f"questions.{dataset.split}.jsonl"
    files: dict[str, Iterable[str]] = {name: [line for of in questions for line in lines(of)]}
    described: dict[str, Any] = {}
    if dataset.documents is not None:
        files[CORPUS] = document_lines(dataset, "id")
        described["files"] = {"documents": CORPUS}
    described["splits"] = {dataset.split: name}
    if columns:
        described["columns"] = {"rows": dict(columns)}
    queries = [question.query for question in questions]
    told = lost(
        dataset,
        documents=True,
        metadata=metadata,
        conversations=conversations,
        only=queries,
        held=("answers",),
    )
    return Outgoing(
        files, described, [*told, *lost_grades(dataset), *_lost_answers(queries), *gone]
    )


def lost_contexts(questions: Sequence[Answered]) -> list[str]:
    """List the losses where the texts of a row must be as many as its documents."""
    partly = sum(any(question.texts) and not all(question.texts) for question in questions)
    if not partly:
        return []
    return [f"the contexts of {counted(partly, 'query')} with a relevant document without a text"]


def _lost_answers(queries: Sequence[Query]) -> list[str]:
    given = [item for query in queries for item in _given(query)]
    without = sum(_answer(item) is None for item in given)
    lost_answers = []
    if bare := sum(isinstance(item, Mapping) and _answer(item) is not None for item in given):
        lost_answers.append(f"all but the text of {counted(bare, 'answer')}")
    if without:
        lost_answers.append(f"{counted(without, 'answer')} without a text, or labelled as wrong")
    return lost_answers
