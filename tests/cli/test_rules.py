"""Truth by rule as a user sees it: measured, compared, explained, guarded and looked at."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from retrieval_bench.data import load_dataset
from retrieval_bench.metrics import parse_metric
from retrieval_bench.runs.find import find_runs
from retrieval_bench.runs.records import read_run
from retrieval_bench_load.engine.quality import Scorer
from tests.builders.files import save_all
from tests.cli.project import Command

SERVER = '''
from retrieval_bench import Capabilities, Ranking, Retriever, Usage

TEXTS = {
    1: ["You have 25 days of annual leave.", "DEPRECATED: 28 leave days", "trains are paid"],
    2: ["You have thirty days off.", "as of 2026: 28 leave days", "trains are paid"],
}
SOURCES = ["handbook/leave.md", "drafts/leave.md", "handbook/travel.md"]


class Server(Retriever):
    """Answers with texts and sources of its own; a new version keeps ids and order."""

    def __init__(self, *, version: int = 1, late: bool = False, fails: str = "-") -> None:
        self.version, self.late, self.fails = version, late, fails

    @property
    def capabilities(self):
        return Capabilities(external=True)

    def search(self, query, k):
        if query.text == self.fails:
            raise ValueError("it cannot be read")
        order = [0, 1, 2] if self.late or "train" not in query.text else [2, 0, 1]
        ids, texts, sources = (
            [of[at] for at in order][:k] for of in ("abc", TEXTS[self.version], SOURCES)
        )
        used = {"read": Usage(tokens_in=123)}
        return Ranking(list(ids), texts=texts, sources=sources, usage=used)

    def describe(self):
        return {"tokens": {"counted_as": "estimate"}}
'''

CASES = """
- q: how many days
  must_contain: ["Annual  LEAVE", "25 days"]
  files: ["handbook/*"]
  must_not: deprecated
