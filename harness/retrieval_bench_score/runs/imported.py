"""Runs made elsewhere, in the formats of the field, and how each convention orders them.

A file is recognised by its content, not by its name, and is taken whole or not at all: all that is
wrong in it comes in one error. Only a document that stands twice in a query is no fault here,
for conventions differ on it: it is reported in :attr:`RunFile.repeated`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.capabilities import offered
from retrieval_bench.core.errors import counted
from retrieval_bench.core.figures import visible
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.types import EMPTY, Documents, Ranking
from retrieval_bench.data.faults import Faults, FileFaults, Place, reporting, shown
from retrieval_bench.data.files.lines import first_line, head, json_file, kind_of, lines
from retrieval_bench.data.files.mistaken import other_separator
from retrieval_bench.data.files.rows import parquet_rows
from retrieval_bench.data.qrels import COMMENT, by_query, is_one_object, is_regular
from retrieval_bench.data.source import take_id
from retrieval_bench.measure.calls import NOT_RUN, OK
from retrieval_bench.runs.arrays import DAMAGED, RANKINGS, load_rankings
from retrieval_bench.runs.records import PER_QUERY, SCHEMA_VERSION, SUMMARY
from retrieval_bench_score.conventions import Ties
from retrieval_bench_score.runs.run_lines import (
    BEIR_COLUMNS,
    LOOKS_RANKED,
    MARCO_COLUMNS,
    SCORES_NOT_RANKS,
    TREC_COLUMNS,
    Block,
    check_ranks,
    columns_of,
    looks_ranked,
    run_blocks,
)
from retrieval_bench_score.runs.tool_files import (
    MTEB_MARK,
    in_documents,
    mteb_queries,
)

RUN_FOLDER = "run folder"

_SNIFFED = 1 << 10
_KINDS = {TREC_COLUMNS: "trec", BEIR_COLUMNS: "beir"}
_JSON_VALUE = "{document: score, ...} or [document, ...], best first"
_TABLE = {
    "q_id": ("q_id", "qid", "query_id", "query-id"),
    "doc_id": ("doc_id", "docno", "docid", "document_id", "corpus-id"),
    "score": ("score",),
}
"""Columns of a run as a table, as ranx, PyTerrier and BEIR call them."""
_PARQUET_ACCEPTED = "; ".join(f"one column {' or '.join(names)}" for names in _TABLE.values())
_ACCEPTED = (
    f"TREC text ({' '.join(TREC_COLUMNS)}), a table {'<TAB>'.join(BEIR_COLUMNS)} or "
    f"{'<TAB>'.join(MARCO_COLUMNS)}, "
    f'JSON {{query: {_JSON_VALUE}}}, JSON lines {{"eval_id": ..., "topk": [...]}}, '
    "parquet with the columns q_id, doc_id and score, or a run folder"
)


@dataclass(frozen=True, slots=True)
class RunFile:
    """A run made elsewhere, as its file has it.

    Attributes:
        path: the file or folder.
        format: "trec", "beir", "marco", "json", "submission", "ragas", "parquet" or "run folder".
        rankings: query id -> ranking, both in the order of the file; scores are float64, None
            where the format has none. A ranking may be empty, and may hold a document repeatedly.
        repeated: query id -> documents that stand in its ranking more than once, in the order of
            their first repetition; only such queries.
        warnings: what may surprise, in plain words.
        label: what made it, where the format says so; else empty.
        texts: id -> text of documents that have no id of their own; see :meth:`within`.
    """

    path: Path
    format: str
    rankings: Mapping[str, Ranking]
    repeated: Mapping[str, tuple[str, ...]]
    warnings: tuple[str, ...] = ()
    label: str = ""
    texts: Mapping[str, str] = field(default_factory=lambda: EMPTY)

    def within(self, documents: Documents | None) -> RunFile:
        """The run with the documents of a corpus in place of the texts that they contain."""
        if not self.texts or documents is None:
            return self
        rankings, unfound = in_documents(self.rankings, self.texts, documents)
        message = f"{counted(unfound, 'retrieved context')} in no document: not judged"
        warnings = (*self.warnings, *[message] * bool(unfound))
        return replace(self, rankings=rankings, warnings=warnings, texts=EMPTY)

    def ordered(self, ties: Ties) -> dict[str, Ranking]:
        """The rankings, best first.

        Scores come along unchanged, in double precision. Rankings without scores, and those of a
        run folder, keep their order.

        Args:
            ties: "trec" = by score in single precision, equal ones by document id descending (code
                points, the same as bytes of UTF-8), as trec_eval does; "list" = by score in double
                precision, equal ones in the order of the file.
        """
        if self.format == RUN_FOLDER:
            return dict(self.rankings)
        return {query_id: ordered(ranking, ties) for query_id, ranking in self.rankings.items()}


def read_rankings(path: Path | str) -> RunFile:
    """The run in a file, gzipped when its name ends in ``.gz``, or in a run folder.

    * TREC text and BEIR's table of results, as :func:`.run_blocks` takes them. The
      lines of a query need not stand together.
    * A table ``query<TAB>document<TAB>rank``, as MS MARCO has it, with or without a header, and
      with a score behind it as ColBERT writes it: the ranks are the order, without scores.
    * JSON, ``{query: {document: score}}`` or ``{query: [document, ...]}``, in one object or in
      one a line.
    * Submission lines of the Korean competition, ``{"eval_id": ..., "topk": [...]}``; other keys
      are ignored. An empty list is a query that was answered with nothing.
    * Predictions of mteb 2, of one subset and split.
    * A file of Ragas: what was retrieved for each question is its ranking.
    * Parquet with a row for each hit, as ranx and pandas write it.
    * A folder that ``retrieval-bench bench`` wrote.

    Ids that are whole numbers in JSON become text.

    Raises:
        DataError: everything that is wrong in the file, line by line; a file without rankings is
            wrong, too.
    """
    path = user_path(path)
    rankings: dict[str, Ranking] = {}
    kind = label = ""
    texts: Mapping[str, str] = EMPTY
    with reporting("the run", path) as faults:
        report = faults.of(path)
        if path.is_dir():
            kind = RUN_FOLDER
            label, rankings = _from_folder(path, faults)
        elif is_regular(path, faults) and (contexts := _contexts(path)):
            kind, (rankings, texts) = "ragas", contexts
        elif is_regular(path, faults) and kind_of(path) in (".parquet", ".parq"):
            kind = "parquet"
            rankings = _from_parquet(path, faults)
        elif is_regular(path, faults):
            kind, rankings = _from_text(path, faults)
        scores = [ranking.scores for ranking in rankings.values()]
        if kind != RUN_FOLDER and looks_ranked(score for score in scores if score is not None):
            report.error(None, LOOKS_RANKED, SCORES_NOT_RANKS)
        if not rankings and not faults.count:
            report.error(None, "no rankings", _ACCEPTED)
        if kind == "trec":
            _warn_of_order(rankings, faults)
        unscored = sum(ranking.scores is None for ranking in rankings.values() if len(ranking))
        if 0 < unscored < sum(len(ranking) > 0 for ranking in rankings.values()):
            faults.note(
                f"{unscored:,} of {len(rankings):,} rankings are lists without scores: they keep "
                "their order, whatever the rule for ties"
            )
    warnings = faults.warnings()
    return RunFile(path, kind, rankings, _repeated(rankings), warnings, label, texts)


def _contexts(path: Path) -> tuple[dict[str, Ranking], Mapping[str, str]] | None:
    """Rankings of texts, and these, where a package knows the file as one of contexts."""
    read: Callable[[Path], Any] | None = offered("read contexts")
    return read and read(path)


def tag_of(path: Path | str) -> str:
    """Read the tag of a run of TREC text: the last column of its last line, as trec_eval prints it;
    empty where there is none."""
    tag = ""
    for _, text in lines(user_path(path), Faults()):
        cells = text.split()
        if len(cells) >= len(TREC_COLUMNS) and not cells[0].startswith(COMMENT):
            tag = cells[len(TREC_COLUMNS) - 1]
    return tag


def _repeated(rankings: Mapping[str, Ranking]) -> dict[str, tuple[str, ...]]:
    repeated: dict[str, tuple[str, ...]] = {}
    for query_id, ranking in rankings.items():
        if len(set(ranking.doc_ids)) < len(ranking):
            seen: set[str] = set()
            again: dict[str, None] = {}
            for doc_id in ranking.doc_ids:
                if doc_id in seen:
                    again[doc_id] = None
                seen.add(doc_id)
            repeated[query_id] = tuple(again)
    return repeated


def _warn_of_order(rankings: Mapping[str, Ranking], faults: Faults) -> None:
    rising = 0
    for ranking in rankings.values():
        scores = np.asarray(ranking.scores)
        rising += bool((scores[1:] > scores[:-1]).any())
    if rising:
        faults.note(
            f"for {rising:,} of {len(rankings):,} queries the lines do not follow the scores; the "
            "scores decide, as in trec_eval"
        )


def ordered(ranking: Ranking, ties: Ties) -> Ranking:
    """``ranking``, best first; ``ties`` as of :meth:`RunFile.ordered`."""
    if ranking.scores is None:
        return ranking
    scores = np.asarray(ranking.scores, dtype=np.float64)
    with np.errstate(over="ignore"):  # beyond single precision is infinite, as in C
        keys = scores.astype(np.float32) if ties == "trec" else scores
    if (keys[1:] < keys[:-1]).all():
        return ranking
    doc_ids = ranking.doc_ids
    order = np.argsort(-keys, kind="stable").tolist()
    if ties == "trec":
        order = _ties_by_id(order, keys, doc_ids)
    return Ranking([doc_ids[at] for at in order], scores[order])


def _ties_by_id(
    order: list[int], keys: NDArray[np.floating[Any]], doc_ids: Sequence[str]
) -> list[int]:
    """``order`` with positions of equal keys by document id, descending."""
    tied = keys[order]
    bounds = [0, *(np.flatnonzero(tied[1:] != tied[:-1]) + 1).tolist(), len(order)]
    for start, end in pairwise(bounds):
        if end - start > 1:
            order[start:end] = sorted(order[start:end], key=doc_ids.__getitem__, reverse=True)
    return order


def _collected(blocks: Sequence[Block]) -> dict[str, Ranking]:
    """One ranking for each query; its blocks may lie apart."""
    by_query: dict[str, list[Block]] = {}
    for block in blocks:
        by_query.setdefault(block.query_id, []).append(block)
    return {
        query_id: Ranking(
            [doc_id for part in parts for doc_id in part.doc_ids],
            np.concatenate([part.scores for part in parts]),
        )
        for query_id, parts in by_query.items()
    }


def _by_rank(
    rankings: Mapping[str, Ranking], report: FileFaults, header: str
) -> dict[str, Ranking]:
    """The rankings of a table with ranks, in their order."""
    ranks = {query_id: np.asarray(ranking.scores) for query_id, ranking in rankings.items()}
    check_ranks(ranks, report, header)
    return {
        query_id: Ranking(
            [ranking.doc_ids[at] for at in np.argsort(ranks[query_id], kind="stable")]
        )
        for query_id, ranking in rankings.items()
    }


def _from_json(path: Path, faults: Faults) -> dict[str, Ranking]:
    report = faults.of(path)
    rankings: dict[str, Ranking] = {}
    one_object = is_one_object(path)
    of_mteb = one_object and MTEB_MARK.encode() in head(path, _SNIFFED)
    queries = (
        mteb_queries(path, faults)
        if of_mteb
        else by_query(path, faults, one_object=one_object, list_keys=("topk",))
    )
    for place, query_id, value in queries:
        if not isinstance(value, dict | list):
            report.error(place, f"the value is {shown(value)}", _JSON_VALUE)
            continue
        doc_ids = [take_id({"document": doc}, "document", place, report) for doc in value]
        scores = _scores(value, place, report) if isinstance(value, dict) else None
        rankings[query_id] = Ranking([doc_id for doc_id in doc_ids if doc_id is not None], scores)
    return rankings


def _from_text(path: Path, faults: Faults) -> tuple[str, dict[str, Ranking]]:
    """The format of a file of text, and its rankings."""
    report = faults.of(path)
    start = first_line(path, comment=COMMENT).lstrip()
    if start.startswith(("{", "[")):
        return "submission" if '"eval_id"' in start else "json", _from_json(path, faults)
    columns = columns_of(start)
    kind = _KINDS.get(columns, "marco")
    other = other_separator(start, "\t", len(BEIR_COLUMNS))
    if other and len(start.split()) == 1:
        report.error(None, f"columns separated by {other} in {shown(start)}", _ACCEPTED)
        return kind, {}
    rankings = _collected(run_blocks(path, faults, columns))
    return kind, _by_rank(rankings, report, start) if kind == "marco" else rankings


def _from_parquet(path: Path, faults: Faults) -> dict[str, Ranking]:
    """The rankings of a table with a row for each hit, in the order of its rows."""
    report = faults.of(path)
    hits: dict[str, dict[str, list[Any]]] = {}
    columns: list[str] = []
    for place, row in parquet_rows(path, [], faults):
        if not columns:
            named = [[name for name in row if name in names] for names in _TABLE.values()]
            if any(len(names) != 1 for names in named):
                found = ", ".join(map(shown, list(row)[:8])) or "none"
                report.error(None, f"a table of the columns {found}", _PARQUET_ACCEPTED)
                return {}
            columns = [name for (name,) in named]
        query, doc = (take_id(row, name, place, report) for name in columns[:2])
        score = _number(row[columns[2]])
        if not math.isfinite(score):
            fault = f"{columns[2]} is {shown(row[columns[2]])}"
            report.error(place, fault, "a finite number such as 1.5")
        if query is not None and doc is not None:
            of = hits.setdefault(query, {"ids": [], "scores": []})
            of["ids"].append(doc)
            of["scores"].append(score)
    return {query: Ranking(of["ids"], np.array(of["scores"])) for query, of in hits.items()}


def _scores(given: Mapping[str, Any], place: Place, report: FileFaults) -> NDArray[np.float64]:
    scores = np.array([_number(value) for value in given.values()], dtype=np.float64)
    if not np.isfinite(scores).all():
        for doc_id, value, score in zip(given, given.values(), scores, strict=True):
            if not np.isfinite(score):
                fault = f"score of {shown(doc_id)} is {shown(value)}"
                report.error(place, fault, "a finite number such as 1.5")
    return scores


def _number(value: Any) -> float:
    """``value`` as a number, NaN for what is none, such as true, or too large."""
    if type(value) is float:
        return value
    try:
        return float(value) if type(value) is int else math.nan
    except OverflowError:
        return math.nan


def _status(path: Path) -> dict[str, str]:
    """Read the status of each query; empty where the file is missing."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["query_id"]: row["status"] for row in csv.DictReader(file)}


