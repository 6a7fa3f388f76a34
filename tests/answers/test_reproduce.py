"""Published numbers: the file format, one tolerance, and what is said where nothing is measured."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from retrieval_bench.core.config import load_retriever_config, validate
from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.data import load_dataset
from retrieval_bench.reports.render import markdown, terminal
from retrieval_bench_answers.outcomes import read_outcomes
from retrieval_bench_answers.reproduction import (
    Published,
    Reproduction,
    load_published,
    published_names,
    reproduce,
)
from retrieval_bench_answers.reproduction.answered import data_folder
from retrieval_bench_answers.reproduction.check import Status, status_of, worst_of
from retrieval_bench_answers.reproduction.published import (
    PublishedDataset,
    PublishedFigure,
    PublishedLists,
    PublishedOutcomes,
    PublishedSystem,
)
from retrieval_bench_answers.tables.reproduce import reproduce_tables
from retrieval_bench_pages import latex
from retrieval_bench_score.conventions import convention
from tests.builders import some
from tests.builders.files import json_lines, save, save_all
from tests.builders.guide import guide_page

QUERIES = [
    {"_id": "q1", "text": "alpha", "metadata": {"source": "one"}},
    {"_id": "q2", "text": "beta", "metadata": {"source": "two"}},
    {"_id": "q3", "text": "gamma", "metadata": {"source": "two"}},
]
DOCUMENTS = [{"_id": f"d{at}", "text": text} for at, text in enumerate(("alpha", "beta", "gamma"))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with one dataset, one run that misses a query, and records of outcomes."""
    run = "q1 Q0 d0 1 2.0 x\nq1 Q0 d1 2 1.0 x\nq2 Q0 d2 1 2.0 x\nq2 Q0 d1 2 1.0 x\n"
    records = [
        {"id": "1", "source": "one", "outcomes": {"a": "correct"}},
        {"id": "2", "source": "two", "outcomes": {"a": "correct"}},
        {"id": "3", "source": "two", "outcomes": {"a": "rejected"}},
    ]
    files = {
        "tiny/queries.jsonl": json_lines(QUERIES),
        "tiny/corpus.jsonl": json_lines(DOCUMENTS),
        "tiny/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td0\t1\nq2\td1\t1\nq3\td2\t1\n",
        "saved.trec": run,
        "records.jsonl": json_lines(records),
    }
    return save_all(tmp_path / "data", files)


def published(folder: Path, **changes: Any) -> Published:
    figure = {
        "name": "saved",
        "source": "a table",
        "dataset": "tiny",
        "system": "saved",
        "k": 3,
        "convention": "mala2025",
        "values": {"AP@3": 0.75},
    }
    content: dict[str, Any] = {
        "title": "A paper",
        "url": "https://example.org",
        "datasets": {
            "tiny": {"path": "tiny", "fingerprint": load_dataset(folder / "tiny").fingerprint},
            "lost": {"path": "lost", "fingerprint": "0" * 32},
            "secret": {},
        },
        "systems": {
            "saved": {"run": "saved.trec"},
            "bm25": {"retriever": "bm25"},
            "inline": {"retriever": {"target": "bm25s", "params": {"k1": 1.2}}},
            "missing": {"run": "nothing.trec"},
            "broken": {"retriever": "no-such-config"},
        },
        "figures": [{**figure, **changes}],
    }
    return validate(Published, content, where="test")


def checked(folder: Path | None, content: Published) -> Any:
    (figure,) = reproduce(content, folder).figures
    return figure


# -- tolerance -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "status"),
    [(0.5, "OK"), (0.502, "OK"), (0.498, "OK"), (0.5021, "CLOSE"), (0.49, "CLOSE"),
     (0.4899, "FAIL"), (0.511, "FAIL")],
)  # fmt: skip
def test_one_tolerance_for_all(measured: float, status: str) -> None:
    assert status_of(0.5, measured) == status


def test_a_run_is_scored_under_the_convention_of_the_figure(folder: Path) -> None:
    figure = checked(folder, published(folder))
    assert (figure.status, figure.measured, figure.n) == (Status.OK, 0.75, 2)
    assert figure.metric == "AP(norm=hits)@3"
    trec = checked(folder, published(folder, convention="trec", values={"AP@3": 0.5}))
    assert (trec.status, trec.n) == (Status.OK, 3)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["bm25", "inline"])
