"""Judgements that were made elsewhere, each with whose they are.

Files of judgements (TREC, BEIR, JSON, ``_rank_eval``), CSV of Quepid, and rows of questions with
the passages that answer them (a table with quotes, Ragas, LangSmith): the formats of
:mod:`retrieval_bench.data`. A query is known by its id, or else by its text; a passage is in the
documents that contain it. What the dataset does not have is left out and told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, DataError, counted, near_names
from retrieval_bench.core.types import Dataset, Document
from retrieval_bench.data.faults import Faults, reporting
from retrieval_bench.data.files.rows import first_keys
from retrieval_bench.data.formats import formats
from retrieval_bench.data.id_spaces import beside, cause_of, misspelt
from retrieval_bench.data.passages import folded, holders
from retrieval_bench.data.qrels import read_qrels
from retrieval_bench.data.ratings import is_quepid, quepid
from retrieval_bench.data.settings import Columns, JudgementColumns
from retrieval_bench.data.source import Files, Judgement
from retrieval_bench_labels.judge.judging import checked_name
from retrieval_bench_labels.judge.offline import is_offline, read_offline
from retrieval_bench_labels.label import GRADES, Kind, Label, Pair, Pool, digest
from retrieval_bench_labels.pool import ids_of, texts_of
from retrieval_bench_labels.store import Store

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Read:
    """Judgements as a file has them.

    Attributes:
        judgements: of queries by id or text.
        texts: id of a query -> its text, where the file has one.
        passages: id of a document -> its text, where the file has passages instead of ids.
    """

    judgements: tuple[Judgement, ...]
    texts: Mapping[str, str]
    passages: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Imported(Documented):
    """Judgements that were taken over.

    Attributes:
        file, format: where it came from.
        who, kind: whose judgements they are.
        labels: that were added.
        known: that the same judge had given already, or something newer.
        outside: added ones whose document is not in the pool; they are kept, and are exported.
        changed: added ones of texts that have changed since: they are kept, and do not count.
        no_query, no_document: left out, since the dataset has no such query or document.
        examples: of these.
    """

    file: str
    format: str
    who: str
    kind: Kind
    labels: int
    known: int
    outside: int
    changed: int
    no_query: int
    no_document: int
    examples: tuple[str, ...]


def import_labels(
    store: Store,
    path: Path,
    dataset: Dataset,
    *,
    who: str | None = None,
    kind: Kind = Kind.PERSON,
    kind_of_file: str | None = None,
) -> Imported:
    """Take over the judgements in a file, all or none.

    Args:
        dataset: that of the pool.
        who: whose they are; a result of ``label start --offline`` says it itself.
        kind: what ``who`` is.
        kind_of_file: a name of :data:`READERS`; None = what its content says.

    Raises:
        ConfigError: nobody is named, or an unknown format.
        DataError: everything that is wrong in the file; a grade out of range; or no judgement whose
            query and document the dataset has.
    """
    pool = store.pool()
    name = kind_of_file or recognised(path)
    if name == OWN:
        labels, missing = _own(read_offline(path), dataset, pool)
        whose, kind = labels[0].who if labels else "", Kind.PERSON
    else:
        if name not in READERS:
            raise ConfigError(
                f"format {name!r}",
                where="--from",
                kind="unknown-name",
                accepted=near_names(name, [*READERS, OWN]),
                fix="name one of them, or leave it out",
            )
        if who is None or not who.strip():
            raise ConfigError(
                "judgements of nobody",
                where="--who",
                accepted="the name of the person, the model or the tool that made them",
                fix="add --who NAME, and --kind model for a model's",
            )
        whose = checked_name(who)
        labels, missing = _matched(READERS[name](path), dataset, pool, path, (whose, kind))
    if not labels:
        raise DataError(
            f"no judgement of {path.name} is on a query and a document of dataset {dataset.name!r}",
            where=str(path),
            accepted="ids, or texts, that the dataset has",
            fix="name the file of judgements that belongs to this dataset",
            faults=_examples(missing, dataset),
        )
    new = _new(store, labels, whose, kind)
    store.add_all(new)
    digests = pool.digests()
    return Imported(
        str(path),
        name,
        whose,
        kind,
        len(new),
        len(labels) - len(new),
        sum(label.pair not in digests for label in new),
        sum(label.digest != digests.get(label.pair, label.digest) for label in new),
        sum(what == "query" for what, _ in missing),
        sum(what == "document" for what, _ in missing),
        _examples(missing, dataset),
    )


_Missing = list[tuple[str, str]]
"""What the dataset does not have, "query" or "document", and its name; once for each judgement."""


def _examples(missing: _Missing, dataset: Dataset) -> tuple[str, ...]:
    """Some of what is missing, first what the dataset has in another spelling."""
    if not missing:
        return ()
    known = {"query": [query.id for query in dataset.queries], "document": ids_of(dataset)}
    near = {
        (what, own): f"{what} {beside(own, other)}, which differ in {cause_of((own, other))}"
        for what, ids in known.items()
        for own, other in misspelt([name for kind, name in missing if kind == what], ids)
    }
    others = (f"{what} {name!r}" for what, name in missing if (what, name) not in near)
    return tuple(dict.fromkeys([*near.values(), *others]))[:_SHOWN]


def _matched(
    read: Read, dataset: Dataset, pool: Pool, path: Path, whose: tuple[str, Kind]
) -> tuple[list[Label], _Missing]:
    """Match judgements to the queries and documents of ``dataset``, as labels."""
    _check_grades(read.judgements, path)
    missing: _Missing = []
    queries = {query.id: query for query in dataset.queries}
    by_text: dict[str, list[str]] = {}
    for query in dataset.queries:
        by_text.setdefault(folded(query.text), []).append(query.id)
    ids = ids_of(dataset) | set(pool.documents)
    passages = {doc: folded(text) for doc, text in read.passages.items() if doc not in ids}
    in_documents = holders(dataset.documents or (), {text for text in passages.values() if text})
    unit_of = dataset.unit_of
    graded: dict[Pair, int] = {}
    for judgement in read.judgements:
        text = folded(read.texts.get(judgement.query_id, judgement.query_id))
        asked = [judgement.query_id] if judgement.query_id in queries else by_text.get(text, [])
        if not asked:
            missing.append(("query", judgement.query_id))
            continue
        held = [
            unit_of.get(doc, doc)
            for doc in in_documents.get(passages.get(judgement.doc_id, ""), ())
        ]
        documents = [judgement.doc_id] if judgement.doc_id in ids else held
        if not documents:
            missing.append(("document", read.passages.get(judgement.doc_id, judgement.doc_id)[:80]))
        for pair in (Pair(query_id, doc_id) for query_id in asked for doc_id in documents):
            graded[pair] = max(judgement.grade, graded.get(pair, 0))
    texts = _texts(dataset, pool, {pair.doc_id for pair in graded})
    who, kind = whose
    return [
        Label(
            pair,
            who,
            grade,
            kind,
            digest(queries[pair.query_id].text, texts[pair.doc_id]),
            source=path.name,
        )
        for pair, grade in graded.items()
    ], missing


def _own(labels: Sequence[Label], dataset: Dataset, pool: Pool) -> tuple[list[Label], _Missing]:
    """Select the labels of the offline page that are on queries and documents of ``dataset``."""
    missing, kept = _Missing(), list[Label]()
    queries = {query.id: query.text for query in dataset.queries}
    ids, pooled = ids_of(dataset) | set(pool.documents), pool.digests()
    texts = _texts(dataset, pool, {label.pair.doc_id for label in labels} & ids)
    for label in labels:
        query_id, doc_id = label.pair
        if query_id not in queries:
            missing.append(("query", query_id))
        elif label.pair in pooled or (
            doc_id in ids and label.digest == digest(queries[query_id], texts[doc_id])
        ):
            kept.append(label)
        else:
            missing.append(("document", doc_id))
    if not any(label.digest == pooled.get(label.pair, label.digest) for label in kept):
        return [], missing  # of another collection with the same ids
    return kept, missing


def _new(store: Store, labels: Sequence[Label], who: str, kind: Kind) -> list[Label]:
    """Select the labels that the same judge has not given yet, and nothing newer.

    Raises:
        ConfigError: under this name are labels of another kind of judge.
    """
    if others := store.kinds(who) - {kind}:
        raise ConfigError(
            f"{who!r} is the name of a {others.pop().value} whose labels are in the file",
            where="--who",
            accepted=f"another name for this {kind.value}",
            fix="give it a name of its own, such as gpt-5 or anna",
        )
    there = {
        (label.pair, label.who, label.grade, label.digest)
        for label in (*store.labels(), *store.outdated())
    }
    last: dict[tuple[Pair, str], str] = {}
    for label in store.history():
        key = (label.pair, label.who)
        last[key] = max(last.get(key, ""), label.at)
    return [
        label
        for label in labels
        if (label.pair, label.who, label.grade, label.digest) not in there
        and not (label.at and label.at <= last.get((label.pair, label.who), ""))
    ]


def _check_grades(judgements: Iterable[Judgement], path: Path) -> None:
    wrong = [judgement for judgement in judgements if judgement.grade not in GRADES]
    if wrong:
        raise DataError(
            f"{counted(len(wrong), 'grade')} out of range",
            where=str(path),
            accepted=f"{GRADES[0]} to {GRADES[-1]}",
            fix="map them to these grades first",
            faults=[f"{item.query_id} {item.doc_id}: {item.grade}" for item in wrong[:_SHOWN]],
        )


def _texts(dataset: Dataset, pool: Pool, wanted: set[str]) -> dict[str, Document]:
    """The documents as judges read them: those of the pool as they are there."""
    documents = {doc_id: pool.documents[doc_id] for doc_id in wanted if doc_id in pool.documents}
    return {**texts_of(dataset, wanted - documents.keys()), **documents}


def recognised(path: Path) -> str:
    """The format of a file, by its content.

    Raises:
        DataError: there is no such file.
    """
    if not path.is_file():
        raise DataError(
            "no such file",
            kind="no-file",
            where=str(path),
            accepted="a file of judgements",
            fix="check the path",
        )
    if is_offline(path):
        return OWN
    if is_quepid(path):
        return "quepid"
    keys = set(first_keys(path))
    if "user_input" in keys:
        return "ragas"
    if {"inputs", "outputs"} <= keys or {"inputs.question", "outputs.answer"} & keys:
        return "langsmith"
    return "quotes" if {"question", "quote"} <= keys else "qrels"


def _qrels(path: Path) -> Read:
    judged = read_qrels(path)
    return Read(
        tuple(Judgement(q, doc, grade) for q, of in judged.items() for doc, grade in of.items()),
        {},
        {},
    )


def _quepid(path: Path) -> Read:
    with reporting("the file of judgements", path) as faults:
        rows = list(quepid(path, JudgementColumns(), faults))
    return Read(tuple(row.judgement for row in rows if row.judgement is not None), {}, {})


def _rows(name: str) -> Callable[[Path], Read]:
    """Read rows of questions, without a corpus: their passages are the documents."""

    def read(path: Path) -> Read:
        with reporting("the file of judgements", path) as faults:
            source = formats()[name].open_source(Files(None, None, path), Columns(), faults)
            judged = (
                [judgement for _, judgement in source.judgements.read(faults)]
                if source.judgements
                else []
            )
            texts = {query.id: query.text for _, query in source.queries.read(faults)}
        passages = source.documents.read(Faults()) if source.documents else ()
        return Read(tuple(judged), texts, {document.id: document.text for _, document in passages})

    return read


OWN = "offline"
"""The result of the page that works without a server."""

READERS: Mapping[str, Callable[[Path], Read]] = {
    "qrels": _qrels,
    "quepid": _quepid,
    "quotes": _rows("quotes"),
    "ragas": _rows("ragas"),
    "langsmith": _rows("langsmith"),
}
"""Formats of judgements made elsewhere, by name."""
