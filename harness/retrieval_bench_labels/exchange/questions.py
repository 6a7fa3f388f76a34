"""Questions for a collection that has none: known items by a function of the user's, or a sample of
a query log.

A known-item question is asked of one document, which is its answer: it needs no judging, but it
says less. Whoever words it has the document before their eyes, and copies: the share of its words
that stand in the document is kept (``metadata.copied``), and every table says that the questions
are of this kind (``metadata.origin``). A log says what is asked: a third of the sample comes from
the queries that make up the most frequent third of the traffic, and so on, so that rare queries are
in it, too; ``metadata.weight`` is how much traffic each stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core import plugins
from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import failing, folder_kept, foreign_code
from retrieval_bench.core.errors import ConfigError, PluginError
from retrieval_bench.core.scripts import tokens
from retrieval_bench.core.types import KNOWN_ITEM, Dataset, Document, Query
from retrieval_bench.data.faults import Faults, FileFaults, Place, reporting, shown
from retrieval_bench.data.files.rows import rows
from retrieval_bench.data.passages import folded
from retrieval_bench_exchange.export import Exported, export_dataset

STRATA = ("head", "torso", "tail")
"""Queries of a log by how often they are asked, each a third of the traffic."""

_TEXTS, _COUNTS = ("text", "query"), ("count", "n", "frequency")
_LOG = "a table or JSON lines with text (or query) and count"


@dataclass(frozen=True, slots=True)
class Asked(Documented):
    """Questions that were written.

    Attributes:
        exported: the dataset with them.
        origin: "known-item" or "log".
        questions: how many.
        copied: mean share of their words that stand in their document; None for a log.
        passed: documents for which the function gave no question.
        strata: of a log: name -> queries in it, and those sampled.
    """

    KEYS = "*exported origin questions copied passed strata"

    exported: Exported
    origin: str
    questions: int
    copied: float | None = None
    passed: int = 0
    strata: Mapping[str, tuple[int, int]] | None = None


def known_items(
    function: str, dataset: Dataset, folder: str | Path, *, n: int = 50, seed: int = 0
) -> Asked:
    """Ask ``function`` for a question to each of ``n`` documents drawn by the seed.

    Args:
        function: ``module:name`` or ``file.py:name``, called with a
            :class:`~retrieval_bench.core.types.Document`; gives the question as text, or None to
            pass the document over.
        folder: where the dataset is written, as BEIR; new or empty.
        n: questions wanted.

    Raises:
        ConfigError: no corpus, or no question for any document.
        PluginError: the function is not there, fails, or gives something else.
    """
    _check(n)
    corpus = dataset.documents
    if corpus is None:
        raise ConfigError(
            f"dataset {dataset.name!r} has no corpus",
            accepted="a dataset with documents to ask about",
            fix="add the documents to its folder",
        )
    with folder_kept():
        ask = plugins.load(function, base=Path.cwd())
    if not callable(ask):
        raise PluginError(f"{function!r} is no function", accepted="a function of a document")
    order = np.random.default_rng([seed, 4]).permutation(len(corpus))
    wanted = order[: min(len(order), 4 * n + 100)]  # more than needed: some are passed over
    texts = _at(corpus, wanted)
    queries: list[Query] = []
    seen: set[str] = set()
    qrels: dict[str, dict[str, int]] = {}
    passed = 0
    for place in wanted:
        if len(queries) == n:
            break
        text = texts[int(place)]
        question = _question(ask, function, text)
        if question is None or folded(question) in seen:
            passed += 1
            continue
        seen.add(folded(question))
        metadata = {"origin": KNOWN_ITEM, "copied": round(copied(question, text), 3)}
        queries.append(Query(f"known-{len(queries) + 1}", question, metadata=metadata))
        qrels[queries[-1].id] = {dataset.unit_of.get(text.id, text.id): 1}
    if not queries:
        raise ConfigError(
            f"{function!r} gave no question for any of {passed:,} documents",
            accepted="a text for at least one document",
            fix="look at what it gives",
        )
    made = replace(dataset, queries=tuple(queries), qrels=qrels, **_OF_OTHERS)
    share = float(np.mean([query.metadata["copied"] for query in queries]))
    exported = export_dataset(made, "beir", folder)
    return Asked(exported, KNOWN_ITEM, len(queries), share, passed)


def from_log(
    path: Path, dataset: Dataset, folder: str | Path, *, n: int = 50, seed: int = 0
) -> Asked:
    """Sample ``n`` queries of a log, as many of each of :data:`STRATA` as there are.

    Args:
        path: rows with the text of a query and how often it was asked; the same text may stand
            there several times.
        folder: where the dataset is written, as BEIR without judgements; new or empty.

    Raises:
        DataError: everything that is wrong in the log.
    """
    _check(n)
    with reporting("the log of queries", path) as faults:
        counts = _counts(path, faults)
    strata = _strata(counts)
    rng = np.random.default_rng([seed, 5])
    queries, told = list[Query](), dict[str, tuple[int, int]]()
    for name, wanted in zip(STRATA, _shares(n, [len(of) for of in strata]), strict=True):
        texts = strata[STRATA.index(name)]
        traffic = sum(counts[text] for text in texts)
        for at in sorted(rng.choice(len(texts), wanted, replace=False)) if wanted else ():
            text = texts[at]
            metadata = {
                "origin": "log",
                "tags": [name],
                "count": counts[text],
                "weight": traffic / wanted,
            }
            queries.append(Query(f"log-{len(queries) + 1}", text, metadata=metadata))
        told[name] = (len(texts), wanted)
    made = replace(dataset, queries=tuple(queries), qrels={}, **_OF_OTHERS)
    return Asked(export_dataset(made, "beir", folder), "log", len(queries), strata=told)


_OF_OTHERS: Mapping[str, Any] = {"judges": {}, "drawn_from": None, "cluster_key": None}
"""What a dataset says of its own questions and judgements, which new ones do not have."""


def copied(question: str, source: Document) -> float:
    """The share of the distinct words of ``question`` that stand in ``source``; in a script without
    blanks, of its characters."""
    words = set(tokens(question))
    return len(words & set(tokens(source.contents))) / len(words) if words else 0.0


def _check(n: int) -> None:
    if n < 1:
        raise ConfigError(f"--n {n}", accepted="a whole number from 1", fix="such as 50")


def _at(corpus: Iterable[Document], wanted: Iterable[Any]) -> dict[int, Document]:
    places = {int(place) for place in wanted}
    return {at: document for at, document in enumerate(corpus) if at in places}


def _question(ask: Callable[[Document], Any], name: str, document: Document) -> str | None:
    where = f"document {document.id!r}"
    takes = "a function of a document that gives a question, or None"
    with folder_kept(), foreign_code(failing(repr(name), PluginError, where, accepted=takes)):
        given = ask(document)
    if given is None or (isinstance(given, str) and not given.strip()):
        return None
    if not isinstance(given, str):
        raise PluginError(
            f"{name!r} gave {type(given).__name__}",
            where=where,
            accepted="the question as text, or None to pass the document over",
        )
    return given.strip()


def _counts(path: Path, faults: Faults) -> dict[str, int]:
    """Text -> how often it was asked."""
    report = faults.of(path)
    counts: dict[str, int] = {}
    spelled: dict[str, str] = {}
    for place, record in rows(path, (), faults):
        text = next((record[key] for key in _TEXTS if key in record), None)
        given = next((record[key] for key in _COUNTS if key in record), 1)
        n = _count(given, place, report)
        if not isinstance(text, str):
            report.error(place, f"no text; found: {', '.join(map(shown, record))}", _LOG)
        elif text.strip() and n is not None:
            text = spelled.setdefault(folded(text), text.strip())
            counts[text] = counts.get(text, 0) + n
    if not counts and not report.count:
        report.error(None, "no queries", _LOG)
    return counts


def _count(given: Any, place: Place, report: FileFaults) -> int | None:
    text = str(given).strip()
    if not text.isdecimal() or int(text) < 1:
        report.error(place, f"count is {shown(given)}", "a whole number from 1")
        return None
    return int(text)


def _strata(counts: Mapping[str, int]) -> list[list[str]]:
    """The queries of each stratum, the most frequent first."""
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    before = np.cumsum([0, *(counts[text] for text in ranked)])[:-1]
    place = np.minimum(3 * before // max(sum(counts.values()), 1), 2)
    return [[t for t, of in zip(ranked, place, strict=True) if of == at] for at in range(3)]


def _shares(n: int, sizes: Sequence[int]) -> list[int]:
    """Return how many of each stratum: as even as its size allows."""
    shares = [0] * len(sizes)
    for _ in range(min(n, sum(sizes))):
        open_ = [at for at, size in enumerate(sizes) if shares[at] < size]
        shares[min(open_, key=lambda at: shares[at])] += 1
    return shares
