"""No output says one thing by its word and another by its bracket: all that a user can ask for, in
every form, on real collections and on few made-up queries."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.builders.contradictions import Statement, hidden_ends, of_csv, of_document, of_text
from tests.builders.files import save
from tests.cli.project import Command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ONCE = ("--rounds", "1", "--warm-up", "0", "--no-pictures", "--k", "20")
CONFIGS = {
    "words": "name: words\ntarget: bm25\nparams: {tokenizer: {name: whitespace}}\n",
    "long": "name: long\ntarget: bm25\nparams: {b: 0.0}\n",
    "near": "name: near\ntarget: bm25\nparams: {k1: 0.95}\n",
    "both": "name: both\ntarget: hybrid\nparams: {legs: [long.yaml, words.yaml], depth: 30}\n",
}
POLICY = "limits: {nDCG@10: -0.01, R@10: -0.02, AP@10: -0.01}\n"


def made_up(folder: Path, n: int) -> Path:
    """``n`` queries of two words over 60 documents of eight, two of which are relevant to each."""
    rng = random.Random(n)
    words = [f"word{at}" for at in range(40)]
    texts = [rng.choices(words, k=8) for _ in range(60)]
    queries, judgements = [], ["query-id\tcorpus-id\tscore"]
    for at in range(n):
        relevant = rng.sample(range(60), 2)
        text = f"{rng.choice(texts[relevant[0]])} {rng.choice(words)}"
        queries.append({"_id": f"q{at}", "text": text})
        judgements += [f"q{at}\td{doc}\t1" for doc in relevant]
    corpus = [{"_id": f"d{at}", "text": " ".join(text)} for at, text in enumerate(texts)]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        save(folder / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    save(folder / "qrels" / "test.tsv", "\n".join(judgements) + "\n")
    return folder


class Reader:
    """Asks for everything, and keeps what contradicts itself.

    Attributes:
        contradictions: each with the command that printed it.
        read: first word of a command and form -> words that were read beside an interval.
    """

    def __init__(self, run: Command, dataset: Path) -> None:
        self.run, self.dataset = run, str(dataset)
        self.contradictions: list[str] = []
        self.read: Counter[tuple[str, str]] = Counter()

    def ask(self, *command: str) -> str:
        """What a command prints that does its work, whatever its verdict."""
        assert self.run(*command) in (0, 1, 3), f"{command}: {self.run.err}"
        return self.run.out

    def document(self, *command: str) -> Any:
        """The JSON of a command, read."""
        found = json.loads(self.ask(*command, "--format", "json"))
        self._keep(command[0], "json", of_document(found))
        return found

    def texts(self, *command: str, forms: Sequence[str] = ("markdown", "latex", "csv")) -> Any:
        """All forms of a command, read; its JSON."""
        found = self.document(*command)
        for form in ("", "-v", *forms):
            options = ("--format", form) if form in forms else (form,) * bool(form)
            self.text(command[0], form, self.ask(*command, *options), found)
        return found

    def text(self, command: str, form: str, text: str, document: Any) -> None:
        """What was printed beside its document, read."""
        self._keep(command, form, of_csv(text) if form == "csv" else of_text(text))
        if form != "csv":
            self.contradictions += [f"{command} {form}: {o}" for o in hidden_ends(text, document)]

    def _keep(self, command: str, form: str, statements: Iterable[Statement]) -> None:
        for one in statements:
            self.read[command, form] += 1
            if one.contradicts:
                self.contradictions.append(f"{command} {form}: {one}")


def read_all(reader: Reader, here: Path) -> None:
    """Every command with brackets, in every form."""
    for name, text in CONFIGS.items():
        save(here / f"{name}.yaml", text)
    save(here / "policy.yaml", POLICY)
    data = ("--dataset", reader.dataset)
    measured = [f"{name}.yaml" for name in CONFIGS]
    reader.ask("compare", "bm25", *measured, *data, *ONCE)
    runs = sorted(map(str, (here / "results" / "runs").iterdir()))
    runs = [one for one in runs if Path(one).is_dir()]
    assert len(runs) == 5
    found = reader.texts("compare", *runs)
    reader.texts("compare", *runs, "--baseline", "bm25", "--margin", "0.05")
    reader.texts("compare", *runs[:2], "--slices", "length", "relevant")
    reader.ask("report", *runs, "--out", "page.html")
    reader.text("report", "html", (here / "page.html").read_text("utf-8"), found)
    of = {Path(one).name.split("-")[1]: one for one in runs}
    reader.texts("explain", of["bm25"], of["words"], forms=("markdown",))
    reader.texts("explain", of["both"], forms=("markdown",))
    reader.texts("explain", of["both"], "--by", "stage", forms=("markdown",))
    reader.texts("tune", of["long"], of["words"], forms=("markdown",))
    found = reader.document("bench", "both.yaml", *data, *ONCE)
    reader.text("bench", "", reader.ask("bench", "both.yaml", *data, *ONCE), found)
    for was, now in (("0.95", "3.0"), ("3.0", "0.95"), ("0.9", "0.95")):
        gate = ("near.yaml", *data, "--policy", "policy.yaml")
        reader.ask("baseline", *gate, "--set", f"k1={was}", "--force")
        reader.texts("regress", *gate, "--set", f"k1={now}", forms=("markdown",))


READ = {
    *(("compare", form) for form in ("json", "", "-v", "markdown", "latex", "csv")),
    *(("explain", form) for form in ("json", "", "-v", "markdown")),
    *(("report", "html"), ("bench", "json"), ("tune", "json"), ("regress", "json")),
}
"""Where words stand beside intervals in any case."""


@pytest.mark.parametrize("n", [10, pytest.param(30, marks=pytest.mark.long)])
def test_few_made_up_queries(here: Path, capsys: pytest.CaptureFixture[str], n: int) -> None:
    reader = Reader(Command(capsys), made_up(here / "data", n))
    read_all(reader, here)
    assert reader.contradictions == []
    assert set(reader.read) >= READ


@pytest.mark.realdata
@pytest.mark.long
@pytest.mark.parametrize("name", ["time", "halubench-mala299", "scifact", "squad2-dev"])
def test_real_collections(
    here: Path, bench_data: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    reader = Reader(Command(capsys), bench_data / "beir" / name)
    read_all(reader, here)
    assert reader.contradictions == []
    assert set(reader.read) >= READ


@pytest.mark.parametrize(
    ("line", "contradicts"),
    [
        ("hybrid   0.5   +0.115 [-0.080, +0.278]   better   0.9", True),
        ("hybrid   0.5   +0.115 [+0.080, +0.278]   better   0.9", False),
        ("| a - b | -0.1 [-0.2, -0.05] | can't tell |", True),
        ("dense, its best leg, is worse: 0.3, -0.1 [-0.2, +0.001]; fusion", True),
        (r"a - b & $-$0.1 {\footnotesize [$-$0.2, $-$0.05]} & worse \\", False),
        (
            "a 0.5 [0.4, 0.6]   +0.1 [-0.1, +0.3]   can't tell (careful interval [+0.1, +0.4])",
            False,
        ),
    ],
)
def test_the_reader_sees_a_contradiction(line: str, contradicts: bool) -> None:
    (one,) = of_text(line)
    assert one.contradicts is contradicts


def test_the_reader_reads_rows_of_a_page() -> None:
    cells = "<td>a - b</td><td>-0.1\n[-0.2, -0.05]</td><td>can&#x27;t tell</td>"
    (one,) = of_text(f"<!doctype html><html><table><tr>{cells}</tr></table>")
    assert one.contradicts


def test_the_reader_sees_an_end_that_is_printed_as_nothing() -> None:
    text = "a - b   +0.100 [+0.000, +0.200]   better"
    assert len(list(hidden_ends(text, {"ci95": [0.0003, 0.2]}))) == 1
    for ends in ([0.0, 0.2], [-0.2, 0.0]):
        assert list(hidden_ends(text, {"ci95": ends})) == []
    assert next(of_csv("low,high,verdict\n-0.1,0.1,better\n")).contradicts
    (one,) = of_document([{"gain": 0.1, "worth": "helps", "ci": [-0.1, 0.2]}])
    assert one.contradicts
