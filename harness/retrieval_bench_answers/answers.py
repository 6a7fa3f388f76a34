"""Gold answers in SQuAD layout and the answers of a reader, checked against each other.

Gold: SQuAD versions 1 and 2, one JSON file (:mod:`.formats.squad`); a document is a paragraph
and its id is :func:`.paragraph_id` of the text. Answers, one file of

* SQuAD JSON, ``{question id: text}``: one answer a question, without offsets; or
* JSON lines, ``{"id", "answers": [{"text", "document", "start", "end", "score"}]}``, best answer
  first, whatever the scores say.

Either may be packed. Positions count Unicode characters (code points, not bytes
and not UTF-16 units) of the document from 0. ``start`` is the first character, **``end`` stands
behind the last one**: ``text == passage[start:end]``, as Haystack 0.x writes
``offset_end_in_doc``. A gold answer of SQuAD therefore has ``start = answer_start`` and
``end = answer_start + len(text)``.

An answer without ``document`` is one in the question's own paragraph.

An empty, blank or null text says that there is no answer; it needs no document and no offsets
(``start == end`` is let pass). A file of JSON lines gives offsets for all its other answers or for
none; without them only texts can be scored. ``score`` may be left out.

Errors, all told at once with file and line (or place in the JSON value): what is no JSON or has
not the fields above, NaN and infinite scores, repeated question ids, offsets for some answers
only, ``end`` before ``start``, offsets outside the passage, a text that is not the passage's
there, offsets on an empty answer, a file without questions or without predictions, and, when the
answers have offsets, gold offsets that are missing or do not fit.

Warnings, counted with their first places, because the answer can be scored nonetheless:

* questions without a prediction: they score 0;
* predictions for questions that are not in the gold file: not scored;
* answers in documents that are not in the gold file: wrong, their offsets unchecked;
* texts that differ from the passage in blanks or case only;
* scores that rise along a list: the order of the list counts;
* empty lists of answers: one empty answer;
* gold answers without text: left out, as the official script does; a question that has no other
  is one without an answer;
* answers of questions that are marked impossible (they count as answerable) and questions
  without both answers and mark (they do not): as in the official script, the answers decide;
* gold offsets that do not fit, where the answers have no offsets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.data.faults import Faults, FileFaults, Place, reporting, shown
from retrieval_bench.data.files.lines import first_line, json_file, json_lines, kind_of, parse_json
from retrieval_bench.data.source import objects, take_id, take_text
from retrieval_bench_exchange.formats.squad import paragraph_id, paragraphs

_LINE = '{"id": ..., "answers": [{"text", "document", "start", "end", "score"}, ...]}'
_OFFSETS = "positions in the passage, 0 <= start <= end <= its length, text == passage[start:end]"
OWN = ""
"""Stands for the document of the question until the gold file is read."""

_ONCE = "each question once"
_COUNTED = "counted in Unicode characters"


class Span(NamedTuple):
    """A piece of a document: ``start`` is its first character, ``end`` stands behind the last."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """Gold answers of one question.

    Attributes:
        texts: distinct right answers, none when the question has no answer.
        spans: where they stand, distinct; those whose offsets do not fit are not among them.
        documents: ids of the documents that hold an answer.
    """

    id: str
    texts: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    documents: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """True if there is a right answer."""
        return bool(self.texts)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a reader; an empty text says that there is no answer, and has no span."""

    text: str
    span: Span | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Predictions:
    """The answers of a reader.

    Attributes:
        answers: question id -> at least one answer, best first.
        has_spans: whether every answer with a text has its span.
    """

    answers: Mapping[str, tuple[Answer, ...]]
    has_spans: bool


@dataclass(frozen=True, slots=True)
class ReaderData:
    """Gold, in the order of its file, and the predictions; ``warnings`` in plain words."""

    gold: tuple[GoldQuestion, ...]
    predictions: Predictions
    warnings: tuple[str, ...] = ()


class Given(NamedTuple):
    """The answers to one question, and where they stand."""

    place: Place
    answers: tuple[Answer, ...]


def read_answers(gold: Path | str, predictions: Path | str) -> ReaderData:
    """Gold and predictions of two files; see the module for both formats and for the warnings.

    Raises:
        DataError: everything that is wrong in both files.
    """
    gold_path, path = user_path(gold), user_path(predictions)
    with reporting("the gold or the predictions", f"{gold_path}, {path}") as faults:
        found, has_spans = read_predictions(path, faults)
        questions, passages, own = _gold(gold_path, faults, spans_needed=has_spans)
        found = {question: at_home(read, own.get(question)) for question, read in found.items()}
        compare(found, questions, passages, faults.of(path))
    answers = {question: read.answers for question, read in found.items()}
    return ReaderData(tuple(questions.values()), Predictions(answers, has_spans), faults.warnings())


