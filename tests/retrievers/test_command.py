"""A program as a retriever: what it is asked, what is read, documents, and every way to fail."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench import bench
from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.calls.usage import collected
from retrieval_bench.core.errors import ConfigError, ContractError, HarnessError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.plugins import construct
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Document, Message, Query, Usage
from retrieval_bench.measure.deadline import QueryTimeoutError, deadline
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_retrievers.programs.command import Command
from tests.builders import faulty_program, some
from tests.builders.faulty_program import FAULTS, SHAPES, WRITTEN
from tests.builders.files import beir
from tests.builders.processes import alive, within

Asking = Callable[..., Command]
QUERY = Query("7", '물 & "air"?\n')
PYTHON = [sys.executable, "-I", "-S", "-c"]
QUICK = Protocol(rounds=2, warm_up_s=0.0)


@pytest.fixture
def asking() -> Iterator[Asking]:
    """Makes retrievers, of which no process may be left at the end."""
    made: list[Command] = []
    seen: set[int | None] = set()

    def make(*command: str, **params: Any) -> Command:
        given = list(command) or faulty_program.command()[:-3]
        retriever = construct("command", {"command": given, **params})
        assert isinstance(retriever, Command)
        made.append(retriever)
        search = retriever.search

        def searching(query: Query, k: int) -> Any:
            try:
                return search(query, k)
            finally:
                seen.add(retriever.server_pid())

        retriever.search = searching  # type: ignore[method-assign]
        return retriever

    yield make
    for retriever in made:
        seen.add(retriever.server_pid())
        retriever.close()
    assert not [pid for pid in seen if pid is not None and alive(pid)]


def answering(answer: Any) -> list[str]:
    """A program that answers whatever it is asked with ``answer``, with the id of the query."""
    code = (
        "import json, sys\n"
        f"answer = json.loads({json.dumps(answer)!r})\n"
        "for line in sys.stdin:\n"
        "    if isinstance(answer, dict): answer['id'] = json.loads(line)['id']\n"
        "    print(json.dumps(answer), flush=True)"
    )
    return [*PYTHON, code]


# --- what is sent and read


def test_a_query_is_a_line_and_so_is_its_answer(asking: Asking) -> None:
    code = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    hits = [{'id': line.strip()}]\n"
        "    print(json.dumps({'id': asked['id'], 'hits': hits}), flush=True)"
    )
    retriever = asking(*PYTHON, code)

    def sent(query: Query) -> Any:
        return json.loads(checked_ranking(retriever.search(query, 3), 3).doc_ids[0])

    assert sent(QUERY) == {"id": "7", "text": QUERY.text, "k": 3}
    whole = Query(
        "8",
        "and then?",
        (Message("user", "what?"), Message("user", "and then?")),
        {"lang": "ko"},
        parse_filter({"tenant": "a"}),
    )
    assert sent(whole) == {
        "id": "8",
        "text": "and then?",
        "k": 3,
        "filter": {"tenant": "a"},
        "messages": [
            {"role": "user", "content": "what?"},
            {"role": "user", "content": "and then?"},
        ],
        "metadata": {"lang": "ko"},
    }
    assert sent(Query("9", "half \ud83d a pair"))["text"] == "half ? a pair"


def test_all_that_an_answer_has_is_read(asking: Asking) -> None:
    answer = {
        "hits": [
            {"id": "a", "score": 2.5, "text": "연차", "source": "x.md"},
            {"id": 7, "score": 2},
            {"id": "c", "score": 1},
        ],
        "usage": {"tokens_in": 12, "money": 0.5},
        "server_ms": 1.25,
    }
    with collected() as used:
        ranking = asking(*answering(answer)).search(QUERY, 2)
    assert list(ranking) == [("a", 2.5), ("7", 2.0)], "what is beyond k is left out"
    assert ranking.texts == ["연차", None]
    assert ranking.sources == ["x.md", None]
    assert ranking.stages["server"] == 1_250_000
    assert set(ranking.stages) == {"start", "request", "server", "wrapper"}
    assert used() == Usage(12, 0, 1, 0.5)


def test_what_an_answer_leaves_out_is_not_there(asking: Asking) -> None:
    retriever = asking(*answering({"hits": [{"id": "a"}, {"id": "b"}]}))
    ranking = checked_ranking(retriever.search(QUERY, 5), 5)
    assert (ranking.doc_ids, ranking.scores, ranking.texts) == (["a", "b"], None, None)
    assert "start" not in retriever.search(QUERY, 5).stages
    assert list(asking(*answering({"hits": []})).search(QUERY, 5)) == []


@pytest.mark.parametrize(
    ("answer", "params"),
    [
        (
            {"found": {"docs": [{"doc": "a", "d": 0.1, "from": "x"}, {"doc": "b", "d": 0.3}]}},
            {"hits": "found.docs", "id": "doc", "score": "d", "source": "from"},
        ),
        ([["a", 0.1], ["b", 0.3]], {"ids": "[*][0]", "scores": "[*][1]"}),
    ],
)
def test_other_shapes_are_read_by_expressions(
    asking: Asking, answer: Any, params: dict[str, str]
) -> None:
    retriever = asking(*answering(answer), order="ascending", **params)
    ranking = retriever.search(QUERY, 2)
    assert list(ranking) == [("a", -0.1), ("b", -0.3)]
    assert ranking.sources == (["x", None] if "hits" in params else None)


def test_an_expression_may_stand_alone(asking: Asking) -> None:
    answer = {"rows": [{"id": "a", "score": 1}], "t": 0.002, "cost": 3}
    retriever = asking(
        *answering(answer), hits="rows", server_time={"s": "t"}, usage={"tokens_out": "cost"}
    )
    with collected() as used:
        ranking = retriever.search(QUERY, 2)
    assert list(ranking) == [("a", 1.0)]
    assert ranking.stages["server"] == 2_000_000
    assert used() == Usage(0, 3, 1)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"command": []}, "command = .."),
        ({"command": "node 'search"}, "No closing quotation"),
        ({"command": "no-such-program"}, "'no-such-program': No such file"),
        ({"cwd": "no-such-folder"}, "no folder"),
        ({"env": {"API_KEY": "abc"}}, "the variable 'API_KEY' in env stands in the config"),
        ({"command": ["cat", "--api-key", "sk-1"]}, "'--api-key' in the command stands in the"),
        ({"command": "cat --apiKey=sk-1"}, "'--apiKey' in the command stands in the config"),
        ({"command": ["env", "HF_TOKEN=hf_1", "cat"]}, "'HF_TOKEN' in the command stands"),
        ({"documents": "yes"}, "documents = 'yes'"),
        ({"documents": "stdin", "external": {"count": 3}}, "external beside documents"),
        ({"timeout_s": 0.0}, "timeout_s = 0"),
        ({"startup_s": float("inf")}, "startup_s = inf"),
        ({"order": "up"}, "order = 'up'"),
        ({"hits": "[?"}, "hits = .* is no JMESPath"),
        ({"hits": "a", "ids": "b"}, "how to read an answer"),
        ({"server_time": {"h": "t"}}, "server_time = "),
    ],
)
def test_parameters_that_do_not_fit_are_told(params: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        construct("command", {"command": "cat", **params}).use_k(3)
    assert "target command" in str(refused.value)


def test_it_runs_where_and_as_it_is_told(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_KEY", "s3cret-and-long")
    (tmp_path / "doc").write_text("a")
    script = 'echo It is ready; while read -r _; do echo "{\\"id\\": \\"7\\", \\"hits\\": '
    script += '[{\\"id\\": \\"$(cat doc)$N\\"}]}"; done'
    params = {"cwd": str(tmp_path), "env": {"N": 5}, "ready": "ready"}
    retriever = asking("sh", "-c", script, **params, external={"index": "docs", "count": 3})
    retriever.use_k(3)
    pid = retriever.server_pid()
    assert retriever.search(QUERY, 3).doc_ids == ["a5"]
    assert retriever.server_pid() == pid
    facts = retriever.describe()
    assert facts["external"] == {"index": "docs", "count": 3}
    assert (facts["starts"], facts["env_names"], facts["cwd"]) == (1, ["N"], str(tmp_path))
    assert facts["program_files"] == [str(tmp_path)], "the folder, where no file is named"
    (tmp_path / "a.mjs").touch()
    named = construct("command", {"command": ["node", "a.mjs"], "cwd": str(tmp_path)})
    assert named.describe()["program_files"] == [str(tmp_path / "a.mjs")]
    assert retriever.capabilities.external


# --- documents

INDEX = """
import json, os, sys
docs, given = [], os.environ.get("RETRIEVAL_BENCH_DOCUMENTS")
def say(message): print(json.dumps(message), flush=True)
if given:
    docs = [json.loads(line) for line in open(given, encoding="utf-8")]
    say({"documents": len(docs)})
