"""Judges that can be asked: a function of the user's, and a model behind an HTTP endpoint.

A judge sees a question and a document, and nothing of people's labels or of systems. A function is
called with the text of the question and the :class:`~retrieval_bench.core.types.Document`, and
gives a grade, or a mapping with ``grade`` and, if it likes, ``answer``, ``tokens`` and ``cost``. An
endpoint has the layout of OpenAI's chat completions; its YAML file names it::

    url: https://api.example.org/v1/chat/completions
    model: small-judge
    headers: {Authorization: "Bearer ${KEY}"}
    prompt: |
      Question: {query}
      Passage: {title} {text}
      Answer with one digit. {guidelines}
    price: {prompt: 0.25, completion: 1.0}   # of a million tokens
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.calls.failures import Retry
from retrieval_bench.core.calls.foreign import failing, foreign_code, message_of
from retrieval_bench.core.config import read_yaml
from retrieval_bench.core.errors import ConfigError, HarnessError, PluginError, check_known
from retrieval_bench.core.types import Document
from retrieval_bench_labels.label import GRADES

PROMPT = """You judge search results. How relevant is the passage to the question?
{guidelines}

Question: {query}

Passage: {title}
{text}

Answer with the digit of the grade alone."""
"""The prompt of an endpoint whose file has none."""

TIMEOUT_S = 60.0
_PLACES = re.compile(r"\{(query|title|text|guidelines)\}")
_DIGIT = re.compile(r"(?<![\w.])[0-3](?![\w.]*\d)")


class Answer(NamedTuple):
    """The answer of a judge on a document.

    Attributes:
        grade: None where the answer has none.
        answer: as it came.
        tokens, cost: None where they are not reported.
    """

    grade: int | None
    answer: str
    tokens: float | None = None
    cost: float | None = None


Judge = Callable[[str, Document], Answer]


@dataclass(frozen=True, slots=True)
class Source:
    """A judge and what its record says of it.

    Attributes:
        ask: gives an answer on a question and a document.
        facts: what it is: its place, model and prompt.
    """

    ask: Judge
    facts: Mapping[str, Any] = field(default_factory=dict)


def judge_of(source: str, guidelines: Mapping[int, str]) -> Source:
    """The judge that ``source`` names: ``FILE.py:function``, or a YAML file of an endpoint.

    Raises:
        HarnessError: it is neither, or its file says what cannot be.
    """
    if source.endswith((".yaml", ".yml")):
        return _endpoint(Path(source), guidelines)
    grade = plugins.load(source, base=Path.cwd())
    if not callable(grade):
        raise PluginError(
            f"{source!r} is no function", accepted="a function of a question and a document"
        )

    def ask(query: str, document: Document) -> Answer:
        where = f"document {document.id!r}"
        with foreign_code(failing(repr(source), PluginError, where)):
            given = grade(query, document)
        return _read(given, source, where)

    return Source(ask, {"source": source})


def _read(given: Any, source: str, where: str) -> Answer:
    whole = given if isinstance(given, Mapping) else {"grade": given}
    grade = whole.get("grade")
    if not (grade is None or (isinstance(grade, int) and grade in GRADES)):
        raise PluginError(
            f"{source!r} gave the grade {grade!r}",
            where=where,
            accepted="0, 1, 2, 3, or None; or a mapping with grade, answer, tokens and cost",
            fix="make the function give one of these",
        )
    answer = str(whole.get("answer", "" if grade is None else grade))
    return Answer(grade, answer, _number(whole.get("tokens")), _number(whole.get("cost")))


def _number(given: Any) -> float | None:
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


_KEYS = ("url", "model", "headers", "prompt", "price", "timeout_s", "body")


def _endpoint(path: Path, guidelines: Mapping[int, str]) -> Source:
    given = read_yaml(path)
    for key in given:
        check_known(key, _KEYS, f"key {key!r}", where=str(path), fix="correct its name")
    for key in ("url", "model"):
        if not isinstance(given.get(key), str) or not given[key].strip():
            raise ConfigError(
                f"no {key}",
                where=str(path),
                accepted="url and model of an endpoint in the layout of OpenAI's chat completions",
                fix=f"add {key}: ...",
            )
    filled = secrets.expand({key: given.get(key, {}) for key in ("url", "headers")}, str(path))
    prompt = given.get("prompt", PROMPT)
    said = "\n".join(f"{grade} = {text}" for grade, text in guidelines.items())

    def ask(query: str, document: Document) -> Answer:
        words = {"query": query, "title": document.title, "text": document.text, "guidelines": said}
        asked = _PLACES.sub(lambda place: words[place[1]], prompt)
        body = {
            "model": given["model"],
            "messages": [{"role": "user", "content": asked}],
            **given.get("body", {"temperature": 0}),
        }
        timeout = float(given.get("timeout_s", TIMEOUT_S))
        raw = _posted(filled["url"], filled["headers"], body, timeout, f"document {document.id!r}")
        return read_completion(raw, given.get("price", {}))

    facts = {"source": str(path), "model": given["model"], "prompt": prompt, "url": given["url"]}
    return Source(ask, facts)


def read_completion(raw: str, price: Mapping[str, float]) -> Answer:
    """Read the grade in an answer in the layout of OpenAI's chat completions: a key ``grade`` of
    JSON, or the last digit from 0 to 3 that stands alone; None where there is none."""
    try:
        answer = json.loads(raw)
        said = str(answer["choices"][0]["message"]["content"])
    except (ValueError, LookupError, TypeError):
        return Answer(None, raw)
    usage = answer.get("usage") or {}
    of = {name: _number(usage.get(f"{name}_tokens")) for name in ("prompt", "completion")}
    known = [n for n in of.values() if n is not None]
    cost = sum((of[name] or 0.0) * float(price.get(name, 0.0)) for name in of) / 1e6
    reported = _number(usage.get("cost"))
    priced = cost if price and known else None
    tokens = sum(known) if known else None
    return Answer(_grade(said), raw, tokens, reported if reported is not None else priced)


def _grade(said: str) -> int | None:
    try:
        given = json.loads(said)
    except ValueError:
        given = None
    if isinstance(given, Mapping):
        given = given.get("grade")
    if isinstance(given, int) and not isinstance(given, bool):
        return given if given in GRADES else None
    digits = _DIGIT.findall(said)
    return int(digits[-1]) if digits else None


_RETRY = Retry()


def _posted(
    url: str, headers: Mapping[str, str], body: Mapping[str, Any], timeout: float, where: str
) -> str:
    """The body of the answer; throttled calls and faults of the server are made again."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    request = Request(url, data, {"Content-Type": "application/json", **headers})
    for failures in range(1, _RETRY.times + 2):
        try:
            with urlopen(request, timeout=timeout) as response:
                return str(response.read().decode("utf-8", "replace"))
        except HTTPError as problem:
            why, again = message_of(problem), problem.code == 429 or problem.code >= 500
        except (URLError, OSError) as problem:
            why, again = message_of(problem), True
        if not again or failures > _RETRY.times:
            break
        time.sleep(_RETRY.wait_s(failures, None))
    raise HarnessError(
        f"the judge did not answer: {why}",
        where=where,
        accepted="an endpoint in the layout of OpenAI's chat completions",
        fix="look at its address and key; what was answered is kept, and not asked again",
    )
