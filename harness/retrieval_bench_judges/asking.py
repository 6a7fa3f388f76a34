"""A judge is asked for what it has not judged yet: resumable, and no dearer than allowed."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Task
from retrieval_bench_judges.judges import RefusedError, Source
from retrieval_bench_judges.record import JudgeRecord
from retrieval_bench_labels.label import Kind, Label, Pair
from retrieval_bench_labels.store import Store

NOTE = 200
"""Characters of an answer that stand in the note of its label; the record has all of it."""


@dataclass(frozen=True, slots=True)
class Asked(Documented):
    """A judge that was asked, and how far it came.

    Attributes:
        judge: its name.
        file: of the labels.
        asked: calls that were made now.
        labels: grades among their answers.
        unread: answers without a grade; they are kept, and not asked for again.
        left: documents that it has not judged.
        unchanging: documents of queries for which all systems return the same, which no label
            changes: they are not asked for.
        calls: that were ever made.
        cut_off: of these, calls that failed, or whose answer was lost when a process ended.
        tokens, cost: of all calls, where they are reported; null where not.
        stopped: why documents are left; empty where none is.
    """

    judge: str
    file: str
    asked: int
    labels: int
    unread: int
    left: int
    unchanging: int
    calls: int
    cut_off: int
    tokens: float | None
    cost: float | None
    stopped: str


def ask_judge(
    store: Store,
    who: str,
    source: Source,
    *,
    workers: int = 1,
    max_cost: float | None = None,
    prompted: Sequence[str] = (),
    again: int = 0,
    task: Task | None = None,
) -> Asked:
    """Ask for all that ``who`` has not judged; each answer is on disk before the next call.

    Args:
        workers: calls at a time.
        max_cost: no call is made that might spend more, by what calls cost until now.
        prompted: ids of queries that stand in the judge's prompt: they never count as judged by
            people and model.
        again: documents, drawn at random among all, that it is asked about twice; the first answer
            counts.
        task: told how far it is.

    Raises:
        ConfigError: the name is that of a person, or of another model or prompt, a query is not in
            the pool, or a limit of cost where no cost is reported.
        HarnessError: the judge failed; what it answered is kept.
    """
    if others := store.kinds(who) - {Kind.MODEL}:
        raise ConfigError(
            f"{who!r} is the name of a {others.pop().value} whose labels are in the file",
            where="--who",
            accepted="another name for this model",
            fix="give it a name of its own, such as gpt-5",
        )
    pool, record = store.pool(), JudgeRecord(store.path, who)
    facts = {**source.facts, "prompted": sorted(prompted)}
    record.describe(facts)
    changing = [q for q in pool.queries if q.weight > 0 or len(pool.systems) == 1]
    said = {label.pair for label in store.labels() if label.who == who}
    wanted = [(q.text, pair, False) for q in changing for pair in q.pairs if pair not in said]
    first = len(wanted)
    twice = [(q.text, pair, True) for q in changing for pair in q.pairs]
    twice = random.Random(pool.seed).sample(twice, min(again, len(twice)))
    known = record.again()
    wanted += [item for item in twice if item[1] not in known]
    digests = pool.digests()
    work = _Work(record, wanted, max_cost)

    def ask_on() -> None:
        while (item := work.next_call()) is not None:
            call, text, pair, repeated = item
            try:
                answer = source.ask(text, pool.documents[pair.doc_id])
            except RefusedError:
                record.forget(call)
                raise
            note = answer.answer[:NOTE]
            label = Label(pair, who, answer.grade, Kind.MODEL, digests[pair], note)
            record.finish(call, label, answer, again=repeated)
            work.done(first=not repeated, graded=answer.grade is not None)
            if task is not None:
                task(work.asked, len(wanted))

    try:
        with ThreadPoolExecutor(workers) as threads:
            futures = [threads.submit(ask_on) for _ in range(workers)]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                work.halt()
                raise
    finally:
        record.describe(facts)
    spent = record.spent()
    return Asked(
        who,
        str(store.path),
        work.asked,
        work.graded,
        work.first - work.graded,
        first - work.first,
        len(pool.pairs) - sum(len(query.pairs) for query in changing),
        spent.calls,
        spent.cut_off,
        spent.tokens,
        spent.cost,
        work.stopped,
    )


class _Work:
    """The calls that are left, handed out one by one while they may be made.

    Args:
        wanted: text of a question, pair, and whether it is asked again, in their order.
        max_cost: of all calls ever made.
    """

    def __init__(
        self, record: JudgeRecord, wanted: Sequence[tuple[str, Pair, bool]], max_cost: float | None
    ) -> None:
        self._record, self._left, self._max_cost = record, iter(wanted), max_cost
        self._lock = threading.Condition()
        self._in_flight = self.asked = self.first = self.graded = 0
        self.stopped = ""

    def next_call(self) -> tuple[int, str, Pair, bool] | None:
        """The number of a call, which is kept by now, and what it asks; None where none is left or
        none may be made.

        Raises:
            ConfigError: a limit of cost, and a judge that reports none.
        """
        with self._lock:
            # What a call costs is known once the first is answered.
            while self._unknown() and not self.stopped:
                self._lock.wait()
            if not self.stopped and self._too_dear():
                self.stopped = f"the next call might spend more than {self._max_cost:g}"
            item = None if self.stopped else next(self._left, None)
            if item is None:
                return None
            self._in_flight += 1
            return self._record.begin(item[1]), *item

    def _unknown(self) -> bool:
        """Return whether a call is under way that will say what calls cost."""
        return (
            self._max_cost is not None and self._in_flight > 0 and self._record.spent().cost is None
        )

    def _too_dear(self) -> bool:
        if self._max_cost is None:
            return False
        spent = self._record.spent()
        if spent.cost is None and spent.calls > spent.cut_off:
            raise ConfigError(
                f"--max-cost {self._max_cost:g} with a judge that reports no cost",
                accepted="a function that gives cost, or price in the file of an endpoint",
                fix="make it report what a call costs, or leave --max-cost out",
            )
        least = (spent.cost or 0.0) + spent.dearest
        return self._max_cost <= 0 or least > self._max_cost * (1 + 1e-9)

    def done(self, *, first: bool, graded: bool) -> None:
        """Count an answer."""
        with self._lock:
            self._in_flight -= 1
            self.asked += 1
            self.first += first
            self.graded += first and graded
            self._lock.notify_all()

    def halt(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self.stopped = self.stopped or "stopped"
            self._lock.notify_all()
