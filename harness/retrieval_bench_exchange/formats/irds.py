"""``ir_datasets:NAME``: a dataset of the package ir_datasets, from its folder on this machine.

Nothing is downloaded unless that is asked for: without, a missing file is an error that says how
large it is, where it comes from and what fetches it. The package is an extra, imported here only.
"""

from __future__ import annotations

import difflib
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError, DataError, HarnessError, MissingDependencyError
from retrieval_bench.core.installed.installation import how_to_add
from retrieval_bench.core.types import Dataset, Document, Query
from retrieval_bench.data.build import build_dataset

PREFIX = "ir_datasets:"

WELL_KNOWN: Mapping[str, str] = {
    **{
        name: f"beir/{name}/test"
        for name in ("dbpedia-entity", "fever", "fiqa", "hotpotqa", "nfcorpus", "quora", "scifact")
    },
    **{
        name: f"beir/{name}" for name in ("arguana", "climate-fever", "nq", "scidocs", "trec-covid")
    },
    "msmarco": "msmarco-passage/dev/small",
    "touche": "beir/webis-touche2020/v2",
}
"""Names that people type, and what ir_datasets calls the data."""

QUERIES_IN_CORPUS = ("beir/arguana", "beir/quora")
"""Collections whose queries are documents of their id; BEIR scores them without such hits."""

_SPLITS = ("train", "dev", "test", "val", "validation", "eval")
_CATALOG = "https://ir-datasets.com"
_LANGUAGE = re.compile("[a-z]{2,3}")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Facts(Documented):
    """Facts that ir_datasets has of a dataset, before anything is fetched.

    Attributes:
        n_documents, n_queries, n_judgements: its size; None where it is not known.
        name, split: of the dataset.
        missing: addresses of the files that are not on this machine, the host that is asked first.
        by_hand: where files belong that are not on this machine and that nobody may hand on.
        size_bytes: of the files to fetch, as they come; None = not known.
        licence: what must be agreed to, word for word; empty = not stated by ir_datasets.
        page: where the catalogue tells more.
        folder: where files are kept.
    """

    name: str
    split: str
    n_documents: int | None
    n_queries: int | None
    n_judgements: int | None
    missing: tuple[str, ...]
    by_hand: tuple[str, ...]
    size_bytes: int | None
    licence: str
    page: str
    folder: str

    @property
    def complete(self) -> bool:
        """True if all files are on this machine."""
        return not self.missing and not self.by_hand


@dataclass(frozen=True, slots=True)
class Fetched(Documented):
    """A dataset of ``ir_datasets``.

    Attributes:
        facts: what is known before anything is fetched.
        fetched: whether its files were fetched now.
        fingerprint: of the dataset; null while files are missing.
    """

    KEYS = "*facts fetched fingerprint"

    facts: Facts
    fetched: bool
    fingerprint: str | None


def is_irds(name: object) -> bool:
    """Return whether a name of a dataset means one of ir_datasets."""
    return isinstance(name, str) and name.startswith(PREFIX)


def load_irds(name: str, split: str, *, download: bool = False) -> Dataset:
    """The dataset ``ir_datasets:NAME``, checked as a whole.

    Its field ``title`` is the title and ``text`` the text of a document (without such a field, what
    the package calls its default text); all other fields are metadata. The corpus is not held in
    memory.

    Args:
        split: where NAME has no judgements of its own, those of NAME/split.
        download: fetch files that are missing.

    Raises:
        MissingDependencyError: without the package.
        ConfigError: no such dataset or split, or files that are not here.
        DataError: a file cannot be fetched, or faults of the data.
    """
    given, split = _resolved(name, split)
    with _files(given, split, download=download):
        qrels: dict[str, dict[str, int]] = {}
        for judged in given.qrels_iter():
            grades = qrels.setdefault(str(judged.query_id), {})
            grade = int(judged.relevance)
            # Judgements by subtopic name a document several times: its best grade counts.
            grades[str(judged.doc_id)] = max(grade, grades.get(str(judged.doc_id), grade))
        queries = [_query(query) for query in given.queries_iter()]
        language = str(given.docs_lang() or "") if given.has_docs() else ""
        return build_dataset(
            given.dataset_id(),
            _Documents(given) if given.has_docs() else None,
            queries,
            qrels,
            split=split,
            language=language if _LANGUAGE.fullmatch(language) else None,
        )


def irds_facts(name: str, split: str) -> Facts:
    """Size, licence and source of a dataset; nothing is fetched.

    Raises:
        MissingDependencyError: without the package.
        ConfigError: no such dataset or split.
    """
    given, split = _resolved(name, split)
    return _facts(given, split)


