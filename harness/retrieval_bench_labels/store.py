"""One SQLite file with a pool and all that was said of it; every answer is on disk when it returns.

Answers are only ever added: undoing one marks it, and a new answer of the same person to the same
pair stands instead of the older one. Each answer keeps the digest of the texts that were read, so
that it no longer counts when one of them has changed; it stays in the file.

Several processes and threads may work on one file: each call opens it for itself, in WAL mode.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from retrieval_bench.core.errors import ConfigError, RecordError
from retrieval_bench.core.types import Document
from retrieval_bench.experiment.until import Target
from retrieval_bench_labels.label import GRADES, Kind, Label, Pair, Pool, PooledQuery

VERSION = 1
"""Of the layout of the file."""

EDITION = "edition"
"""The fact that counts how often a pool was put, so that whoever keeps one knows of another."""

_WAIT_S = 30.0
"""For which a call waits while another one writes."""

_LAYOUT = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS queries (
    place INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, text TEXT NOT NULL,
    weight REAL NOT NULL, known INTEGER NOT NULL, origin TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS documents (id TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pairs (
    query TEXT NOT NULL, place INTEGER NOT NULL, doc TEXT NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (query, doc));
CREATE TABLE IF NOT EXISTS lists (
    system TEXT NOT NULL, query TEXT NOT NULL, docs TEXT NOT NULL, PRIMARY KEY (system, query));
CREATE TABLE IF NOT EXISTS labels (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, query TEXT NOT NULL, doc TEXT NOT NULL,
    who TEXT NOT NULL, kind TEXT NOT NULL, grade INTEGER, digest TEXT NOT NULL, note TEXT NOT NULL,
    start INTEGER, stop INTEGER, at TEXT NOT NULL, source TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS of_pairs ON labels (query, doc);
CREATE INDEX IF NOT EXISTS of_people ON labels (who, seq);
CREATE TABLE IF NOT EXISTS claims (
    query TEXT NOT NULL, who TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (query, who));
"""

_FACTS = (
    "dataset", "source", "split", "fingerprint", "depth", "seed", "metric", "margin", "generation",
    "target", "systems", "failed", "guidelines", "cluster_key", "clusters",
)  # fmt: skip

_LABEL = "query, doc, who, kind, grade, digest, note, start, stop, at, source"


