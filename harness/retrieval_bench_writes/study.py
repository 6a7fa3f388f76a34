"""The study: writes at Poisson times, and polls until each of them shows.

Three rounds: every probe is added, replaced by another version, and deleted. The times of a round
are drawn before it begins, so that they know nothing of the engine: a write that waited for the one
before to show would always come just behind a refresh. Polls take turns, the earliest due first;
writes are made beside them, several at once, where the retriever may be called by several threads,
else in turn with them. Clock and sleep are arguments: all rules are tested without waiting.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from retrieval_bench.core.calls.failures import Kind as FailureKind
from retrieval_bench.core.calls.failures import TransientError
from retrieval_bench.core.calls.foreign import message_of
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Document, Query, Ranking
from retrieval_bench_writes.executors import InTurn
from retrieval_bench_writes.journal import Journal
from retrieval_bench_writes.probes import Probe

FIRST_POLL_S = 0.001
GROWTH = 1.1
"""Each poll is sent so many times as long after the acknowledgement as the one before: what is not
known of a delay is a tenth of it, and the time of a call."""

_CLEANED_AT_ONCE = 100


class Kind(StrEnum):
    """Kind of a write, one for each round."""

    ADD = "add"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(slots=True)
class Ends:
    """Between which two times a write showed, in seconds since its acknowledgement.

    Attributes:
        before: sending the last poll that did not show it; 0 where the first one did.
        after: receiving the first answer that showed it; infinite where none did.
        outdated: an answer held what was there before: a document that is deleted, a version that
            is replaced.
        back: a later answer did not show it any more.
        there: the last answer held the probe, in whichever version.
    """

    before: float = 0.0
    after: float = math.inf
    outdated: bool = False
    back: bool = False
    there: bool = False

    @property
    def shown(self) -> bool:
        """True if an answer showed it within the limit."""
        return math.isfinite(self.after)

    def narrow(
        self, sent: float, received: float, *, shows: bool, outdated: bool, there: bool
    ) -> None:
        """Take in a poll; ``received`` is infinite where that was over the limit."""
        self.there = there
        if self.shown:
            self.back |= not shows
        elif shows:
            self.after = received
        else:
            self.before = sent
            self.outdated |= outdated


@dataclass(slots=True, kw_only=True)
class Write(Ends):
    """A write, and what polls saw of it.

    Attributes:
        known: the legs that held the probe before; None where it is new.
        late_s: that it was sent behind its time.
        took_s: from sending it to its acknowledgement.
        acknowledged_s: when, by the clock; None where the engine did not.
        polls: that were answered.
        decided: it showed, also in every leg, or did not within the limit; False where the study
            was stopped before, or the last poll was not answered.
        legs: the same in the list of each leg of a hybrid.
    """

    kind: Kind
    probe: Probe
    known: frozenset[str] | None = None
    late_s: float = 0.0
    took_s: float = 0.0
    acknowledged_s: float | None = None
    polls: int = 0
    decided: bool = False
    legs: dict[str, Ends] = field(default_factory=dict)

    @property
    def questions(self) -> list[str]:
        """What a poll asks: the text that was written, and that of each version before it."""
        texts = self.probe.texts
        return [texts[0]] if self.kind is Kind.ADD else [*texts[::-1]]

    @property
    def document(self) -> Document:
        """The document that it writes."""
        return self.probe.document(int(self.kind is Kind.REPLACE))

    @property
    def gone(self) -> bool:
        """True if it was deleted, and no list of the last answer held it."""
        deleted = self.kind is Kind.DELETE and self.shown
        return deleted and not any(ends.there for ends in (self, *self.legs.values()))

    def then(self, kind: Kind) -> Write:
        """The next write of its probe."""
        known = frozenset(name for name, leg in self.legs.items() if leg.there)
        return Write(kind=kind, probe=self.probe, known=known)

    def take(self, answers: Sequence[Ranking], sent: float, received: float) -> bool:
        """Take in the answers to :attr:`questions`; says whether all is known."""
        self._narrow(self, answers, sent, received)
        for name, leg in answers[0].legs.items():
            if leg.doc_ids is not None and (self.known is None or name in self.known):
                lists = [Ranking(answer.legs[name].doc_ids or ()) for answer in answers]
                self._narrow(self.legs.setdefault(name, Ends()), lists, sent, received)
        return self.shown and all(leg.shown for leg in self.legs.values())

    def _narrow(self, ends: Ends, answers: Sequence[Ranking], sent: float, received: float) -> None:
        shows, outdated = self.seen_in(answers)
        there = self._there(answers)
        ends.narrow(sent, received, shows=shows, outdated=outdated, there=there)

    def _there(self, answers: Sequence[Ranking]) -> bool:
        return any(self.probe.id in answer.doc_ids for answer in answers)

    def seen_in(self, answers: Sequence[Ranking]) -> tuple[bool, bool]:
        """Say whether the answers to :attr:`questions` show the write, and whether they hold what
        is outdated.

        An added probe is in its answer, a deleted one is not. Of a replaced one the new version
        answers to the new text, and the old version no longer to the old one.
        """
        if self.kind is Kind.REPLACE:
            new, old = (self._answers(answers, version) for version in (1, 0))
            return new and not old, old
        there = self._there(answers)
        return there is (self.kind is Kind.ADD), there and self.kind is Kind.DELETE

    def _answers(self, answers: Sequence[Ranking], version: int) -> bool:
        """Say whether a version of the probe answers to its own text: by the texts of the answer,
        where it has some with a word of one version; else it comes first, or further ahead than
        for the text of the other version. A document that a probe was made of may come before it.
        """
        of, other = (self._place(answers[1 - one]) for one in (version, 1 - version))
        if of is None:
            return False
        texts = answers[1 - version].texts
        held = [word in str(texts[of]) for word in self.probe.words] if texts is not None else []
        return held[version] if any(held) else of == 0 or other is None or of < other

    def _place(self, answer: Ranking) -> int | None:
        ids = list(answer.doc_ids)
        return ids.index(self.probe.id) if self.probe.id in ids else None


@dataclass(slots=True)
class Seen:
    """What a study saw.

    Attributes:
        left: probes that may still be there, each with a text that finds it.
        writes: all that were sent, in their order.
        seconds: of its rounds.
        busy_s: of these, in calls that took turns.
        polled: answers to polls.
        problems: messages of calls that failed, with how often.
        complete: all rounds came to their end.
    """

    left: Journal = field(default_factory=Journal)
    writes: list[Write] = field(default_factory=list)
    seconds: float = 0.0
    busy_s: float = 0.0
    polled: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    complete: bool = False

    def failed(self, problem: Exception) -> None:
        """Count a call that failed; what breaks the contract ends the study."""
        if isinstance(problem, HarnessError):
            raise problem
        self.note(problem)

    def note(self, problem: Exception) -> None:
        """Keep the message of a call that failed."""
        text = message_of(problem)
        self.problems[text] = self.problems.get(text, 0) + 1


@dataclass(slots=True, kw_only=True)
class Wire:
    """A retriever, and how it is called.

    Args:
        writer: has ``add``, ``delete`` and ``search`` of a :class:`.Retriever`.
        rate: writes a second.
        k: hits that searches ask for.
        limit_s: seconds after which a write that does not show counts as never.
        rng: numpy's generator, which draws the times.
        clock: seconds; sleep: waits so many.
        beside: makes writes while searches are under way; by default all calls take turns.
        timeout_s: a write beside that takes longer is not acknowledged; None = no limit.
        progress: told (what is done, of so many).
    """

    writer: Any
    rate: float
    k: int
    limit_s: float
    rng: Any
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    beside: Executor = field(default_factory=InTurn)
    timeout_s: float | None = None
    has_scores: bool = True
    progress: Callable[[int, int], None] = lambda _, __: None
    seen: Seen = field(default_factory=Seen)

    def asked(self, name: str, text: str) -> Ranking:
        """The answer to a text."""
        raw = self.writer.search(Query(name, text), self.k)
        return checked_ranking(raw, self.k, has_scores=self.has_scores)

    def keep(self, document: Document) -> None:
        """Write down what is about to be added."""
        self.seen.left[document.id] = document.contents

    def until(self, holds: Callable[[], bool]) -> float:
        """Ask as polls do until something holds; gives the seconds that took, infinite over the
        limit. A call that fails says nothing."""
        start = self.clock()
        while True:
            sent = self.clock() - start
            try:
                if holds():
                    return self.clock() - start
            except Exception as problem:
                self.seen.failed(problem)
            if sent >= self.limit_s:
                return math.inf
            self.sleep(max(0.0, start + self.next_poll(sent) - self.clock()))

    def next_poll(self, sent: float) -> float:
        """When the poll after that of ``sent`` is due, both since the acknowledgement."""
        return min(self.limit_s, max(FIRST_POLL_S, GROWTH * sent))

    def clean(self, *, settled: bool = False) -> None:
        """Take out what may be left. What the engine refuses to delete, or still answers when the
        limit is over, stays in :attr:`Seen.left`: an acknowledgement alone says little of it.

        Args:
            settled: nothing was written for long, so that what no answer holds is gone, also where
                deleting it is refused.
        """
        left, refused = self.seen.left, set[str]()
        ids = sorted(left)
        for start in range(0, len(ids), _CLEANED_AT_ONCE):
            batch = ids[start : start + _CLEANED_AT_ONCE]
            if not self._deleted(batch):
                refused.update(name for name in batch if not self._deleted([name]))

        def gone() -> bool:
            for name in [*left] if settled else sorted(left.keys() - refused):
                answer = self.asked(f"whether {name} is gone", left[name])
                lists = (leg.doc_ids or () for leg in answer.legs.values())
                if not any(name in ids for ids in (answer.doc_ids, *lists)):
                    del left[name]
            return left.keys() <= refused

        try:
            self.until(gone)
        except HarnessError as problem:
            self.seen.note(problem)

    def _deleted(self, ids: list[str]) -> bool:
        try:
            self.writer.delete(ids)
        except Exception as problem:
            self.seen.note(problem)
            return False
        return True


@dataclass(slots=True, kw_only=True)
class Study(Wire):
    """A study of ``probes``."""

    probes: Sequence[Probe]
    decided: int = 0

    def run(self) -> Seen:
        """Make all rounds. A probe that did not show is not replaced, and one that the last answer
        did not hold is not deleted: that it is not found would say nothing.

        Raises:
            HarnessError: the retriever breaks its contract.
            Exception: of the first write: it cannot be written to.
            KeyboardInterrupt: the user stopped it; :attr:`seen` has what was seen so far.
        """
        writes = [Write(kind=Kind.ADD, probe=probe) for probe in self.probes]
        self._round(writes)
        for kind in (Kind.REPLACE, Kind.DELETE):
            writes = [write.then(kind) for write in writes if write.there]
            self._round(writes)
        self.seen.complete = True
        return self.seen

    def _round(self, writes: Sequence[Write]) -> None:
        start = self.clock()
        times = start + self.rng.exponential(1 / self.rate, len(writes)).cumsum()
        # The number decides between equal times, so that no two writes are compared.
        due = [(when, number, writes[number]) for number, when in enumerate(times.tolist())]
        sent: dict[Future[float], tuple[float, int, Write]] = {}
        most = math.inf if self.timeout_s is None else self.timeout_s
        try:
            while due or sent:
                if (left := due[0][0] - self.clock() if due else math.inf) > 0:
                    if sent:
                        first = next(iter(sent.values()))[0]
                        left = min(left, max(0.0, first + most - self.clock()))
                        wait(sent, None if math.isinf(left) else left, FIRST_COMPLETED)
                    else:
                        self.sleep(left)
                else:
                    when, number, write = heapq.heappop(due)
                    began = self.clock()
                    if write.acknowledged_s is None:
                        if write.kind is not Kind.DELETE:
                            self.keep(write.document)
                        made = self.beside.submit(self._send, write, when)
                        sent[made] = (began, number, write)
                    else:
                        self._later(due, self._poll(write), number, write)
                    self.seen.busy_s += self.clock() - began
                for future, (began, number, write) in [*sent.items()]:
                    if future.done() or self.clock() - began >= most:
                        del sent[future]
                        self._later(due, self._sent(write, future), number, write)
            self._look_again(writes)
        finally:
            for future in sent:
                future.cancel()
            wait(sent, self.timeout_s)  # what is under way must not land behind the cleaning
            self.seen.seconds += self.clock() - start

    def _look_again(self, writes: Sequence[Write]) -> None:
        """Ask once more for what showed: it may be back, from another copy of the collection."""
        began = self.clock()
        for write in writes:
            if write.shown:
                self._poll(write)
            if write.gone:
                self.seen.left.pop(write.probe.id, None)
        self.seen.busy_s += self.clock() - began

    def _later(
        self, due: list[tuple[float, int, Write]], again: float | None, number: int, write: Write
    ) -> None:
        """Ask again at ``again``; None where it is decided."""
        if again is not None:
            heapq.heappush(due, (again, number, write))
        else:
            self.decided += 1
            self.progress(self.decided, 3 * len(self.probes))

    def _send(self, write: Write, when: float) -> float:
        """Make a write that was due at a time; gives when it was acknowledged. It may run beside
        all else, and changes nothing but the write."""
        sent = self.clock()
        write.late_s = max(0.0, sent - when)
        if write.kind is Kind.DELETE:
            self.writer.delete([write.probe.id])
        else:
            self.writer.add([write.document])
        write.took_s = self.clock() - sent
        return sent + write.took_s

    def _sent(self, write: Write, outcome: Future[float]) -> float | None:
        """Take in how a write ended, or that it takes too long; gives when its first poll is due,
        None where it was not acknowledged."""
        self.seen.writes.append(write)
        try:
            if not outcome.done():
                outcome.cancel()
                raise TransientError(f"no answer to writing {write.probe.id}", FailureKind.TIMEOUT)
            write.acknowledged_s = outcome.result()
        except Exception as problem:
            if write.kind is Kind.ADD and write.probe is self.probes[0]:
                raise
            self.seen.failed(problem)
        return write.acknowledged_s

    def _poll(self, write: Write) -> float | None:
        """Ask once; gives when to ask again, None where it is decided."""
        acknowledged = write.acknowledged_s or 0.0
        sent, answered = self.clock() - acknowledged, False
        try:
            answers = [self.asked(f"poll of {write.probe.id}", text) for text in write.questions]
        except Exception as problem:
            self.seen.failed(problem)
        else:
            answered = True
            write.polls += 1
            self.seen.polled += len(answers)
            received = self.clock() - acknowledged
            known = write.take(answers, sent, received if received <= self.limit_s else math.inf)
            write.decided |= known
        if sent >= self.limit_s:
            write.decided |= answered
        elif not write.decided:
            return acknowledged + self.next_poll(sent)
        return None
