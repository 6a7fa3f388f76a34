"""``submit`` and ``qa`` through the command line."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core import plugins
from retrieval_bench_exchange.formats.squad import paragraph_id
from tests.builders.files import json_lines, save, save_all
from tests.builders.guide import guide_page
from tests.cli.project import Command

pytestmark = pytest.mark.usefixtures("project", "hardly_warm")

OWN = '''
import re


def standalone(messages):
    """All turns of the user; thanks and greetings are unanswerable."""
    last = messages[-1]["content"]
    if "고마워" in last or "안녕" in last:
        return None
    return " ".join(turn["content"] for turn in messages if turn["role"] == "user")


def numbers(question, documents, n):
    """Every number of days, in the order of the documents."""
    pattern = re.compile(r"[0-9]+(?: days|일)")
    found = [
        {"text": hit[0], "document": document.id, "start": hit.start(), "end": hit.end()}
        for document in documents
        for hit in pattern.finditer(document.text)
    ]
    return found[:n] or None


def beyond(question, documents, n):
    return [{"text": "25 days", "document": documents[0].id, "start": 19, "end": 260}]


asked = []


def stopping(question, documents, n):
    """Ctrl-C at the third question; the first one is asked twice, to load what is loaded."""
    asked.append(question)
    if len(asked) == 4:
        raise KeyboardInterrupt
    return "25 days"


def nothing(text, k):
    raise ConnectionError("no route")
'''
ENGLISH = "Every employee has 25 days of paid leave a year."
KOREAN = "연차 휴가는 입사 후 1년이 지나면 15일이 주어집니다."


def question(name: str, text: str, *answers: tuple[str, int]) -> dict[str, Any]:
    golds = [{"text": answer, "answer_start": start} for answer, start in answers]
    return {"id": name, "question": text, "answers": golds, "is_impossible": not golds}


@pytest.fixture
def project(here: Path) -> Path:
    english = [
        question("s1", "How many days of leave are there?", ("25 days", 19)),
        question("s2", "Who founded the company?"),
    ]
    korean = [question("s3", "연차 휴가는 며칠입니까?", ("15일", 20))]
    paragraphs = [{"context": ENGLISH, "qas": english}, {"context": KOREAN, "qas": korean}]
    data = {"data": [{"title": "Holidays", "paragraphs": paragraphs}]}
    return save_all(here, {"own.py": OWN, "holidays/dev.json": json.dumps(data)})


def quoted(page: str) -> set[str]:
    """The words that stand in `code` in a page, outside of blocks."""
    text = re.sub(r"^```.*?^```$", "", guide_page(page), flags=re.MULTILINE | re.DOTALL)
    return {word for span in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", span)}


SUBMIT = ("lab", "submit", "--retriever", "bm25")
QA = ("score", "qa", "--retriever", "bm25", "--dataset", "holidays", "--split", "dev", "--k", "1")


class TestSubmit:
    def test_the_lines_are_those_of_the_competition(self, project: Path, run: Command) -> None:
        assert run(*SUBMIT, "--out", "s.jsonl", "--threshold", "none") == 0
        text = (project / "s.jsonl").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        assert [line["eval_id"] for line in lines] == list(range(1, 41))
        assert set(lines[0]) == {"eval_id", "standalone_query", "topk", "answer", "references"}
        assert set(lines[0]) <= quoted("science-ko.md")
        assert lines[0]["topk"][0] == "phy-01"
        assert "소리는 물속에서" in text
        assert all(len(line["topk"]) == len(line["references"]) <= 3 for line in lines)

    def test_the_table_shows_how_it_decides(self, run: Command) -> None:
        assert run(*SUBMIT, "-v") == 0
        for text in (
            "Submission: bm25 on science-ko-mini (test), k = 3",
            "When to return nothing: 20 held-out queries",
            "dev MAP",
            "MAP@3 (trec)",
            "all empty",
            "the submission, which returns nothing when the top score is below",
            "chosen by dev MAP on 20 dev queries (16 answerable, 4 unanswerable)",
            "MAP (scienceqa), held-out",
            "nDCG@3 (trec), all",
            "No file was written: name one with --out.",
        ):
            assert text in run.unwrapped

    def test_the_guide_shows_what_the_command_prints(self, run: Command) -> None:
        page = guide_page("science-ko.md")
        (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert run(*SUBMIT, "--messages", "joined", "-v") == 0
        printed = [" ".join(line.split()) for line in run.out.splitlines() if line.strip()]
        lines = [" ".join(line.split()) for line in shown.splitlines() if line.strip()]
        assert printed[: len(lines)] == lines
        assert printed[len(lines)].startswith("i It was chosen by dev MAP")

    @pytest.mark.slow
    def test_the_joined_conversation_finds_more(self, run: Command) -> None:
        found = {}
        for rule in ("last", "joined", "own.py:standalone"):
            document = run.json(*SUBMIT, "--messages", rule, "--threshold", "none")
            found[rule] = {one["metric"]: one["submitted"] for one in document["scores"]}
        assert found["joined"]["AP@3"] > found["last"]["AP@3"]
        assert found["own.py:standalone"]["AP@3"] > found["last"]["AP@3"]
        assert document["counts"]["no_search"] == 2

    def test_a_threshold_and_other_parameters(self, run: Command) -> None:
        arguments = ("--threshold", "4.5", "--set", "tokenizer=word", "--k", "5", "-v")
        assert run(*SUBMIT, *arguments) == 0
        assert "When to return nothing: 40 judged queries" in run.out
        assert "below 4.5" in run.out
        assert "k = 5" in run.out
        assert "! tokenizer 'word' keeps whole words" in run.unwrapped

    def test_dev_queries_from_a_file(self, project: Path, run: Command) -> None:
        (project / "dev.txt").write_text("1\n2\n3\n33\n34\n", encoding="utf-8")
        assert run(*SUBMIT, "--dev", "dev.txt") == 0
        assert "MAP of the held-out queries changes by" in run.unwrapped
        assert run(*SUBMIT, "--dev", "dev.txt", "-v") == 0
        assert "on 5 dev queries (3 answerable, 2 unanswerable)" in run.unwrapped
        assert "35 held-out queries" in run.out

    def test_without_judgements_the_file_is_written(self, project: Path, run: Command) -> None:
        asked = {"eval_id": 7, "msg": [{"role": "user", "content": "물은?"}]}
        documents = [{"docid": "d1", "content": "물은 100도에서 끓는다."}]
        files = {"documents.jsonl": json_lines(documents), "eval.jsonl": json_lines([asked])}
        save_all(project / "open", files)
        assert run(*SUBMIT, "--dataset", "open", "--out", "s.jsonl") == 0
        assert "not scored: the dataset has no judgements" in run.out
        line = json.loads((project / "s.jsonl").read_text(encoding="utf-8"))
        assert (line["eval_id"], line["topk"]) == (7, ["d1"])

    @pytest.mark.slow
    def test_every_search_failed(self, project: Path, run: Command) -> None:
        config = "name: own\ntarget: callable\nparams: {function: own.py:nothing}\n"
        save(project / "own.yaml", config)
        assert run("lab submit --retriever own.yaml --threshold none") == 4
        assert "empty: the search FAILED" in run.out
        assert "every search failed" in run.err

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--messages", "lst"), "did you mean last"),
            (("--messages", "own.py:missing"), "no 'missing'"),
            (("--threshold", "high"), "accepted: auto, none, or a score"),
            (("--out", "own.py"), "own.py is there already"),
            (("--out", "none/s.jsonl"), "no such folder"),
            (("--dev", "none.txt"), "none.txt: no such file"),
            (("--dev", "own.py", "--threshold", "none"), "with --threshold none"),
            (("--dataset", "nowhere"), "neither a known name nor a folder"),
            (("--k", "0"), "k = 0"),
        ],
    )
    def test_wrong_input_exits_with_2(
        self, run: Command, arguments: tuple[str, ...], says: str
    ) -> None:
        assert says in run.refused(*SUBMIT, *arguments)

    @pytest.mark.parametrize("command", ["lab submit", "score qa --reader own.py:numbers"])
    def test_a_file_that_is_there_is_told_before_any_work(self, run: Command, command: str) -> None:
        told = run.refused(f"{command} --retriever nobody --dataset nowhere --out own.py")
        assert "own.py is there already" in told

    def test_submissions_of_others_unknown_and_missing_ids_are_named_and_counted(
        self, project: Path, run: Command
    ) -> None:
        text = json_lines({"eval_id": i, "topk": ["phy-01"]} for i in (1, 2, 33, 901, "x"))
        save_all(project, {"s.jsonl": text, "twice.jsonl": text + text})
        arguments = "score run --run s.jsonl --dataset science-ko-mini"
        assert run(f"{arguments} --convention scienceqa") == 0
        assert "! 2 queries of the run unknown, not scored: 901, x" in run.unwrapped
        missing = "! 37 queries to score not in the run: in no mean, as scienceqa has it"
        assert f"{missing} (3, 4, 5, ...)" in run.unwrapped
        assert run("score run --run twice.jsonl --dataset science-ko-mini") == 2
        assert "twice.jsonl:6" in run.err


class TestQa:
    def test_retriever_and_reader_end_to_end(self, project: Path, run: Command) -> None:
        assert run(*QA, "--reader", "own.py:numbers", "--out", "answers.jsonl", "-v") == 0
        for text in (
            "Retriever bm25 on holidays (dev), k = 1",
            "success@1",
            "Reader own.py:numbers: texts of first answers, in percent",
            "Reader own.py:numbers: answer spans, k = 5, fractions from 0 to 1",
            "reader_top1_no_answer_accuracy",
            "Milliseconds for a question, by label",
            "read mean",
            "The answers were written to answers.jsonl.",
        ):
            assert text in run.unwrapped
        here = paragraph_id(ENGLISH)
        lines = (project / "answers.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(lines[0]) == {
            "id": "s1",
            "answers": [{"text": "25 days", "document": here, "start": 19, "end": 26}],
        }

    @pytest.mark.slow
    def test_saved_answers_score_the_same_here_and_by_the_reader_command(
        self, run: Command
    ) -> None:
        first = run.json(*QA, "--reader", "own.py:numbers", "--out", "a.jsonl")
        again = run.json(*QA, "--reader", "a.jsonl")
        assert again["readings"] == first["readings"]
        assert run(*QA, "--reader", "a.jsonl") == 0
        assert "The answers are from a file" in run.out
        again = run.json("score reader --gold holidays/dev.json --predictions a.jsonl")
        assert again["metrics"] == first["readings"]["all"]["metrics"]

    def test_the_retriever_alone(self, run: Command) -> None:
        document = run.json(*QA)
        assert document["reader"] is None
        assert document["readings"] == {}
        assert [one["metric"] for one in document["retrieval"]] == [
            "Success@1", "AP@1", "RR@1", "nDCG@1"
        ]  # fmt: skip
        assert {one["label"] for one in document["times_ms"]} == {"retrieved", "no answer"}

    def test_every_built_in_reader_is_in_the_guide_with_its_parameters(self) -> None:
        page = guide_page("qa.md")
        for name in plugins.BUILT_IN["reader"]:
            assert f"\n### {name}\n" in page
            built = plugins.resolve("reader", name)
            assert set(inspect.signature(built).parameters) <= quoted("qa.md")

    def test_predictions_for_unknown_questions_are_counted_and_named(
        self, project: Path, run: Command
    ) -> None:
        (project / "texts.json").write_text('{"s1": "25 days", "zz": "x"}', encoding="utf-8")
        assert run(*QA, "--reader", "texts.json") == 0
        assert "Milliseconds" not in run.out
        assert run(*QA, "--reader", "texts.json", "-v") == 0
        assert "1 prediction for unknown questions (not scored)" in run.out
        assert "not in the gold file, not scored: 1 (" in run.unwrapped
        assert "'zz'" in run.out
        assert "2 questions without a prediction (0 in the means)" in run.out

    def test_offsets_outside_the_passage_are_named(self, project: Path, run: Command) -> None:
        answers = [{"text": "25 days", "start": 190, "end": 197}]
        save(project / "far.jsonl", json_lines([{"id": "s1", "answers": answers}]))
        told = "far.jsonl:1: answers[0] has end 197, its passage has 48 characters"
        assert told in run.refused(*QA, "--reader", "far.jsonl")
        assert "question 's1'" in run.refused(*QA, "--reader", "own.py:beyond")
        assert "at 19 to 260" in run.err

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--reader", "nobody"), "huggingface"),
            (("--reader", "own.py:nobody"), "no 'nobody'"),
            (("--reader", "own.py:numbers", "--reader-set", "a=1"), "parameters for the function"),
            (("--reader-set", "a=1"), "--reader-set without --reader"),
            (("--out", "a.jsonl"), "--out without --reader"),
            (("--reader", "own.py:numbers", "--out", "own.py"), "is there already"),
            (("--reader", "own.py:numbers", "--answers", "0"), "0 answers"),
            (("--reader", "own.py:numbers", "--dataset", "science-mini", "--split", "test"),
             "has answers in its metadata"),
        ],
    )  # fmt: skip
    def test_wrong_input_exits_with_2(
        self, run: Command, arguments: tuple[str, ...], says: str
    ) -> None:
        assert says in run.refused(*QA, *arguments)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (SUBMIT, (" dev MAP ", " (trec) ", " submitted ")),
        ((*QA, "--reader", "own.py:numbers"), ("read mean",)),
    ],
    ids=["submit", "qa"],
)
def test_eighty_columns_are_enough(
    run: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run(*words, "-v")
    assert max(len(line) for line in run.out.splitlines() if line.startswith(" ")) <= 80
    assert all(name in run.unwrapped for name in shown)


class TestInterrupted:
    @pytest.mark.slow
    def test_answers_so_far_are_kept_and_can_be_scored(self, project: Path, run: Command) -> None:
        reader = ("--reader", "own.py:stopping", "--out", "answers.jsonl")
        assert run(*QA, *reader) == 130
        assert "interrupted: 2 of 3 questions were answered, nothing was scored" in run.err
        assert run.out == ""
        assert not (project / "answers.jsonl").exists()
        kept = (project / "answers.partial.jsonl").read_text(encoding="utf-8")
        assert [json.loads(line)["id"] for line in kept.splitlines()] == ["s1", "s2"]
        assert run(*QA, "--reader", "answers.partial.jsonl") == 0

    def test_an_earlier_part_is_not_overwritten(self, project: Path, run: Command) -> None:
        (project / "answers.partial.jsonl").write_text("mine", encoding="utf-8")
        assert run(*QA, "--reader", "own.py:stopping", "--out", "answers.jsonl") == 130
        assert "the answers: answers.partial-2.jsonl" in run.err
        assert (project / "answers.partial.jsonl").read_text(encoding="utf-8") == "mine"

    def test_without_a_file_it_says_that_nothing_is_left(self, run: Command) -> None:
        assert run(*QA, "--reader", "own.py:stopping") == 130
        assert "nothing was saved (with --out FILE the answers would be)" in run.err