class _Documents:
    """The corpus, read anew on each walk."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def __iter__(self) -> Iterator[Document]:
        return map(_document, self._given.docs_iter())

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        known = self._given.docs_count()
        return sum(1 for _ in self._given.docs_iter()) if known is None else int(known)


def _document(given: Any) -> Document:
    fields = given._asdict()
    doc_id = str(fields.pop("doc_id"))
    title = _text(fields.pop("title", None))
    text = _text(fields.pop("text")) if "text" in fields else _text(given.default_text())
    if title and "text" not in given._fields:
        title = ""  # it is part of the default text
    return Document(doc_id, text, title, _metadata(fields))


def _query(given: Any) -> Query:
    fields = given._asdict()
    query_id = str(fields.pop("query_id"))
    text = _text(fields.pop("text")) if "text" in fields else _text(given.default_text())
    return Query(query_id, text, metadata=_metadata(fields))


def _text(value: Any) -> str:
    """A field as text; missing values, which data frames write as NaN, are empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else str(value)


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of plain values."""
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, str | int | bool)
        or (isinstance(value, float) and math.isfinite(value))
    }


def _resolved(name: str, split: str) -> tuple[Any, str]:
    """The package's own object, and the split that it holds."""
    registry = _package().registry
    wanted = name.removeprefix(PREFIX).strip("/")
    candidates = [wanted, f"{wanted}/{split}"]
    last = wanted.rpartition("/")[2]
    if last in _SPLITS and last != split:
        if split != "test":  # which is what commands take when nothing is said
            raise ConfigError(
                f"split {split!r} of {name!r}, which is its split {last!r}",
                accepted=f"{PREFIX}{wanted.rpartition('/')[0]} with --split {split}",
                fix="leave the split out of the name, or out of the options",
            )
        candidates, split = [wanted], last
    known = [registry[candidate] for candidate in candidates if _known(registry, candidate)]
    if not known:
        close = difflib.get_close_matches(wanted, list(registry), n=3, cutoff=0.5)
        near = f"did you mean {' or '.join(PREFIX + item for item in close)}? " if close else ""
        raise ConfigError(
            f"ir_datasets has no dataset {wanted!r}",
            accepted=f"{near}all names: {_CATALOG}",
            fix="correct the name",
        )
    judged = [dataset for dataset in known if dataset.has_qrels() and dataset.has_queries()]
    if not judged:
        parts = sorted(part for part in registry if part.startswith(f"{wanted}/"))[:8]
        raise ConfigError(
            f"{PREFIX}{wanted} has no queries with judgements in split {split!r}",
            accepted=f"a part of it that has, such as {', '.join(parts)}" if parts else "another",
            fix=f"name one: {PREFIX}NAME; see {_CATALOG}",
        )
    return judged[0], split


def _known(registry: Any, name: str) -> bool:
    try:
        return name in registry and registry[name] is not None
    except KeyError:
        return False


def _package() -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise MissingDependencyError(
            f"a dataset {PREFIX}NAME needs the package ir_datasets, which is not installed",
            accepted="without it: a folder of your own, see the guide's page on data",
            fix=f"{how_to_add('ir-datasets')}, or pip install ir_datasets",
        ) from None
    return ir_datasets


@contextmanager
def _files(given: Any, split: str, *, download: bool) -> Iterator[None]:
    """Turn missing files into an error with all facts unless they may be fetched, and errors of the
    network or the package into ours."""
    try:
        if download:
            yield
        else:
            with _no_network():
                yield
    except _NotHereError:
        facts = _facts(given, split)
        if not facts.missing:
            raise _by_hand(given, ", ".join(facts.by_hand)) from None
        raise ConfigError(
            f"{PREFIX}{facts.name} is not on this machine: {size_text(facts)} to fetch from "
            f"{', '.join(facts.missing)}; licence: {licence_text(facts)}",
            where=facts.folder,
            fix=f"retrieval-bench data fetch {PREFIX}{facts.name} --download",
        ) from None
    except HarnessError:
        raise
    except FileNotFoundError as problem:
        raise _by_hand(given, str(problem)) from None
    except Exception as problem:
        # Errors of the network are among those of the system, and name their cause last.
        cause = _cause(problem)
        what = "fetched" if isinstance(cause, OSError) else "read"
        why = str(cause).rpartition("Caused by ")[2] or type(cause).__name__
        raise DataError(
            f"{PREFIX}{given.dataset_id()} cannot be {what}: {why}",
            where=", ".join(_facts(given, split).missing) or str(_package().util.home_path()),
            accepted="a host that can be reached, or the whole files in place",
            fix="try again later, or get the dataset elsewhere and name its folder: "
            "--dataset path/to/folder",
        ) from problem


