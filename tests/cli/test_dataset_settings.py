"""One dataset, one meaning: every command that takes ``--dataset`` keeps each of its settings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrieval_bench.core.types import Dataset
from retrieval_bench.data import load_dataset
from retrieval_bench.data.settings import DatasetConfig
from tests.builders.files import beir, save
from tests.builders.memory_store import add_memory_store
from tests.builders.reference_pages import commands
from tests.builders.spy import heard, write_spy
from tests.cli.project import QUICK as ONCE
from tests.cli.project import Command

pytestmark = pytest.mark.usefixtures("hardly_warm")

N = 10
K = 2

SETTINGS = ("unit_key", "language", "filter", "self_hits", "drawn_from")
"""Those that change what is measured or may be said of it; ``filter`` stands in the queries."""

OTHERS = {"format", "name", "description", "licence", "source", "version", "files", "splits"}
OTHERS |= {"columns", "judges", "cluster_key"}
"""Where the data lie and what people read; tests of their own have ``judges``, ``cluster_key``."""


def write_dataset(folder: Path, setting: str) -> None:
    """Pages of four parts, of which the second answers, with one setting."""
    pages = range(N)
    documents = [
        {"_id": f"p{i}#{j}", "text": f"topic{i} {'words ' * (4 - j)}part{j} own{j}{i}"}
        | {"page": f"p{i}", "tenant": "ab"[j % 2]}
        for i in pages
        for j in range(4)
    ]
    queries: list[dict[str, Any]] = [
        {"_id": f"q{i}", "text": f"topic{i} words part0"} for i in pages
    ]
    answer = {f"q{i}": f"p{i}#1" for i in pages}
    config: dict[str, Any] = {"format": "beir"}
    match setting:
        case "unit_key":
            config["unit_key"] = "page"
            answer = {f"q{i}": f"p{i}" for i in pages}
        case "language":
            config["language"] = "fr"
        case "filter":
            queries = [query | {"filter": {"tenant": "b"}} for query in queries]
        case "self_hits":
            config["self_hits"] = "drop"
            queries = [{"_id": f"p{i}#0", "text": documents[4 * i]["text"]} for i in pages]
            answer = {f"p{i}#0": f"p{i}#1" for i in pages}
        case "drawn_from":
            config["drawn_from"] = 90
    judged = [(query, document, 1) for query, document in answer.items()]
    beir(folder, documents, queries, judged, yaml.safe_dump(config))
    run = "".join(
        f"{query['_id']} Q0 p{i}#{j} {j + 1} {9 - j} x\n"
        for i, query in enumerate(queries)
        for j in range(4)
    )
    save(folder.parent / "made.run", run)


QUICK = ("--dataset", "data", "--k", str(K))
RUNS = [("bench", f"{name}.yaml", *QUICK, *ONCE, "--out", name) for name in ("spy", "two")]
POOL = ("label", "pool", "spy.yaml", "--dataset", "data", "--depth", "2", "--labels", "my.labels")
LABEL = ("--labels", "my.labels", "--dataset", "data")

ASKING: Mapping[str, Sequence[str]] = {
    "bench": ("bench", "spy.yaml", *QUICK, *ONCE),
    "compare": ("compare", "spy.yaml", "two.yaml", *QUICK, *ONCE),
    "load": ("load", "spy.yaml", *QUICK, "--clients", "1", "--duration", "0.2", "--warm-up", "0"),
    "explain": ("explain", "both.yaml", "--by", "stage", *QUICK, "--rounds", "1"),
    "tune": ("tune", "spy.yaml", "--grid", "k1=[0.9,1.5]", "--folds", "2", *QUICK),
    "doctor": ("doctor", "spy.yaml", *QUICK),
    "baseline": ("baseline", "spy.yaml", "--dataset", "data", "--min-calls", "40"),
    "duet": ("duet", "spy.yaml", "two.yaml", *QUICK, "--seconds", "0.01", "--most", "0.01"),
    "report": ("report", "spy.yaml", "two.yaml", *QUICK, *ONCE),
    "label pool": POOL,
    "score qa": ("score", "qa", "spy.yaml", *QUICK),
    "lab submit": ("lab", "submit", "spy.yaml", *QUICK),
}
"""Commands that ask a retriever: it is told the language, gets filters, and one more than k where
hits collapse or are dropped."""

CHOSEN = (
    *("bench", "compare", "load", "report", "baseline", "tune", "doctor", "explain"),
    *("score qa", "score run", "score audit"),
)
"""What speaks of means says that the queries were chosen; the others give none."""


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    write_spy(here)
    return Command(capsys)


def test_every_command_and_every_setting_is_walked() -> None:
    taking = {
        name
        for name, parser in commands()
        if any(action.dest == "dataset" for action in parser._actions)
    }
    assert taking == {*ASKING, *READING, *NOT_ASKED}
    assert set(DatasetConfig.model_fields) | {"filter"} == {*SETTINGS, *OTHERS}


NOT_ASKED = {
    "data fetch": "names data of others, that have no dataset.yaml",
    "data history": "a name to choose saved runs by",
    "data index": "only documents and settings of its retriever; data/test_saved_indexes has them",
    "data encode": "likewise; shards/test_encode has them",
    "lab selftest": "duets of a retriever with itself: only times",
    "regress": "what baseline stored; the next test has it",
}
"""Commands whose ``--dataset`` is not read, or is that of another one."""


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["unit_key", "language", "filter", "self_hits"])
@pytest.mark.parametrize("name", ASKING)
def test_a_retriever_is_asked_as_the_dataset_says(
    name: str, setting: str, run: Command, here: Path
) -> None:
    write_dataset(here / "data", setting)
    assert run(*ASKING[name]) in (0, 3, 4), run.err
    if setting == "language":
        assert heard(here, "language") == {"fr"}
    elif setting == "filter":
        assert True in heard(here, "filter")
        assert name == "explain" or heard(here, "filter") == {True}  # it asks without it, too
    else:
        depth = 10 if name == "baseline" else 4 if name == "explain" else K
        assert min(heard(here, "k")) == depth + (name != "explain")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_means_of_chosen_queries_are_told_as_such(name: str, run: Command, here: Path) -> None:
    write_dataset(here / "data", "drawn_from")
    run(*ASKING.get(name) or READING[name][0])
    assert "chosen by how much systems differ" in run.unwrapped + " ".join(run.err.split())


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS[:4])
def test_a_gate_measures_what_its_baseline_did(setting: str, run: Command, here: Path) -> None:
    write_dataset(here / "data", setting)
    assert run(*ASKING["baseline"]) == 0
    shutil.copy(here / "spy.log", here / "before.log")
    (here / "spy.log").unlink()
    assert run("regress spy.yaml --dataset data --duet never") in (0, 3, 4)
    what = {"language": "language", "filter": "filter"}.get(setting, "k")
    assert heard(here, what) == {"language": {"fr"}, "filter": {True}}.get(what, heard(here, "k"))
    assert what != "k" or min(heard(here, "k")) == 11


def mean(document: Mapping[str, Any]) -> float:
    """The first one of a scored run."""
    return float(next(iter(document["metrics"].values()))["mean"])


def scored(run: Command, setting: str) -> None:
    document = json.loads(run.out)
    # Of the page the first hit counts; the part that is the query itself is no hit.
    kept = {"unit_key": 1.0, "self_hits": 1.0}
    assert mean(document) == pytest.approx(kept.get(setting, 0.6309297535714575))
    leaked = [one for one in document["warnings"] if one["code"] == "leaked"]
    assert bool(leaked) == (setting == "filter")


def audited(run: Command, setting: str) -> None:
    document = json.loads(run.out)
    first = document["rows"][0]["means"]["made"]
    assert first == (1.0 if setting in ("unit_key", "self_hits") else 0.5)
    leaked = [one for one in document["warnings"] if "leaked" in one["text"]]
    assert bool(leaked) == (setting == "filter")


def exported(run: Command, setting: str) -> None:
    there, again = load_dataset("data"), load_dataset("out")
    assert again.fingerprint == there.fingerprint
    assert same_settings(there, again)
    assert again.drawn_from == there.drawn_from


def same_settings(one: Dataset, other: Dataset) -> bool:
    names = ("unit_key", "language", "self_hits", "filter_fields")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def loaded(run: Command, setting: str) -> None:
    assert run.err.count("error") == 0


def asked_about(run: Command, setting: str) -> None:
    assert len(Path("asked/queries.jsonl").read_text("utf-8").splitlines()) == 2


def imported(run: Command, setting: str) -> None:
    assert json.loads(run.out)["labels"] == 1


def judged(run: Command, setting: str) -> None:
    again = load_dataset("out")
    assert same_settings(load_dataset("data"), again)
    assert sum(map(len, again.qrels.values()))


READING: Mapping[str, tuple[Sequence[str], Callable[[Command, str], None]]] = {
    "score run": (
        ("score", "run", "made.run", "--dataset", "data", "--metrics", f"nDCG@{K}"),
        scored,
    ),
    "score audit": (("score", "audit", "made.run", "--dataset", "data", "--k", str(K)), audited),
    "data export": (("data", "export", "data", "--to", "beir", "--out", "out"), exported),
    "data load": (("data", "load", "data", "--into", "memory://here"), loaded),
    "label questions": (
        ("label", "questions", "log.csv", "--dataset", "data", "--n", "2", "--out", "asked"),
        asked_about,
    ),
    "label import": (("label", "import", "anna.txt", "--who", "anna", *LABEL), imported),
    "label export": (("label", "export", "--partly", "--out", "out", *LABEL), judged),
}
"""Commands that read files of runs, judgements or documents, and what shows that they went by the
dataset."""


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", READING)
def test_what_is_read_is_read_as_the_dataset_says(
    name: str, setting: str, run: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(here / "data", setting)
    add_memory_store(monkeypatch)
    (here / "log.csv").write_text("text,count\nwhat about topic1,3\nwhat about topic2,1\n")
    words, check = READING[name]
    if name.startswith("label") and name != "label questions":
        assert run(*POOL) == 0, run.err
        unit, first = ("p0", "q0") if setting == "unit_key" else ("p0#3", "q0")
        first = "p0#0" if setting == "self_hits" else first
        (here / "anna.txt").write_text(f"{first} 0 {unit} 1\n", encoding="utf-8")
        assert name == "label import" or run(*READING["label import"][0]) == 0, run.err
    assert run(*words, "--format", "json") == 0, run.err
    check(run, setting)


@pytest.mark.slow
def test_the_pool_of_a_file_is_one_of_what_is_judged(run: Command, here: Path) -> None:
    write_dataset(here / "data", "unit_key")
    pool = ("label", "pool", "made.run", "--dataset", "data", "--labels", "a.labels")
    assert run.json(*pool)["progress"]["pairs"] == N  # a page for each query
    write_dataset(here / "own" / "data", "self_hits")
    pool = ("label", "pool", "own/made.run", "--dataset", "own/data", "--labels", "b.labels")
    assert run.json(*pool)["progress"]["pairs"] == 3 * N  # all but the query itself


def test_who_judged_is_exported(run: Command, here: Path) -> None:
    write_dataset(here / "data", "drawn_from")
    with (here / "data/dataset.yaml").open("a") as file:
        file.write("judges: {anna: {kind: person, judgements: 10}}\n")
    assert run("data export data --to trec --out out") == 0
    assert load_dataset("out").judges == {"anna": "person"}
    assert load_dataset("out").drawn_from == 90
