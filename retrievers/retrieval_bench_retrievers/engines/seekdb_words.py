"""What one says to seekdb and OceanBase: statements, and filters on the JSON of the metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from retrieval_bench.core.filters import Condition, Filter
from retrieval_bench_retrievers.engines.columns import sql_group
from retrieval_bench_retrievers.engines.engine_store import RRF_K, Asked

_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

PARSER = "WITH PARSER space PARSER_PROPERTIES=(min_token_size=1)"
"""Its least is 3 letters by default, which leaves out most words of Korean."""
TERMS = '[{"output": "all"}, {"additional_args": [{"min_token_size": 1}]}]'
TEXT = """
SELECT id, MATCH(contents) AGAINST(%(text)s) AS score FROM {table}
WHERE MATCH(contents) AGAINST(%(text)s) AND {filter} ORDER BY score DESC, id LIMIT {k}"""
LONG = """
SELECT id, score FROM (SELECT id, MATCH(contents) AGAINST(%(text)s) AS score FROM {table}
  WHERE MATCH(contents) AGAINST(%(text)s) AND {filter}) AS t ORDER BY score DESC, id LIMIT {k}"""
FEW = 64
"""Words from which on all hits are sorted: an internal error ends its own search for the best."""
EXACT = """
SELECT id, -negative_inner_product(embedding, %(vector)s) AS score FROM {table} WHERE {filter}
ORDER BY score DESC, id LIMIT {k}"""
NEAR = """
SELECT id, -negative_inner_product(embedding, %(vector)s) AS score FROM {table} WHERE {filter}
ORDER BY negative_inner_product(embedding, %(vector)s) APPROXIMATE LIMIT {k}"""
FUSED = """
SELECT id, sum(1e0 / ({rrf} + place)) AS score FROM (
  SELECT id, row_number() OVER (ORDER BY score DESC, id) AS place FROM ({text}) AS t
  UNION ALL
  SELECT id, row_number() OVER (ORDER BY score DESC, id) AS place FROM ({dense}) AS d
) AS legs GROUP BY id ORDER BY score DESC, id LIMIT {k}"""


def statement(asked: Asked, table: str, chosen: str) -> str:
    """The search in a ``table`` behind a filter of :func:`where`."""
    how = {"table": table, "filter": chosen, "rrf": RRF_K}
    k = asked.depth if asked.mode == "hybrid" else asked.k
    text = (LONG if len(set(asked.text.split())) > FEW else TEXT).format(k=k, **how)
    dense = (EXACT if asked.exact else NEAR).format(k=k, **how)
    fused = FUSED.format(k=asked.k, text=text, dense=dense, **how)
    return {"bm25": text, "dense": dense, "hybrid": fused}[asked.mode]


def where(wanted: Filter | None, values: dict[str, Any]) -> str:
    """A condition of SQL on the JSON of the metadata; what it compares is put into ``values``. It
    has no subquery, which seekdb would apply to the hits of an approximate search only."""

    def put(value: str) -> str:
        name = f"filter{len(values)}"
        values[name] = value
        return f"%({name})s"

    def at(column: str, parts: list[str], end: str) -> str:
        path = ".".join(["$", *(json.dumps(part, ensure_ascii=False) for part in parts)])
        return f"JSON_EXTRACT({column}, {put(path + end)})"

    def value_of(test: Condition, column: str, end: str = "") -> str:
        whole, parts = at(column, [test.field], end), test.field.split(".")
        if len(parts) == 1:
            return whole
        return f"IF({at('metadata', [test.field], '')} IS NULL, {at(column, parts, end)}, {whole})"

    def condition(test: Condition) -> str:
        written = [put(json.dumps(value)) for value in test.values]
        if test.operator not in _SIGNS:
            value = value_of(test, "metadata")
            return "(" + " OR ".join(f"JSON_CONTAINS({value}, {part})" for part in written) + ")"
        kind = "text" if isinstance(test.value, str) else "number"
        value = value_of(test, "ends", f".{kind}[{int(test.operator.startswith('g'))}]")
        return f"{value} {_SIGNS[test.operator]} CAST({written[0]} AS JSON)"

    return "true" if wanted is None else wanted.translated(condition, sql_group)


def ends(value: Any) -> dict[str, Any]:
    """In place of each value the lowest and the highest of its numbers and of its texts, which is
    what ranges ask of a list."""
    if isinstance(value, Mapping):
        return {key: ends(part) for key, part in value.items()}
    flat: list[Any] = list(_flat(value))
    numbers = [
        leaf for leaf in flat if isinstance(leaf, int | float) and not isinstance(leaf, bool)
    ]
    kinds: dict[str, list[Any]] = {
        "number": numbers,
        "text": [leaf for leaf in flat if isinstance(leaf, str)],
    }
    return {kind: [min(fit), max(fit)] for kind, fit in kinds.items() if fit}


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for part in value:
            yield from _flat(part)
    else:
        yield value
