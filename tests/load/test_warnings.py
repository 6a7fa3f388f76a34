"""Every warning of calls and answers that ``bench`` gives is given by whatever measures calls."""

from __future__ import annotations

import json
import textwrap
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from retrieval_bench import bench
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.measure.machine import observers
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench_duet.controller import DuetProtocol
from retrieval_bench_duet.duet import Request as Duelling
from retrieval_bench_load import load_duet
from retrieval_bench_load.engine import levels
from retrieval_bench_load.engine.load import Plan, load
from retrieval_bench_load.load_duet import duet_under_load
from retrieval_bench_load.loads import regress_load
from retrieval_bench_regress.regress import Request
from tests.builders.files import beir
from tests.builders.load_service import LENIENT, Answer, loadable
from tests.builders.service import Reply, hits
from tests.builders.service import Request as Asked

COMMANDS = ("bench", "load", "duet --rate", "regress --load")
MEMORY = tuple(one for one in observers.OBSERVERS if "tracemalloc" in one.name)
"""Nothing else that runs beside tests, such as coverage."""

N = 30
"""Queries of both datasets."""

ROWS: Sequence[tuple[Code, str, str]] = (
    (Code.PARTIAL, "said of themselves that they are partial", "troubled service"),
    (Code.NOTHING_FOUND, "Nothing was found for", "troubled service"),
    (Code.RETRIEVER, "redirected", "troubled service"),
    (Code.REMEMBERED, "answers may be remembered", "constant service"),
    (Code.OUTSIDE_SERVER, "most of the time is not the engine's", "troubled service"),
    (Code.JUDGES, "The judgements are mixed", "troubled service"),
    (Code.DATA, "look Korean", "troubled service"),
    (Code.NOTHING_RELEVANT, "has no relevant document", "troubled service"),
    (Code.RETRIEVER, "went through the proxy", "constant service"),
    (Code.SAME_ANSWERS, "got the same hits in the same order", "constant service"),
    (Code.FEWER, "every search got fewer hits than asked for", "constant service"),
    (Code.FOREIGN_IDS, "D4", "constant service"),
    (Code.TOO_GOOD, "does it see the judgements?", "peek.py:Peek"),
    (Code.OBSERVERS, "tracemalloc", "own.py:Own"),
    (Code.THREADS, "uses 8 threads instead of 1", "own.py:Own"),
    (Code.SELF_HITS, "found themselves", "own.py:Own"),
    (Code.LEAKED, "leaked", "own.py:Own"),
    (Code.DEEP, "no ranking can be that long", "own.py:Own"),
    (Code.PROMPTS, "no prompt", "own.py:Own"),
    (Code.CUT_OFF, "cut off", "own.py:Own"),
    (Code.QUERIES_CUT_OFF, "cut off", "own.py:Own"),
    (Code.UNFIT, "unfit", "own.py:Own"),
    (Code.NO_KNOWN_TERM, "no term", "own.py:Own"),
)
"""A warning, words of it, and the stand-in of which each command gives it."""

NOT: Mapping[Code, str] = {
    Code.FAILED: "calls without an answer have a column, and are told level by level",
    Code.FAILED_CALLS: "requests that were made again have a column, and are told level by level",
    Code.NOT_DETERMINISTIC: "answers that are not those without load are told level by level",
    Code.LOST_LAUNCH: "a level that loses a process is not measured",
    Code.BUSY: "a level whose calls wait for a core is not measured",
    Code.CLOCK: "a level whose stamps and counts differ is not measured",
    Code.UNSTEADY: "the intervals of percentiles are those of parts of the window",
    Code.TIES: "it is of scores, which a level of millions of calls does not keep",
    Code.SAME_QUESTION: "it is of intervals of quality, of which a level has none",
    Code.NO_USAGE: "what takes money is not loaded",
    Code.UNKNOWN_IDS: "it is refused: every figure would be one of other documents",
    Code.JUDGED_GAP: "it is of two systems: compare's",
    Code.NO_GRAPH: "it is of several settings: bench --sweep's",
    Code.STANDS_STILL: "bench, which waits for each answer, can't see it",
    Code.OTHER: "it is of no kind",
    Code.NOTE: "it is none",
}
"""Why a warning has no row."""

