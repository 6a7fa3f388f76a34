"""What PostgreSQL and its driver say when something fails, and what that means for a run.

A statement that can never work ends the run; a fault that may pass is a :class:`.TransientError`;
whatever else one query meets is a :class:`.CallError`. Errors are told by their SQLSTATE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench_retrievers.sql.statement import WHERE

_PASSING = ("08", "40", "53", "57", "55P03", "58030")
"""Beginnings of codes: connection, rollback (deadlock, serialization), resources, an operator who
intervened or a time-out, a lock that was not given, the system below."""

_NEVER_WORKS = ("42P01", "42703", "42883", "42704", "42501", "3F000", "0A000", "42P02")
"""Table, column, function, type, privilege, schema, feature: of the statement, not of the query."""

_DRIVER_ERRORS = ("OperationalError", "PoolTimeout", "InterfaceError", "PoolClosed")
_VECTOR = re.compile(r'type "(half|sparse)?vec(tor)?" does not exist|vector type not found')
_REMEDIES: Mapping[str, str] = {
    "42601": "correct the statement",
    "42P01": "correct the name of the table, fill it with `retrieval-bench data load`, or put its "
    "schema into search_path",
    "42703": "correct the name of the column",
    "42883": "correct the name, or the types, of what is called; %(NAME)s::text gives a type",
    "42501": "grant the user of the address the right to read it",
    "42P18": "write the type behind the placeholder: %(filter.NAME)s::text",
    "25006": "search in a statement that writes nothing: the transaction is read-only",
}


def code_of(problem: BaseException) -> str:
    """The SQLSTATE; empty where the server never answered."""
    return str(getattr(problem, "sqlstate", None) or "")


def text_of(problem: BaseException) -> str:
    """What happened in one line, with the server's hint; without what the user sent."""
    diagnosis = getattr(problem, "diag", None)
    primary = getattr(diagnosis, "message_primary", None)
    if not primary:
        return " ".join(str(problem).split()) or type(problem).__name__
    hint = getattr(diagnosis, "message_hint", None)
    return f"{primary} ({hint})" if hint else str(primary)


def without_vector(problem: BaseException, where: str = WHERE) -> ConfigError | None:
    """The error for a database without pgvector, None for all others."""
    if not _VECTOR.search(str(problem)):
        return None
    return ConfigError(
        "the database has no type vector: the extension pgvector is not there",
        where=where,
        accepted="a database with pgvector",
        fix="run `CREATE EXTENSION vector;` in it, as a user who may; a server without pgvector "
        "needs its package first. If it is in another schema, put that into search_path",
    )


_OTHER_SIZES = re.compile(r"different \w+ dimensions")
"""Of ``vector``, ``halfvec`` and ``sparsevec``."""


def another_size(problem: BaseException, where: str = WHERE) -> ConfigError | None:
    """The error for vectors of another size than the column's, None for all others."""
    if not _OTHER_SIZES.search(str(problem)):
        return None
    return ConfigError(
        f"PostgreSQL: {text_of(problem)}",
        where=where,
        accepted="vectors of the size of the column",
        fix="correct `encoder`: the column's documents were encoded with another",
    )


def refused(problem: BaseException, what: str, where: str = WHERE) -> HarnessError | CallError:
    """For a trial before the first search: ``what`` ("statement", "setup") does not work."""
    code = code_of(problem)
    if code.startswith(_PASSING):
        return TransientError(f"PostgreSQL: {text_of(problem)}", _kind(problem))
    known = without_vector(problem, where) or another_size(problem, where)
    return known or ContractError(
        f"PostgreSQL refuses the {what}: {text_of(problem)}",
        where=f"{where}, {what}" + (f" (SQLSTATE {code})" if code else ""),
        fix=_REMEDIES.get(code, f"correct the {what}"),
    )


def failed(problem: BaseException, where: str = WHERE) -> HarnessError | CallError:
    """For a search, with a statement that once worked."""
    code, text = code_of(problem), text_of(problem)
    if may_pass(problem):
        return TransientError(f"PostgreSQL: {text}", _kind(problem))
    if code in _NEVER_WORKS or another_size(problem):
        return refused(problem, "statement", where)
    return CallError(f"PostgreSQL: {text}" + (f" (SQLSTATE {code})" if code else ""))


def may_pass(problem: BaseException) -> bool:
    """Return whether the same may work later: the server went away, is busy, or starts again."""
    code = code_of(problem)
    kinds = {kind.__name__ for kind in type(problem).__mro__}
    return code.startswith(_PASSING) or (not code and bool(kinds & set(_DRIVER_ERRORS)))


def _kind(problem: BaseException) -> Kind:
    """Of a failure that may pass: by its SQLSTATE, or by the driver's own exception."""
    code, name = code_of(problem), type(problem).__name__
    if code == "57014" or "Timeout" in name:  # the statement, or the wait for a connection
        return Kind.TIMEOUT
    if code == "53300":  # too many connections
        return Kind.THROTTLED
    return Kind.CONNECTION if not code or code.startswith(("08", "57P")) else Kind.SERVER
