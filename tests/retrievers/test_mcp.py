"""Tools of MCP servers, in both eras of the protocol, over stdio and HTTP."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from retrieval_bench.core.calls.failures import CallError
from retrieval_bench.core.errors import ConfigError, ContractError
from retrieval_bench.core.filters import parse_filter
from retrieval_bench.core.installed.installation import packaged_configs
from retrieval_bench.core.notices import is_note
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.secrets import expand
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench.data.texts.tokens import counter, estimated
from retrieval_bench_retrievers.mcp import http
from retrieval_bench_retrievers.mcp.mcp import MCP
from retrieval_bench_retrievers.mcp.reading import Reader, suggested
from retrieval_bench_retrievers.mcp.tool import definition, header_paths, header_value
from tests.builders import mcp_toy, some
from tests.builders.mcp_http import Running, mcp_service
from tests.builders.mcp_served import ARGUMENTS, READ, serving
from tests.builders.mcp_toy import DOCS, LEGACY, MODERN, Toy, found
from tests.builders.service import free_port

WAYS = ("stdio", "json", "events")
QUERIES = ("cat ran", "the dog", "달린다 ran", "on a mat by the dog", "nothing of it")


def over_http(running: Running, **given: Any) -> MCP:
    return MCP(url=running.url, **{"tool": "search", "arguments": ARGUMENTS, **READ, **given})


def ask(retriever: MCP, text: str = "cat ran", k: int = 10) -> Ranking:
    return retriever.search(Query("q", text), k)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("way", WAYS)
def test_rankings_are_those_of_the_function_behind_the_server(era: str, way: str) -> None:
    with serving(era, way) as retriever:
        retriever.use_k(3)
        for text in QUERIES:
            for k in (1, 3, 10):
                assert list(ask(retriever, text, k)) == found(DOCS, text, k)
        facts = retriever.describe()
    assert facts["protocol"] == era
    assert facts["server"] == {"name": "toy", "version": "1.0"}
    assert facts["tools"] == ["now", "search", "prose"]


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("events", [False, True])
def test_one_connection_serves_all_calls_and_a_session_is_ended(
    monkeypatch: pytest.MonkeyPatch, era: str, events: bool
) -> None:
    for limit in ("_END_S", "_FIRST_END_S"):  # a stream of this server does end
        monkeypatch.setattr(http, limit, 60)
    with mcp_service(Toy(era), events=events) as running:
        retriever = over_http(running)
        for _ in range(5):
            ask(retriever)
        assert running.connections == 1
        assert len(running.sessions) == (era == LEGACY)
        retriever.close()
        assert not running.sessions
        assert running.methods.count("DELETE") == (era == LEGACY)


@pytest.mark.parametrize(
    ("era", "behind"), [(MODERN, "held"), (MODERN, "talks"), (LEGACY, "talks")]
)
def test_a_stream_that_stays_open_costs_a_connection_and_no_time(era: str, behind: str) -> None:
    with mcp_service(Toy(era), events=True, **{behind: True}) as running:
        retriever = over_http(running)
        for text in QUERIES:
            assert list(ask(retriever, text, 3)) == found(DOCS, text, 3)
        retriever.close()
    assert running.connections > len(QUERIES)


def test_a_later_answer_without_the_servers_time_is_a_failed_call() -> None:
    with mcp_service(Toy(MODERN, "no time"), events=False) as running:
        retriever = over_http(running, server_time={"ms": "structuredContent.took"})
        assert ask(retriever).stages["server"] == 250_000
        with pytest.raises(CallError, match="server_time"):
            ask(retriever, "break cat")
        retriever.close()


def test_a_lost_session_is_begun_again_within_the_call() -> None:
    with mcp_service(Toy(LEGACY), events=True) as running:
        retriever = over_http(running)
        ask(retriever)
        running.sessions.clear()
        assert list(ask(retriever)) == found(DOCS, "cat ran", 10)
        assert retriever.describe()["sessions"] == 2
        assert "the server forgot 1 session" in " ".join(retriever.health([]))
        retriever.close()


def test_headers_say_what_the_message_says() -> None:
    with mcp_service(Toy(MODERN), events=False) as running:
        arguments = {**ARGUMENTS, "lang": "{filter.lang}"}
        retriever = over_http(running, arguments=arguments, missing="drop")
        asked = Query("q", "cat", filter=parse_filter({"lang": " 한국어"}))
        retriever.search(asked, 4)
        ask(retriever, "cat", 4)
        retriever.close()
    with_lang, without = running.headers[-2:]
    assert with_lang["mcp-method"] == "tools/call"
    assert with_lang["mcp-name"] == "search"
    assert with_lang["mcp-param-limit"] == "4"
    assert with_lang["mcp-param-lang"] == "=?base64?IO2VnOq1reyWtA==?="
    assert "mcp-param-lang" not in without


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", ""),
    ],
)
def test_values_of_headers_are_those_of_the_specification(text: str, header: str) -> None:
    assert header_value(text) == header


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}, "the type 'number'"),
        (
            {"properties": {"a": {"type": "string", "x-mcp-header": "A b"}}},
            "is no name of a header",
        ),
        ({"items": {"type": "string", "x-mcp-header": "A"}}, "no argument is certain to be"),
        (
            {
                "properties": {
                    "a": {"type": "string", "x-mcp-header": "A"},
                    "b": {"properties": {"c": {"type": "integer", "x-mcp-header": "a"}}},
                }
            },
            "is there twice",
        ),
    ],
)
def test_a_definition_with_wrong_headers_is_refused(schema: Any, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        header_paths({"name": "search", "inputSchema": schema})


def test_requests_of_the_server_are_answered_in_the_older_era() -> None:
    for fault, key in (("pings", "result"), ("asks back", "error")):
        toy = Toy(LEGACY, fault)
        with mcp_service(toy, events=True) as running:
            retriever = over_http(running)
            ask(retriever)
            assert ask(retriever, "break cat").doc_ids == ["a"]
            retriever.close()
        (answer,) = [message for message in running.posted if "method" not in message]
        assert key in answer
        assert key == "result" or answer["error"]["code"] == -32601


SHAPES: list[tuple[str, str, dict[str, Any]]] = [
    ("text", "search", {"hits": "json", "id": "id", "score": "score", "text": "text"}),
    ("text", "search", {"hits": "content[].text", "id": "id", "score": "score", "text": "text"}),
    ("parts", "search", {"hits": "json", "id": "id", "score": "score", "text": "text"}),
    ("parts", "search", {"hits": "content[].text", "id": "id", "score": "score", "text": "text"}),
    (
        "structured",
        "prose",
        {
            "pattern": r"^## \[(?P<id>.+)\] score (?P<score>\S+)$",
            "text": "between",
            "empty": "^Nothing found",
        },
    ),
]


@pytest.mark.parametrize(("shape", "tool", "read"), SHAPES)
def test_hits_are_read_out_of_every_shape(shape: str, tool: str, read: dict[str, Any]) -> None:
    with mcp_service(Toy(MODERN, shape=shape), events=False) as running:
        retriever = over_http(running, tool=tool, **{**dict.fromkeys(READ), **read})
        for text in QUERIES:
            ranking = ask(retriever, text, 3)
            expected = found(DOCS, text, 3)
            assert list(ranking) == expected
            texts = [(text or "").splitlines()[-1] for text in ranking.texts or []]
            assert texts == [DOCS[one] for one, _ in expected]
        retriever.close()


def test_links_are_hits() -> None:
    with mcp_service(Toy(MODERN, shape="links"), events=False) as running:
        read = {"hits": "content[?type=='resource_link']", "id": "uri", "source": "name"}
        retriever = over_http(running, **{**dict.fromkeys(READ), **read})
        ranking = ask(retriever, "cat ran", 2)
        assert ranking.doc_ids == ranking.sources == [one for one, _ in found(DOCS, "cat ran", 2)]
        retriever.close()


def reader(**given: Any) -> Reader:
    inside = {name: given.pop(name, None) for name in ("id", "score", "text", "source")}
    return Reader(given.pop("hits", None), inside, **given)


def test_hits_of_one_id_are_hits_of_their_own_or_the_first_counts() -> None:
    rows = [
        {"path": "a.md", "text": "one", "score": 3},
        {"path": "b.md", "text": "two", "score": 2},
        {"path": "a.md", "text": "three", "score": 1},
        {"path": "c.md", "score": 1},
    ]
    ways = {"hits": "rows", "id": "path", "text": "text", "score": "score"}
    apart = reader(**ways).read({"rows": rows}, 3)
    assert apart.ids == ["a.md", "b.md", "a.md#2"]
    assert apart.sources == ["a.md", "b.md", "a.md"]
    assert apart.texts == ["one", "two", "three"]
    assert (apart.scores, apart.given, apart.repeated) == ([3.0, 2.0, 1.0], 4, "a.md")
    first = reader(**ways, repeated="first").read({"rows": rows}, 3)
    assert (first.ids, first.texts) == (["a.md", "b.md", "c.md"], ["one", "two", None])
    no_texts = reader(hits="rows", id="path").read({"rows": rows}, 3)
    assert no_texts.ids == first.ids
    odd = [{"path": name, "text": ""} for name in ("a", "a#2", "a", "a", "a#2")]
    named = reader(**{**ways, "score": None}).read({"rows": odd}, 5)
    assert named.ids == ["a", "a#2", "a#3", "a#4", "a#2#2"]


def test_what_became_of_hits_of_one_id_is_told() -> None:
    parts = {"hits": "[structuredContent.result[0], structuredContent.result[0]]", "text": "text"}
    for repeated, word in (("auto", "later ones are 'c#2'"), ("first", "the first alone counts")):
        with serving(MODERN, "json", **parts, repeated=repeated) as retriever:
            assert len(ask(retriever, "cat", 2)) == (2 if repeated == "auto" else 1)
            (note,) = [text for text in retriever.health([]) if "several hits" in text]
            assert is_note(note)
            assert note.startswith("in 1 of 1 answer several hits have one id, such as 'c': ")
            assert word in note


def test_equal_scores_keep_the_order_of_the_answer() -> None:
    with serving(MODERN, "json", score="`1`") as one:
        ranking = checked_ranking(ask(one, "cat", 2), 2)
        assert ranking.doc_ids == ["c", "a"]


def test_a_text_between_matches_begins_with_the_line_of_its_own() -> None:
    text = "Found:\n## [a] DEPRECATED\nold\n## [b] new\nbody"
    hits = reader(pattern=r"\[(?P<id>\w)\]", text="between").read(
        {"content": [{"type": "text", "text": text}]}, 5
    )
    assert hits.texts == ["## [a] DEPRECATED\nold", "## [b] new\nbody"]


@pytest.mark.parametrize(
    ("line", "ids", "scores"),
    [
        ("### security.md (score 1)", ["security.md"], [1.0]),
        ("### a b.md (Score: 0.75)", ["a b.md"], [0.75]),
        ("## 연차.md — score: 2.5", ["연차.md"], [2.5]),
        ("- a.md - 87%", ["a.md"], [87.0]),
        ("a.md (87.5%)", ["a.md"], [87.5]),
        ("a's.md [0.31]", ["a's.md"], [0.31]),
        ("# Chapter 3", ["Chapter 3"], None),
    ],
)
def test_the_pattern_that_is_proposed_takes_the_score_out_of_the_id(
    line: str, ids: list[str], scores: list[float] | None
) -> None:
    answer = {"content": [{"type": "text", "text": f"Results:\n\n{line}\nbody"}]}
    fix = suggested({"content": [{"type": "text", "text": line}]})
    pattern = fix.partition("'")[2].rpartition("'")[0].replace("''", "'")
    if scores is None:
        assert "score" not in fix
        return
    assert suggested(answer) == fix
    hits = reader(pattern=pattern).read(answer, 5)
    assert (hits.ids, hits.scores) == (ids, scores)


def test_an_answer_in_which_nothing_is_read_is_told_how_to_call_it_empty() -> None:
    said = {"content": [{"type": "text", "text": "Nothing found for 'x'."}]}
    with pytest.raises(ContractError, match=r"no hits, write empty: '\^Nothing found'"):
        reader(pattern="^## (?P<id>.+)$").read(said, 5)
    reads = reader(pattern="^## (?P<id>.+)$", empty="^Nothing found")
    assert reads.read(said, 5).ids == []
    hit = {"content": [{"type": "text", "text": "## log.md\nNothing found in the cellar."}]}
    assert reads.read(hit, 5).ids == ["log.md"]  # the words of a hit are no empty answer


LINKS = {"hits": "content[?type=='resource_link']", "id": "uri"}
LIMITED = {"content": [{"type": "text", "text": "Rate limit exceeded, try later"}]}
PICTURE = {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (LINKS, LIMITED),
        *(({"pattern": "^## (?P<id>.+)$"}, said) for said in ({}, {"content": "text"}, PICTURE)),
        *(({"hits": "json", "id": "id"}, said) for said in ({}, {"content": "text"}, PICTURE)),
    ],
)
def test_an_answer_that_says_something_else_is_none_without_hits(params: Any, said: Any) -> None:
    with pytest.raises(ContractError):
        reader(**params).read(said, 5)


def test_hits_count_though_one_of_them_has_the_words_of_an_empty_answer() -> None:
    reads = reader(hits="structuredContent.result", id="id", empty="No results")
    found = {"result": [{"id": "a", "text": "No results were good"}]}
    text = {"content": [{"type": "text", "text": json.dumps(found)}]}
    assert reads.read({**text, "structuredContent": found}, 5).ids == ["a"]
    assert reads.read({"content": [{"type": "text", "text": "No results"}]}, 5).ids == []
    assert reader(**LINKS).read({"content": []}, 5).ids == []
    with pytest.raises(ConfigError, match="matches any text"):
        reader(hits="structuredContent.result", id="id", empty="a*")


def test_short_lists_of_different_lengths_are_a_note_and_of_one_length_a_warning() -> None:
    for asked, note in ((("cat", "dog"), True), (("cat", "cat"), False)):
        with serving(MODERN, "json") as retriever:
            for text in asked:
                ask(retriever, text, 10)
            (said,) = [text for text in retriever.health([]) if "fewer hits" in text]
            assert is_note(said) == note
            assert "1 to 2 of 10" in said if note else "at most 2 of 10" in said


def test_a_pattern_reads_where_hits_leads() -> None:
    text = "1. 가.md\n본문\n2. b.md\nbody\n"
    read = reader(hits="structuredContent.result", pattern=r"^\d+\. (?P<id>.+)$", text="between")
    hits = read.read({"content": [], "structuredContent": {"result": text}}, 5)
    assert (hits.ids, hits.texts) == (["가.md", "b.md"], ["1. 가.md\n본문", "2. b.md\nbody"])


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"hits": "json"}, "hits without id"),
        ({"id": "id"}, "id without hits"),
        ({"pattern": "(?P<name>.)"}, "the group 'name'; no group id"),
        ({"pattern": "(?P<id>.)", "score": "score"}, "score beside pattern"),
        ({"pattern": "(?P<id>.)(?P<text>.)", "text": "between"}, "a group text beside"),
        ({"pattern": "("}, "is no regular expression"),
        ({"hits": "a..b", "id": "id"}, "is no JMESPath"),
        ({"order": "up"}, "order = 'up'"),
    ],
)
def test_ways_to_read_that_do_not_fit_are_refused(given: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        reader(**given)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("result", "word"),
    [
        ({"structuredContent": {"result": [{"id": "a", "score": 1, "text": "x"}]}},
         "hits: structuredContent.result, id: id, score: score, text: text"),
        ({"content": [{"type": "text", "text": '{"found": [{"path": "a", "snippet": "x"}]}'}]},
         "hits: json.found, id: path, text: snippet, source: path"),
        ({"content": [{"type": "resource_link", "uri": "a"}]}, "id: uri"),
        ({"content": [{"type": "text", "text": "Hits:\n### a\nbody"}]}, "'^### (?P<id>.+)$'"),
        ({"content": [{"type": "text", "text": "a.md\nb.md"}]}, "'^(?P<id>.+)$'"),
    ],
)  # fmt: skip
def test_without_a_way_to_read_the_answer_says_how_it_may_be_read(result: Any, word: str) -> None:
    with pytest.raises(ContractError) as caught:
        reader().read(result, 3)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ["neither command nor url"]),
        ({"command": ["a"], "url": "http://h/mcp"}, ["command beside url"]),
        ({"command": ["a"], "headers": {"a": "b"}}, ["command beside headers"]),
        ({"url": "http://h/mcp", "cwd": "."}, ["cwd beside url"]),
        ({"command": []}, ["command = []", "a program and its arguments"]),
        ({"command": ["a"], "cwd": "nowhere"}, ["cwd = 'nowhere' is no folder"]),
        ({"command": ["a"], "env": {"API_KEY": "x"}}, ["'API_KEY'", "${NAME}"]),
        ({"url": "http://h/mcp", "headers": {"Authorization": "x"}}, ["target mcp", "${NAME}"]),
        ({"url": "ftp://h"}, ["target mcp", "begins with http"]),
        ({"command": ["a"], "protocol": "2024"}, ["protocol = '2024'"]),
        ({"command": ["a"], "tokens": "gpt2"}, ["tokens = 'gpt2'"]),
        ({"command": ["a"], "timeout_s": 0}, ["timeout_s = 0"]),
        ({"command": ["a"], "arguments": {"q": "x"}}, ["nothing of the query", "target mcp"]),
        ({"command": ["a"], "arguments": {"q": "{text}"}, "encoder": {}}, ["encoder without"]),
    ],
)
def test_parameters_that_do_not_fit_are_refused(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        MCP(**given)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tool": None}, ["no tool is named", "tool: search", 'query: "{text}", limit: "{k}"']),
        ({"tool": "serach"}, ["no tool 'serach'", "did you mean", "search", "offers now, prose"]),
        ({"arguments": {"query": "{text}", "top": 3}}, ["no argument 'top'", "query, limit, lang"]),
        ({"arguments": {"limit": "{text}"}}, ["the tool needs 'query'"]),
        ({"arguments": None}, ["no arguments are given", 'query: "{text}"']),
    ],
)
def test_a_tool_that_cannot_be_called_ends_the_run_at_once(
    given: dict[str, Any], words: list[str]
) -> None:
    with serving(MODERN, "json", **given) as retriever, pytest.raises(ConfigError) as caught:
        retriever.use_k(3)
    for word in words:
        assert word in str(caught.value)


def test_a_first_answer_that_cannot_be_read_ends_the_run_and_a_later_one_does_not() -> None:
    pattern: dict[str, Any] = {
        **dict.fromkeys(READ),
        "tool": "prose",
        "pattern": r"^## \[(?P<id>.+)\]",
    }
    with serving(MODERN, "json", **pattern) as retriever:
        with pytest.raises(ContractError, match="the pattern reads nothing"):
            ask(retriever, "nothing of it")
        ask(retriever)
        with pytest.raises(CallError, match="begins: Nothing found"):
            ask(retriever, "nothing of it")


def test_a_program_that_is_interrupted_is_ended_and_begins_anew() -> None:
    class Interrupt(BaseException):
        pass

    def stop(*_: Any) -> None:
        raise Interrupt

    with serving(LEGACY, "stdio", "silent") as retriever:
        retriever.use_k(3)
        first = retriever.server_pid()
        before = signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Interrupt):
                ask(retriever, "break cat")
        finally:
            signal.signal(signal.SIGALRM, before)
        ranking = ask(retriever)
        assert list(ranking) == found(DOCS, "cat ran", 10)
        assert "start" in ranking.stages
        assert retriever.server_pid() not in (None, first)
        assert "started again once" in " ".join(retriever.health([]))


def test_tokens_are_those_of_question_answer_and_definition() -> None:
    with serving(MODERN, "json", tokens="estimate") as retriever:
        ranking = ask(retriever)
        used = dict(ranking.usage)
        assert list(used) == ["definition", "question", "answer"]
        assert used["question"].tokens_out == round(estimated('{"query":"cat ran","limit":10}'))
        assert used["definition"].tokens_in == retriever.describe()["tokens"]["definition"] > 50
        assert used["answer"].tokens_in > 80
        (said,) = [text for text in retriever.health_facts([]) if "tokens" in text]
        assert "~" in said
        assert "by an estimate" in said
    with serving(MODERN, "json", tokens="none") as retriever:
        assert dict(ask(retriever).usage) == {}


@pytest.mark.needs("bpe_openai")
def test_an_estimate_is_near_the_count() -> None:
    way, count = some(counter("o200k_base", "here"))
    root = Path(__file__).parents[2]
    datasets = packaged_configs() / "datasets"
    files = ("science-ko-mini/documents.jsonl", "science-mini/corpus.jsonl")
    lines = [line for name in files for line in (datasets / name).read_text("utf-8").splitlines()]
    rows = [json.loads(line) for line in lines]
    texts = {
        "markdown": (root / "README.md").read_text("utf-8"),
        "Korean": (root / "README.ko.md").read_text("utf-8"),
        "json": json.dumps(rows, ensure_ascii=False),
        "prose": " ".join(str(list(row.values())[-1]) for row in rows),
        "schema": definition(mcp_toy.TOOL),
    }
    assert way == "o200k_base"
    for name, text in texts.items():
        assert estimated(text) == pytest.approx(count(text), rel=0.15), name


def test_secrets_stand_in_no_message_and_no_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOY_TOKEN", "open-sesame-1")
    headers = expand({"Authorization": "Bearer ${MCP_TOY_TOKEN}"}, "here")
    toy = Toy(MODERN, "401")
    with mcp_service(toy, events=False) as running:
        retriever = over_http(running, headers=headers)
        ask(retriever)
        assert running.headers[-1]["authorization"] == "Bearer open-sesame-1"
        toy.fault = "isError"
        with pytest.raises(CallError) as caught:
            ask(retriever, "break open-sesame-1")
        facts = retriever.describe()
        retriever.close()
    assert "sesame" not in f"{caught.value}{facts}"
    assert facts["header_names"] == ["Authorization"]


def test_a_look_shows_an_answer_and_what_was_read_of_it() -> None:
    with serving(MODERN, "stdio") as retriever:
        ask(retriever, "cat", 3)
        notes = [note for note in retriever.health([]) if is_note(note)]
        for _ in range(10):
            ask(retriever, "cat", 3)
        assert not [note for note in retriever.health([]) if is_note(note)]
    assert notes[0] == (
        "toy 1.0 answers over stdio, MCP 2026-07-28, by its tool search (it also offers now, prose)"
    )
    assert notes[1].startswith('One answer, to \'cat\': [{"id": "c"')
    assert notes[2].startswith("Read of it: 2 hits: c (score 0.5), a (score 0.4082")


def test_nothing_that_listens_is_told_with_the_way_out() -> None:
    retriever = MCP(url=f"http://127.0.0.1:{free_port()}/mcp", tool="search")
    with pytest.raises(ConfigError) as caught:
        retriever.use_k(3)
    assert "target mcp, url" in str(caught.value)
    assert "start the service" in str(caught.value)