def test_a_retriever_is_run(folder: Path, system: str) -> None:
    figure = checked(folder, published(folder, system=system, values={"nDCG@3": 1.0}))
    assert (figure.status, figure.measured, figure.n) == (Status.OK, 1.0, 3)


def test_judgements_alone_are_enough_for_a_saved_run(folder: Path) -> None:
    content = published(folder).model_dump()
    judgements = folder / "tiny" / "qrels" / "test.tsv"
    digits = hashlib.sha256(judgements.read_bytes()).hexdigest()[:32]
    content["datasets"]["tiny"] = {"path": "tiny/qrels/test.tsv", "fingerprint": digits}
    figure = checked(folder, Published.model_validate(content))
    assert (figure.status, figure.measured) == (Status.OK, 0.75)
    judgements.write_text(judgements.read_text("utf-8") + "q3\td0\t0\n", encoding="utf-8")
    changed = checked(folder, Published.model_validate(content))
    assert (changed.status, changed.beside) == (Status.NOT_MEASURED, 0.75)
    assert "another dataset" in changed.reason
    content["figures"][0]["system"] = "bm25"
    figure = checked(folder, Published.model_validate(content))
    assert figure.status is Status.NOT_MEASURED
    assert "nothing to search" in figure.reason


# -- lists ---------------------------------------------------------------------------------------

FIRST = "q1 Q0 a 1 3.0 x\nq1 Q0 b 2 2.0 x\nq2 Q0 c 1 1.0 x\n"
SECOND = "q1 Q0 b 1 9.0 x\nq1 Q0 a 2 8.0 x\nq3 Q0 c 1 1.0 x\n"


def with_lists(folder: Path, run: str, fusion: dict[str, Any] | None = None) -> Any:
    """What a fusion of two runs gives beside ``run``: figures by what they measure."""
    legs = []
    for name, text in (("first", FIRST), ("second", SECOND)):
        path = save(folder / f"{name}.trec", text)
        legs.append({"name": name, "target": "trec_run", "params": {"path": str(path)}})
    (folder / "fused.trec").write_text(run, encoding="utf-8")
    params = {"legs": legs, "fusion": fusion or {"method": "rrf", "k": 60}}
    content = {
        "title": "t",
        "url": "u",
        "systems": {"rrf": {"retriever": {"target": "hybrid", "params": params}}},
        "lists": [{"name": "rrf", "source": "s", "run": "fused.trec", "system": "rrf"}],
    }
    found = reproduce(Published.model_validate(content), folder)
    return found, {one.metric: one for one in found.figures}


HIGH, LOW = 1 / 61 + 1 / 62, 1 / 61
FUSED = f"q1 Q0 a 1 {HIGH} x\nq1 Q0 b 2 {HIGH} x\nq2 Q0 c 1 {LOW} x\nq3 Q0 c 1 {LOW} x\n"


def test_published_lists_are_compared_document_by_document(folder: Path) -> None:
    found, figures = with_lists(folder, FUSED)
    assert figures["same lists"].status is figures["scores off"].status is Status.OK
    assert (figures["same lists"].measured, figures["same lists"].n) == (1.0, 3)
    assert figures["scores off"].measured == pytest.approx(0.0, abs=1e-12)
    assert "scores off: by how much" in terminal.plain(reproduce_tables(found))


@pytest.mark.slow
def test_another_constant_or_order_of_a_fusion_is_missed(folder: Path) -> None:
    _, figures = with_lists(folder, FUSED, {"method": "rrf", "k": 60, "base": 0})
    assert figures["same lists"].status is Status.OK
    assert figures["scores off"].status is Status.FAIL
    assert figures["scores off"].measured == pytest.approx(1 / 60 / LOW - 1)
    turned = FUSED.replace("q1 Q0 a 1", "q1 Q0 d 1")
    found, figures = with_lists(folder, turned)
    assert figures["same lists"].measured == pytest.approx(2 / 3)
    assert found.worst is Status.FAIL


