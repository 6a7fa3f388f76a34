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
from itertools import count
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.calls.failures import Retry, kind_of, retry_after
from retrieval_bench.core.calls.foreign import failing, foreign_code, message_of
from retrieval_bench.core.config import read_yaml, validate
from retrieval_bench.core.errors import HarnessError, PluginError
from retrieval_bench.core.types import Document
from retrieval_bench_labels.label import GRADES

PROMPT = """You judge search results. How relevant is the passage to the question?
{guidelines}

Question: {query}

Passage: {title}
{text}

Answer with the digit of the grade alone."""
"""The prompt of an endpoint whose file has none."""

_PLACES = re.compile(r"\{(query|title|text|guidelines)\}")
_GRADE = re.compile(r"(?<![a-z])grade[\"'*\s]*[:=][\"'*\s]*(-?\d+(?:[./-]\d+)?|\w*)", re.IGNORECASE)
_ALONE = re.compile(r"(?<![\w.])-?\d(?![\w.]*\d)", re.ASCII)


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
    if isinstance(grade, Integral):
        grade = int(grade)
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
    return float(given) if type(given) is not bool and isinstance(given, Real) else None


class RefusedError(HarnessError):
    """The endpoint answered that it does not: the call cost nothing."""


class _Endpoint(BaseModel):
    """The file of an endpoint."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[
        str, Field(pattern=r"^(https?://|\$\{)[^\s]+$", description="http(s)://HOST/...")
    ]
    model: Annotated[str, Field(pattern=r"\S", description="the name of a model")]
    headers: dict[str, str] = {}
    prompt: str = PROMPT
    price: dict[Literal["prompt", "completion"], Annotated[float, Field(ge=0)]] = {}
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    body: dict[str, Any] = {"temperature": 0}


def _endpoint(path: Path, guidelines: Mapping[int, str]) -> Source:
    given = validate(_Endpoint, read_yaml(path), where=str(path))
    url, headers = secrets.expand([given.url, given.headers], str(path))
    said = "\n".join(f"{grade} = {text}" for grade, text in guidelines.items())

    def ask(query: str, document: Document) -> Answer:
        words = {"query": query, "title": document.title, "text": document.text, "guidelines": said}
        asked = _PLACES.sub(lambda place: words[place[1]], given.prompt)
        message = {"model": given.model, "messages": [{"role": "user", "content": asked}]}
        where = f"document {document.id!r}"
        raw = _posted(url, headers, message | given.body, given.timeout_s, where)
        return read_completion(raw, given.price)

    kept = ("model", "prompt", "url")
    return Source(ask, {"source": str(path)} | {key: getattr(given, key) for key in kept})


def read_completion(raw: str, price: Mapping[Any, float]) -> Answer:
    """Read the grade in an answer in the layout of OpenAI's chat completions: what stands behind
    ``grade`` and a colon, else the digit that stands alone; None where there is none, or where two
    are not the same, as in "1 out of 3"."""
    try:
        answer = json.loads(raw)
        said = str(answer["choices"][0]["message"]["content"])
    except (ValueError, LookupError, TypeError):
        return Answer(None, raw)
    usage = answer.get("usage") or {}
    of = {name: _number(usage.get(f"{name}_tokens")) for name in ("prompt", "completion")}
    known = [n for n in of.values() if n is not None]
    cost = _number(usage.get("cost"))
    if cost is None and price and known:
        cost = sum((of[name] or 0.0) * price.get(name, 0.0) for name in of) / 1e6
    return Answer(_grade(said), raw, sum(known) if known else None, cost)


def _grade(said: str) -> int | None:
    given = {value.removesuffix(".0") for value in _GRADE.findall(said)} or {*_ALONE.findall(said)}
    return int(*given) if len(given) == 1 and given <= {*map(str, GRADES)} else None


_RETRY = Retry()


def _posted(
    url: str, headers: Mapping[str, str], body: Mapping[str, Any], timeout: float, where: str
) -> str:
    """The body of the answer; what may pass is asked again, by the rules of retrievers.

    Raises:
        RefusedError: an HTTP status in place of an answer.
        HarnessError: no answer at all.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for failures in count(1):
        try:
            request = Request(url, data, {"Content-Type": "application/json", **headers})
            with urlopen(request, timeout=timeout) as response:
                return str(response.read().decode("utf-8", "replace"))
        except (OSError, HTTPException, ValueError) as problem:
            if isinstance(problem, HTTPError):
                problem.close()
            if failures > _RETRY.times or kind_of(problem) not in _RETRY.when:
                raise (RefusedError if isinstance(problem, HTTPError) else HarnessError)(
                    f"the judge did not answer: {message_of(problem)}",
                    where=where,
                    accepted="an endpoint in the layout of OpenAI's chat completions",
                    fix="look at its address and key; what was answered is kept",
                ) from None
            time.sleep(_RETRY.wait_s(failures, retry_after(problem)))
    raise AssertionError
