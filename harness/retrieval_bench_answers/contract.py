"""The contract of readers: from a question and the documents found for it to short answers.

What a reader gives is checked as predictions from a file are: a text with a span must be what
stands there. What breaks that has no meaning and ends the reading; a reader that raises has failed
on that question only.
"""

from __future__ import annotations

import inspect
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.calls.foreign import (
    end_if_forked,
    failing,
    folder_kept,
    foreign_code,
    message_of,
)
from retrieval_bench.core.errors import (
    ConfigError,
    ContractError,
    HarnessError,
    PluginError,
    near_names,
)
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.types import EMPTY, Document, Query
from retrieval_bench.data.faults import shown
from retrieval_bench.data.files.packed import ENDINGS
from retrieval_bench_answers.answers import Answer, Span

OK = "ok"

_FORMS = (
    "a text (empty or None: no answer), or a list, best first, of texts, Answers, or "
    "{text, document, start, end, score}"
)
_FILES = (".json", ".jsonl", ".ndjson", *ENDINGS)
_KEYS = frozenset(("text", "document", "start", "end", "score"))


class Reader(ABC):
    """Base of readers; a subclass overrides :meth:`read`."""

    @abstractmethod
    def read(self, question: Query, documents: Sequence[Document], n: int) -> Sequence[Answer]:
        """Return at most ``n`` answers, best first; an empty text says that there is none.

        A span is in ``document.text`` of one of ``documents``, which are in the order of the
        ranking and may be none.
        """

    def describe(self) -> Mapping[str, Any]:
        """Facts worth keeping: model, hash, parameters."""
        return {}

    def close(self) -> None:
        """Let go of models and connections; called once."""
        return