OWN = """
    from threadpoolctl import threadpool_limits
    from retrieval_bench import Retriever
    from retrieval_bench.core.notices import Code, Notice

    class Own(Retriever):
        def index(self, documents):
            import tracemalloc
            tracemalloc.start()
            threadpool_limits(8)
            self.ids = [document.id for document in documents]

        def search(self, query, k):
            threadpool_limits(8)
            rest = [one for one in self.ids if one != query.id]
            return [(one, 1.0 / n) for n, one in enumerate([query.id, *rest][:k], start=1)]

        def health(self, queries):
            return [
                Notice("no prompt is given", Code.PROMPTS),
                Notice("documents are cut off", Code.CUT_OFF),
                Notice("queries are cut off", Code.QUERIES_CUT_OFF),
                Notice("the encoder is unfit", Code.UNFIT),
                Notice("no term is known", Code.NO_KNOWN_TERM),
            ]

    class Own2(Own):
        pass
"""
PEEK = """
    from retrieval_bench import Retriever

    class Peek(Retriever):
        def index(self, documents):
            self.ids = sorted(document.id for document in documents)

        def search(self, query, k):
            first = "d" + query.id[1:]
            rest = [one for one in self.ids if one != first]
            return [(one, 1.0 / n) for n, one in enumerate([first, *rest][:k], start=1)]

    class Peek2(Peek):
        pass
"""


def _odd(folder: Path) -> Path:
    """Mixed judgements, two languages, and a query without a relevant document."""
    korean = "이 문서는 한국어로 쓰여 있으며 검색을 위한 것입니다"
    texts = [f"this is the text of the document with number {at}" for at in range(N)]
    documents = {f"d{at}": korean + str(at) if at % 3 == 0 else texts[at] for at in range(N)}
    queries = {f"q{at}": f"where is the text with number {at}" for at in range(N)}
    config = "language: en\njudges: {ann: {kind: person}, gpt: {kind: model}}\n"
    judged = [(f"q{at}", f"d{at}", int(at > 0)) for at in range(N)]
    return beir(folder, documents, queries, judged, f"format: beir\nname: odd\n{config}")


def _selves(folder: Path) -> Path:
    """Queries that are documents, of which half have a filter."""
    rows = [
        {"_id": f"d{at}", "text": f"text number {at}", "metadata": {"even": at % 2}}
        for at in range(N)
    ]
    queries = [{**row, "filter": {"even": 1}} if at % 2 else row for at, row in enumerate(rows)]
    judged = [(f"d{at}", f"d{(at + 2) % N}", 1) for at in range(N)]
    return beir(folder, rows, queries, judged)


def _troubled(_number: int, request: Asked) -> Reply:
    """Redirects, answers in part, and nothing for some queries; most of its time is on the way."""
    if request.path == "/search":
        return Reply({}, 307, {"Location": "/other"})
    time.sleep(0.004)
    empty = request.body["text"].endswith(("0", "5"))
    found = [] if empty else [(f"d{at}", 9.0 - at) for at in range(8)]
    return hits(*found, timed_out=True, took=0.25)


def _constant() -> Answer:
    """The same hits for each query, of which one is written otherwise, at once the second time."""
    seen = set[str]()

    def answer(_number: int, request: Asked) -> Reply:
        text = request.body["text"]
        time.sleep(0.001 if text in seen else 0.15)
        seen.add(text)
        return hits(("d1", 3.0), ("d2", 2.0), ("D4", 1.0))

    return answer


