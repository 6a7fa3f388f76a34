"""N9: no real collection is told to be in two languages, nor with its queries cut to four words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retrieval_bench.data import load_dataset
from retrieval_bench_doctor import languages
from retrieval_bench_doctor.languages import languages_told

COLLECTIONS = {
    **dict.fromkeys(("scifact", "squad2-dev", "halubench-mala299", "time"), "en"),
    **{"autorag-ko": "ko", "piaf-v1.0": "fr"},
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_one_language_raises_nothing_and_another_name_does(
    bench_data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    data = load_dataset(bench_data / "beir" / name)
    own = COLLECTIONS[name]
    cut = [replace(query, text=" ".join(query.text.split()[:4])) for query in data.queries]
    assert languages_told(data) == languages_told(replace(data, language=own)) == []
    other = "de" if own != "de" else "en"
    assert "% of the documents" in languages_told(replace(data, language=other))[0]
    monkeypatch.setattr(languages, "_WORDS", 1)
    assert languages_told(replace(data, queries=tuple(cut))) == []
