"""What ``doctor`` says of data, judgements, a retriever and the machine before a measurement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.reports.render import terminal
from retrieval_bench_doctor import doctor as module
from retrieval_bench_doctor.doctor import Check, Diagnosis, doctor
from retrieval_bench_doctor.tables.doctor import doctor_tables
from tests.builders.files import json_lines, save_all
from tests.cli.project import Command, make_project

UNTOLD = (
    "Pooling bias was not checked: 4 queries with hits were asked, 20 are needed. There is nothing "
    "to do, unless the judged documents were taken from the results of one system."
)
BUSY = "Other processes used 80 % of the cores: close them"


@pytest.fixture
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has no other tasks."""
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


def pooled(folder: Path, *, own: bool) -> None:
    """40 queries of four words. The retriever of the project puts the three documents first that
    have three of them, two of which are everywhere; a BM25 those that have the two rare ones.
    Judged is what one of the two returns, and the first of it is relevant."""
    documents, queries, rows = [], [], []
    for q in range(40):
        common, rare = f"alpha{q} common usual", f"alpha{q} beta{q}"
        documents += [{"_id": f"own{q}.{i}", "text": common} for i in range(3)]
        documents += [{"_id": f"bm{q}.{i}", "text": rare} for i in range(3)]
        queries.append({"_id": f"q{q}", "text": f"{common} beta{q}"})
        rows += [f"q{q}\t{'own' if own else 'bm'}{q}.{i}\t{int(not i)}\n" for i in range(3)]
    save_all(
        folder,
        {
            "corpus.jsonl": json_lines(documents),
            "queries.jsonl": json_lines(queries),
            "qrels/test.tsv": "query-id\tcorpus-id\tscore\n" + "".join(rows),
        },
    )


def remote(project: Path, more: str) -> None:
    """A config ``dear.yaml``, and a retriever that holds the corpus itself."""
    path = project / "own.py"
    text = path.read_text(encoding="utf-8")
    text += "\n\nclass Remote(Overlap):\n"
    text += "    capabilities = Capabilities(external=True)\n\n"
    text += "    def search(self, query, k):\n        return [('d1', 1.0)]\n"
    text = text.replace("import Retriever,", "import Capabilities, Retriever,")
    path.write_text(text, encoding="utf-8")
    target = "" if "target" in more else "target: own.py:Overlap\n"
    (project / "dear.yaml").write_text(f"name: dear\n{target}{more}", encoding="utf-8")


class TestData:
    def test_its_facts(self, project: Path) -> None:
        data = checks(doctor("own.yaml", "data"))["data"]
        assert data.facts == (
            "data (test): 4 documents, 4 evaluated queries, 0 unanswerable queries.",
        )

    def test_few_queries_are_a_warning(self, project: Path) -> None:
        few = checks(doctor("own.yaml", "data"))["data"].warnings
        assert any(text.startswith("With 4 queries only large differences") for text in few)
        many(project / "many", 60, {})
        assert checks(doctor("own.yaml", "many"))["data"].warnings == ()

    def test_what_the_data_warn_of_is_told_once(self, project: Path) -> None:
        many(project / "gap", 60, {"q0": "gone"})
        both = checks(doctor("own.yaml", "gap"))
        assert any("gone" in text or "not in the corpus" in text for text in both["data"].warnings)
        assert not set(both["data"].warnings) & set(both["retriever"].warnings)