def read_predictions(path: Path, faults: Faults) -> tuple[dict[str, Given], bool]:
    """The answers in a file, not yet compared with any gold, and whether they have spans."""
    as_lines = _is_json_lines(path)
    predictions = _json_lines(path, faults) if as_lines else _squad_json(path, faults)
    if not predictions and not faults.count:
        faults.of(path).error(None, "no predictions", f"{{question id: text}}, or {_LINE}")
    return predictions, as_lines and _have_spans(predictions, faults.of(path))


def _is_json_lines(path: Path) -> bool:
    if kind_of(path) in (".jsonl", ".ndjson"):
        return True
    try:
        value = parse_json(first_line(path))
    except ValueError:
        return False
    return isinstance(value, dict) and isinstance(value.get("answers"), list)


def _squad_json(path: Path, faults: Faults) -> dict[str, Given]:
    report = faults.of(path)
    whole = json_file(path, faults)
    predictions: dict[str, Given] = {}
    if not isinstance(whole, dict):
        if not report.count:
            report.error(None, f"{shown(whole)}", f"{{question id: text}}, or {_LINE}")
        return predictions
    for question, text in whole.items():
        place = f"[{shown(question)}]"
        if text is None or isinstance(text, str):
            predictions[question] = Given(place, (Answer(_content(text)),))
        else:
            report.error(place, f"{shown(text)}", "the text of the answer, empty for none")
    return predictions


def _json_lines(path: Path, faults: Faults) -> dict[str, Given]:
    report = faults.of(path)
    predictions: dict[str, Given] = {}
    places: dict[str, int] = {}
    for number, record in json_lines(path, faults):
        question = take_id(record, "id", number, report)
        answers = _answers(record.get("answers"), number, report)
        if question is None or report.repeats("id", question, number, places, _ONCE):
            continue
        if answers is not None:
            predictions[question] = Given(number, answers)
    return predictions


def _answers(raw: Any, place: Place, report: FileFaults) -> tuple[Answer, ...] | None:
    if not isinstance(raw, list):
        report.error(place, f"answers is {shown(raw)}", _LINE)
        return None
    if not raw:
        report.warn("empty lists of answers, each read as one empty answer", place)
        return (Answer(""),)
    read: list[Answer] = []
    for i, item in enumerate(raw):
        try:
            read.append(_answer(item))
        except _RefusedError as refusal:
            report.error(place, f"answers[{i}]{refusal.found}", refusal.accepted)
    scores = [answer.score for answer in read if answer.score is not None]
    if any(later > earlier for earlier, later in pairwise(scores)):
        kind = "lists of answers in which scores rise, the order of the list counts"
        report.warn(kind, place)
    return tuple(read)  # the others are refused already; these are still compared with the gold


class _RefusedError(Exception):
    """An answer that cannot be read: what was found, behind its name, and what is accepted."""

    def __init__(self, text: str, accepted: str) -> None:
        super().__init__(text)
        self.found = text
        self.accepted = accepted


def _answer(item: Any) -> Answer:
    if not isinstance(item, dict):
        raise _RefusedError(f" is {shown(item)}", "an object with a text")
    if "text" not in item or not (item["text"] is None or isinstance(item["text"], str)):
        message = f".text is {shown(item['text'])}" if "text" in item else " has no 'text'"
        raise _RefusedError(message, "a text, empty or null when there is no answer")
    score = item.get("score")
    if score is not None and not _is_finite(score):
        raise _RefusedError(f".score is {shown(score)}", "a finite number")
    text = _content(item["text"])
    return Answer(text, _span(item, text), score)


def _span(item: dict[str, Any], text: str) -> Span | None:
    start, end = item.get("start"), item.get("end")
    if start is None and end is None:
        return None
    if not (_is_position(start) and _is_position(end)) or end < start:
        message = f" has start {shown(start)} and end {shown(end)}"
        raise _RefusedError(message, f"{_OFFSETS}, {_COUNTED}")
    if not text:
        if start != end:
            message = f" is empty and has start {start} and end {end}"
            raise _RefusedError(message, "no offsets, or a text")
        return None
    document = item.get("document", OWN)
    if not isinstance(document, str) or (not document and "document" in item):
        accepted = "the id of the passage that holds the answer, or none for the question's own"
        raise _RefusedError(f".document is {shown(document)}", accepted)
    return Span(document, start, end)