def test_lists_without_scores_have_no_scores_to_compare(folder: Path) -> None:
    _, figures = with_lists(folder, json.dumps({"q1": ["a", "b"], "q2": ["c"]}))
    assert set(figures) == {"same lists"}
    assert figures["same lists"].status is Status.OK


def test_lists_that_cannot_be_compared_say_why(folder: Path) -> None:
    content = published(folder).model_dump()
    entry = {"name": "l", "source": "s", "run": "saved.trec", "system": "bm25"}
    content |= {"figures": [], "lists": [entry]}
    for changes, told in (({}, "has no corpus"), ({"run": "no.trec"}, "no no.trec in the folder")):
        content["lists"] = [{**entry, **changes}]
        found = reproduce(Published.model_validate(content), folder)
        assert found.worst is Status.NOT_MEASURED
        assert {one.metric for one in found.figures} == {"same lists", "scores off"}
        assert all(told in one.reason for one in found.figures)


# -- not measured --------------------------------------------------------------------------------


def test_another_system_or_a_missing_dataset_is_shown_beside_and_never_judged(folder: Path) -> None:
    figure = checked(folder, published(folder, dataset="lost", beside="tiny"))
    assert (figure.status, figure.measured, figure.beside) == (Status.NOT_MEASURED, None, 0.75)
    assert figure.reason == "no lost in the folder of BENCH_DATA; beside: on tiny"
    figure = checked(folder, published(folder, differs="another encoder"))
    assert (figure.status, figure.beside) == (Status.NOT_MEASURED, 0.75)
    assert figure.reason == "another encoder"


@pytest.mark.parametrize(
    ("fingerprint", "told"), [("1" * 32, "another dataset"), (None, "is not known")]
)
def test_another_fingerprint_is_shown_beside(
    folder: Path, fingerprint: str | None, told: str
) -> None:
    content = published(folder).model_dump()
    content["datasets"]["tiny"]["fingerprint"] = fingerprint
    figure = checked(folder, Published.model_validate(content))
    assert (figure.status, figure.beside) == (Status.NOT_MEASURED, 0.75)
    assert told in figure.reason


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"dataset": "secret"}, "secret is not public"),
        ({"system": "missing"}, "no nothing.trec in the folder"),
        ({"system": "broken"}, "unknown retriever 'no-such-config'"),
    ],
)
def test_what_is_missing_is_said(folder: Path, changes: dict[str, Any], told: str) -> None:
    figure = checked(folder, published(folder, **changes))
    assert (figure.status, figure.beside) == (Status.NOT_MEASURED, None)
    assert told in figure.reason


def test_ctrl_c_ends_it_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = [SimpleNamespace(summary=SimpleNamespace(status="partial"))]
    stopped = SimpleNamespace(run=lambda *args, **options: partial)
    monkeypatch.setattr(
        "retrieval_bench_answers.reproduction.answered.prepare", lambda *args, **options: stopped
    )
    with pytest.raises(KeyboardInterrupt):
        reproduce(published(folder, system="bm25"), folder)


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        ([], "NOT MEASURED"),
        (["NOT MEASURED"], "NOT MEASURED"),
        (["NOT MEASURED", "OK"], "OK"),
        (["OK", "CLOSE"], "CLOSE"),
        (["OK", "FAIL", "CLOSE", "NOT MEASURED"], "FAIL"),
    ],
)
def test_the_worst_status_counts_and_nothing_measured_is_not_fine(
    statuses: list[str], worst: str
) -> None:
    assert worst_of(map(Status, statuses)) == worst


def test_the_data_folder_must_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "no"))
    with pytest.raises(ConfigError, match="no folder"):
        data_folder()
    monkeypatch.delenv("BENCH_DATA")
    assert data_folder() is None