@contextmanager
def _stand_in(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path, int]]:
    """A retriever, a dataset and k."""
    if name.endswith("service"):
        with loadable(Path(), _troubled if name.startswith("t") else _constant()) as (svc, config):
            path = Path(config)
            given = json.loads(path.read_text("utf-8"))
            given["params"] |= {"partial": "accept"}
            if name.startswith("t"):
                given["params"] |= {"server_time": "took"}
            else:
                monkeypatch.setenv("HTTP_PROXY", svc.url)
                monkeypatch.setenv("NO_PROXY", "near.test")
                given["params"]["url"] = "http://far.test/search"
            path.write_text(json.dumps(given), encoding="utf-8")
            yield config, _odd(Path("odd")), 10
        return
    file, code = ("own.py", OWN) if name.startswith("own") else ("peek.py", PEEK)
    Path(file).write_text(textwrap.dedent(code), encoding="utf-8")
    try:
        own = file == "own.py"
        yield name, _selves(Path("selves")) if own else _odd(Path("odd")), 50 if own else 10
    finally:
        tracemalloc.stop()


def _told(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """The warnings of a command."""
    monkeypatch.setattr(observers, "OBSERVERS", MEMORY)
    plan = Plan(rates=[60.0], seconds=1.5, warm_up_s=0.2, timeout_s=3.0)
    if command == "regress --load":
        with _stand_in(name, monkeypatch) as (retriever, data, k):
            kept = load(retriever, data, plan, k=k)
    with _stand_in(name, monkeypatch) as (retriever, data, k):
        if command == "bench":
            measured = Protocol(max_calls=3 * N, warm_up_s=0.0)
            return bench(retriever, data, k=k, protocol=measured).run.summary.warnings
        if command == "load":
            return load(retriever, data, plan, k=k).warnings
        if command == "regress --load":
            request = Request(retriever, dataset=str(data), k=k)
            return regress_load(request, str(kept.folder)).warnings
        duet = DuetProtocol(1.0, limits={"p50": 5.0}, most_s=12.0, timeout_s=3.0)
        http = retriever.endswith(".yaml")
        sides = Duelling(retriever, None if http else f"{retriever}2", set_b=["timeout_s=9"][:http])
        return duet_under_load(sides, data, 60.0, k=k, protocol=duet).warnings


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], Sequence[str]]]:
    """The warnings of a stand-in and a command, which is run once."""
    known: dict[tuple[str, str], Sequence[str]] = {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in LENIENT.items():
            monkeypatch.setattr(levels, name, value)
        monkeypatch.setattr(load_duet, "BLOCK_S", 1.0)
        monkeypatch.setattr(load_duet, "_WARM_UP_S", 0.1)

        def of(name: str, command: str) -> Sequence[str]:
            if (name, command) not in known:
                monkeypatch.chdir(tmp_path_factory.mktemp("stand-in"))
                known[name, command] = ()  # it is run once, whatever comes of it
                with pytest.MonkeyPatch.context() as own:
                    known[name, command] = _told(name, command, own)
            return known[name, command]

        yield of


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [pytest.param(c, marks=[] if c in ("bench", "load") else pytest.mark.long) for c in COMMANDS],
)
@pytest.mark.parametrize(("code", "words", "stand_in"), ROWS)
def test_every_command_that_measures_calls_gives_the_warnings_of_calls(
    code: Code, words: str, stand_in: str, command: str, told: Callable[[str, str], Sequence[str]]
) -> None:
    """L4, L8, L9: a warning that only ``bench`` gave was missed where it counts."""
    texts = told(stand_in, command)
    found = [text for text in texts if isinstance(text, Notice) and text.code is code]
    assert any(words in text for text in found), texts


def test_every_warning_has_a_row_or_a_reason() -> None:
    codes = [code for code, _, _ in ROWS]
    assert {*codes, *NOT} == set(Code)
    assert not {*codes} & {*NOT}