def _warn_of_status(status: Mapping[str, str], faults: Faults) -> None:
    unreached = sum(item == NOT_RUN for item in status.values())
    failed = sum(item not in (OK, NOT_RUN) for item in status.values())
    if unreached:
        faults.note(
            f"partial run: {counted(unreached, 'query')} not reached, taken as not in the run"
        )
    if failed:
        faults.note(f"{counted(failed, 'query')} failed, taken as not in the run")


def _from_folder(folder: Path, faults: Faults) -> tuple[str, dict[str, Ranking]]:
    """The retriever and its saved rankings; needs neither the metrics nor the timings of the run to
    be readable."""
    report = faults.of(folder)
    if not (folder / SUMMARY).is_file() or not (folder / RANKINGS).is_file():
        report.error(None, f"a folder without {SUMMARY} and {RANKINGS}", _ACCEPTED)
        return "", {}
    summary = json_file(folder / SUMMARY, faults)
    version = summary.get("schema_version") if isinstance(summary, dict) else None
    if type(version) is not int or version > SCHEMA_VERSION:
        if not faults.count:
            accepted = f"versions up to {SCHEMA_VERSION}, which this version of the project writes"
            report.error(None, f"run of schema version {shown(version)}", accepted)
        return "", {}
    try:
        saved = load_rankings(folder)
        status = _status(folder / PER_QUERY)
        rankings = {
            query_id: saved.row(at)
            for at, query_id in enumerate(saved.query_ids)
            if status.get(visible(query_id), OK) == OK
        }
        _warn_of_status(status, faults)
        return str(summary.get("retriever", "")), rankings
    except DAMAGED as problem:
        fault = f"damaged: {type(problem).__name__}: {problem}"
        faults.of(folder / RANKINGS).error(None, fault, "the file as it was written")
    return "", {}
