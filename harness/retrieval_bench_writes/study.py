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

from retrieval_bench.core.calls.foreign import message_of
from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.ranking import checked_ranking
from retrieval_bench.core.types import Query, Ranking
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
    """

    before: float = 0.0
    after: float = math.inf
    outdated: bool = False

    @property
    def shown(self) -> bool:
        """True if an answer showed it within the limit."""
        return math.isfinite(self.after)

    def narrow(self, sent: float, received: float, *, shows: bool, outdated: bool) -> None:
        """Take in a poll; those behind the first that shows it say nothing more."""
        if self.shown:
            return
        self.outdated |= outdated
        if shows:
            self.after = received
        else:
            self.before = sent


@dataclass(slots=True, kw_only=True)
class Write(Ends):
    """A write, and what polls saw of it.

    Attributes:
        version: of the probe that it adds or deletes.
        late_s: that it was sent behind its time.
        acknowledged_s: when, by the clock; None where the engine did not.
        polls: that were answered.
        decided: it showed, also in every leg, or did not within the limit; False where the study
            was stopped before.
        legs: the same in the list of each leg of a hybrid.
    """

    kind: Kind
    probe: Probe
    version: int
    late_s: float = 0.0
    acknowledged_s: float | None = None
    polls: int = 0
    decided: bool = False
    legs: dict[str, Ends] = field(default_factory=dict)

    @property
    def questions(self) -> list[str]:
        """What a poll asks: the text that was written or deleted, and that which it replaced."""
        texts = self.probe.texts
        return [*texts[::-1]] if self.kind is Kind.REPLACE else [texts[self.version]]

    def take(self, answers: Sequence[Ranking], sent: float, received: float) -> bool:
        """Take in the answers to :attr:`questions`; says whether all is known."""
        shows, outdated = self.seen_in(answers)
        self.narrow(sent, received, shows=shows, outdated=outdated)
        for name in answers[0].legs:
            lists = [Ranking(answer.legs[name].doc_ids or ()) for answer in answers]
            shows, outdated = self.seen_in(lists)
            leg = self.legs.setdefault(name, Ends())
            leg.narrow(sent, received, shows=shows, outdated=outdated)
        return self.shown and all(leg.shown for leg in self.legs.values())

    def seen_in(self, answers: Sequence[Ranking]) -> tuple[bool, bool]:
        """Say whether the answers to :attr:`questions` show the write, and whether they hold what
        is outdated.

        An added probe is in its answer, a deleted one is not. Of a replaced one the new version
        answers to the new text, and the old version no longer to the old one.
        """
        if self.kind is Kind.REPLACE:
            new, old = (self._answers(answers, version) for version in (1, 0))
            return new and not old, old
        there = self.probe.id in answers[0].doc_ids
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
        left: ids of probes that may still be there.
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


class InTurn(Executor):
    """Makes a call at once, before anything else."""

    def submit(self, call: Callable[..., Any], /, *of: Any, **how: Any) -> Future[Any]:
        """Call it, and give what came of it."""
        done: Future[Any] = Future()
        try:
            done.set_result(call(*of, **how))
        except Exception as problem:
            done.set_exception(problem)
        return done


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
    has_scores: bool = True
    progress: Callable[[int, int], None] = lambda _, __: None
    seen: Seen = field(default_factory=Seen)

    def asked(self, name: str, text: str) -> Ranking:
        """The answer to a text."""
        raw = self.writer.search(Query(name, text), self.k)
        return checked_ranking(raw, self.k, has_scores=self.has_scores)

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

    def clean(self) -> None:
        """Take out what may be left; what cannot be taken out stays in :attr:`Seen.left`."""
        ids = sorted(self.seen.left)
        for start in range(0, len(ids), _CLEANED_AT_ONCE):
            batch = ids[start : start + _CLEANED_AT_ONCE]
            try:
                self.writer.delete(batch)
            except Exception as problem:
                self.seen.note(problem)
            else:
                self.seen.left.difference_update(batch)


@dataclass(slots=True, kw_only=True)
class Study(Wire):
    """A study of ``probes``."""

    probes: Sequence[Probe]
    decided: int = 0

    def run(self) -> Seen:
        """Make all rounds, and take out what was written, also where something fails.

        A probe that did not show is not replaced, and deleted without a poll: that it is not found
        would say nothing.

        Raises:
            HarnessError: the retriever breaks its contract.
            Exception: of the first write: it cannot be written to.
            KeyboardInterrupt: the user stopped it; :attr:`seen` has what was seen so far.
        """
        try:
            self._round(Kind.ADD, [(probe, 0) for probe in self.probes])
            self._round(Kind.REPLACE, [(of.probe, 1) for of in self.seen.writes if of.shown])
            there = [of for of in self.seen.writes[len(self.probes) :] if of.shown or of.outdated]
            self._round(Kind.DELETE, [(of.probe, int(of.shown)) for of in there])
            self.seen.complete = True
        finally:
            self.clean()
        return self.seen

    def _round(self, kind: Kind, of: Sequence[tuple[Probe, int]]) -> None:
        writes = [Write(kind=kind, probe=probe, version=version) for probe, version in of]
        start = self.clock()
        times = start + self.rng.exponential(1 / self.rate, len(writes)).cumsum()
        # The number decides between equal times, so that no two writes are compared.
        due = [(when, number, writes[number]) for number, when in enumerate(times.tolist())]
        sent: dict[Future[Any], tuple[int, Write]] = {}
        try:
            while due or sent:
                if (left := due[0][0] - self.clock() if due else math.inf) > 0:
                    if sent:
                        wait(sent, None if math.isinf(left) else left, FIRST_COMPLETED)
                    else:
                        self.sleep(left)
                else:
                    when, number, write = heapq.heappop(due)
                    began = self.clock()
                    if write.acknowledged_s is None:
                        self.seen.writes.append(write)
                        self.seen.left.add(write.probe.id)
                        sent[self.beside.submit(self._send, write, when)] = (number, write)
                    else:
                        self._later(due, self._poll(write), number, write)
                    self.seen.busy_s += self.clock() - began
                for future in [one for one in sent if one.done()]:
                    number, write = sent.pop(future)
                    self._later(due, self._sent(write, future), number, write)
        finally:
            wait(sent)  # what is under way must not land behind the cleaning
        self.seen.seconds += self.clock() - start

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
        write.late_s = max(0.0, self.clock() - when)
        if write.kind is Kind.DELETE:
            self.writer.delete([write.probe.id])
        else:
            self.writer.add([write.probe.document(write.version)])
        return self.clock()

    def _sent(self, write: Write, outcome: Future[float]) -> float | None:
        """Take in how a write ended; gives when its first poll is due, None where it was not
        acknowledged."""
        try:
            write.acknowledged_s = outcome.result()
        except Exception as problem:
            if write is self.seen.writes[0]:
                raise
            self.seen.failed(problem)
            return None
        if write.kind is Kind.DELETE:
            self.seen.left.discard(write.probe.id)
        return write.acknowledged_s

    def _poll(self, write: Write) -> float | None:
        """Ask once; gives when to ask again, None where it is decided."""
        acknowledged = write.acknowledged_s or 0.0
        sent = self.clock() - acknowledged
        try:
            answers = [self.asked(f"poll of {write.probe.id}", text) for text in write.questions]
        except Exception as problem:
            self.seen.failed(problem)
        else:
            write.polls += 1
            self.seen.polled += len(answers)
            if write.take(answers, sent, self.clock() - acknowledged):
                write.decided = True
                return None
        if sent >= self.limit_s:
            write.decided = True
            return None
        return acknowledged + self.next_poll(sent)