class FunctionReader(Reader):
    """A function ``(question, documents, n)`` as a reader: the text of the question, a list of
    :class:`~retrieval_bench.core.types.Document`, and how many answers are wanted.

    It gives one text, or a list of texts or of mappings as a file of predictions has them;
    ``document`` may be left out where there is only one document.

    Raises:
        ConfigError: it cannot be called like that.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        if inspect.iscoroutinefunction(function):
            raise ConfigError(f"the reader {name} is async", accepted="a function that returns")
        self._function = function
        self._name = name
        try:
            inspect.signature(function).bind("question", [], 1)
        except TypeError as problem:
            raise ConfigError(
                f"{name} cannot be called as function(question, documents, n): {problem}",
                accepted="a function of three arguments",
                fix="change the function",
            ) from None
        except ValueError:  # built in C: it does not say what it takes
            pass

    def read(self, question: Query, documents: Sequence[Document], n: int) -> Sequence[Answer]:
        """See :meth:`Reader.read`."""
        given = self._function(question.text, list(documents), n)
        if given is None or isinstance(given, str):
            given = [given]
        if isinstance(given, Mapping) or not isinstance(given, Sequence):
            raise ContractError(f"the reader gave {type(given).__name__}", accepted=_FORMS)
        only = documents[0].id if len(documents) == 1 else None
        return [_answer(item, only) for item in given]

    def describe(self) -> Mapping[str, Any]:
        """See :meth:`Reader.describe`."""
        return {"function": self._name}


def _answer(item: Any, only: str | None) -> Answer:
    if isinstance(item, Answer):
        return item
    if item is None or isinstance(item, str):
        return Answer("" if item is None or item.isspace() else item)
    if not isinstance(item, Mapping) or "text" not in item:
        raise ContractError(f"the reader gave the answer {shown(item)}", accepted=_FORMS)
    unknown = sorted(set(item) - _KEYS)
    if unknown:
        raise ContractError(
            f"the reader gave an answer with unknown keys: {', '.join(unknown)}", accepted=_FORMS
        )
    answer = _answer(item["text"], only)
    start, end = item.get("start"), item.get("end")
    document = item.get("document", only)
    span = None
    if answer.text and (start, end) != (None, None):
        if document is None:
            raise ContractError(
                f"the reader gave {shown(answer.text)} with offsets and without its document",
                accepted="the id of one of the documents",
            )
        span = Span(document, start, end)  # type: ignore[arg-type]  # checked with the passage
    score = item.get("score")
    return Answer(answer.text, span, None if score is None else float(score))


def reader_from(target: str, params: Mapping[str, Any] = EMPTY) -> Reader | Path:
    """Find the reader that ``--reader`` names, or the path of a file with saved predictions.

    In this order: a file; a folder with a model; a short name (built in, or registered by a package
    under the entry points ``retrieval_bench.readers``); ``module:Class`` or ``module:function``;
    the name of a model at a hub, which has a slash.

    Raises:
        ConfigError, PluginError: none of these, or parameters that it does not take.
    """
    path = user_path(target)
    if path.is_file():
        if params:
            raise ConfigError(
                f"parameters for saved predictions: {', '.join(sorted(params))}",
                where="--reader-set",
                accepted="none: a file is read as it is",
                fix="leave them out",
            )
        return path
    if path.is_dir():
        return _made("huggingface", {"model": str(path), **params})
    if target in plugins.names("reader"):
        return _made(target, params)
    if ":" in target:
        return _made(target, params)
    if "/" in target and not target.endswith(_FILES):
        return _made("huggingface", {"model": target, **params})
    raise PluginError(
        f"reader {target!r} is no file, no folder and no known name",
        where=str(path.absolute()),
        accepted="a file of predictions; a folder or hub name of a question-answering model; "
        f"module:function; {near_names(target, plugins.names('reader'))}",
        fix="correct the name or the path",
    )


def _made(target: str, params: Mapping[str, Any]) -> Reader:
    with folder_kept():
        named = plugins.resolve("reader", target)
    if isinstance(named, Reader):
        return named
    if not callable(named):
        raise PluginError(f"{target} is {type(named).__name__}", accepted="a reader or a function")
    if not inspect.isclass(named):
        if params:
            raise ConfigError(
                f"parameters for the function {target}: {', '.join(sorted(params))}",
                where="--reader-set",
                accepted="none: a class takes parameters, a function none",
                fix="leave them out",
            )
        return FunctionReader(named, target)
    takes = list(inspect.signature(named).parameters.values())
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in takes)
    unknown = [] if open_ended else [p for p in params if p not in {t.name for t in takes}]
    if unknown:
        raise ConfigError(
            f"the reader {target} has no parameter {', '.join(map(repr, unknown))}",
            where="--reader-set",
            kind="unknown-name",
            accepted=near_names(unknown[0], {parameter.name for parameter in takes}),
        )

    fix = "correct the reader or its parameters"
    failed = failing(f"building the reader {target}", ConfigError, fix=fix)
    with folder_kept(), foreign_code(failed):
        made = named(**params)
    if not isinstance(made, Reader):
        raise PluginError(
            f"{target} gave {type(made).__name__}",
            accepted="a subclass of retrieval_bench_answers.contract.Reader, or a function",
        )
    return made


class ReadingInterrupted(KeyboardInterrupt):
    """Ctrl-C while a reader was at work.

    Attributes:
        answers: of the questions that were read until then, as in :class:`Readings`.
        n: questions there are.
    """

    def __init__(self, answers: Mapping[str, tuple[Answer, ...]], n: int) -> None:
        super().__init__()
        self.answers = answers
        self.n = n


@dataclass(frozen=True, slots=True)
class Readings:
    """Answers of a reader.

    Attributes:
        answers: question id -> answers, best first; not those on which it failed.
        wall_ns: int64, one call for each question, in their order, failed ones included.
        status: one for each question: "ok", or why it failed.
    """

    answers: Mapping[str, tuple[Answer, ...]]
    wall_ns: NDArray[np.int64]
    status: tuple[str, ...]


def read_all(
    reader: Reader,
    questions: Sequence[Query],
    documents: Sequence[Sequence[Document]],
    n: int,
    *,
    clock: Callable[[], int] = time.perf_counter_ns,
    progress: Callable[[int, int], None] | None = None,
) -> Readings:
    """Ask ``reader`` once for each question; only its call is timed.

    A first call that is not kept loads what is loaded at the first call.

    Args:
        documents: for each question, those that were found for it, best first.

    Raises:
        ContractError: more than ``n`` answers, or one that is not in the documents.
        ReadingInterrupted: Ctrl-C; with the answers so far.
    """
    answers: dict[str, tuple[Answer, ...]] = {}
    wall = np.zeros(len(questions), dtype=np.int64)
    status: list[str] = []
    first, process = True, os.getpid()
    try:
        for at, (question, documents_of) in enumerate(zip(questions, documents, strict=True)):
            for _ in range(2 if first else 1):
                start = clock()
                try:
                    given, failure = reader.read(question, documents_of, n), OK
                except HarnessError as problem:
                    problem.where = f"question {question.id!r}" + (
                        f"; {problem.where}" if problem.where else ""
                    )
                    problem.args = (problem.render(),)
                    raise
                except KeyboardInterrupt:
                    raise
                except BaseException as problem:  # also SystemExit: it must not end the reading
                    end_if_forked(process)
                    given, failure = (), message_of(problem)
                end_if_forked(process)
                wall[at] = clock() - start
            first = False
            status.append(secrets.redact(failure))
            if failure == OK:
                answers[question.id] = _checked(given, question, documents_of, n)
            if progress:
                progress(at + 1, len(questions))
    except KeyboardInterrupt:
        raise ReadingInterrupted(answers, len(questions)) from None
    return Readings(answers, wall, tuple(status))


def _checked(
    given: Sequence[Answer], question: Query, documents: Sequence[Document], n: int
) -> tuple[Answer, ...]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(a, Answer) for a in given):
        raise _broken(question, shown(given), "a list of Answers")
    if len(given) > n:
        raise _broken(question, f"{len(given)} answers", f"at most {n}")
    texts = {document.id: document.text for document in documents}
    for i, answer in enumerate(given):
        if answer.score is not None and not math.isfinite(answer.score):
            raise _broken(question, f"answers[{i}] with the score {answer.score}", "finite numbers")
        if answer.span is None:
            continue
        document, start, end = answer.span
        if not answer.text:
            raise _broken(question, f"answers[{i}] is empty and has a span", "no span, or a text")
        if not isinstance(document, str) or document not in texts:
            message = f"answers[{i}] in {shown(document)}, which is not among its documents"
            raise _broken(question, message, "the id of one of the documents")
        if not _is_position(start) or not _is_position(end):
            message = f"answers[{i}] with start {shown(start)} and end {shown(end)}"
            raise _broken(question, message, "whole numbers")
        text = texts[document]
        if not 0 <= start <= end <= len(text) or text[start:end] != answer.text:
            message = (
                f"answers[{i}] {shown(answer.text)} at {start} to {end} of {shown(document)}, "
                f"{len(text):,} characters long, where {shown(text[max(0, start) : end])} stands"
            )
            raise _broken(question, message, "text == document.text[start:end], in characters")
    known = (a if a.score is None else replace(a, score=float(a.score)) for a in given)
    return tuple(known) or (Answer(""),)


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _broken(question: Query, what: str, accepted: str) -> ContractError:
    return ContractError(
        f"the reader gave {what}",
        where=f"question {question.id!r}",
        accepted=accepted,
        fix="correct the reader",
    )