- {q: trains, must_contain: trains, files: [travel.md], within: 1}
- {q: 기차표, contains_any: [기차, TRAINS]}
"""

POLICY = 'limits: {"SlotR@3": -0.01, Within: -0.001}\n'
QUICK = "--dataset cases --k 3 --no-pictures --rounds 1 --warm-up 0"


@pytest.fixture(autouse=True)
def project(here: Path) -> Path:
    files = {
        "own.py": SERVER,
        "v1.yaml": "name: v1\ntarget: own.py:Server\n",
        "v2.yaml": "name: v2\ntarget: own.py:Server\nparams: {version: 2}\n",
        "cases/dataset.yaml": "format: cases\nfiles: {queries: golden.yaml}\n",
        "cases/golden.yaml": CASES,
        "policy.yaml": POLICY,
    }
    return save_all(here, files)


def test_judging_documents_says_that_it_makes_another_dataset(run: Command) -> None:
    assert run(f"bench v1.yaml {QUICK}") == 0
    assert run("label pool @last") == 0
    assert "judgements of documents stand in their place" in run.unwrapped


def test_a_pipeline_is_measured_though_nobody_knows_what_its_parts_buy(
    run: Command, here: Path
) -> None:
    steps = "[{rewrite: own.py:loud}, {retrieve: {target: 'own.py:Server'}, depth: 3}]"
    save_all(here, {"pipe.yaml": f"name: pipe\ntarget: pipeline\nparams: {{steps: {steps}}}\n"})
    with (here / "own.py").open("a") as file:
        file.write("\n\ndef loud(text):\n    return text + '!'\n")
    assert run(f"bench pipe.yaml {QUICK}") == 0
    assert "pipe on cases: SlotR@3 1.000" in run.out
    assert "What its parts buy is not known: rules read texts" in run.unwrapped


def test_metrics_of_slots_are_listed(run: Command) -> None:
    named = {entry["name"] for entry in run.json("data list")["metrics"]}
    assert {"SlotR", "Clean", "Within", "nDCG"} <= named


def test_bench_tells_slots_and_forbidden_hits(run: Command) -> None:
    assert run(f"bench v1.yaml {QUICK} -v") == 0
    assert "Judged@" not in run.out  # nothing is judged
    assert run(f"bench v1.yaml {QUICK}") == 0
    assert "v1 on cases: SlotR@3 1.000" in run.out
    assert "1 of 1 query with `forbid` had a forbidden hit" in run.unwrapped
    assert 'q1: not any "deprecated" (at rank 2)' in run.unwrapped
    assert "Clean@3 0.667" in run.unwrapped
    assert "a query takes ~123 tokens in" in run.unwrapped  # an estimate
    assert "documents" not in run.unwrapped.partition("saved:")[0]


def test_bench_names_slots_that_stay_empty(run: Command) -> None:
    document = run.json(f"bench v2.yaml {QUICK}")
    assert document["slots"]["slots"] == 6
    assert document["slots"]["filled"] == 4
    lost = [(place["query_id"], place["slot"]) for place in document["slots"]["lost"]]
    assert lost == [("q1", 'any "Annual  LEAVE"'), ("q1", 'any "25 days"')]
    forbidden = document["slots"]["forbidden"]
    assert (forbidden["queries"], forbidden["with_hit"]) == (1, 0)
    assert forbidden["upper95"] == pytest.approx(0.95)
    assert list(document["metrics"])[:2] == ["SlotR@3", "AllSlots@3"]


def test_no_forbidden_is_an_exit_code(run: Command) -> None:
    assert run(f"bench v1.yaml {QUICK} --no-forbidden") == 1
    assert "v1: 1 of 1 query with `forbid` had a forbidden hit" in run.err
    assert run(f"bench v2.yaml {QUICK} --no-forbidden") == 0
    assert run(f"compare v1.yaml v2.yaml {QUICK} --no-forbidden") == 1
    assert run("bench bm25 --no-forbidden --no-pictures --rounds 1 --warm-up 0") == 4
    assert "--no-forbidden shows nothing of bm25: nothing is forbidden" in run.err


def test_no_forbidden_does_not_pass_where_queries_that_forbid_failed(run: Command) -> None:
    cases = "- {q: how many, must_not: deprecated}\n- {q: bad, must_not: x}\n- {q: c, file: '*'}\n"
    save_all(Path("cases"), {"golden.yaml": cases})
    Path("v2.yaml").write_text(
        "name: v2\ntarget: own.py:Server\nparams: {version: 2, fails: bad}\n"
    )
    assert run(f"bench v2.yaml {QUICK} --no-forbidden") == 4
    assert "does not know of v2: 1 query with `forbid` got no answer" in run.err
    assert "None of 1 query with `forbid` had a forbidden hit" in run.unwrapped
    assert "; 1 more got no answer" in run.unwrapped
    document = run.json(f"bench v2.yaml {QUICK}")
    assert document["slots"]["forbidden"]["upper95"] == pytest.approx(0.95)
    assert document["slots"]["forbidden"]["failed"] == 1
    assert document["slots"]["slots"] == 1
    assert run(f"compare v1.yaml v2.yaml {QUICK} --no-forbidden") == 1  # v1 had one
    told = run.refused(f"bench v2.yaml {QUICK} --no-forbidden --protocol tutorial")
    assert "--protocol with --no-forbidden" in told


def test_a_forbidden_hit_counts_for_more_than_what_could_not_be_measured(run: Command) -> None:
    assert run(f"bench v1.yaml {QUICK} --no-forbidden --no-leaks") == 1
    assert run(f"bench v2.yaml {QUICK} --no-forbidden --no-leaks") == 4
    broken = SERVER.replace("if query.text == self.fails", "if True")
    save_all(Path(), {"broken.py": broken, "v2.yaml": "name: v2\ntarget: broken.py:Server\n"})
    assert run(f"compare v1.yaml v2.yaml {QUICK} --no-forbidden") == 1
    assert "v1: 1 of 1 query with `forbid` had a forbidden hit" in run.err


def test_runs_are_compared_and_explained_slot_by_slot(run: Command) -> None:
    document = run.json(f"compare v1.yaml v2.yaml {QUICK}")
    (comparison,) = (one for one in document["comparisons"] if one["metric"] == "SlotR@3")
    assert comparison["difference"] == pytest.approx(-2 / 3 / 3)
    assert run("explain @last -v") == 0
    assert 'any "25 days" 1 1 -' in run.unwrapped
    assert 'not any "deprecated" -1 2 -' in run.unwrapped
    assert "won by v1 1" in run.unwrapped
    assert run("report @last --out page.html") == 0
    assert run("report --verify page.html") == 0


def test_a_query_that_failed_counts_0_also_where_nothing_was_to_stay_away(run: Command) -> None:
    Path("v1.yaml").write_text("name: v1\ntarget: own.py:Server\nparams: {fails: 기차표}\n")
    assert run(f"compare v1.yaml v2.yaml {QUICK}") == 0
    means = read_run(find_runs("v1@latest")[0]).evaluation.by_metric
    assert means["Clean@3"].mean == pytest.approx(1 / 3)  # q1 had a forbidden hit
    assert means["Within"].mean == pytest.approx(2 / 3)
    assert means["SlotR@3"].mean == pytest.approx(2 / 3)
    assert run("report @last --out page.html") == 0, run.err
    assert run("report --verify page.html") == 0, run.out


def test_regress_sees_a_text_that_changed_behind_the_same_id(run: Command) -> None:
    subject = "v1.yaml --dataset cases --k 3 --policy policy.yaml"
    assert run(f"baseline {subject}") == 0
    assert run(f"regress {subject}") == 0
    Path("v1.yaml").write_text("name: v1\ntarget: own.py:Server\nparams: {version: 2}\n")
    assert run(f"regress {subject}") != 0
    assert "SlotR@3" in run.out
    assert "all rankings are identical" not in run.unwrapped


def test_a_slot_that_comes_too_late_fails_a_gate_of_its_own(run: Command) -> None:
    cases = "".join(f"- {{q: train {n}, file: travel.md, within: 1}}\n" for n in range(8))
    save_all(Path("cases"), {"golden.yaml": cases})
    Path("policy.yaml").write_text("limits: {Within: -0.001}\n")
    subject = "v1.yaml --dataset cases --k 3 --policy policy.yaml"
    assert run(f"baseline {subject}") == 0
    Path("v1.yaml").write_text("name: v1\ntarget: own.py:Server\nparams: {late: true}\n")
    assert run(f"regress {subject}") == 1
    assert "Within" in run.out


def test_load_tells_no_quality_of_answers_whose_texts_are_gone() -> None:
    data = load_dataset("cases")
    assert Scorer(data.queries, data, parse_metric("SlotR@3"), 3).metric is None


def test_until_decided_decides_by_what_came_as_the_run_does(run: Command) -> None:
    with_corpus()
    measured = "compare v1.yaml v2.yaml --dataset cases --k 3 --no-pictures --until-decided"
    document = run.json(measured)
    (row,) = (one for one in document["comparisons"] if one["metric"] == "SlotR@3")
    assert row["difference"] == pytest.approx(-2 / 3 / 3)


def test_tune_decides_by_what_came(run: Command) -> None:
    with_corpus()
    Path("cases/golden.yaml").write_text(
        "".join(f"- {{q: days {n}, must_contain: [25 days, {n}]}}\n" for n in range(10))
    )
    document = run.json("tune v1.yaml --dataset cases --k 3 --grid version=[2,1] --metric SlotR@3")
    means = {row["values"].get("version", 1): row["tuning"] for row in document["settings"]}
    assert means == {1: pytest.approx(0.65), 2: pytest.approx(0.2)}  # 2, 5, 8; 0, 2, 6, 8


@pytest.mark.parametrize("how", ["rrf", "tuned-rrf"])
def test_fused_hits_are_decided_as_they_were_when_they_came(run: Command, how: str) -> None:
    cases = "".join(f"- {{q: days {n}, must_contain: 25 days, must_not: 2026}}\n" for n in range(8))
    Path("cases/golden.yaml").write_text(cases)
    assert run(f"bench v1.yaml {QUICK}") == 0
    assert run(f"bench v2.yaml {QUICK}") == 0
    document = run.json(f"compare v1@latest v2@latest --fuse {how}")
    assert any(how in f"{one['a']} {one['b']}" for one in document["comparisons"])
    fused = read_run(find_runs("@last")[-1])
    assert fused.name.startswith(how)
    means = fused.evaluation.by_metric
    assert means["SlotR@3"].mean == 1.0
    assert means["Clean@3"].mean == 1.0


def test_regress_needs_a_policy_for_slots(run: Command) -> None:
    Path("policy.yaml").write_text('limits: {"nDCG@3": -0.01}\n')
    told = run.refused("baseline v1.yaml --dataset cases --k 3 --policy policy.yaml")
    assert "metric nDCG@3 where truth is by rule" in told
    assert "policy.yaml" in told
    assert 'limits: {"SlotR@3": -0.01}' in told


def test_a_file_in_place_of_a_folder_is_told_what_to_write(run: Command) -> None:
    Path("questions.yaml").write_text('[{q: "red?", must_contain: [red]}]\n')
    told = run.refused("bench v1.yaml --dataset questions.yaml")
    assert (
        "do: if it holds questions and their truth, name its folder, with a dataset.yaml:" in told
    )
    lines = told.partition("dataset.yaml:\n")[2]
    Path("mine").mkdir()
    Path("mine", "questions.yaml").write_text(Path("questions.yaml").read_text())
    Path("mine", "dataset.yaml").write_text(textwrap.dedent(lines))
    assert run(f"bench v1.yaml --dataset mine {QUICK}") == 0


def test_the_policies_of_the_project_have_limits_of_slots(run: Command) -> None:
    assert run("baseline v1.yaml --dataset cases --policy quality") == 0
    assert run("regress v1.yaml --dataset cases --policy quality") == 0
    for name in ("SlotR@10", "MRR@10", "Clean@10"):
        assert name in run.out
    assert "nDCG" not in run.out


def test_metrics_of_documents_are_refused_before_anything_is_measured(run: Command) -> None:
    told = run.refused(f"bench v1.yaml {QUICK} --metrics nDCG@3 SlotR@3")
    assert "metric nDCG@3 where truth is by rule" in told
    told = run.refused("bench bm25 --metrics SlotR@10 Within")
    assert "metric SlotR@10 where documents are judged" in told


def test_doctor_says_how_cases_were_read(run: Command) -> None:
    assert run("doctor v1.yaml --dataset cases --k 3") == 0
    assert (
        "golden.yaml: 3 cases; question from 'q', phrases from 'must_contain', sources from 'files'"
        in run.unwrapped
    )
    assert "Truth is by rule: 6 slots to fill, 2 of them at an early rank" in run.unwrapped
    assert "1 rule for what must not come" in run.unwrapped
    assert "There is no corpus: phrases are looked for in the texts" in run.unwrapped
    assert "No hit of these answers came with a text" not in run.unwrapped


def test_doctor_says_that_no_phrase_can_be_looked_for(run: Command, here: Path) -> None:
    save_all(here, {"own.py": SERVER.replace("texts=texts, ", "")})
    assert run("doctor v1.yaml --dataset cases --k 3") == 0
    assert "No hit of these answers came with a text" in run.unwrapped
    assert run("bench v1.yaml --dataset cases") == 4
    assert "no hit came with a text" in run.err


def with_corpus() -> None:
    """A corpus beside the cases, in which other texts stand than come with hits."""
    save_all(
        Path("cases"),
        {
            "docs.jsonl": '{"id": "travel.md", "text": "trains are paid"}\n'
            + "".join(f'{{"id": "{name}", "text": "old"}}\n' for name in "abc"),
            "dataset.yaml": "format: cases\nfiles: {queries: golden.yaml, documents: docs.jsonl}\n",
        },
    )


def test_a_limit_deeper_than_what_is_asked_for_is_a_warning(run: Command) -> None:
    save_all(Path("cases"), {"golden.yaml": "- {q: a, file: travel.md, within: 3}\n"})
    told = '1 slot with `within` deeper than the 1 hit asked for (q1: source "travel.md" within 3)'
    assert run(f"bench v1.yaml {QUICK} --k 1") == 0
    assert told in run.unwrapped
    assert run("doctor v1.yaml --dataset cases --k 1") == 0
    assert told in run.unwrapped
    assert run("doctor v1.yaml --dataset cases --k 3") == 0
    assert "deeper than" not in run.unwrapped


def test_doctor_names_what_is_forbidden_and_cannot_come(run: Command) -> None:
    with_corpus()
    row = "- {q: a, must_contain: trains, must_not: depricated, forbid: {matches: 'is\\n+paid'}}\n"
    Path("cases/golden.yaml").write_text(row)
    assert run("doctor bm25 --dataset cases --k 3") == 0
    assert "2 rules of `forbid` that no document of the corpus meets" in run.unwrapped
    assert 'q1: not any "depricated"' in run.unwrapped
    assert "That may be what is wanted; if not, look at the spelling." in run.unwrapped
    Path("cases/golden.yaml").write_text(row.replace("+", ""))
    assert run("doctor bm25 --dataset cases --k 3") == 0
    assert "1 rule that no text can meet" in run.unwrapped


def test_doctor_names_rules_that_no_document_meets(run: Command) -> None:
    with_corpus()
    assert run("doctor bm25 --dataset cases --k 3") == 0
    assert "3 rules that no document of the corpus meets" in run.unwrapped
    assert 'q1: any "25 days"' in run.unwrapped


def test_a_hybrid_is_measured_with_what_its_parts_buy(run: Command) -> None:
    rows = ["annual leave is 25 days", "trains are paid", "sick leave"]
    docs = "".join(f'{{"id": "d{at}", "text": "{text}"}}\n' for at, text in enumerate(rows))
    legs = "[{target: bm25}, {target: bm25, params: {k1: 0.1}}]"
    save_all(
        Path("."),
        {
            "cases/docs.jsonl": docs,
            "cases/golden.yaml": "- {q: annual leave, must_contain: 25 days}\n"
            "- {q: trains, must_contain: paid}\n",
            "cases/dataset.yaml": "format: cases\n"
            "files: {queries: golden.yaml, documents: docs.jsonl}\n",
            "both.yaml": f"name: both\ntarget: hybrid\nparams: {{legs: {legs}}}\n",
        },
    )
    document = run.json(f"bench both.yaml {QUICK}")
    assert document["metrics"]["SlotR@3"]["mean"] == 1.0
    assert {"bm25", "bm25#2"} <= {row["name"] for row in document["ledger"]["parts"]}