# -- outcomes and tables -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ({}, 2 / 3),
        ({"by": "source", "group": "two"}, 0.5),
        ({"by": "source", "group": "mean"}, 0.75),
    ],
)
def test_rates_of_labelled_answers_are_checked(
    folder: Path, where: dict[str, str], value: float
) -> None:
    entry = {"name": "a", "source": "s", "records": "records.jsonl", "system": "a", **where}
    content = published(folder).model_dump()
    content["outcomes"] = [{**entry, "values": {"accuracy": value}}]
    (outcome,) = reproduce(Published.model_validate(content), folder).outcomes
    assert outcome.status is Status.OK
    assert outcome.measured == pytest.approx(value)
    content["outcomes"][0]["system"] = "b"
    (outcome,) = reproduce(Published.model_validate(content), folder).outcomes
    assert outcome.status is Status.NOT_MEASURED
    assert "no accuracy of b" in outcome.reason


def test_records_that_cannot_be_read_are_told_with_what_to_do(folder: Path) -> None:
    (folder / "records.jsonl").write_text("", encoding="utf-8")
    content = published(folder).model_dump() | {
        "outcomes": [{**OUTCOME, "records": "records.jsonl"}]
    }
    (outcome,) = reproduce(Published.model_validate(content), folder).outcomes
    with pytest.raises(HarnessError) as caught:
        read_outcomes(folder / "records.jsonl")
    assert caught.value.fix
    assert outcome.reason == f"{caught.value.given} ({caught.value.fix})"


@pytest.fixture
def with_table(folder: Path) -> Reproduction:
    content = published(folder).model_dump()
    content["table"] = {
        "dataset": "tiny",
        "k": 3,
        "by": "source",
        "metrics": ["AP@3", "nDCG@3"],
        "conventions": ["mala2025", "trec"],
        "systems": ["saved", "bm25", "broken"],
    }
    content["remarks"] = ["What reproduces."]
    return reproduce(Published.model_validate(content), folder)


def test_systems_stand_side_by_side_by_group_and_convention(with_table: Reproduction) -> None:
    table = some(with_table.table)
    assert table.groups == ("one", "two", "all")
    rows = {(row.system, row.convention): row for row in table.rows}
    mala = rows["saved", "mala2025"]
    assert mala.means["AP(norm=hits)@3"] == {"one": 1.0, "two": 0.5, "all": 0.75}
    assert (mala.n, mala.missing) == ({"one": 1, "two": 1, "all": 2}, 1)
    trec = rows["saved", "trec"]
    assert trec.means["AP@3"] == {"one": 1.0, "two": 0.25, "all": 0.5}
    assert trec.n["all"] == 3
    assert rows["bm25", "trec"].means["nDCG@3"]["all"] == 1
    assert "no-such-config" in rows["broken", "trec"].reason


def test_the_screen_has_the_published_value_ours_and_what_it_means(
    with_table: Reproduction,
) -> None:
    text = terminal.plain(reproduce_tables(with_table))
    assert re.search(r"saved +MAP\(norm=hits\)@3 +0\.7500 +0\.7500 +2 +OK", text)
    assert re.search(r"published: saved +0\.7500", text)
    assert "Queries without a list are left out: saved 1." in text
    assert "Queries without a list are counted as 0: saved 1." in text
    assert text.rstrip().endswith("What reproduces.")


def test_a_table_on_data_that_are_not_here_says_so(folder: Path) -> None:
    content = published(folder).model_dump()
    content["table"] = {
        "dataset": "lost", "k": 3, "by": "source", "metrics": ["AP@3"],
        "conventions": ["trec"], "systems": ["bm25"],
    }  # fmt: skip
    found = reproduce(Published.model_validate(content), folder)
    assert "no table by group: no lost in the folder" in terminal.plain(reproduce_tables(found))
    # also where the table is all that there is
    content |= {"figures": [], "remarks": ["What reproduces."]}
    alone = reproduce_tables(reproduce(Published.model_validate(content), folder))
    for text in (terminal.plain(alone), markdown.render(alone), latex.render(alone)):
        for told in ("A paper", "no table by group: no lost in the folder", "What reproduces."):
            assert told in text


