"""``cases``: one file of questions with their truth, under the words that teams use.

YAML, JSON, JSON lines, CSV or TSV. Ids of documents become judgements, with which all metrics are
defined; phrases and sources become rules, which have slots. A file with both is refused, since no
mean would stand for all of it; ``case_rules`` takes it, with ids as rules too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from retrieval_bench.core.config import YAML_FAULTS
from retrieval_bench.core.errors import counted
from retrieval_bench.data import parts
from retrieval_bench.data.catalog import pinned
from retrieval_bench.data.faults import Faults, Place, shown
from retrieval_bench.data.files.lines import existing, first_line, json_file, kind_of, lines
from retrieval_bench.data.files.rows import in_cells, rows
from retrieval_bench.data.formats import formats
from retrieval_bench.data.settings import CONFIG_NAME, Columns, DatasetConfig, read_dataset_config
from retrieval_bench.data.source import DataFormat, Files, Found, Source, held_stream, whole
from retrieval_bench_rules.formats.case import NAMED, Case, Cases, How, Row
from retrieval_bench_rules.formats.words import LISTS, WORDS
from retrieval_bench_rules.formats.written import first_lines, parse_as_written
from retrieval_bench_rules.rules import EXPECT, FORBID

_YAML = (".yaml", ".yml")
_NAMES, _ENDINGS = ("cases", "golden"), (*_YAML, ".json", ".jsonl", ".csv", ".tsv")
_TRUTHS = [*list(WORDS)[3:9], EXPECT, FORBID]
"""Kinds that become rules."""


def open_source(files: Files, columns: Columns, faults: Faults, *, ids_are_rules: bool) -> Source:
    """The cases of a file as queries, and its ids as judgements where they are not to be rules."""
    path = whole(files.queries)
    cases = read_cases(path, columns, faults, ids_are_rules=ids_are_rules)
    if cases.ruled and cases.judged:
        ids, rules = (
            " or ".join(word for kind in kinds for word in cases.used.get(kind, ()))
            for kinds in (["ids"], _TRUTHS)
        )
        faults.of(path).error(
            cases.judged[0] if cases.judged[0] not in cases.ruled else None,
            f"ids ({ids}) in {counted(len(cases.judged), 'case')} beside rules ({rules}) in "
            f"{len(cases.ruled):,}: ids are judgements of documents, rules have metrics of their "
            "own, and no mean holds for both",
            f"one kind in a file; or, in {CONFIG_NAME}, `format: case_rules`, with which ids are "
            "rules too",
        )
    documents = None
    if files.documents is not None:
        documents = parts.documents(files.documents, columns.documents)
    judgements = held_stream(str(path), cases.judgements) if cases.judged else None
    return Source(documents, held_stream(str(path), cases.queries), judgements)


def read_cases(path: Path, columns: Columns, faults: Faults, *, ids_are_rules: bool) -> Cases:
    """Read a file of cases; what is wrong with it is reported."""
    report, cases = faults.of(path), Cases()
    own = columns.rows
    given = {"question": own.question, "id": own.id, "ids": own.documents, "phrases": own.sources}
    named = {kind: name for kind, name in given.items() if name is not None}
    names = {
        kind: (named[kind],)
        if kind in named
        else tuple(w for w in words if w not in named.values())
        for kind, words in WORDS.items()
    }
    how = How(names, own.separator, in_cells(path), ids_are_rules)
    read = list(_rows(path, faults))
    cases.taken |= {str(row[word]) for _, row in read for word in names["id"] if word in row}
    for number, (place, row) in enumerate(read, start=1):
        Case(row, place, how, report, cases).read(number)
    if not cases.queries and not report.count:
        report.error(None, "no cases", "at least one with a question")
    unanswerable = any(not query.answerable for _, query in cases.queries)
    if not (cases.ruled or cases.judged or unanswerable or report.count):
        keys = ", ".join(map(shown, cases.unread)) or "none"
        words = f"{', '.join(names['phrases'][:3])} and others of the guide; or name yours: {NAMED}"
        report.error(None, f"no case says what is to be found; other words: {keys}", words)
    return cases


def _rows(path: Path, faults: Faults) -> Iterator[tuple[Place, Row]]:
    kind, report = kind_of(path), faults.of(path)
    starts: list[int] = []
    if kind in _YAML:
        held, starts = _yaml(path, faults)
    elif kind == ".json" and first_line(path).lstrip()[:1] == "{" and not _is_json_lines(path):
        held = json_file(path, faults)
    else:
        yield from rows(path, (), faults)
        return
    where = ""
    if isinstance(held, Mapping):
        lists = [key for key in LISTS if isinstance(held.get(key), list)]
        if len(lists) != 1:
            keys = ", ".join(map(str, held)) or "nothing"
            report.error(None, f"an object with {keys}", f"a list, or one under {', '.join(LISTS)}")
            return
        where, held = lists[0], held[lists[0]]
    for at, item in enumerate(held if isinstance(held, list) else (), start=1):
        place = f"{where}[{at}]" + (f" (line {starts[at - 1]})" if at <= len(starts) else "")
        if isinstance(item, Mapping):
            yield place, {str(key): value for key, value in item.items()}
        else:
            report.error(place, shown(item), "an object with a question and its truth")
    if not isinstance(held, list) and not report.count:
        report.error(None, shown(held), "a list of cases")


def _is_json_lines(path: Path) -> bool:
    try:
        first = json.loads(first_line(path))
    except ValueError:
        return False
    return not any(isinstance(first.get(key), list) for key in LISTS)


def _yaml(path: Path, faults: Faults) -> tuple[Any, list[int]]:
    """What the file holds, and the line in which each case of it begins."""
    text = "\n".join(line for _, line in lines(path, faults))
    try:
        if faults.of(path).count:
            return [], []
        return parse_as_written(text), first_lines(text, LISTS)
    except YAML_FAULTS as problem:
        mark = getattr(problem, "problem_mark", None)
        what = getattr(problem, "problem", None) or "it cannot be read"
        faults.of(path).error(
            mark and mark.line + 1, f"no YAML: {what}", "YAML; in {} put texts in quotes"
        )
        return [], []


def understood(source: str | None) -> tuple[str, ...]:
    """Say how the file of a dataset of cases was read; nothing of any other."""
    folder = Path(pinned(source or ""))
    folder = folder.parent if folder.name == CONFIG_NAME else folder
    if source is None or not folder.is_dir():
        return ()
    if (folder / CONFIG_NAME).is_file():
        config = read_dataset_config(folder / CONFIG_NAME)
    else:
        layouts = (name for name, layout in formats().items() if layout.find(folder) is not None)
        config = DatasetConfig(format=next(layouts, ""))
    usual = _find(folder)
    name = config.files.queries or (None if usual is None else usual.queries)
    if config.format not in FORMATS or not isinstance(name, str):
        return ()
    file = folder / name
    cases = read_cases(file, config.columns, Faults(), ids_are_rules=config.format == "case_rules")
    said = [f"{kind} from {' and '.join(map(repr, words))}" for kind, words in cases.used.items()]
    text = f"{file.name}: {counted(len(cases.queries), 'case')}; {', '.join(said)}."
    told = {*map(str, cases.ruled), *map(str, cases.judged)}
    without = sum(str(place) not in told and query.answerable for place, query in cases.queries)
    more = [f"{counted(without, 'case')} without any truth: not run."] * bool(without)
    other = ", ".join(map(repr, cases.unread))
    return (text, *more, *[f"Kept as metadata, and not as truth: {other}."] * bool(other))


def _find(folder: Path) -> Found | None:
    """A file by one of the names that such files have; documents beside it are documents.jsonl."""
    name = existing(folder, *(f"{stem}{end}" for stem in _NAMES for end in _ENDINGS))
    return None if name is None else Found(existing(folder, "documents.jsonl"), name)


def _format(layout: str, *, ids_are_rules: bool) -> DataFormat:
    return DataFormat(
        layout,
        ("queries",),
        partial(open_source, ids_are_rules=ids_are_rules),
        find=_find,
        columns=("documents", "rows"),
        read_only="it takes the words that people use, and has none of its own",
        sharded=("documents",),
    )


CASES = _format(
    "cases: one file of questions with their truth, cases.yaml or golden.yaml (also .json, .jsonl, "
    ".csv), or one that dataset.yaml names as queries",
    ids_are_rules=False,
)
CASE_RULES = _format("case_rules: the same, with ids as rules", ids_are_rules=True)
FORMATS = ("cases", "case_rules")
