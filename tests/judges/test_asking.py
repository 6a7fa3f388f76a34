"""A judge that is asked: resumed where it stopped, no dearer than allowed, every answer kept."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.errors import ConfigError, HarnessError, PluginError
from retrieval_bench.core.types import Document
from retrieval_bench_judges.asking import Asked, ask_judge
from retrieval_bench_judges.fit import fits_of
from retrieval_bench_judges.judges import Answer, RefusedError, Source, judge_of, read_completion
from retrieval_bench_labels.label import GUIDELINES, Kind
from retrieval_bench_labels.store import Store
from tests.builders.judged import label_all
from tests.builders.labels import make_pool, make_store, said


def _asked(store: Store, answer: Callable[[str, Document], Answer], **how: Any) -> Asked:
    return ask_judge(store, "gpt", Source(answer, {"model": "small"}), **how)


def _one(_query: str, document: Document) -> Answer:
    return Answer(1, f"raw of {document.id}", 100.0, 0.25)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "labels.sqlite", make_pool(4, 3))


def test_every_answer_is_kept_as_it_came_and_nothing_is_asked_twice(store: Store) -> None:
    made = _asked(store, _one, workers=3)
    assert (made.asked, made.labels, made.left, made.cost, made.tokens) == (12, 12, 0, 3.0, 1200.0)
    with store._open() as base:
        kept = [row[0] for row in base.execute("SELECT answer FROM calls ORDER BY doc")]
    assert kept == sorted(f"raw of {pair.doc_id}" for pair in store.pool().pairs)
    assert {label.kind for label in store.labels()} == {Kind.MODEL}
    assert _asked(store, _one).asked == 0
    assert store.fact("judges")["gpt"] == {
        "model": "small", "prompted": [], "labels": 12, "answered": 12, "again": 0, "same": 0,
        "tokens": 1200.0, "cost": 3.0,
    }  # fmt: skip


@pytest.mark.parametrize("workers", [1, 4])
def test_no_call_is_made_that_might_cost_more_than_allowed(store: Store, workers: int) -> None:
    made = _asked(store, _one, max_cost=1.1, workers=workers)
    assert (made.asked, made.left, made.cost) == (4, 8, 1.0)
    assert "might spend more than 1.1" in made.stopped
    assert _asked(store, _one, max_cost=1.1).asked == 0
    assert _asked(store, _one, max_cost=3.0).left == 0


def test_a_call_that_was_refused_cost_nothing_and_where_nothing_may_be_spent_none_is_made(
    store: Store,
) -> None:
    def refuses(_query: str, _document: Document) -> Answer:
        raise RefusedError("HTTP 401")

    assert (_asked(store, _one, max_cost=0.0).calls, len(store.labels())) == (0, 0)
    _asked(store, _one, max_cost=1.0)
    with pytest.raises(HarnessError, match="401"):
        _asked(store, refuses, workers=3)
    made = _asked(store, _one, max_cost=1.0)
    assert (made.calls, made.cut_off, made.cost) == (4, 0, 1.0)


def test_a_limit_of_cost_needs_a_judge_that_reports_what_it_costs(store: Store) -> None:
    with pytest.raises(ConfigError, match="reports no cost"):
        _asked(store, lambda _q, _d: Answer(1, "1"), max_cost=1.0)
    assert len(store.labels()) == 1


def test_an_answer_without_a_grade_is_kept_and_not_asked_for_again(store: Store) -> None:
    made = _asked(store, lambda _q, d: Answer(None if d.id == "d0-0" else 2, "who knows"))
    assert (made.labels, made.unread, made.left) == (11, 1, 0)
    assert _asked(store, _one).asked == 0


def test_what_was_answered_before_a_failure_stays(store: Store) -> None:
    def fails(query: str, document: Document) -> Answer:
        if document.id == "d1-1":
            raise HarnessError("no route")
        return _one(query, document)

    with pytest.raises(HarnessError, match="no route"):
        _asked(store, fails)
    assert len(store.labels()) == 4
    made = _asked(store, _one)
    assert (made.asked, made.calls, made.cut_off, made.cost) == (8, 13, 1, 13 * 0.25)


def test_asked_again_the_first_answer_counts_and_the_second_is_held_against_it(
    store: Store,
) -> None:
    grades = iter([1] * 12 + [1, 1, 1, 0])
    made = _asked(store, lambda _q, _d: Answer(next(grades), "raw"), again=4)
    assert (made.asked, made.labels, made.left, made.calls) == (16, 12, 0, 16)
    assert {label.grade for label in store.labels()} == {1}
    facts = store.fact("judges")["gpt"]
    assert (facts["again"], facts["same"]) == (4, 3)
    assert _asked(store, _one, again=4).asked == 0
    assert fits_of(store)[0].consistent == 0.75


def test_what_an_answer_costs_is_of_those_that_were_given_not_of_labels_of_a_file(
    store: Store,
) -> None:
    label_all(store, "gpt", Kind.MODEL, lambda _q, d: 1 if d < "d2" else None)
    assert _asked(store, _one).asked == 6
    assert (fits_of(store)[0].tokens, fits_of(store)[0].cost) == (100.0, 0.25)


def test_two_answers_without_a_grade_are_no_grade_twice(store: Store) -> None:
    _asked(store, lambda _q, d: Answer(None if d.id < "d2" else 1, "raw"), again=12)
    facts = store.fact("judges")["gpt"]
    assert (facts["again"], facts["same"]) == (6, 6)


def test_a_name_keeps_its_prompt_its_model_and_the_queries_of_its_prompt(store: Store) -> None:
    asked = Source(_one, {"source": "a.yaml", "model": "small", "prompt": "{query}"})
    ask_judge(store, "gpt", asked, prompted=["q1"], max_cost=1.0)
    made = ask_judge(store, "gpt", asked, prompted=["q0"], max_cost=1.0)
    assert (made.asked, store.fact("judges")["gpt"]["prompted"]) == (0, ["q0", "q1"])
    for key in ("model", "prompt"):
        with pytest.raises(ConfigError, match=f"of another {key}"):
            ask_judge(store, "gpt", Source(_one, {**asked.facts, key: "other"}))
    assert store.fact("judges")["gpt"]["model"] == "small"


def test_a_name_of_a_person_and_a_query_that_is_not_pooled_are_refused(store: Store) -> None:
    with pytest.raises(ConfigError, match="query 'q9' is not in the pool"):
        _asked(store, _one, prompted=["q9"])
    store.add(said(store.pool(), "q0", "d0-0", "gpt", 1))
    with pytest.raises(ConfigError, match="name of a person"):
        _asked(store, _one)


def test_a_text_that_changed_is_asked_about_again(store: Store) -> None:
    from tests.builders.labels import changed_text

    _asked(store, _one)
    store.put_pool(changed_text(store.pool(), "d2-1", "다른 글이다"))
    assert _asked(store, _one).asked == 1


FUNCTION = "def grade(query, document):\n    return {!r}\n"


@pytest.mark.parametrize(
    ("given", "grade"), [(2, 2), (None, None), ({"grade": 0, "tokens": 5, "answer": "no"}, 0)]
)
def test_a_function_gives_a_grade_or_more(tmp_path: Path, given: Any, grade: int | None) -> None:
    (tmp_path / "own.py").write_text(FUNCTION.format(given), encoding="utf-8")
    ask = judge_of(f"{tmp_path}/own.py:grade", GUIDELINES).ask
    assert ask("질문", Document("d", "글")).grade == grade


def test_numbers_of_numpy_are_taken(tmp_path: Path) -> None:
    given = '{"grade": np.int64(2), "tokens": np.int64(7), "cost": np.float32(0.5)}'
    code = f"import numpy as np\ndef grade(query, document):\n    return {given}\n"
    (tmp_path / "own.py").write_text(code, encoding="utf-8")
    ask = judge_of(f"{tmp_path}/own.py:grade", GUIDELINES).ask
    assert ask("q", Document("d", "text")) == Answer(2, "2", 7.0, 0.5)


def test_a_function_that_gives_something_else_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FUNCTION.format(7), encoding="utf-8")
    ask = judge_of(f"{tmp_path}/own.py:grade", GUIDELINES).ask
    with pytest.raises(PluginError, match="gave the grade 7"):
        ask("q", Document("d", "text"))


@pytest.mark.parametrize(
    ("said_", "grade"),
    [
        ("2", 2),
        ("Grade: 3.", 3),
        ('{"grade": 1, "why": "2 of 3"}', 1),
        ("관련 있음: 2", 2),
        ("between 1 and 2, so 2", None),
        ("2/3", None),
        ("1 out of 3", None),
        ("1 (on a scale from 0 to 3)", None),
        ("0-3", None),
        ("-1", None),
        ('```json\n{"grade": 0, "reason": "covers 1 of 3 points"}\n```', 0),
        ('{"grade": "0", "reason": "see 3"}', 0),
        ('{"grade": null, "reason": "on page 2"}', None),
        ('{"grade": 2.0}', 2),
        ("**Grade:** 2\nIt tells of World War 2 and 3 battles", 2),
        ("Grade: 2/3", None),
        ("2점", 2),
        ("10", None),
        ("none", None),
        ('{"grade": 9}', None),
        ("0.5", None),
    ],
)
def test_the_grade_is_read_in_what_a_model_says(said_: str, grade: int | None) -> None:
    raw = json.dumps({"choices": [{"message": {"content": said_}}]})
    assert read_completion(raw, {}).grade == grade


def test_tokens_and_cost_come_from_the_usage_and_the_price() -> None:
    body = {
        "choices": [{"message": {"content": "1"}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000},
    }
    answer = read_completion(json.dumps(body), {"prompt": 1.0, "completion": 10.0})
    assert answer.tokens == 1000.0
    assert answer.cost == pytest.approx(0.0019)
    assert read_completion("<html>", {}) == Answer(None, "<html>")


@contextmanager
def _service(statuses: list[int]) -> Iterator[tuple[str, list[Any]]]:
    """An endpoint that answers with ``statuses`` in turn, then well; and what it was sent."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.headers["Authorization"], body))
            self.send_response(statuses.pop(0) if statuses else 200)
            self.send_header("Retry-After", "7")
            self.end_headers()
            self.wfile.write(b'{"choices": [{"message": {"content": "3"}}]}')

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


