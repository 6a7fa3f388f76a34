"""From a conversation to the text that is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, ContractError, PluginError
from retrieval_bench.core.types import Message, Query
from retrieval_bench_answers.standalone import load_rule, standalone_queries

TURNS = (
    Message("user", "일식이 뭐야?"),
    Message("assistant", "가리는 현상"),
    Message("user", "그럼 왜 그래?"),
)
TALK = Query("2", "그럼 왜 그래?", TURNS, {"kept": True})
PLAIN = Query("1", "안녕")


def texts(rule: object) -> list[str]:
    return [q.text for q in standalone_queries([PLAIN, TALK], rule).queries]  # type: ignore[arg-type]


def test_last_is_the_text_as_it_is_and_joined_every_turn() -> None:
    assert standalone_queries([PLAIN, TALK], "last").queries == (PLAIN, TALK)
    made = standalone_queries([PLAIN, TALK], "joined").queries
    assert [q.text for q in made] == ["안녕", "일식이 뭐야?\n가리는 현상\n그럼 왜 그래?"]
    assert (made[1].id, made[1].messages, made[1].metadata) == ("2", TALK.messages, {"kept": True})


def test_a_function_gets_the_turns_as_the_file_has_them() -> None:
    seen: list[list[dict[str, str]]] = []

    def rewrite(messages: list[dict[str, str]]) -> str:
        seen.append(messages)
        return messages[0]["content"] + "!"

    assert texts(rewrite) == ["안녕!", "일식이 뭐야?!"]
    assert seen[0] == [{"role": "user", "content": "안녕"}]
    assert [turn["role"] for turn in seen[1]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_a_function_may_say_that_no_search_is_needed(nothing: str | None) -> None:
    made = standalone_queries([PLAIN, TALK], lambda m: nothing if len(m) == 1 else "일식")
    assert made.silent == ("1",)
    assert [q.id for q in made.queries] == ["2"]


def test_where_a_function_fails_the_last_turn_is_searched_and_the_query_named() -> None:
    def rewrite(messages: list[dict[str, str]]) -> str:
        if len(messages) > 1:
            raise TimeoutError("no route")
        return "hello"

    made = standalone_queries([PLAIN, TALK], rewrite)
    assert [q.text for q in made.queries] == ["hello", TALK.text]
    assert made.warnings == (
        (
            "the function of --messages failed on 1 query, whose last turn was searched: "
            "2 (TimeoutError: no route)"
        ),
    )


def test_many_failures_are_counted_and_the_first_are_named() -> None:
    queries = [Query(str(i), "x") for i in range(9)]

    def rewrite(_: list[dict[str, str]], calls: list[int] = []) -> str:  # noqa: B006
        calls.append(1)
        if len(calls) < 6:
            raise ValueError("bad")
        return "y"

    (told,) = standalone_queries(queries, rewrite).warnings
    assert "failed on 5 queries" in told
    assert "0 (ValueError: bad), 1 (ValueError: bad), 2 (ValueError: bad), ..." in told


def failing(_: object) -> str:
    raise ValueError("bad")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (failing, "failed on every query, first on '1': ValueError: bad"),
        (lambda m: 3, "gave int for query '1'"),
        (lambda m: None, "gave no text for any of 2 queries"),
    ],
)
def test_a_function_that_is_of_no_use_is_an_error(function: object, says: str) -> None:
    with pytest.raises(ContractError, match=says):
        texts(function)


def test_a_rule_is_a_word_or_a_function(here: Path) -> None:
    (here / "own.py").write_text(
        "def first(messages):\n    return messages[0]['content']\n"
        "async def later(messages):\n    return ''\n"
        "number = 3\n",
        encoding="utf-8",
    )
    assert load_rule("last") == "last"
    assert texts(load_rule("own.py:first")) == ["안녕", "일식이 뭐야?"]
    for wrong, says in (("own.py:later", "an async function"), ("own.py:number", "is int")):
        with pytest.raises(ConfigError, match=says):
            load_rule(wrong)
    with pytest.raises(ConfigError, match="did you mean joined"):
        load_rule("join")
    with pytest.raises(PluginError, match="no 'nope'"):
        load_rule("own.py:nope")
