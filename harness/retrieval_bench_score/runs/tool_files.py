"""Runs of evaluation tools: predictions of mteb, and texts in place of ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Documents, Ranking
from retrieval_bench.data.faults import Faults, Place, shown
from retrieval_bench.data.files.lines import json_file
from retrieval_bench.data.passages import folded, holders

MTEB_MARK = "mteb_model_meta"
"""The key that the predictions of mteb 2 begin with."""

_MTEB = '{"mteb_model_meta": ..., SUBSET: {SPLIT: {query: {document: score}}}} with one split'


def mteb_queries(path: Path, faults: Faults) -> Iterator[tuple[Place, str, Any]]:
    """Places, query ids and what predictions of mteb have for them."""
    report = faults.of(path)
    whole = json_file(path, faults)
    subsets = {name: of for name, of in (whole or {}).items() if name != MTEB_MARK}
    splits = {
        f"{subset}/{split}": queries
        for subset, of in subsets.items()
        for split, queries in (of.items() if isinstance(of, dict) else [("", of)])
    }
    if len(splits) != 1 or not all(isinstance(split, dict) for split in splits.values()):
        if not report.count:
            fault = f"predictions of {', '.join(splits) or 'nothing'}"
            report.error(None, fault, _MTEB)
        return
    for name, queries in splits.items():
        for query_id, value in queries.items():
            yield f"{name}, query {shown(query_id)}", query_id, value


def in_documents(
    rankings: Mapping[str, Ranking], texts: Mapping[str, str], documents: Documents
) -> tuple[dict[str, Ranking], int]:
    """Rankings in which each text stands for the document that contains it, the first of several,
    and the number of texts that none contains; of a document that comes again the first place
    counts."""
    known = {document.id for document in documents} & texts.keys()
    sought = {folded(text) for doc_id, text in texts.items() if doc_id not in known}
    containing = holders(documents, sought)
    ids = {
        doc_id: next(iter(containing[folded(text)]), "")
        for doc_id, text in texts.items()
        if doc_id not in known
    }
    mapped = {
        query_id: Ranking(
            list(dict.fromkeys(ids.get(doc_id) or doc_id for doc_id in ranking.doc_ids))
        )
        for query_id, ranking in rankings.items()
    }
    return mapped, sum(not doc_id for doc_id in ids.values())