class Store:
    """The file.

    Args:
        path: of the file, which is there; :meth:`create` makes one.

    Raises:
        ConfigError: there is none.
        RecordError: it is none of ours, damaged, or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise ConfigError(
                "no file of labels",
                kind="no-file",
                where=str(path),
                accepted="a file that `retrieval-bench label pool` made",
                fix="make one: retrieval-bench label pool @last",
            )
        with self._open() as base:
            version = _fact(base, "version")
        if version != VERSION:
            raise RecordError(
                f"a file of labels of version {version}",
                where=str(path),
                accepted=f"version {VERSION}",
                fix="use the retrieval-bench that made it",
            )

    @classmethod
    def create(cls, path: Path) -> Store:
        """A new, empty file, or the one that is there.

        Raises:
            RecordError: it cannot be written.
        """
        if not path.exists():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                beside = path.with_name(f".{path.name}.{os.getpid()}")
                beside.unlink(missing_ok=True)
                with closing(sqlite3.connect(beside)) as base, base:
                    base.execute("PRAGMA journal_mode = WAL")  # kept in the file
                    base.executescript(_LAYOUT)
                    _set_fact(base, "version", VERSION)
                with suppress(FileExistsError):  # another process was first
                    os.link(beside, path)
                beside.unlink()
            except (OSError, sqlite3.Error) as problem:
                raise _unusable(path, problem) from None
        return cls(path)

    # -- the pool ----------------------------------------------------------------------------

    def put_pool(self, pool: Pool, others: Mapping[Pair, str] | None = None) -> None:
        """Keep ``pool`` instead of the one before; what was judged stays.

        Args:
            others: digests of pairs outside of the pool that were judged.
        """
        with self._open() as base, base:
            for table in ("queries", "documents", "pairs", "lists", "claims"):
                base.execute(f"DELETE FROM {table}")
            _set_fact(base, EDITION, int(str(_fact(base, EDITION) or 0)) + 1)
            for name in _FACTS:
                _set_fact(base, name, getattr(pool, name))
            queries = enumerate(pool.queries)
            rows = ((at, q.id, q.text, q.weight, q.known, q.origin) for at, q in queries)
            _fill(base, "queries", rows)
            documents = pool.documents.values()
            _fill(base, "documents", ((d.id, d.title, d.text) for d in documents))
            places = [at for query in pool.queries for at in range(len(query.documents))]
            asked = zip(places, pool.digests().items(), strict=True)
            _fill(base, "pairs", ((p.query_id, at, p.doc_id, of) for at, (p, of) in asked))
            outside = (others or {}).items()
            _fill(base, "pairs", ((p.query_id, -1, p.doc_id, of) for p, of in outside))
            for system, lists in pool.lists.items():
                found = ((system, query, json.dumps(list(docs))) for query, docs in lists.items())
                _fill(base, "lists", found)

    def pool(self) -> Pool:
        """The pool, with all texts.

        Raises:
            ConfigError: there is none in the file yet.
        """
        with self._open() as base:
            base.execute("BEGIN")  # one state of the file, whoever writes
            facts = {name: _fact(base, name) for name in _FACTS}
            if facts["systems"] is None:
                raise ConfigError(
                    "no pool in the file of labels",
                    where=str(self.path),
                    fix="make one: retrieval-bench label pool @last",
                )
            documents: dict[str, list[str]] = {}
            for query, doc in base.execute(
                "SELECT query, doc FROM pairs WHERE place >= 0 ORDER BY query, place"
            ):
                documents.setdefault(query, []).append(doc)
            queries = tuple(
                PooledQuery(id_, text, tuple(documents.get(id_, ())), weight, bool(known), origin)
                for _, id_, text, weight, known, origin in base.execute(
                    "SELECT * FROM queries ORDER BY place"
                )
            )
            texts = {
                id_: Document(id_, text, title)
                for id_, title, text in base.execute("SELECT id, title, text FROM documents")
            }
            lists: dict[str, dict[str, list[str]]] = {name: {} for name in facts["systems"]}
            for system, query, docs in base.execute("SELECT system, query, docs FROM lists"):
                lists[system][query] = json.loads(docs)
        guidelines = {int(grade): text for grade, text in facts.pop("guidelines").items()}
        systems = tuple(facts.pop("systems"))
        # Pools made before these were kept have none, as the target.
        failed, clusters = (facts.pop(name) or {} for name in ("failed", "clusters"))
        return Pool(
            **facts | {"target": Target(facts["target"] or Target.SPLIT)},
            failed={name: tuple(ids) for name, ids in failed.items()},
            clusters=clusters,
            systems=systems,
            lists=lists,
            queries=queries,
            documents=texts,
            guidelines=guidelines,
        )

    # -- labels ------------------------------------------------------------------------------

    def add(self, label: Label) -> int:
        """Keep one label; it is on disk when this returns.

        Returns:
            its number, in the order in which labels came.

        Raises:
            ConfigError: a grade that is none.
        """
        return self.add_all([label])

    def add_all(
        self,
        labels: Iterable[Label],
        beside: Callable[[sqlite3.Connection], None] = lambda base: None,
    ) -> int:
        """Keep labels, all or none, with what ``beside`` writes; the number of the last one of the
        file, 0 without any."""
        rows = [_row(label) for label in labels]
        marks = ", ".join("?" * (_LABEL.count(",") + 1))
        with self._open() as base, base:
            base.executemany(f"INSERT INTO labels ({_LABEL}) VALUES ({marks})", rows)
            beside(base)
            return int(base.execute("SELECT max(seq) FROM labels").fetchone()[0] or 0)

    def undo(self, who: str, number: int | None = None) -> Label | None:
        """Take back the last label that ``who`` made here, only if it has this ``number`` where one
        is given; None where nothing was taken back."""
        with self._open() as base, base:
            last = _last(base, who)
            if last is None or number not in (None, last[0]):
                return None
            base.execute("UPDATE labels SET undone = 1 WHERE seq = ?", (last[0],))
        return last[1]

    def withdraw(self, labels: Iterable[Label]) -> None:
        """Mark labels as undone: who said them says them no more."""
        with self._open() as base, base:
            base.executemany(
                "UPDATE labels SET undone = 1 "
                "WHERE query = ? AND doc = ? AND who = ? AND kind = ? AND grade IS ?",
                ((*label.pair, label.who, label.kind.value, label.grade) for label in labels),
            )

    def last(self, who: str) -> tuple[int, Label] | None:
        """Number and label of what :meth:`undo` would take back."""
        with self._open() as base:
            return _last(base, who)

    def kinds(self, who: str) -> set[Kind]:
        """Read the kinds that the labels under a name say that it is."""
        with self._open() as base:
            rows = base.execute("SELECT DISTINCT kind FROM labels WHERE who = ?", (who,))
            return {Kind(kind) for (kind,) in rows}

    def labels(self) -> list[Label]:
        """Read the labels that count: the last of each person on each pair that is not undone, in
        the order in which they came. Labels of pairs outside of the pool count, too."""
        return list(self._labels()[0].values())

    def history(self) -> list[Label]:
        """All that was ever said, also what was undone or said anew, in the order in which it
        came."""
        with self._open() as base:
            rows = base.execute(f"SELECT {_LABEL} FROM labels ORDER BY seq").fetchall()
        return list(map(_label, rows))

    def outdated(self) -> list[Label]:
        """Labels that no longer count, because a text of theirs is another one in the pool now."""
        counting, others = self._labels()
        said = {(label.pair, label.who) for label in counting.values()}
        return [label for label in others.values() if (label.pair, label.who) not in said]

    def _labels(self) -> tuple[dict[object, Label], dict[object, Label]]:
        """Read the labels that count, by pair and person, and the labels of other texts."""
        counting: dict[object, Label] = {}
        others: dict[object, Label] = {}
        with self._open() as base:
            digests = {
                Pair(query, doc): digest
                for query, doc, digest in base.execute("SELECT query, doc, digest FROM pairs")
            }
            rows = base.execute(f"SELECT {_LABEL} FROM labels WHERE NOT undone ORDER BY seq")
            for label in map(_label, rows):
                key = (label.pair, label.who)
                wanted = digests.get(label.pair, "")
                of = others if label.digest and wanted and label.digest != wanted else counting
                of.pop(key, None)
                of[key] = label
        return counting, others

    # -- who judges what ---------------------------------------------------------------------

    def claims(self) -> Mapping[str, Mapping[str, float]]:
        """Query id -> who has begun with it, and when, in seconds since the epoch."""
        claims: dict[str, dict[str, float]] = {}
        with self._open() as base:
            for query, who, at in base.execute("SELECT query, who, at FROM claims ORDER BY rowid"):
                claims.setdefault(query, {})[who] = at
        return claims

    def claim(self, query_id: str, who: str, most: int, idle: Collection[str] = ()) -> bool:
        """Let ``who`` have the query from now on, unless ``most`` others have it already; atomic.

        Args:
            idle: people whose claim no longer counts.
        """
        with self._open() as base, base:
            base.execute("BEGIN IMMEDIATE")
            rows = base.execute("SELECT who FROM claims WHERE query = ?", (query_id,)).fetchall()
            others = {row[0] for row in rows} - {who, *idle}
            if who not in {row[0] for row in rows} and len(others) >= most:
                return False
            base.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (query_id, who, time.time())
            )
        return True

    # -- small facts -------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """Read the fact kept under ``name``, None where nothing was."""
        with self._open() as base:
            return _fact(base, name)

    def set_fact(self, name: str, value: object) -> None:
        """Keep a value of JSON under ``name``."""
        with self._open() as base, base:
            _set_fact(base, name, value)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own, whose commits are on disk.

        Raises:
            RecordError: the file is damaged, locked for too long, or the disk is full.
        """
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as base:
                base.execute("PRAGMA synchronous = FULL")
                yield base
        except (sqlite3.Error, UnicodeEncodeError) as problem:
            raise _unusable(self.path, problem) from None


