"""Writing to programs, tools, statements and hybrids: what is sent, what acknowledges it, and what
is refused."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, Ranking
from tests.builders import word_program
from tests.builders.mcp_served import serving
from tests.builders.mcp_toy import LEGACY, MODERN

LINES: dict[str, Any] = {
    "add": {"put": "{document.id}", "text": "{document.text}"},
    "delete": {"drop": "{document.id}"},
}
TOOLS: dict[str, Any] = {
    "into": "writable",
    "add": {"tool": "put", "arguments": {"key": "{document.id}", "body": "{document.text}"}},
    "delete": {"tool": "drop", "arguments": {"key": "{document.id}"}},
}
TIDE, MOON = Document("1", "says of tides", title="물"), Document("2", "the moon")


def ids(retriever: Retriever, text: str) -> list[str]:
    return list(getattr(retriever.search(Query("q", text), 5), "doc_ids", ()))


def program(write: Any = LINES, **params: Any) -> Retriever:
    given = {"command": word_program.command(), "documents": "stdin", "write": write, **params}
    return construct("command", given)


def test_a_program_is_written_to_line_by_line() -> None:
    with closing(program()) as retriever:
        assert retriever.capabilities.writes
        assert retriever.collection() == ""
        retriever.index([MOON])
        retriever.add([TIDE])
        assert ids(retriever, "물 tides") == ["1"]
        retriever.add([Document("1", "the sun")])
        assert (ids(retriever, "tides"), ids(retriever, "sun")) == ([], ["1"])
        retriever.delete(["1", "no such document"])
        assert (ids(retriever, "sun"), ids(retriever, "moon")) == ([], ["2"])


def test_a_program_with_an_index_of_its_own_says_which_one() -> None:
    command = word_program.command("--holds")
    with pytest.raises(ConfigError, match="write without into"):
        program(command=command, documents="none")
    for into in ("notes", "hold"):  # a part of a name is another name
        with pytest.raises(ConfigError, match="which the request `add` does not hold"):
            program({**LINES, "into": into}, command=command, documents="none")
    with closing(
        program({**LINES, "into": "--holds"}, command=command, documents="none")
    ) as retriever:
        assert retriever.collection() == "--holds"
        retriever.add([Document("1", "xylophone")])
        assert ids(retriever, "xylophone") == ["1"]


def test_a_line_with_an_error_acknowledges_nothing() -> None:
    code = 'import sys\nfor line in sys.stdin: print(\'{"error": "full"}\', flush=True)'
    with (
        closing(
            program({**LINES, "into": "python3"}, command=["python3", "-c", code], documents="none")
        ) as retriever,
        pytest.raises(CallError, match="answered an error: full"),
    ):
        retriever.add([MOON])


@pytest.mark.parametrize(
    ("write", "told"),
    [
        ({"add": LINES["add"]}, "write without delete"),
        ({**LINES, "insert": {}}, "unknown key 'insert'"),
        ({**LINES, "add": {"put": "{document.id}"}}, "add has no place for the document"),
        ({**LINES, "delete": {"drop": "{document.text}"}}, "delete has {document.text}"),
        ({**LINES, "delete": "drop {document.id}"}, "delete = 'drop {document.id}'"),
        (
            {**LINES, "add": {"put": "{document.id}", "vector": "{embedding}"}},
            "{embedding} without encoder",
        ),
    ],
)
def test_lines_that_do_not_fit_are_refused(write: Any, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        program(write)
    assert told in str(refused.value)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("way", ["stdio", "json"])
def test_tools_write_to_an_mcp_server(era: str, way: str) -> None:
    with serving(era, way, "writable", write=_of(way)) as retriever:
        retriever.add([TIDE])
        assert ids(retriever, "tides") == ["1"]
        retriever.delete(["1", "nothing"])
        assert ids(retriever, "tides") == []
        with pytest.raises(CallError, match="the tool answered an error: disk full"):
            retriever.add([Document("1", "full")])


def test_tools_that_do_not_fit_are_refused_before_anything_is_written() -> None:
    wrong = {**TOOLS, "add": {"tool": "putt", "arguments": TOOLS["add"]["arguments"]}}
    with (
        serving(MODERN, "stdio", "writable", write=wrong) as retriever,
        pytest.raises(ConfigError, match="no tool 'putt'"),
    ):
        retriever.prepare()
    named = {
        **TOOLS,
        "add": {**TOOLS["add"], "arguments": {"key": "{document.id}", "b": "{document.text}"}},
    }
    with (
        serving(MODERN, "stdio", "writable", write=named) as retriever,
        pytest.raises(ConfigError, match="no argument 'b' in the tool"),
    ):
        retriever.prepare()


def _of(way: str) -> dict[str, Any]:
    """The command of the toy names what it is; an address does not."""
    if way == "stdio":
        return TOOLS
    return {**TOOLS, "into": "127.0.0.1"}


def test_targets_without_write_write_nothing() -> None:
    with closing(program(None)) as retriever:
        assert not retriever.capabilities.writes
        with pytest.raises(ConfigError, match="no `write`"):
            retriever.add([MOON])
    with serving(MODERN, "stdio") as retriever, pytest.raises(ConfigError, match="no `write`"):
        retriever.delete(["1"])


def test_a_program_that_was_handed_nothing_is_not_written_to() -> None:
    with closing(program()) as retriever, pytest.raises(ContractError, match="before index"):
        retriever.add([MOON])


def test_a_hybrid_writes_to_all_its_legs() -> None:
    params = {"command": word_program.command(), "documents": "stdin"}
    leg: dict[str, Any] = {"target": "command", "params": params}
    written = {**leg, "params": {**params, "write": LINES}}
    hybrid = construct("hybrid", {"legs": [{"name": "a", **written}, {"name": "b", **written}]})
    with closing(hybrid):
        assert (hybrid.capabilities.writes, hybrid.collection()) == (True, "")
        hybrid.index([MOON])
        hybrid.add([TIDE])
        ranking = hybrid.search(Query("q", "tides"), 5)
        assert isinstance(ranking, Ranking)
        assert [list(trace.doc_ids or ()) for trace in ranking.legs.values()] == [["1"], ["1"]]
        hybrid.delete(["1"])
        assert ids(hybrid, "tides") == []
    with closing(
        construct("hybrid", {"legs": [{"name": "a", **written}, {"name": "b", **leg}]})
    ) as half:
        assert not half.capabilities.writes
