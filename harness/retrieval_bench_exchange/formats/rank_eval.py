"""Bodies of ``_rank_eval`` (Elasticsearch 7 to 9, OpenSearch): rated queries of a search engine.

Each JSON file with ``requests`` is a split of its name (:mod:`.data.ratings` says how ratings are
read). The text of a query is what its request searches for: the one text in the clauses ``match``,
``match_phrase``, ``multi_match``, ``query_string`` and their like, also in a template of the body
that ``params`` fill. Where there is none or another one is meant, ``columns: {queries: {text:
params.q}}`` leads to it. Documents are the ``corpus.jsonl`` beside it, or what ``files:
{documents: ...}`` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrieval_bench.core.types import Dataset, Query
from retrieval_bench.data import ratings
from retrieval_bench.data.faults import Faults, Place, shown
from retrieval_bench.data.files.lines import parse_json
from retrieval_bench.data.formats.trec import document_stream
from retrieval_bench.data.settings import Columns
from retrieval_bench.data.source import (
    DataFormat,
    Files,
    Found,
    Judgement,
    Outgoing,
    Source,
    found_splits,
    held_stream,
    looked_up,
    whole,
)
from retrieval_bench_exchange.outgoing import judged, lost, only_rated

_WHOLE = ("multi_match", "query_string", "simple_query_string", "combined_fields", "semantic")
_BY_FIELD = ("match", "match_phrase", "match_phrase_prefix", "match_bool_prefix")
_SLOT = re.compile(r"\{\{\{\s*([\w.]+)\s*\}\}\}|\{\{\s*([\w.]+)\s*\}\}")


def find(folder: Path) -> Found | None:
    """Every JSON file that begins as such a body is a split; None without any."""
    return found_splits(folder, ratings.is_rank_eval, "corpus.jsonl")


def open_source(files: Files, columns: Columns, faults: Faults) -> Source:
    """Queries and judgements are read and held, the documents are a stream."""
    path = whole(files.judgements)
    report = faults.of(path)
    body, requests = ratings.requests(path, faults)
    templates = _templates(body)
    named = columns.queries.text if "text" in columns.queries.model_fields_set else None
    queries: list[tuple[Place, Query]] = []
    judgements: list[tuple[Place, Judgement]] = []
    indexes: dict[str, str] = {}
    for place, request in requests:
        query_id, judged = ratings.rank_eval(place, request, report, indexes)
        judgements += judged
        texts = [looked_up(request, named)] if named else list(_texts(request, templates))
        texts = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
        if len(texts) != 1:
            fault = f"it searches for {', '.join(map(shown, texts)) or 'no text that is known'}"
            accepted = "one text; `columns: {queries: {text: params.q}}` says where it is"
            report.error(place, fault, accepted)
        elif query_id is not None:
            queries.append((place, Query(query_id, texts[0])))
    return Source(
        document_stream(files.documents, columns.documents),
        held_stream(str(path), queries),
        held_stream(str(path), judgements),
    )


def _templates(body: Mapping[str, Any]) -> dict[str, Any]:
    """Id of each template -> its source: an object, or text that becomes one."""
    templates: dict[str, Any] = {}
    listed = body.get("templates")
    for entry in listed if isinstance(listed, list) else ():
        template = entry.get("template") if isinstance(entry, Mapping) else None
        if isinstance(template, Mapping):
            templates[str(entry.get("id"))] = template.get("source", template.get("inline"))
    return templates


def _texts(request: Mapping[str, Any], templates: Mapping[str, Any]) -> Iterator[str]:
    """Find the texts that a request searches for."""
    if "template_id" not in request:
        yield from _searched(request.get("request"))
        return
    source = templates.get(str(request["template_id"]))
    text = source if isinstance(source, str) else json.dumps(source)
    params = request.get("params")
    try:
        yield from _searched(parse_json(_filled(text, params if isinstance(params, dict) else {})))
    except ValueError:  # sections and other logic of a template
        return


def _filled(template: str, params: Mapping[str, Any]) -> str:
    """``template`` with ``{{name}}`` replaced, text as it stands in a JSON text."""

    def value(slot: re.Match[str]) -> str:
        given = looked_up(params, slot[1] or slot[2])
        return json.dumps(given)[1:-1] if isinstance(given, str) else json.dumps(given)

    return _SLOT.sub(value, template)


def _searched(node: Any) -> Iterator[str]:
    """The texts of all clauses in ``node`` that analyse a text."""
    if isinstance(node, list):
        for inner in node:
            yield from _searched(inner)
    if not isinstance(node, Mapping):
        return
    for name, inner in node.items():
        clauses = inner.values() if name in _BY_FIELD and isinstance(inner, Mapping) else (inner,)
        if name in (*_WHOLE, *_BY_FIELD):
            for clause in clauses:
                text = clause.get("query") if isinstance(clause, Mapping) else clause
                if isinstance(text, str):
                    yield text
        else:
            yield from _searched(inner)


def write(dataset: Dataset, settings: Mapping[str, Any], faults: Faults) -> Outgoing:
    """The rated queries of a split as a body that searches ``fields`` of ``index``."""
    only_rated(dataset, faults, "_rank_eval")
    index, fields, metric = (settings[name] for name in ("index", "fields", "metric"))
    report = faults.of("settings")
    if not isinstance(index, str) or not index:
        report.error(None, f"index is {shown(index)}", "the name of an index")
    if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
        report.error(None, f"fields is {shown(fields)}", "a list such as [title, text]")
    if not isinstance(metric, Mapping) or len(metric) != 1:
        report.error(None, f"metric is {shown(metric)}", "one such as {precision: {k: 10}}")
    search = {"multi_match": {"query": "{{query_string}}", "fields": fields}}
    requests = [
        {
            "id": query.id,
            "template_id": "search",
            "params": {"query_string": query.text},
            "ratings": [
                {"_index": index, "_id": document, "rating": grade}
                for document, grade in dataset.qrels[query.id].items()
            ],
        }
        for query in judged(dataset)
    ]
    body = {
        "requests": requests,
        "templates": [{"id": "search", "template": {"source": {"query": search}}}],
        "metric": metric,
    }
    name = f"{dataset.split}.json"
    text = json.dumps(body, ensure_ascii=False, indent=1)
    return Outgoing({name: text.split("\n")}, {"splits": {dataset.split: name}}, lost(dataset))


FORMAT = DataFormat(
    "rank_eval: bodies of _rank_eval as JSON files, each a split of its name",
    ("judgements",),
    open_source,
    find,
    sharded=("documents",),
    columns=("documents", "queries"),
    write=write,
    settings={
        "index": "documents",
        "fields": ["title", "text"],
        "metric": {"dcg": {"k": 10, "normalize": True}},
    },
)
