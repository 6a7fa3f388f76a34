"""Text in pictures: cut or broken to its room."""

from __future__ import annotations

import pytest

from retrieval_bench_pictures.lettering import fitted, width_of, wrapped

LONG = ("hybrid-convex-tuned-on-validation-000001", "양자컴퓨터는어떻게작동합니까검색시스템한국어")


@pytest.mark.parametrize("text", [*LONG, "a b c " * 40, "W" * 99, "e\u0301" * 50, ""])
@pytest.mark.parametrize("px", [20.0, 130.0, 342.0])
def test_a_text_is_broken_and_cut_to_its_room(text: str, px: float) -> None:
    assert width_of(fitted(text, px)) <= px
    lines = wrapped(text, px)
    assert len(lines) <= 6
    assert all(width_of(line) <= px for line in lines)
    whole, shown = ("".join(part.split()) for part in (text, " ".join(lines)))
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


def test_lines_break_between_words() -> None:
    assert wrapped("No system has both a mean and a p95.", 110) == [
        "No system has both",
        "a mean and a p95.",
    ]
    assert wrapped("one two", 500) == ["one two"]
    assert wrapped("  ", 500) == []