for line in sys.stdin:
    m = json.loads(line)
    if "documents" in m: say({"documents": len(docs) - int(os.environ.get("LESS", 0))})
    elif "k" not in m: docs.append(m)
    elif m["text"] == "die": sys.exit(9)
    else: say({"id": m["id"], "hits": [{"id": d["id"]} for d in docs if m["text"] in d["text"]]})
"""
CORPUS = [
    Document("b", "두 번째 air", "Title", {"tenant": "a", "n": 1}),
    Document("a", "first\nair"),
    *(Document(f"c{at}", "filler") for at in range(600)),
]


@pytest.mark.parametrize("way", ["stdin", "file"])
def test_documents_are_handed_over_and_again_when_it_died(asking: Asking, way: str) -> None:
    retriever = asking(*PYTHON, INDEX, documents=way)
    assert not retriever.capabilities.external
    with pytest.raises(ContractError, match="before index"):
        retriever.search(QUERY, 3)
    done: list[tuple[int, int]] = []
    retriever.progress = lambda *at: done.append(at)
    retriever.index(CORPUS)
    assert retriever.search(Query("1", "air"), 3).doc_ids == ["b", "a"]
    assert not done or done[-1] == (602, 602)
    with pytest.raises(TransientError, match=r"ended .exit code 9"):
        retriever.search(Query("2", "die"), 3)
    assert retriever.search(Query("3", "air"), 3).doc_ids == ["b", "a"]
    assert "start" not in retriever.search(Query("3", "air"), 3).stages
    assert "started again once" in retriever.health([])[-1]
    retriever.index(CORPUS[1:])
    assert retriever.search(Query("4", "air"), 3).doc_ids == ["a"]


def test_a_program_says_how_many_documents_it_has(asking: Asking) -> None:
    retriever = asking(*PYTHON, INDEX, documents="stdin", env={"LESS": 1})
    with pytest.raises(ContractError, match=r'answered \{"documents": 601\} to 602 documents'):
        retriever.index(CORPUS)
    assert retriever.server_pid() is None
    silent = asking("cat", documents="file", startup_s=0.2)
    with pytest.raises(ConfigError, match=r"did not answer in time(.|\n)*raise `startup_s`"):
        silent.index(CORPUS)


# --- every way to fail


def again(retriever: Command) -> None:
    """The next good answer is that to its own query, whatever came before."""
    end = time.monotonic() + 60
    while True:
        try:
            ranking = retriever.search(Query("good", "air"), 3)
        except TransientError:  # on a machine that is busy with other things
            assert time.monotonic() < end
        else:
            assert ranking.doc_ids == ["d0", "d1", "d2"]
            return


def asked(fault: str) -> Query:
    return Query("7", "air", metadata={"fault": fault})


SLOW = ("hangs", "half", "drips", "no end", "late", "stopped")
DEAD = {
    "dies": r"exit code 3.; its stderr ends: out of luck",
    "killed": "SIGKILL",
    "segfault": "SIGSEGV",
    "aborted": "SIGABRT",
    "dies in a line": "in the middle of a line",
    "closes": "closed its output",
    "leaves a grandchild": "exit code 4",
    "flood": "exit code 5.; its stderr ends: .*19999",
}
UNFIT = {
    "endless": "wrote more than 2,000,000 bytes",
    "two": "more than one line",
    "storm": "more than one line|with the id None",
    "pretty": "more than one line",
    **dict.fromkeys(WRITTEN, "JSON|UTF-8|no object|with the id"),
    **{name: name.replace("hits.1.", "").partition(" ")[0].split(".")[0] for name in SHAPES},
}
"""What is read and no answer -> a word of its message."""

# The id of the second hit may be missing where the hit itself is no mapping.
UNFIT |= {name: "id" for name in SHAPES if name.startswith("hits.1 ")}


def test_the_table_has_two_hundred_faults() -> None:
    assert set(SLOW) | set(DEAD) | set(UNFIT) == set(FAULTS)
    assert len(SLOW) + 2 * len(DEAD) + 2 * len(UNFIT) >= 200


def test_what_is_no_answer_is_a_failed_call(asking: Asking) -> None:
    """One after the other, and a good answer after each."""
    retriever = asking(max_answer_mb=2)
    again(retriever)
    for fault, words in UNFIT.items():
        with pytest.raises(CallError, match=words) as failed:
            retriever.search(asked(fault), 3)
        assert failed.value.kind is Kind.OTHER, fault
        assert len(str(failed.value)) < 1_500, fault
        again(retriever)


@pytest.mark.parametrize("fault", sorted(UNFIT))
def test_where_nothing_was_ever_answered_the_run_ends_with_one_message(
    asking: Asking, fault: str
) -> None:
    with pytest.raises(HarnessError, match=UNFIT[fault]):
        asking(max_answer_mb=2).search(asked(fault), 3)


@pytest.mark.parametrize("fault", DEAD)
def test_a_death_is_a_failed_call_which_may_work_again(asking: Asking, fault: str) -> None:
    retriever = asking()
    again(retriever)
    with pytest.raises(TransientError, match=DEAD[fault]) as failed:
        retriever.search(asked(fault), 3)
    assert failed.value.kind is Kind.CONNECTION
    again(retriever)


@pytest.mark.parametrize("fault", DEAD)
def test_a_death_before_the_first_answer_ends_the_run(asking: Asking, fault: str) -> None:
    with pytest.raises(ConfigError, match=r"ended|closed its output") as failed:
        asking().search(asked(fault), 3)
    assert "out of luck" in str(failed.value) or fault != "dies"
    assert failed.value.args[0].count("warning") == (40 if fault == "flood" else 0)


@pytest.mark.parametrize("fault", SLOW)
def test_what_is_late_is_a_failed_call_and_never_the_next_answer(
    asking: Asking, fault: str
) -> None:
    retriever = asking(timeout_s=1.0)
    again(retriever)
    with pytest.raises(TransientError, match="in time") as failed:
        retriever.search(asked(fault), 3)
    assert failed.value.kind is Kind.TIMEOUT
    again(retriever)


def test_the_deadline_of_the_harness_starts_it_again(asking: Asking) -> None:
    retriever = asking()
    again(retriever)
    first = retriever.server_pid()
    with deadline(0.5) as timer:
        timer.arm()
        with pytest.raises(QueryTimeoutError):
            retriever.search(asked("half"), 3)
    assert retriever.server_pid() not in {first, None}
    again(retriever)


@pytest.mark.parametrize(("retry", "kind"), [(True, Kind.SERVER), (False, Kind.OTHER)])
def test_a_program_may_say_that_it_has_no_answer(asking: Asking, retry: bool, kind: Kind) -> None:
    answer = {"error": "색인이 없다", "retry": retry, "hits": []}
    with pytest.raises(CallError, match="answered an error: 색인이 없다") as failed:
        asking(*answering(answer)).search(QUERY, 3)
    assert failed.value.kind is kind


LOGS = """
import json, pathlib, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    late = asked["text"] == "log"
    if late:
        print("loading the model ...", flush=True)
        while not pathlib.Path("heard").exists():
            time.sleep(0.01)
    answer = {"found": [{"doc": "of " + asked["id"]}]} if "bare" in sys.argv else {
        "id": asked["id"], "hits": [{"id": "of " + asked["id"]}]}
    print(json.dumps(answer), flush=True)
    if late:
        pathlib.Path("answered").touch()