class TestJudgements:
    def test_its_facts(self, project: Path) -> None:
        found = checks(doctor("own.yaml", "data"))["judgements"]
        assert found.facts == (
            "5 judgements (4 of grade 1, 1 of grade 2): 1.2 relevant documents a query.",
            "Judged@10 of own is 1.00 [0.40, 1.00] over 4 queries with hits.",
            UNTOLD,
        )
        assert found.figures is not None
        assert found.figures.counts.judgements == 5
        assert found.figures.copies is not None
        assert found.figures.copies.documents == 4

    def test_queries_without_a_relevant_document_are_a_warning(self, project: Path) -> None:
        qrels = project / "data" / "qrels" / "test.tsv"
        text = qrels.read_text(encoding="utf-8")
        qrels.write_text(text.replace("q2\td2\t1", "q2\td2\t0"), encoding="utf-8")
        warnings = checks(doctor("own.yaml", "data"))["judgements"].warnings
        (nothing,) = [text for text in warnings if "no relevant document" in text]
        assert nothing.startswith("1 evaluated query has no relevant document: it scores 0")
        assert nothing.endswith("or set `answerable: false` if there is no answer.")

    def test_sparse_judgements_are_a_warning(self, project: Path) -> None:
        many(project / "many", 60, {})
        (sparse,) = checks(doctor("own.yaml", "many"))["judgements"].warnings
        assert sparse.startswith("Judgements are sparse: the median query has 1")

    def test_where_nothing_is_judged_it_says_what_to_do(self, project: Path) -> None:
        (project / "data" / "qrels" / "test.tsv").unlink()
        (project / "data" / "qrels").rmdir()
        diagnosis = doctor("own.yaml", "data")
        found = checks(diagnosis)["judgements"]
        assert found.facts == ("No query has a judgement.",)
        (nothing,) = found.warnings
        assert nothing.startswith("Quality can't be measured.")
        assert checks(diagnosis)["data"].facts == ("data (test): 4 documents, 4 queries.",)
        assert diagnosis.next == "retrieval-bench label pool own.yaml bm25 --dataset data"
        assert doctor("bm25", "data").next.endswith("label pool bm25 dense-light --dataset data")
        assert diagnosis.answered
        assert not any("label pool" in text for text in checks(diagnosis)["data"].warnings)

    def test_a_pool_of_one_system_is_found(self, project: Path) -> None:
        pooled(project / "pooled", own=True)
        found = checks(doctor("own.yaml", "pooled", k=3))["judgements"]
        (favours,) = [text for text in found.warnings if "pooled from" in text]
        assert favours.startswith("The judgements look pooled from own alone: 100 % of the 120 ")
        assert "of plain bm25" in favours

    def test_a_pool_of_the_other_one_as_well(self, project: Path) -> None:
        pooled(project / "pooled", own=False)
        found = checks(doctor("own.yaml", "pooled", k=3))["judgements"]
        (favours,) = [text for text in found.warnings if "favours" in text]
        assert favours.startswith("The judgements look pooled from plain bm25 alone")

    def test_beside_a_bm25_stands_one_of_character_trigrams(self, project: Path) -> None:
        pooled(project / "pooled", own=True)
        found = checks(doctor("bm25", "pooled", k=3))["judgements"]
        assert found.figures is not None
        assert found.figures.pool is not None
        names = [one.retriever for one in found.figures.pool.judged]
        assert names == ["bm25", "bm25 on character trigrams"]

    def test_a_large_corpus_is_indexed_once(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pooled(project / "pooled", own=True)
        monkeypatch.setattr(module, "_LARGEST", 10)
        found = checks(doctor("own.yaml", "pooled", k=3))["judgements"]
        assert any("the corpus has more than 10 documents" in fact for fact in found.facts)

    def test_a_second_system_that_fails_costs_that_sentence_alone(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pooled(project / "pooled", own=True)
        monkeypatch.setattr(module, "_BM25", {"target": "own.py:Broken"})
        found = checks(doctor("own.yaml", "pooled", k=3))["judgements"]
        assert any("the system to compare with failed: indexing" in fact for fact in found.facts)


class TestRetriever:
    def test_it_was_built_indexed_and_asked(self, project: Path) -> None:
        diagnosis = doctor("own.yaml", "data")
        (fact,) = checks(diagnosis)["retriever"].facts
        assert fact.startswith("own was ready in ")
        assert fact.endswith("s and answered 4 of 4 queries with 5 hits.")
        assert diagnosis.answered

    def test_it_is_asked_some_of_many_queries(self, project: Path) -> None:
        many(project / "many", 250, {})
        (fact,) = checks(doctor("own.yaml", "many"))["retriever"].facts
        assert "answered 200 of 200 queries with 200 hits" in fact

    @pytest.mark.parametrize(
        "more", ["price: {calls: 0.01}\n", "rate_limit: 1000\n", "target: own.py:Remote\n"]
    )
    def test_what_may_cost_something_is_asked_five(self, project: Path, more: str) -> None:
        many(project / "many", 60, {})
        remote(project, more)
        (fact,) = checks(doctor("dear.yaml", "many"))["retriever"].facts
        assert "answered 5 of 5 queries" in fact
        (fact,) = checks(doctor("dear.yaml", "many", ask=7))["retriever"].facts
        assert "answered 7 of 7 queries" in fact

    def test_a_slow_one_is_asked_as_long_as_there_is_time(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        many(project / "many", 60, {})
        monkeypatch.setattr(module, "_ASKING_S", -1.0)
        (fact,) = checks(doctor("own.yaml", "many"))["retriever"].facts
        assert "answered 1 of 1 query with 1 hit" in fact
        (fact,) = checks(doctor("own.yaml", "many", ask=9))["retriever"].facts
        assert "answered 9 of 9 queries" in fact

    def test_the_sample_is_the_same_at_each_call(self, project: Path) -> None:
        many(project / "many", 60, {})
        first, second = (doctor("own.yaml", "many", ask=9).as_dict() for _ in range(2))
        assert first["checks"][1] == second["checks"][1]

    def test_no_query_cannot_be_asked(self, project: Path) -> None:
        with pytest.raises(HarnessError, match="ask = 0"):
            doctor("own.yaml", "data", ask=0)

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

    def test_it_is_about_what_was_looked_at(self, project: Path) -> None:
        """The split, the depth and the parameters of ``doctor`` are those of the measurement."""
        (project / "data/qrels/test.tsv").rename(project / "data/qrels/dev.tsv")
        found = doctor("bm25", "data", split="dev", k=3, overrides=["k1=1.5"])
        assert found.next == (
            "retrieval-bench bench bm25 --dataset data --split dev --k 3 --set k1=1.5"
        )


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
        assert run.err.splitlines() == ["retrieval-bench: indexing own ..."]

    def test_json_has_each_check(self, project: Path, run: Command) -> None:
        assert run("doctor", "own.yaml", "--dataset", "data", "--format", "json") == 0
        document: dict[str, Any] = json.loads(run.out)
        assert set(document) == {"schema_version", "checks", "answered", "next"}
        assert [check["subject"] for check in document["checks"]] == [
            *("data", "judgements", "retriever", "machine"),
        ]
        assert [set(one) - {"subject", "facts", "warnings"} for one in document["checks"]] == [
            *(set(), {"figures"}, set(), set()),
        ]
        assert document["checks"][1]["figures"]["counts"]["judgements"] == 5

    def test_how_many_queries_are_asked_can_be_said(self, project: Path, run: Command) -> None:
        assert run("doctor", "own.yaml", "--dataset", "data", "--ask", "2") == 0
        assert "answered 2 of 2 queries" in run.unwrapped

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
