"""Judging in a terminal, line by line: what is typed may as well come from a pipe."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from retrieval_bench.core.errors import ConfigError, Interrupted, counted
from retrieval_bench.core.figures import visible
from retrieval_bench.core.wrapping import wrapped
from retrieval_bench_labels.judge.judging import (
    LONGEST_NOTE,
    Judging,
    Question,
    Undone,
    checked_name,
    progress_sentence,
)
from retrieval_bench_labels.label import GRADES, Label

WIDTH = 80
"""Columns of a line."""

LINES = 30
"""Lines of a text that are shown at once."""

KEYS = """\
  0 to 3  grade       s  skip         u  undo the last answer
  n TEXT  note        m TEXT  mark the answer: quote it from the text
  Enter   more of a long text         ?  this help          q  stop"""

_PROMPT = "0-3 s u n m ? q> "


@dataclass
class _Draft:
    """Draft of an answer to a question, before its grade."""

    question: Question
    note: str = ""
    span: tuple[int, int] | None = None
    rest: list[str] = field(default_factory=list)


class _Terminal:
    """One person at one terminal."""

    def __init__(
        self, judging: Judging, who: str, read: Callable[[str], str], write: Callable[[str], None]
    ) -> None:
        self.judging = judging
        self.who = who
        self.read = read
        self.write = write
        self.answers = 0
        self.query = ""

    def run(self) -> None:
        """Until nothing is left, or they stop."""
        self._help()
        draft = self._following()
        while draft is not None:
            draft = self._step(draft, self.read(_PROMPT).strip())
        self.write("Nothing is left for you. Next: retrieval-bench label status")

    def _following(self) -> _Draft | None:
        question = self.judging.next(self.who)
        return None if question is None else self._begun(question)

    def _begun(self, question: Question, undone: Undone | None = None) -> _Draft:
        """Show a question, and what was said of it before."""
        draft = _Draft(question)
        self._show(draft)
        if undone is not None:
            draft.note, draft.span = undone.label.note, undone.label.span
            given = undone.label.grade
            self.write(f"You said {'skip' if given is None else given}. Judge it again.")
        return draft

    def _step(self, draft: _Draft, line: str) -> _Draft | None:
        """Do what a line says: the draft to go on with, None = nothing is left.

        Raises:
            EOFError: they stop.
        """
        command, _, text = line.partition(" ")
        if line == "":
            self._more(draft)
        elif command == "q" and not text:
            raise EOFError
        elif command == "u" and not text:
            return self._undo(draft)
        elif command == "s" and not text:
            return self._keep(draft, None)
        elif line.isdecimal() and int(line) in GRADES:
            return self._keep(draft, int(line))
        elif command == "n":
            self._note(draft, text.strip())
        elif command == "m":
            self._mark(draft, text.strip())
        elif line == "?":
            self._help()
        else:
            self.write(f"{visible(line[:40])!r} is none of these:\n{KEYS}")
        return draft

    # -- answers -----------------------------------------------------------------------------

    def _keep(self, draft: _Draft, grade: int | None) -> _Draft | None:
        question = draft.question
        try:
            self.judging.answer(
                Label(
                    question.pair,
                    self.who,
                    grade,
                    digest=question.digest,
                    note=draft.note,
                    span=draft.span,
                )
            )
        except ConfigError as problem:  # the pool was replaced meanwhile
            self.write(f"Not saved: {problem.given}.")
        else:
            self.answers += 1
        return self._following()

    def _undo(self, draft: _Draft) -> _Draft | None:
        undone = self.judging.undo(self.who)
        if undone is None:
            self.write("There is nothing to undo.")
            return draft
        self.answers = max(0, self.answers - 1)
        if undone.question is None:
            return self._following()
        return self._begun(undone.question, undone)

    def _note(self, draft: _Draft, text: str) -> None:
        if len(text) > LONGEST_NOTE:
            self.write(f"A note has at most {counted(LONGEST_NOTE, 'character')}.")
            return
        draft.note = text
        self.write("The note is saved with the grade." if text else "There is no note.")

    def _mark(self, draft: _Draft, quote: str) -> None:
        """Mark what is quoted, whatever its blanks are."""
        if not quote:
            draft.span = None
            self.write("Nothing is marked.")
            return
        words = r"\s+".join(map(re.escape, quote.split()))
        matches = list(re.finditer(words, draft.question.document.text))
        if not matches:
            self.write("This does not stand in the text. Quote it as it is written.")
            return
        draft.span = matches[0].span()
        more = f" It stands there {len(matches)} times; the first is marked." * (len(matches) > 1)
        self.write(f"The answer is marked.{more}")

    # -- what is shown -----------------------------------------------------------------------

    def _show(self, draft: _Draft) -> None:
        question = draft.question
        if question.query.id != self.query:
            self.query = question.query.id
            far = progress_sentence(self.judging.progress(self.who))
            self.write("\n".join(["", *_wrapped(far)]))
        again = "; others differ on this one" * question.again
        self.write("\n" + "=" * WIDTH)
        self.write("\n".join(_wrapped(question.query.text)))
        place = f"document {question.place:,} of {question.of:,}"
        self.write(f"--- {place}: {visible(question.document.id)}{again}")
        if question.document.title:
            self.write("\n".join([*_wrapped(question.document.title), ""]))
        draft.rest = _wrapped(question.document.text) or ["(There is no text.)"]
        self._more(draft)

    def _more(self, draft: _Draft) -> None:
        shown, draft.rest = draft.rest[:LINES], draft.rest[LINES:]
        if shown:
            self.write("\n".join(shown))
        if draft.rest:
            self.write(f"... {counted(len(draft.rest), 'more line')}: press Enter")
        elif not shown:
            self.write("That was all of the text.")

    def _help(self) -> None:
        guidelines = self.judging.pool.guidelines
        meanings = [f"  {grade}  {visible(text)}" for grade, text in guidelines.items()]
        self.write("\n".join([*meanings, "", KEYS]))


def judge(
    judging: Judging, who: str, read: Callable[[str], str], write: Callable[[str], None]
) -> None:
    """Ask one question after the other; each answer is on disk before the next one.

    Args:
        read: gives the line that is typed behind a prompt; EOFError = there are no more.
        write: shows lines.

    Raises:
        ConfigError: the name cannot be used.
        Interrupted: by Ctrl-C; all that was answered is kept.
        RecordError: an answer cannot be written.
    """
    terminal = _Terminal(judging, checked_name(who), read, write)
    try:
        terminal.run()
    except EOFError:
        write("")
    except KeyboardInterrupt:
        raise Interrupted(_kept(terminal)) from None
    write(_kept(terminal))


def _kept(terminal: _Terminal) -> str:
    """Count the answers kept, and say how far the work is."""
    now = progress_sentence(terminal.judging.progress(terminal.who))
    are = "is" if terminal.answers == 1 else "are"
    return wrapped(f"{counted(terminal.answers, 'answer')} of this session {are} kept. {now}")


def _wrapped(text: str) -> list[str]:
    """Lines of a text, whose control characters can do nothing to the terminal."""
    from rich.cells import cell_len

    lines: list[str] = []
    for line in visible(text.expandtabs(4), keep="\n").splitlines():
        # Of characters that take two columns each, as Korean ones do, fewer stand in a line.
        width = max(1, WIDTH * len(line) // max(1, cell_len(line)))
        lines += textwrap.wrap(line, width) or [""]
    return lines