YAML = 'url: {}\nmodel: small\nheaders: {{Authorization: "Bearer ${{JUDGE_KEY}}"}}\n'


def test_an_endpoint_is_asked_with_the_key_and_a_throttled_call_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "hush-hush-hush")
    waited: list[float] = []
    monkeypatch.setattr("retrieval_bench_judges.judges.time.sleep", waited.append)
    with _service([429, 503]) as (url, got):
        (tmp_path / "judge.yaml").write_text(YAML.format(url), encoding="utf-8")
        source = judge_of(f"{tmp_path}/judge.yaml", GUIDELINES)
        assert source.ask("수도는?", Document("d", "파리 {query}", "제목")).grade == 3
    assert waited == [7.0, 7.0]
    (_, _, (key, body)) = got
    assert key == "Bearer hush-hush-hush"
    (message,) = body["messages"]
    for words in ("수도는?", "제목", "파리 {query}", GUIDELINES[2]):  # a text is no place to fill
        assert words in message["content"]
    assert "hush" not in json.dumps(source.facts, ensure_ascii=False)


def test_an_endpoint_that_refuses_is_told_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "hush-hush-hush")
    with _service([401]) as (url, got):
        (tmp_path / "judge.yaml").write_text(YAML.format(url), encoding="utf-8")
        with pytest.raises(RefusedError, match="401") as told:
            judge_of(f"{tmp_path}/judge.yaml", GUIDELINES).ask("q", Document("d", "text"))
    assert len(got) == 1
    assert "hush-hush" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("url: http://x\n", "'model' is missing"),
        ("url: localhost:8000/v1\nmodel: m\n", "url"),
        ("url: 'http://x/a b'\nmodel: m\n", "url"),
        ("url: http://x\nmodel: m\nbody:\n", "body"),
        ("url: http://x\nmodel: m\nprice: 3\n", "price"),
        ("url: http://x\nmodel: m\ntimeout_s: soon\n", "timeout_s"),
        ("url: http://x\nmodel: m\nprompt: 5\n", "prompt"),
        ("url: http://x\nmodel: m\nprompts: p\n", "key 'prompts'"),
        ("url: http://x\nmodel: m\nheaders: {A: '${NOT_SET_HERE}'}\n", "NOT_SET_HERE"),
    ],
)
def test_a_file_of_an_endpoint_that_cannot_be_is_refused(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "judge.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        judge_of(f"{tmp_path}/judge.yaml", GUIDELINES)


CHILD = """
import sys, time
from pathlib import Path
from retrieval_bench_judges.asking import ask_judge
from retrieval_bench_judges.judges import Answer, Source
from retrieval_bench_labels.store import Store

def ask(query, document):
    with open(sys.argv[2], "a") as log:
        log.write(document.id + "\\n")
    time.sleep(0.004)
    return Answer(1, "raw " + document.id, 10.0, 0.5)

ask_judge(Store(Path(sys.argv[1])), "gpt", Source(ask), workers=int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.long
def test_killed_at_50_random_moments_no_label_is_lost_and_none_is_asked_for_again(
    tmp_path: Path,
) -> None:
    workers, kills, rng = 3, 0, random.Random(5)
    store = make_store(tmp_path / "labels.sqlite", make_pool(400, 10))
    log, code = tmp_path / "log", tmp_path / "child.py"
    code.write_text(CHILD, encoding="utf-8")
    kept: set[Any] = set()
    while kills < 50:
        child = subprocess.Popen(
            [sys.executable, str(code), str(store.path), str(log), str(workers)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        size = log.stat().st_size if log.exists() else 0
        while child.poll() is None and (not log.exists() or log.stat().st_size == size):
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        child.kill()
        child.wait()
        kills += 1
        labels = {(label.pair, label.grade) for label in store.labels()}
        assert kept <= labels
        kept = labels
    made = ask_judge(store, "gpt", Source(lambda _q, d: Answer(1, f"raw {d.id}", 10.0, 0.5)))
    assert made.left == 0
    assert len(store.labels()) == len(store.history()) == 4_000
    times = Counter(log.read_text("utf-8").split())
    again = sum(n - 1 for n in times.values())
    assert again <= made.cut_off <= kills * workers
    assert made.calls == 4_000 + made.cut_off
    assert made.cost == pytest.approx(0.5 * made.calls)