"""


@pytest.mark.parametrize("bare", [True, False])
def test_a_line_too_many_never_moves_answers_to_other_queries(
    asking: Asking, here: Path, bare: bool
) -> None:
    params = {"hits": "found", "id": "doc"} if bare else {}
    retriever = asking(*PYTHON, LOGS, *(["bare"] if bare else []), **params)
    assert retriever.search(Query("1", "air"), 3).doc_ids == ["of 1"]
    pid = some(retriever.server_pid())
    with pytest.raises(CallError, match="no JSON: loading the model"):
        retriever.search(Query("2", "log"), 3)
    (here / "heard").touch()
    assert within(60, lambda: (here / "answered").exists() or not alive(pid))
    for at in ("3", "4"):
        assert retriever.search(Query(at, "air"), 3).doc_ids == [f"of {at}"]
    assert "started again once" in retriever.health([])[-1]


def test_an_answer_that_says_whose_it_is_is_no_reason_to_start_again(asking: Asking) -> None:
    retriever = asking()
    again(retriever)
    pid = retriever.server_pid()
    with pytest.raises(CallError):
        retriever.search(asked("hits.1.id missing"), 3)
    assert retriever.server_pid() == pid


def test_an_id_of_the_answers_own_is_none_of_a_query(asking: Asking) -> None:
    code = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    text = json.loads(line)['text']\n"
        "    print(json.dumps({'id': text, 'data': [{'doc': 'a'}]}), flush=True)"
    )
    retriever = asking(*PYTHON, code, hits="data", id="doc")
    assert retriever.search(Query("q1", "req-1"), 3).doc_ids == ["a"]
    assert retriever.search(Query("q2", "req-2"), 3).doc_ids == ["a"]
    with pytest.raises(CallError, match="with the id 'q1' where 'q3' was asked"):
        retriever.search(Query("q3", "q1"), 3)


def test_equal_scores_keep_the_order_of_the_answer(asking: Asking) -> None:
    hits = [{"id": "c", "score": 2}, {"id": "b", "score": 1}, {"id": "a", "score": 1}]
    ranking = checked_ranking(asking(*answering({"hits": hits})).search(QUERY, 3), 3)
    assert ranking.doc_ids == ["c", "b", "a"]
    no_ties = asking(*answering({"hits": hits[:2]})).search(QUERY, 3)
    assert no_ties.order is None


def test_a_program_that_stops_reading_is_told_with_what_it_was_handed(asking: Asking) -> None:
    corpus = [Document(f"d{at}", "x" * 1000) for at in range(600)]
    retriever = asking("sleep", "60", documents="stdin", startup_s=0.2)
    with pytest.raises(ConfigError, match=r'in time for 0\.2 s, after 256 (.|\n)*"documents": N'):
        retriever.index(corpus)


def test_a_run_counts_what_failed_and_goes_on(tmp_path: Path) -> None:
    corpus = {f"d{at}": f"text {at}" for at in range(5)}
    queries = {"good": "air", "bad": "air"}
    beir(tmp_path, corpus, queries, [("good", "d0", 1), ("bad", "d0", 1)])
    lines = (tmp_path / "queries.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        row["metadata"] = {"fault": "invalid byte"} if row["_id"] == "bad" else {}
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    params = {"command": faulty_program.command()[:-3]}
    run = bench({"target": "command", "params": params}, tmp_path, k=3, protocol=QUICK).run
    statuses = dict(zip(run.rankings.query_ids, run.status, strict=True))
    assert statuses["good"] == "ok"
    assert "CallError: the program answered what is no UTF-8: byte 0xff" in statuses["bad"]