def _cause(problem: Exception) -> Exception:
    """Say, where several hosts were asked and all failed, what the first of them said."""
    match problem.args:
        case (str(), [(_, Exception()), *_] as failed):
            said = (problem for _, problem in failed if not isinstance(problem, FileNotFoundError))
            return next(said, problem)
    return problem


def _by_hand(given: Any, place: str) -> DataError:
    return DataError(
        f"{PREFIX}{given.dataset_id()} needs a file that nobody may hand on: {place}",
        accepted="the file at that place",
        fix=f"get it as {_page(given)} says",
    )


class _NotHereError(Exception):
    """A file would have to be fetched."""


@contextmanager
def _no_network() -> Iterator[None]:
    """While this lasts, a file that is not on this machine is an error instead of a download."""
    download = _package().util.Download
    path, stream = download.path, download.stream

    def local_path(self: Any, force: bool = True) -> Any:
        if force and not _is_here(self):
            raise _NotHereError
        return path(self, force)

    def local_stream(self: Any) -> Any:
        if not _is_here(self):
            raise _NotHereError
        return stream(self)

    download.path, download.stream = local_path, local_stream
    logging.disable(logging.INFO)  # it tells of each file that it opens
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        download.path, download.stream = path, stream


def _is_here(download: Any) -> bool:
    places = [download._path, download._cache_path]
    places += [getattr(mirror, "_path", None) for mirror in download.mirrors]
    return any(place is not None and Path(place).exists() for place in places)


def _facts(given: Any, split: str) -> Facts:
    counts = given.metadata() or {}
    missing = [download for download in _downloads(given) if not _is_here(download)]
    addresses = [_address(item) for item in missing]
    sizes = [download._size_hint for download, url in zip(missing, addresses, strict=True) if url]
    agreed = dict.fromkeys(str(item.dua).strip() for item in missing if item.dua)
    places = [_place(download) for download, url in zip(missing, addresses, strict=True) if not url]
    known = all(size is not None for size in sizes)
    n_documents, n_queries, n_judgements = (
        counts.get(kind, {}).get("count") for kind in ("docs", "queries", "qrels")
    )
    return Facts(
        name=given.dataset_id(),
        split=split,
        n_documents=n_documents,
        n_queries=n_queries,
        n_judgements=n_judgements,
        missing=tuple(dict.fromkeys(url for url in addresses if url)),
        by_hand=tuple(dict.fromkeys(places)),
        size_bytes=sum(sizes) if known else None,
        licence=" ".join(agreed),
        page=_page(given),
        folder=str(_package().util.home_path()),
    )


def _address(download: Any) -> str:
    """Return where a file is fetched from, the host that is asked first; empty where there is
    none."""
    urls = (getattr(mirror, "url", "") for mirror in download.mirrors)
    return next((url for url in urls if url), "")


def _place(download: Any) -> str:
    """Return where a file that has no address belongs."""
    own = (getattr(mirror, "_path", None) for mirror in download.mirrors)
    return str(next(filter(None, own), download._cache_path))


def _downloads(given: Any) -> list[Any]:
    """The files that a dataset is made of, found in the package's own objects."""
    kind = _package().util.Download
    downloads: dict[int, Any] = {}
    seen: set[int] = set()

    def walk(value: Any, depth: int) -> None:
        if depth > _DEEPEST or id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, kind):
            downloads[id(value)] = value
        elif isinstance(value, list | tuple | dict):
            for part in value.values() if isinstance(value, dict) else value:
                walk(part, depth + 1)
        elif type(value).__module__.startswith("ir_datasets"):
            for part in _attributes(value):
                walk(part, depth + 1)

    for part in ("docs", "queries", "qrels"):
        if getattr(given, f"has_{part}")():
            walk(getattr(given, f"{part}_handler")(), 0)
    return list(downloads.values())


def _attributes(value: Any) -> Iterable[Any]:
    return list(getattr(value, "__dict__", {}).values())


def _page(given: Any) -> str:
    name = given.dataset_id()
    return f"{_CATALOG}/{name.partition('/')[0]}.html#{name}"


def licence_text(facts: Facts) -> str:
    """Quote the terms that must be agreed to, or say where to look."""
    return facts.licence or f"not stated by ir_datasets, see {facts.page}"


def size_text(facts: Facts) -> str:
    """Return how much there is to fetch, for people."""
    if facts.size_bytes is None:
        return "a size that is not known"
    return f"{facts.size_bytes / 1e6:,.1f} MB"


def fetch_command(name: str) -> str | None:
    """The command that gets a collection that is known by this name; None of any other."""
    known = WELL_KNOWN.get(name.casefold())
    return None if known is None else f"retrieval-bench data fetch {PREFIX}{known} --download"
