"""Lines for people are at most 100 cells wide, but for what would break when it is copied."""

from __future__ import annotations

import pytest

from retrieval_bench.core.wrapping import WIDTH, cells, wrapped

LONG = "these are words of a message " * 6


@pytest.mark.parametrize(
    "text",
    [
        f"retrieval-bench: error: {LONG}\n  where: {LONG}\n  do: {LONG}",
        "사과와 배는 과일이다 " * 12,
        f"  do: {LONG}`retrieval-bench data list pipeline` explains them",
    ],
)
def test_messages_are_broken_between_words(text: str) -> None:
    lines = wrapped(text).split("\n")
    assert max(map(cells, lines)) <= WIDTH
    assert " ".join("\n".join(lines).split()) == " ".join(text.split())
    assert any(line.startswith("    ") for line in lines)


def test_commands_words_and_lines_to_paste_stay_whole() -> None:
    command = "retrieval-bench compare " + "a.yaml " * 20 + "--dataset x"
    assert wrapped(f"more:  {command} ({LONG})").split("\n")[0] == f"more:  {command}"
    quoted = f"  do: look at `{command}`, {LONG}"
    assert f"`{command}`," in wrapped(quoted).replace("\n", " ")
    for whole in (
        "x" * 200,
        f"      params: {{factory: '{LONG}'}}",
        "/some/where/retrieval-bench " + "b " * 80 + "b",
    ):
        assert wrapped(whole) == whole
    assert wrapped("short\n\n  two  blanks") == "short\n\n  two  blanks"