FIGURE: dict[str, Any] = {
    "name": "x", "source": "s", "dataset": "d", "system": "x", "k": 3, "values": {"AP": 0.5},
}  # fmt: skip
OUTCOME: dict[str, Any] = {
    "name": "x", "source": "s", "records": "r", "system": "x", "values": {"accuracy": 0.5},
}  # fmt: skip


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("figures", [{"name": "x"}], "figures"),
        ("systems", {"x": {}}, "give a retriever or a run"),
        ("systems", {"x": {"run": "a", "retriever": "b"}}, "give a retriever or a run"),
        ("surprise", 1, "surprise"),
        ("figures", [{**FIGURE, "values": {"AP": "much"}}], "values.AP"),
        ("figures", [{**FIGURE, "values": {}}], "values"),
        ("figures", [{**FIGURE, "values": {"AP": float("nan")}}], "values.AP"),
        ("figures", [{k: v for k, v in FIGURE.items() if k != "values"}], "values"),
        ("figures", [{**FIGURE, "k": 0}], "k"),
        ("figures", [{**FIGURE, "values": {"nCDG@3": 0.5}}], "nDCG"),
        ("figures", [{**FIGURE, "convention": "trek"}], "did you mean trec"),
        ("outcomes", [{**OUTCOME, "values": {"accurate": 0.5}}], "no rate 'accurate'"),
        ("outcomes", [{**OUTCOME, "by": "source"}], "give both"),
        ("figures", [{**FIGURE, "tolerance": 0.1}], "tolerance"),
        ("figures", [{**FIGURE, "dataset": "nowhere"}], "no dataset 'nowhere'"),
        ("lists", [{"name": "l", "source": "s", "run": "r", "system": "no"}], "no system 'no'"),
        ("lists", [{"name": "l", "source": "s", "system": "no"}], "lists.0.run"),
    ],
)
def test_faults_of_a_file_are_told(
    folder: Path, tmp_path: Path, key: str, value: Any, told: str
) -> None:
    content = {"title": "t", "url": "u", key: value}
    path = save(tmp_path / "mine.yaml", yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=told):
        load_published(str(path))


def test_a_figure_of_an_unknown_system_is_a_fault(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no system 'bm52'"):
        published(folder, system="bm52")


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    assert "mala2025" in published_names()
    with pytest.raises(ConfigError, match="did you mean mala2025"):
        load_published("mala2024")


def test_the_paper_of_2025_says_all_it_printed() -> None:
    paper = load_published("mala2025")
    values = {figure.name: figure.values for figure in paper.figures}
    assert values["sparse"] == {"AP@3": 0.724, "nDCG@3": 0.732}
    assert values["dense"] == {"AP@3": 0.768, "nDCG@3": 0.783}
    assert values["hybrid"] == {"AP@3": 0.897, "nDCG@3": 0.915}
    assert len(paper.outcomes) == 25
    assert some(paper.table).conventions == ["mala2025", "trec"]


@pytest.mark.parametrize("name", published_names())
def test_every_published_file_is_whole(name: str) -> None:
    paper = load_published(name)
    assert paper.figures or paper.lists or paper.outcomes
    for figure in paper.figures:
        convention(figure.convention).parse(list(figure.values))
        fingerprint = paper.datasets[figure.dataset].fingerprint
        assert figure.differs or figure.beside or re.fullmatch("[0-9a-f]{32}", fingerprint or "")
    for system in paper.systems.values():
        if isinstance(system.retriever, str):
            load_retriever_config(system.retriever)


def test_scifact_has_the_figures_and_what_makes_them() -> None:
    paper = load_published("scifact")
    values = {figure.name: figure.values["nDCG@10"] for figure in paper.figures}
    wanted = {"Anserini, flat": 0.6789, "bm25s": 0.676, "rank-bm25": 0.685, "MiniLM": 0.6451}
    assert wanted.items() <= values.items()
    assert all(figure.differs for figure in paper.figures if values[figure.name] > 0.7)


def test_every_field_of_a_file_is_in_the_guide() -> None:
    explained = set(re.findall(r"`(\w+)`", guide_page("reproduce.md")))
    models = (PublishedDataset, PublishedSystem, PublishedFigure, PublishedLists, PublishedOutcomes)
    for model in models:
        assert set(model.model_fields) <= explained, model


def test_the_example_of_the_guide_is_a_file_of_published_numbers() -> None:
    page = guide_page("reproduce.md")
    (example,) = re.findall(r"```{.yaml .published}\n(.*?)```", page, re.DOTALL)
    assert validate(Published, yaml.safe_load(example), where="guide").table is not None
