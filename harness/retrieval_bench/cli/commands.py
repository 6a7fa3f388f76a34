"""All commands: what they are called, which are shown, and the answer to a misspelt word."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from retrieval_bench.capabilities import capabilities, lacks, named

if TYPE_CHECKING:  # loading it takes as long as a third of Python itself
    from pathlib import Path

Entries = Mapping[str, tuple[str, str]]
"""Commands by name: the module of ``cli`` that has it as ``run_NAME``, or the place of that in a
capability, imported when it is asked for, and its help."""

_SHOWN: Mapping[str, Entries] = {
    "measure": {
        "bench": ("measure.bench", "one retriever on one dataset: ranking quality and latency"),
        "compare": ("measure.compare", "two or more side by side, with verdicts"),
    },
    "understand": {},
    "guard": {},
    "judge": {},
    "share": {},
}

_GROUPS: Mapping[str, tuple[str, str, Entries]] = {
    "data": ("share", "datasets and indexes: {main}, ...", {}),
    "lab": ("", "what few people need: {names}", {}),
}


def _with_added(own: Entries, *, heading: str = "", group: str = "") -> Entries:
    """Commands of the kernel and of capabilities under a heading, or in a group."""
    entries = list(own.items())
    for added in capabilities():
        for words, command in added.commands.items():
            of, _, name = words.rpartition(" ")
            if of == group and command.heading == heading:
                names = [name for name, _ in entries]
                at = names.index(command.after) + 1 if command.after in names else len(names)
                entries.insert(at, (name, (command.place, command.help)))
    return dict(entries)


SHOWN: Mapping[str, Entries] = {
    heading: _with_added(entries, heading=heading) for heading, entries in _SHOWN.items()
}
"""Commands by the heading that they stand under."""


def _groups() -> Iterator[tuple[str, tuple[str, str, Entries]]]:
    added: Mapping[str, tuple[str, str, Entries]] = {
        group: (heading, text, {})
        for package in capabilities()
        for group, (heading, text) in package.groups.items()
    }
    for group, (heading, text, own) in {**added, **_GROUPS}.items():
        if commands := _with_added(own, group=group):
            main = ", ".join(name for name in _MAIN if name in commands)
            yield group, (heading, text.format(names=", ".join(commands), main=main), commands)


_MAIN = ("list", "fetch", "export", "index")
"""Of a group that has many commands, those that its line in the help names."""

GROUPS: Mapping[str, tuple[str, str, Entries]] = dict(_groups())
"""Words that have subcommands: the heading they stand under, their help, and the commands."""


def all_commands() -> Iterator[str]:
    """Name all commands, in the order of the help."""
    for entries in SHOWN.values():
        yield from entries
    for group, (_, _, inner) in GROUPS.items():
        yield from (f"{group} {name}" for name in inner)


OTHER_NAMES: Mapping[str, str] = {"diff": "explain", "evaluate": "score run"}
"""What somebody may look for, as Python has it, and the command that it is."""

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    **{
        words: command.examples
        for added in capabilities()
        for words, command in added.commands.items()
    },
    "bench": ("hybrid", "bm25 --dataset my/folder --k 100"),
    "compare": (
        "bm25 dense hybrid",
        "bm25 my.yaml --dataset my/folder",
        "bm25@latest hybrid@latest -v",
    ),
}
"""What may stand behind each command, but for the options that others add."""

_DESCRIPTION = "Measure retrievers side by side: ranking quality and latency."
_EXAMPLES = ("bench hybrid", "compare bm25 dense hybrid --dataset my/folder", "explain @last")
"""In the help; one whose command is not here is not shown."""
_EXIT_CODES = """\
exit codes: 0 nothing got worse, 1 regression, 2 bad input, 3 can't tell,
4 nothing measured, 70 a bug, 130 interrupted   (agents: --skill, --guide)
"""
OF_EVERY: Mapping[str, str] = {
    "help": "",
    "verbose": " more",
    "quiet": " less",
    "full": " JSON with all",
    "debug": " tracebacks",
    "format": "",
}
"""Options of every command, in a word or two."""
_SKILL = "skills/retrieval-bench/SKILL.md"


class _Lines(argparse.RawDescriptionHelpFormatter):
    """Help where there is no terminal: a line for each option, and one for those of every command,
    which costs a program fewer tokens than columns. ``(=10)`` is a default."""

    def start_section(self, heading: str | None) -> None:
        super().start_section("arguments" if heading == "positional arguments" else heading)

    def add_arguments(self, actions: Iterable[argparse.Action]) -> None:
        given = list(actions)
        every = {action.dest: action for action in given if action.dest in OF_EVERY}
        super().add_arguments(action for action in given if action.dest not in every)
        if "format" in every:
            said = [f"{every[name].option_strings[0]}{OF_EVERY[name]}" for name in OF_EVERY]
            self._add_item(str, [f"{', '.join(said)} {self._format_args(every['format'], '')}\n"])

    def _format_action(self, action: argparse.Action) -> str:
        text = _DEFAULT.sub(r"(=\1)", self._expand_help(action)) if action.help else ""
        line = f"{self._format_action_invocation(action)}  {text}".rstrip()
        inner = [self._format_action(each) for each in self._iter_indented_subactions(action)]
        return "\n".join([line, "".join(inner)])

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs != "+":
            return super()._format_args(action, default_metavar)
        return f"{self._metavar_formatter(action, default_metavar)(1)[0]} ..."


_DEFAULT = re.compile(r"\(default: ([^()]*)\)")


def _formatter(prog: str) -> argparse.HelpFormatter:
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return (argparse.RawDescriptionHelpFormatter if terminal else _Lines)(prog)


class Parser(argparse.ArgumentParser):
    """Knows which command it reads, and answers a misspelt option with the near one."""

    def __init__(self, **given: Any) -> None:
        given.setdefault("formatter_class", _formatter)
        super().__init__(**given, allow_abbrev=False)
        self.set_defaults(parser=self)
        self.words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read words as ever, and keep them for :meth:`error`."""
        self.words = tuple(args or ())
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        """As ever, but the usage names only what has to be given."""
        if self.usage is None:
            required = [group for group in self._mutually_exclusive_groups if group.required]
            either = [action for group in required for action in group._group_actions]
            needed = [a for a in self._actions if a.required or not a.option_strings or a in either]
            formatter = self._get_formatter()
            formatter.add_usage(None, needed, required, prefix="")
            self.usage = f"{formatter.format_help().strip()} [options]"
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and where to read on, without the usage of all options; with a
        document where one was asked for."""
        from retrieval_bench.core.wrapping import wrapped

        if ("--format", "json") in pairwise(self.words) or "--format=json" in self.words:
            from retrieval_bench.cli.console import put_document
            from retrieval_bench.cli.problem import Error, Fault

            do = f"see {self.prog} --help"
            put_document(Error(Fault("bad-option", message, self.prog, "", do, []), 2))
            self.exit(2)
        self.exit(2, wrapped(f"{self.prog}: error: {message}\n  see: {self.prog} --help\n"))


class _Whole(Parser):
    """The parser of the command itself, whose help names few commands."""

    def format_help(self) -> str:
        """Write the help of all commands in at most 24 lines."""
        rare = "".join(f"; rarely needed: {name}" for name, (at, *_) in GROUPS.items() if not at)
        lines = [f"usage: {self.prog} COMMAND ...   (more: COMMAND --help{rare})"]
        lines += ["", _DESCRIPTION, ""]
        for group, commands in SHOWN.items():
            entries = [(name, text) for name, (_, text) in commands.items()]
            entries += [(name, text) for name, (where, text, _) in GROUPS.items() if where == group]
            for at, (name, text) in enumerate(entries):
                lines.append(f"{group if at == 0 else '':<11} {name:<9} {text}")
        here = [text for text in _EXAMPLES if text.partition(" ")[0] in {*all_commands()}]
        shown = [f"  {self.prog} {text}" for text in here]
        return "\n".join([*lines, "", "examples:", *shown, _EXIT_CODES])


def parser(words: Sequence[str] | None = None) -> Parser:
    """All commands with their options; with ``words``, the options of those that these name."""
    from retrieval_bench.core.installed.version import VERSION

    whole = _Whole(prog="retrieval-bench", description=_DESCRIPTION)
    whole.add_argument("--version", action="version", version=f"retrieval-bench {VERSION}")
    whole.add_argument("--skill", action=_OfGuide, const=lambda guide: _text(guide / _SKILL))
    whole.add_argument("--guide", action=_OfGuide, const=lambda guide: f"{guide / 'llms.txt'}\n")
    commands = whole.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for group in SHOWN.values():
        _add_all(commands, group, words)
    for name, (_, text, inner) in GROUPS.items():
        command = commands.add_parser(name, help=text, description=_sentence(text))
        command.set_defaults(run=None)
        if words is None or name in words:
            _add_all(command.add_subparsers(metavar="COMMAND", parser_class=Parser), inner, words)
    return whole


class _OfGuide(argparse.Action):
    """Prints what its function makes of the folder of the guide, and ends."""

    def __init__(self, **given: Any) -> None:
        super().__init__(nargs=0, **given)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from retrieval_bench.cli.console import put
        from retrieval_bench.core.installed.installation import packaged_guide

        assert callable(self.const)
        put(self.const(packaged_guide()))
        parser.exit(0)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _add_all(commands: Any, entries: Entries, words: Sequence[str] | None) -> None:
    for name, (where, text) in entries.items():
        if words is not None and name not in words:
            commands.add_parser(name, help=text)
            continue
        path = f"{commands._prog_prefix} {name}"
        given = [f"{path} {example}".rstrip() for example in examples(path.partition(" ")[2])]
        description = "\n  ".join([f"{_sentence(text)}\n\nexamples:", *given])
        place = where if ":" in where else f"retrieval_bench.cli.{where}:run_{name}"
        command = named(place)
        command.add_to(commands.add_parser(name, help=text, description=description))


def examples(words: str) -> list[str]:
    """List examples of a command, without its name."""
    from retrieval_bench.cli.options import added_to

    return [*EXAMPLES[words], *(added.example for added in added_to(words) if added.example)]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of one command; without any the help is printed.

    Raises:
        SystemExit: help was asked for (0), or a word is not known (2).
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    whole = parser(words)
    whole.words = words
    _check_command(whole, words)
    options: argparse.Namespace
    options, unknown = whole.parse_known_args(words)
    read: Parser = options.parser
    if unknown:
        near = _near(unknown[0], [name for a in read._actions for name in a.option_strings])
        read.error(f"{' '.join(unknown)}: not known{_did_you_mean(near)}")
    if getattr(options, "run", None) is None:
        read.print_help()
        read.exit(0)
    return options


def _check_command(whole: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """End where the first word is no command; the near ones are named, also those of groups."""
    if not words or words[0].startswith("-"):
        return
    for name in (words[0], " ".join(words[:2])):
        if why := lacks(name):
            whole.error(f"no command {name!r}: {why}")
    known = [*(name for group in SHOWN.values() for name in group), *GROUPS]
    if words[0] in known:
        return
    called = {name: [name] for name in known}
    called |= {old: [new] for old, new in OTHER_NAMES.items() if new in {*all_commands()}}
    for group, (*_, inner) in GROUPS.items():
        for name in inner:
            called.setdefault(name, []).append(f"{group} {name}")
    typed = [words[0]] if words[0] in called else _near(words[0], called)
    near = _did_you_mean([name for word in typed for name in called[word]])
    whole.error(f"no command {words[0]!r}" + (near or f"; there are {', '.join(known)}"))


def _near(given: str, known: Iterable[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(given.partition("=")[0], sorted(set(known)), n=2, cutoff=0.6)


def _did_you_mean(names: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(names)}?" if names else ""
