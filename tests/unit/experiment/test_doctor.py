"""What ``doctor`` says of the data, a retriever and the machine before they are measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.experiment import doctor as module
from retrieval_bench.experiment.doctor import Check, Diagnosis, doctor
from retrieval_bench.reports.render import terminal
from retrieval_bench.reports.tables.doctor import doctor_tables
from tests.builders.files import json_lines, save_all
from tests.cli.project import Command, make_project

BUSY = "Other processes used 80 % of the cores: close them"


@pytest.fixture
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is watched for no time, and has no other tasks."""
    monkeypatch.setattr(module, "_WATCHED_S", 0.0)
    monkeypatch.setattr(module, "disturbances", lambda *_, **__: [])


@pytest.fixture
def project(here: Path, quiet_machine: None) -> Path:
    return make_project(here)


def checks(diagnosis: Diagnosis) -> dict[str, Check]:
    return {check.subject: check for check in diagnosis.checks}


def many(folder: Path, n: int, qrels: Mapping[str, str]) -> None:
    """A dataset of ``n`` queries, each judged on the document that ``qrels`` says, or on d1."""
    rows = "".join(f"q{i}\t{qrels.get(f'q{i}', 'd1')}\t1\n" for i in range(n))
    save_all(
        folder,
        {
            "corpus.jsonl": json_lines([{"_id": "d1", "text": "red apples"}]),
            "queries.jsonl": json_lines({"_id": f"q{i}", "text": f"apples {i}"} for i in range(n)),
            "qrels/test.tsv": "query-id\tcorpus-id\tscore\n" + rows,
        },
    )


class TestData:
    def test_its_facts(self, project: Path) -> None:
        data = checks(doctor("own.yaml", "data"))["data"]
        assert data.facts == (
            "data (test): 4 documents, 4 evaluated queries, 0 unanswerable queries.",
            "5 judgements, 1.2 relevant documents a query.",
        )

    def test_few_queries_are_a_warning(self, project: Path) -> None:
        few = checks(doctor("own.yaml", "data"))["data"].warnings
        assert any(text.startswith("With 4 queries only large differences") for text in few)
        many(project / "many", 60, {})
        assert checks(doctor("own.yaml", "many"))["data"].warnings == ()

    def test_queries_without_a_relevant_document_are_a_warning(self, project: Path) -> None:
        qrels = project / "data" / "qrels" / "test.tsv"
        text = qrels.read_text(encoding="utf-8")
        qrels.write_text(text.replace("q2\td2\t1", "q2\td2\t0"), encoding="utf-8")
        warnings = checks(doctor("own.yaml", "data"))["data"].warnings
        assert any("1 evaluated query has no relevant document" in text for text in warnings)

    def test_what_the_data_warn_of_is_told_once(self, project: Path) -> None:
        many(project / "gap", 60, {"q0": "gone"})
        both = checks(doctor("own.yaml", "gap"))
        assert any("gone" in text or "not in the corpus" in text for text in both["data"].warnings)
        assert not set(both["data"].warnings) & set(both["retriever"].warnings)


class TestRetriever:
    def test_it_was_built_indexed_and_asked(self, project: Path) -> None:
        diagnosis = doctor("own.yaml", "data")
        (fact,) = checks(diagnosis)["retriever"].facts
        assert fact.startswith("own was ready in ")
        assert fact.endswith("s and answered 4 of 4 queries with 5 hits.")
        assert diagnosis.answered

    def test_it_is_asked_five_queries(self, project: Path) -> None:
        many(project / "many", 60, {})
        (fact,) = checks(doctor("own.yaml", "many"))["retriever"].facts
        assert "answered 5 of 5 queries with 5 hits" in fact

    def test_what_fails_is_counted_and_quoted(self, project: Path) -> None:
        diagnosis = doctor("own.yaml", "data", overrides=["fail_on=whales"])
        check = checks(diagnosis)["retriever"]
        assert "answered 3 of 4 queries" in check.facts[0]
        assert any("RuntimeError: cannot answer q2" in text for text in check.warnings)
        assert diagnosis.answered

    def test_one_that_answers_no_query_is_not_ready(self, project: Path) -> None:
        never(project)
        diagnosis = doctor("own.yaml", "data")
        assert not diagnosis.answered
        assert "answered 0 of 4 queries with 0 hits" in checks(diagnosis)["retriever"].facts[0]
        title = doctor_tables(diagnosis)[0].title
        assert title == "Not ready: the retriever answered no query."

    def test_faults_of_data_and_retriever_come_at_once(self, project: Path) -> None:
        with pytest.raises(HarnessError) as caught:
            doctor("bm52", "nowhere")
        assert "2 problems" in str(caught.value)

    def test_nothing_is_saved(self, project: Path) -> None:
        doctor("own.yaml", "data")
        assert not (project / "results").exists()


