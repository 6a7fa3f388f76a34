"""Studies on real texts: how well spans and foreign chunks are found again, and noise that must not
be taken for a difference."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.types import Dataset
from retrieval_bench.data import load_dataset
from retrieval_bench.metrics import Judgements, judge_lists, parse_metric
from retrieval_bench.stats.randomization import randomization_p
from retrieval_bench_chunks.cutting import BY_LEVELS, Chunker, Levels, Windows
from retrieval_bench_chunks.ranges import Place
from retrieval_bench_chunks.relocation import AMBIGUOUS, LOST, Finder, occurrences
from retrieval_bench_chunks.spans import AROUND
from tests.builders.chroma_lists import chunkers, lists_of

pytestmark = [pytest.mark.realdata, pytest.mark.long]

_MARKUP = re.compile(r"[*_`#>|]")


@pytest.fixture(scope="module")
def data(bench_data: Path) -> Dataset:
    return load_dataset(bench_data / "chunks" / "chroma")


@pytest.fixture(scope="module")
def texts(data: Dataset) -> Mapping[str, str]:
    return {document.id: document.text for document in data.documents or ()}


EDITS: Mapping[str, Callable[[str], str]] = {
    "NFC": lambda text: unicodedata.normalize("NFC", text),
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "white space": lambda text: re.sub(r"\s+", " ", text),
    "stripped Markdown": lambda text: _MARKUP.sub("", text),
}


@pytest.mark.parametrize("edit", EDITS)
def test_spans_that_stand_once_are_found_again_in_edited_documents(
    edit: str, data: Dataset, texts: Mapping[str, str]
) -> None:
    edited = {doc_id: EDITS[edit](text) for doc_id, text in texts.items()}
    finder, spans = Finder(edited), data.qrels
    once = right = 0
    for of in spans.values():
        for doc_id, start, end in of.truth:  # type: ignore[attr-defined]
            text = texts[doc_id]
            if sum(1 for _ in occurrences(text, text[start:end])) > 1:
                continue
            once += 1
            around = text[max(0, start - AROUND) : start], text[end : end + AROUND]
            sought = finder.within(doc_id, text[start:end], *around)
            wanted = len(EDITS[edit](text[:start]))
            right += len(sought.places) == 1 and abs(sought.places[0].start - wanted) <= 3
    assert once > 650
    assert right / once >= 0.99, f"{right} of {once}"


def test_new_cuts_do_not_touch_truth(data: Dataset, texts: Mapping[str, str]) -> None:
    """Ten new cuts: what all chunks hold together is every character of every span."""
    spans: Any = data.qrels
    windows: list[Chunker] = [Windows(500, 100), Windows(1_000, 0)]
    levels = [Levels(n, n // 5, of) for n in (300, 900) for of in BY_LEVELS.values()]
    for chunker in [*windows, *levels]:
        ids = {
            doc_id: [Place(doc_id, *given).id for given in chunker.cut(text)]
            for doc_id, text in texts.items()
        }
        for of in spans.values():
            hits = [hit for doc_id in of.of_document for hit in ids[doc_id]]
            got = of.delivery(hits).within()
            missing = got.truth - got.covered
            assert missing <= sum(
                texts[p.doc_id][at].isspace() for p in of.truth for at in range(p.start, p.end)
            )


def _noise(text: str, chance: random.Random) -> Mapping[str, str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    changed = "".join(chance.choice(letters) if chance.random() < 0.02 else c for c in text)
    return {
        "white space": re.sub(r"\s+", lambda _: chance.choice([" ", "\n", "  "]), text),
        "NFC": unicodedata.normalize(chance.choice(["NFC", "NFD"]), text),
        "stripped Markdown": _MARKUP.sub("", text),
        "a heading in front": f"Section {chance.randint(1, 99)}: Overview\n\n{text}",
        "cut at 80 %": text[: int(0.8 * len(text))],
        "2 % changed": changed,
    }


def test_foreign_chunks_are_aligned_under_noise_of_six_kinds(texts: Mapping[str, str]) -> None:
    chance, finder = random.Random(20261129), Finder(texts)
    chunks = [
        Place(doc_id, *given)
        for chunker in chunkers().values()
        for doc_id, text in texts.items()
        for given in chunker.cut(text)
    ]
    counts: dict[str, Counter[str]] = {}
    drawn = chance.sample(chunks, 5_000)
    for n, place in enumerate(drawn):
        text = texts[place.doc_id][place.start : place.end]
        noises = _noise(text, chance)
        kind = list(noises)[n % len(noises)]
        given = noises[kind]
        several = len(list(occurrences(texts[place.doc_id], text))) > 1 or any(
            text in other for doc_id, other in texts.items() if doc_id != place.doc_id
        )
        sought = finder.anywhere(given)
        hit = any(
            p.doc_id == place.doc_id and p.start < place.end and place.start < p.end
            for p in sought.places
        )
        if several:
            verdict = "several, " + ("right" if hit else sought.way)
        elif sought.way in (LOST, AMBIGUOUS):
            verdict = sought.way if sought.way == LOST or not hit else "ambiguous with its place"
        else:
            verdict = "right" if hit else "wrong"
        counts.setdefault(kind, Counter())[verdict] += 1
    total = sum(counts.values(), Counter[str]())
    once = sum(n for verdict, n in total.items() if not verdict.startswith("several"))
    assert total["wrong"] == 0, counts
    assert total["right"] / once >= 0.98, counts


def test_twins_whose_boundaries_differ_by_a_character_are_no_better(
    data: Dataset, texts: Mapping[str, str]
) -> None:
    """200 pairs of runs: each boundary of both is moved by one character, up or down, by itself."""
    spans: Any = data.qrels
    query_ids = [query.id for query in data.queries]
    metric = parse_metric("SpanR(characters=3000)")
    better, worse = 0, 0
    lists = list(lists_of(data))
    for seed in range(200):
        chance = random.Random(seed)
        of = lists[seed % len(lists)]
        values = []
        for _ in range(2):
            hits = {}
            for query_id, given in zip(query_ids, of.hits, strict=True):
                places = [_moved(place, chance, texts) for place in given]
                hits[query_id] = list(dict.fromkeys(place.id for place in places))
            run = judge_lists(hits, query_ids, Judgements(spans))
            values.append(metric.compute(run))
        differences = values[1] - values[0]
        p = float(randomization_p(differences[:, None], seed=seed)[0])
        better += p < 0.05 and differences.mean() > 0
        worse += p < 0.05 and differences.mean() < 0
    assert max(better, worse) <= 10, (better, worse)  # 200 at 2.5 %: 97.5 % of draws are at most 10


def _moved(place: Place, chance: random.Random, texts: Mapping[str, str]) -> Place:
    start = max(0, place.start + chance.choice((-1, 1)))
    end = min(len(texts[place.doc_id]), place.end + chance.choice((-1, 1)))
    return Place(place.doc_id, start, max(start, end))