def now() -> str:
    """The time as labels keep it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _row(label: Label) -> tuple[object, ...]:
    own = label.kind is not Kind.DATASET  # datasets have scales of their own
    if own and label.grade is not None and label.grade not in GRADES:
        raise ConfigError(
            f"grade {label.grade}",
            where=f"query {label.pair.query_id!r}, document {label.pair.doc_id!r}",
            accepted=f"{GRADES[0]} to {GRADES[-1]}",
            fix="correct the grade",
        )
    said = (label.who, label.kind.value, label.grade, label.digest, label.note)
    return (*label.pair, *said, *(label.span or (None, None)), label.at or now(), label.source)


def _label(row: Sequence[Any]) -> Label:
    query, doc, who, kind, grade, digest, note, start, stop, at, source = row
    span = None if start is None else (start, stop)
    return Label(Pair(query, doc), who, grade, Kind(kind), digest, note, span, at, source)


def _last(base: sqlite3.Connection, who: str) -> tuple[int, Label] | None:
    row = base.execute(
        f"SELECT seq, {_LABEL} FROM labels WHERE who = ? AND source = '' AND NOT undone "
        "ORDER BY seq DESC LIMIT 1",
        (who,),
    ).fetchone()
    return None if row is None else (row[0], _label(row[1:]))


def _fill(base: sqlite3.Connection, table: str, rows: Iterable[Sequence[object]]) -> None:
    for row in rows:
        base.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _fact(base: sqlite3.Connection, name: str) -> Any:
    row = base.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if row is None else json.loads(row[0])


def _set_fact(base: sqlite3.Connection, name: str, value: object) -> None:
    base.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))


def _unusable(path: Path, problem: Exception) -> RecordError:
    return RecordError(
        f"cannot use the file of labels: {problem}",
        where=str(path),
        accepted="a file that `retrieval-bench label pool` made, in a folder that you may write to",
        fix="free some space, close what holds it, or name another file with --labels",
    )