class TestMachine:
    def test_its_facts(self, project: Path) -> None:
        check = checks(doctor("own.yaml", "data"))["machine"]
        (fact,) = check.facts
        assert " cores" in fact
        assert "Python" in fact
        assert check.warnings == ()

    def test_what_disturbs_it_is_a_warning(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "disturbances", lambda *_, **__: [BUSY])
        diagnosis = doctor("own.yaml", "data")
        assert checks(diagnosis)["machine"].warnings == (BUSY,)
        assert diagnosis.n_warnings == sum(len(check.warnings) for check in diagnosis.checks)
        assert f"  !  {BUSY}\n" in terminal.plain(doctor_tables(diagnosis))


class TestNext:
    @pytest.mark.parametrize(
        ("retriever", "dataset", "command"),
        [
            ("own.yaml", "data", "retrieval-bench bench own.yaml --dataset data"),
            ("own.yaml", "my data", "retrieval-bench bench own.yaml --dataset 'my data'"),
        ],
    )
    def test_the_command_to_run_next_can_be_copied(
        self, project: Path, retriever: str, dataset: str, command: str
    ) -> None:
        if dataset != "data":
            (project / "data").rename(project / dataset)
        assert doctor(retriever, dataset).next == command


def diagnosis(*warnings: str, answered: bool = True) -> Diagnosis:
    data = Check("data", ("tiny (test): 4 documents.",), warnings)
    rest = (Check("retriever", ("bm25 was ready.",), ()), Check("machine", ("A CPU.",), ()))
    return Diagnosis((data, *rest), answered, "retrieval-bench bench bm25")


def test_the_answer_comes_first_then_a_block_for_each_check() -> None:
    assert terminal.plain(doctor_tables(diagnosis())) == (
        "Ready to measure.\n\ndata\n  tiny (test): 4 documents.\n\nretriever\n  bm25 was ready.\n\n"
        "machine\n  A CPU.\n  next:  retrieval-bench bench bm25\n"
        "  more:  retrieval-bench doctor --selftest (what a duet can see here, 2 min)\n"
    )


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (diagnosis("a"), "1 thing to know before you measure."),
        (diagnosis("a", "b"), "2 things to know before you measure."),
        (diagnosis("a", answered=False), "Not ready: the retriever answered no query."),
    ],
)
def test_the_answer_counts_what_to_know(given: Diagnosis, answer: str) -> None:
    assert doctor_tables(given)[0].title == answer


def never(project: Path) -> None:
    """Let the retriever of ``project`` fail on each query."""
    path = project / "own.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("if self.fail_on and", "if True or"), encoding="utf-8")


class TestCommand:
    @pytest.fixture
    def run(self, capsys: pytest.CaptureFixture[str]) -> Command:
        return Command(capsys)

    def test_it_looks_at_everything_and_says_what_to_run_next(
        self, project: Path, run: Command
    ) -> None:
        assert run("doctor", "own.yaml", "--dataset", "data") == 0
        for told in ("to know before you measure.", "data (test): 4 documents", "own was ready in",
                     "next: retrieval-bench bench own.yaml --dataset data"):  # fmt: skip
            assert told in run.unwrapped
        assert run.err.splitlines() == [
            "retrieval-bench: indexing own ...",
            "retrieval-bench: searching with own ...",
        ]

    def test_json_has_each_check(self, project: Path, run: Command) -> None:
        assert run("doctor", "own.yaml", "--dataset", "data", "--format", "json") == 0
        document: dict[str, Any] = json.loads(run.out)
        assert set(document) == {"schema_version", "checks", "answered", "next"}
        assert [check["subject"] for check in document["checks"]] == [
            *("data", "retriever", "machine"),
        ]
        assert all(set(one) == {"subject", "facts", "warnings"} for one in document["checks"])

    def test_a_retriever_that_answers_nothing_is_exit_4(self, project: Path, run: Command) -> None:
        never(project)
        assert run("doctor", "own.yaml", "--dataset", "data") == 4
        assert run.out.startswith("Not ready: the retriever answered no query.")

    def test_what_cannot_be_loaded_is_exit_2(self, project: Path, run: Command) -> None:
        assert run("doctor", "bm52", "--dataset", "data") == 2
        assert "did you mean bm25" in run.err

    def test_without_a_name_bm25_is_looked_at(self, project: Path, run: Command) -> None:
        assert run("doctor", "--dataset", "data") == 0
        assert "bm25 was ready in" in run.out