def _content(text: str | None) -> str:
    return "" if text is None or text.isspace() else text


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_position(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _have_spans(predictions: Mapping[str, Given], report: FileFaults) -> bool:
    """Return whether all answers with a text have spans; a mixture is a fault."""
    without: list[tuple[Place, int]] = []
    with_span = 0
    for read in predictions.values():
        for i, answer in enumerate(read.answers):
            if answer.span is not None:
                with_span += 1
            elif answer.text:
                without.append((read.place, i))
    if with_span:
        for place, i in without:
            report.error(
                place,
                f"answers[{i}] has no offsets, others of this file have them",
                "document, start and end for every answer with a text, or for none",
            )
    return not without


def at_home(read: Given, document: str | None) -> Given:
    """``read`` with the question's own ``document`` for answers that name none."""
    if document is None:
        return read
    return read._replace(
        answers=tuple(
            replace(answer, span=answer.span._replace(document=document))
            if answer.span is not None and answer.span.document == OWN
            else answer
            for answer in read.answers
        )
    )


def _gold(
    path: Path, faults: Faults, *, spans_needed: bool
) -> tuple[dict[str, GoldQuestion], dict[str, str], dict[str, str]]:
    """Questions by id, passages by document id, and the document of each question."""
    report = faults.of(path)
    questions: dict[str, GoldQuestion] = {}
    places: dict[str, str] = {}
    passages: dict[str, str] = {}
    own: dict[str, str] = {}
    for at, _, context, qas in paragraphs(path, faults):
        document = paragraph_id(context)
        passages[document] = context
        for place, record in objects(qas, f"{at}.qas", report):
            question = take_id(record, "id", place, report)
            if question is None or report.repeats("id", question, place, places, _ONCE):
                continue
            own[question] = document
            passage = Passage(document, context, spans_needed)
            questions[question] = gold_question(question, record, passage, place, report)
    if not questions and not report.count:
        report.error(None, "no questions", "paragraphs with questions under 'qas'")
    return questions, passages, own


class Passage(NamedTuple):
    """The document that a question was asked about, and whether its answers must say where."""

    document: str
    text: str
    spans_needed: bool


def gold_question(
    question: str, record: Mapping[str, Any], passage: Passage, place: str, report: FileFaults
) -> GoldQuestion:
    """Read the right answers to a question from its ``answers`` and ``is_impossible``; faults are
    told."""
    texts: dict[str, None] = {}
    spans: dict[Span, None] = {}
    impossible = record.get("is_impossible") is True
    raw = record.get("answers", [] if impossible else None)
    for at, answer in objects(raw, f"{place}.answers", report):
        text = take_text(answer, "text", at, report)
        if text is None:
            continue
        if not _content(text):
            report.warn("gold answers without text, left out", at)
            continue
        texts[text] = None
        start = answer.get("answer_start")
        if _is_position(start) and passage.text.startswith(text, start):
            spans[Span(passage.document, start, start + len(text))] = None
        else:
            _report_gold_offset(answer, passage, at, report)
    if texts and impossible:
        report.warn("questions marked impossible with answers, counted as answerable", place)
    elif raw == [] and not impossible:
        report.warn("questions with neither answers nor is_impossible, counted as without", place)
    documents = (passage.document,) if texts else ()
    return GoldQuestion(question, tuple(texts), tuple(spans), documents)


def _report_gold_offset(
    answer: dict[str, Any], passage: Passage, place: str, report: FileFaults
) -> None:
    start = answer.get("answer_start")
    if start is None and not passage.spans_needed:
        return
    message = f"{shown(answer['text'])} does not stand at answer_start {shown(start)}"
    if passage.spans_needed:
        accepted = f"the position of the text in its passage, {_COUNTED} from 0"
        report.error(place, message, accepted)
    else:
        report.warn(
            "gold answers with an answer_start that does not fit, only the text counts", place
        )


def compare(
    predictions: Mapping[str, Given],
    questions: Mapping[str, GoldQuestion],
    passages: Mapping[str, str],
    report: FileFaults,
) -> None:
    """Report what does not fit together: predictions and questions without each other, and offsets
    that are not those of the passage."""
    for question, read in predictions.items():
        if question not in questions:
            kind = "predictions for questions that are not in the gold file, not scored"
            report.warn(kind, read.place, shown(question))
        for i, answer in enumerate(read.answers):
            _check_slice(answer, f"answers[{i}]", passages, read.place, report)
    for question in questions:
        if question not in predictions:
            report.warn("questions without a prediction, scored 0", None, shown(question))


def _check_slice(
    answer: Answer, name: str, passages: Mapping[str, str], place: Place, report: FileFaults
) -> None:
    if answer.span is None:
        return
    document, start, end = answer.span
    passage = passages.get(document)
    if passage is None:
        kind = "answers in documents that are not in the gold file, offsets not checked"
        report.warn(kind, place, f"{name} in {shown(document)}")
        return
    if end > len(passage):
        message = f"{name} has end {end}, its passage has {len(passage):,} characters"
        report.error(place, message, f"{_OFFSETS}, {_COUNTED}")
        return
    there = passage[start:end]
    if there == answer.text:
        return
    if _bare(there) == _bare(answer.text):
        report.warn("texts that differ from the passage in blanks or case", place, name)
    else:
        message = f"{name}.text is {shown(answer.text)}, its passage has {shown(there)} there"
        report.error(place, message, f"{_OFFSETS}, {_COUNTED}")


def _bare(text: str) -> str:
    return "".join(text.split()).casefold()
