"""``label`` from nothing to a verdict, in a user's folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from retrieval_bench_labels.label import Label, Pair
from retrieval_bench_labels.queue import next_task
from retrieval_bench_labels.store import Store
from tests.cli.project import Command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hardly_warm")]

LONG = "name: long\ntarget: bm25\nparams: {k1: 2.5, b: 1.0}\n"
WORDS = "name: words\ntarget: bm25\nparams: {tokenizer: whitespace}\n"


@pytest.fixture(autouse=True)
def loose(project: Path) -> None:
    shutil.copytree(project / "data", project / "loose")
    shutil.rmtree(project / "loose" / "qrels")
    (project / "words.yaml").write_text(WORDS, encoding="utf-8")


def judge(grade: int = 2) -> None:
    """All of the pool, by anna."""
    (path,) = Path("results/labels").glob("*.sqlite")
    store = Store(path)
    pool = store.pool()
    digests = pool.digests()
    while (task := next_task(pool, store, "anna")) is not None:
        pairs = [Pair(task.query.id, doc) for doc in task.left]
        store.add_all([Label(pair, "anna", grade, digest=digests[pair]) for pair in pairs])


def test_from_nothing_to_figures_that_say_whose_they_are(run: Command) -> None:
    assert run("label pool bm25 words.yaml --dataset loose") == 0
    assert "next:  retrieval-bench label start" in run.out
    assert "saved: results/labels/loose.sqlite" in run.out
    assert run("label status") in (0, 3)  # lists may be the same
    judge()
    assert run("label status -v") == 3  # so few questions show nothing of others
    assert run.out.startswith("bm25 or words: can't tell which is better on questions like these")
    assert "questions themselves" in run.unwrapped
    assert "Judged by anna (person," in run.unwrapped
    assert "What each system brings" in run.out
    assert run("label export --out judged") == 0
    assert "--dataset judged" in run.out
    assert run("bench bm25 --dataset judged --rounds 1 --warm-up 0") == 0
    assert "judged by anna" in run.unwrapped
    assert run("bench bm25 --dataset judged --dry-run --format json") == 0
    assert run("label pool @last") == 0
    assert "judged already" in run.unwrapped


def test_compare_says_the_same_of_the_same_complete_judgements(run: Command) -> None:
    assert run("data export science-mini --to beir --out loose-mini") == 0
    shutil.move("loose-mini/qrels/test.tsv", "truth.tsv")
    shutil.rmtree("loose-mini/qrels")
    Path("loose-mini/dataset.yaml").write_text("format: beir\nname: mini\n", encoding="utf-8")
    Path("long.yaml").write_text(LONG, encoding="utf-8")
    systems = ("bm25", "words.yaml", "long.yaml")
    assert run("label pool", *systems, "--dataset", "loose-mini", "--depth", "5") == 0
    # Some of what is imported stands outside of the pool: it counts here as it does there.
    assert run("label import truth.tsv --who anna") == 0
    assert "outside of the pool" in run.unwrapped
    judge(0)
    decided = run("label status --format json")
    status = json.loads(run.out)
    assert run("label export --out judged") == 0
    once = ("--dataset", "judged", "--rounds", "1", "--warm-up", "0", "--metrics", "nDCG@5")
    rows = {
        (row["a"], row["b"]): row
        for row in run.json("compare", *systems, *once, "--k", "5")["comparisons"]
    }
    assert len(rows) == 3
    for pair in status["population"]["pairs"]:
        row = rows[pair["a"], pair["b"]]
        assert {name: pair[name] for name in row if name != "dataset"} == {
            name: row[name] for name in row if name != "dataset"
        }
    verdicts = {row["verdict"] for row in rows.values()}
    assert decided == (3 if verdicts & {"undecided", "unresolvable"} else 0)


def test_no_verdict_rests_on_queries_that_were_chosen_for_their_differences(run: Command) -> None:
    run("label pool bm25 words.yaml --dataset loose")
    judge()
    assert run("label export --out judged") == 0
    with Path("judged/dataset.yaml").open("a", encoding="utf-8") as file:
        file.write("drawn_from: 400\n")
    once = ("--dataset", "judged", "--rounds", "1", "--warm-up", "0")
    for command in ("baseline", "regress"):
        assert run(f"{command} bm25 --dataset judged") == 2
        assert "chosen by how much systems differ on them: the quality gate" in run.err
        assert "`retrieval-bench label status` has the verdict" in run.err
    until = "compare bm25 words.yaml --dataset judged --until-decided"
    assert "chosen by how much systems differ on them: --until-decided" in run.refused(until)
    assert run("compare bm25 words.yaml", *once, "--format", "json") == 4
    assert "`retrieval-bench label status` has the verdict" in run.err
    found = json.loads(run.out)
    assert {delta["verdict"] for delta in found["comparisons"]} == {"not comparable"}
    assert {delta["p"] for delta in found["comparisons"]} == {None}
    assert "of 400 queries are judged" in json.dumps(found["systems"][0]["warnings"])


def run_of_another_program() -> None:
    """A run that finds for every query what no other system does."""
    lines = [f"{query} Q0 d2 1 1.0 other\n" for query in ("q1", "q2", "q3", "질문")]
    Path("other.run").write_text("".join(lines), encoding="utf-8")


def test_a_pool_for_these_questions_says_nothing_of_others(run: Command) -> None:
    run_of_another_program()
    systems = ("bm25", "other.run", "--dataset", "loose", "--for", "split")
    assert run("label pool", *systems) == 0
    assert "speak of these very questions alone" in run.unwrapped
    assert run("label status") == 3
    assert run.out.startswith("other or bm25 on these 4 questions themselves: can't tell yet.")
    assert "questions like these until all is judged" not in run.out.splitlines()[0]
    found = run.json("label status", code=3)
    assert (found["population"], found["done"]) == (None, False)
    judge()
    run("label status")
    assert "on questions like these" in run.out.splitlines()[0]


def test_before_all_is_judged_questions_like_these_are_bet_on(run: Command) -> None:
    run_of_another_program()
    assert run("label pool bm25 other.run --dataset loose") == 0
    assert "plain random order" in run.unwrapped
    found = run.json("label status", code=3)["population"]
    assert found["complete"] is False
    assert found["labels_left"] > 0
    assert run("label status") == 3
    assert "labels are left in the pool" in run.unwrapped
    assert "betting, brackets 99.2 %" in run.unwrapped


def test_a_model_s_judgements_are_told_and_never_mixed_with_people_s(run: Command) -> None:
    run("label pool bm25 words.yaml --dataset loose")
    judge()
    shutil.copy("data/qrels/test.tsv", "model.tsv")
    assert run("label import model.tsv --who gpt --kind model") == 0
    assert "of gpt (model) added" in run.out
    status = run.json("label status", code=3)
    assert status["whose"]["anna"]["kind"] == "person"
    assert "gpt" not in status["whose"]
    assert status["models"]["gpt"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pool", "bm25"), "no dataset to pool from"),
        (("pool", "bm25", "--dataset", "loose", "--metric", "AP"), "with a cut-off up to 10"),
        (("pool", "bm25", "--dataset", "loose", "--metric", "P.1,5"), "this names P@1, P@5"),
        (("pool", "bm25", "--dataset", "loose", "--depth", "0"), "--depth 0"),
        (("pool", "bm25", "--dataset", "nowhere"), "neither a known name nor a folder"),
        (("status",), "label pool @last"),
        (("start", "--no-browser"), "label pool @last"),
        (("export", "--out", "x"), "label pool @last"),
        (("import", "no.txt"), "label pool @last"),
        (("status", "--labels", "words.yaml"), "cannot use the file of labels"),
        (("questions", "own.py:nothing", "--dataset", "loose", "--out", "x"), "no 'nothing' in"),
    ],
)
def test_bad_input_has_one_clear_message(
    run: Command, words: tuple[str, ...], message: str
) -> None:
    assert run("label", *words) == 2
    assert message in " ".join(run.err.split())


def test_guidelines_need_a_sentence_for_each_grade(run: Command) -> None:
    Path("g.yaml").write_text("0: no\n1: some\n", encoding="utf-8")
    words = "label pool bm25 --dataset loose --guidelines g.yaml"
    assert "a sentence for each of the four grades" in run.refused(words)
    Path("g.yaml").write_text("0: nothing\n1: some\n2: more\n3: all\n", encoding="utf-8")
    assert run(words) == 0
    (path,) = Path("results/labels").glob("*.sqlite")
    assert Store(path).pool().guidelines[2] == "more"


def test_runs_of_what_the_dataset_was_are_pooled_with_a_word(run: Command) -> None:
    once = ("--dataset", "loose", "--rounds", "1", "--warm-up", "0")
    assert run("compare bm25 words.yaml", *once) == 0
    assert run("label pool @last") == 0
    assert "measured before" not in run.unwrapped
    with Path("loose/corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"_id": "new", "title": "", "text": "another one"}\n')
    assert run("label pool @last") == 0
    assert "bm25 was measured before documents, queries or judgements" in run.unwrapped


def test_a_run_of_another_program_is_pooled(run: Command) -> None:
    assert run("bench bm25 --dataset loose --rounds 1 --warm-up 0") == 0
    (folder,) = Path("results/runs").glob("*-bm25-*")
    shutil.copy(folder / "run.trec", "other.run")
    assert run("label pool @last other.run") == 0
    assert "other" in run.out
    assert "The systems return the same" in run.unwrapped
