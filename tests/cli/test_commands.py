"""What commands are called, which are shown, and the answer to a misspelt word."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from retrieval_bench.cli.commands import EXAMPLES, GROUPS, OTHER_NAMES, SHOWN, parsed
from retrieval_bench.cli.options import add, defaults
from retrieval_bench_duet.commands.duet import name_sides
from tests.builders.processes import python
from tests.cli.project import Command

EVERY = [
    *((name,) for group in SHOWN.values() for name in group),
    *((name,) for name in GROUPS),
    *((name, inner) for name, (_, _, commands) in GROUPS.items() for inner in commands),
]


def described(run: Command, *words: str) -> str:
    """What stands between the usage and the options of a command's help."""
    assert run(*words, "--help") == 0
    usage, *rest = run.out.split("\n\n")
    assert usage.startswith(f"usage: retrieval-bench {' '.join(words)} ")
    return rest[0] if not rest[0].startswith(("options:", "arguments:")) else ""


TWO_SIDES = "two retrievers, or one and --rev-a or --rev-b"
NEEDED = ("no retriever", "bm25", "such as hybrid")


class TestHelp:
    def test_it_fits_24_lines_of_80_columns(self, run: Command) -> None:
        assert run("--help") == 0
        lines = run.out.splitlines()
        assert len(lines) <= 24
        assert "rarely needed: lab" in lines[0]
        assert max(map(len, lines)) <= 80
        assert (run(), run.out.splitlines()) == (0, lines), "the bare command shows it, too"

    def test_it_lists_what_is_shown_in_its_group_and_nothing_else(self, run: Command) -> None:
        run("--help")
        listed: dict[str, list[str]] = {}
        group = ""
        for first, name in re.findall(r"^(\w*) +(\w+)  +\S.*$", run.out, re.M):
            group = first or group
            listed.setdefault(group, []).append(name)
        assert listed == {
            "measure": ["bench", "compare", "load"],
            "understand": ["explain", "tune", "doctor"],
            "guard": ["baseline", "regress", "duet"],
            "judge": ["label", "score"],
            "share": ["report", "data"],
        }

    def test_the_skill_of_agents_and_the_guide_are_where_it_says(
        self, run: Command, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run("--help")
        assert "(agents: --skill, --guide)" in run.out
        said = []
        for option in ("--guide", "--skill"):
            with pytest.raises(SystemExit, match="0"):
                parsed([option])
            said.append(capsys.readouterr().out)
        pages = Path(said[0].strip()).read_text(encoding="utf-8")
        assert "](skills/retrieval-bench/SKILL.md)" in pages
        assert said[1].startswith("---\nname: retrieval-bench\ndescription: ")
        assert len(said[1].splitlines()) <= 150

    def test_the_exit_codes_and_examples_are_there(self, run: Command) -> None:
        run("--help")
        for shown in ("exit codes: 0 nothing got worse, 1 regression", "bench hybrid", "@last"):
            assert shown in run.out

    @pytest.mark.parametrize("words", EVERY, ids=" ".join)
    def test_every_command_says_what_it_does_in_a_sentence(
        self, run: Command, words: tuple[str, ...]
    ) -> None:
        assert re.fullmatch(r"[A-Z].*[.?]", described(run, *words), re.S)

    @pytest.mark.parametrize("group", GROUPS)
    def test_a_group_alone_shows_its_help(self, run: Command, group: str) -> None:
        assert run(group) == 0
        shown = run.out
        for name, (_, text) in GROUPS[group][2].items():
            assert re.search(rf"^{name}\s", shown, re.M)
            assert text.split()[0] in shown
        assert run(f"{group} --help") == 0
        assert run.out == shown


class TestNames:
    def test_a_command_has_one_name(self, run: Command) -> None:
        """One of a group is not a command by itself, nor is a name that Python has for it."""
        called = {name: f"{group} {name}" for group, (*_, two) in GROUPS.items() for name in two}
        shown = {name for group in SHOWN.values() for name in group}
        for name, full in {**called, **OTHER_NAMES}.items():
            if name in shown:  # `load` is one, and `data load` another
                continue
            assert f"no command {name!r}; did you mean " in run.refused(name)
            assert full in run.err
            assert run(*full.split(), "--help") == 0

    def test_a_retriever_and_a_dataset_have_a_place_and_an_option(self) -> None:
        for words in (["bench", "bm25"], ["bench", "--retriever", "bm25"]):
            assert parsed(words).retriever == "bm25"
        assert parsed(["compare", "bm25", "dense,own.yaml"]).systems == ["bm25", "dense,own.yaml"]


class TestMisspelt:
    @pytest.mark.parametrize(
        ("given", "near"),
        [
            ("bensh", "bench"),
            ("comapre", "compare"),
            ("dif", "explain"),
            ("histroy", "data history"),
            ("export", "label export or data export?"),
            ("doktor", "doctor"),
            ("evalute", "score run"),
        ],
    )
    def test_a_near_command_is_named(self, run: Command, given: str, near: str) -> None:
        assert f"no command '{given}'; did you mean {near}" in run.refused(given)
        assert "see: retrieval-bench --help" in run.err

    @pytest.mark.parametrize(
        ("given", "near"),
        [
            (("bench", "bm25", "--datset", "x"), "--dataset"),
            (("bench", "bm25", "--datset=x"), "--dataset"),
            (("compare", "a", "b", "--margn", "0.1"), "--margin"),
            (("score", "audit", "r", "--qrels", "q", "--convention", "trec"), "--conventions"),
        ],
    )
    def test_a_near_option_of_that_command_is_named(
        self, run: Command, given: tuple[str, ...], near: str
    ) -> None:
        assert f"not known; did you mean {near}" in run.refused(*given)
        assert " --help" in run.err

    @pytest.mark.parametrize(
        ("words", "where"),
        [
            ("bensh", ""),
            ("bench bm25 --datset x", " bench"),
            ("bench bm25 --k ten", " bench"),
            ("score adit", " score"),
        ],
    )
    def test_it_is_a_document_where_one_was_asked_for(
        self, run: Command, words: str, where: str
    ) -> None:
        document = run.json(words, code=2)
        assert document["error"]["kind"] == "bad-option"
        assert document["error"]["where"] == f"retrieval-bench{where}"
        assert (document["code"], run.err) == (2, "")

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            ("xyz", "no command 'xyz'; there are bench, compare, load, explain, "),
            ("bench bm25 --zzzz", "--zzzz: not known\n"),  # nothing is near to it
            ("bench bm25 --dat x", "--dat"),  # the beginning of an option is not taken for it
            ("score adit", "'audit'"),
            ("score adit", "see: retrieval-bench score --help"),
            ("bench bm25 --retriever dense", "two values for retriever: "),
            *((command, says) for command in ("bench", "baseline") for says in NEEDED),
            *((f"duet a {more}", TWO_SIDES) for more in ("b c", "--b c", "--retriever c")),
        ],
    )
    def test_what_else_cannot_be_understood(self, run: Command, words: str, says: str) -> None:
        assert says in run.refused(words)

    def test_the_usage_of_all_options_is_not_printed(self, run: Command) -> None:
        assert "invalid int value: 'many'" in run.refused("bench bm25 --k many")
        assert "usage:" not in run.err
        assert len(run.err.splitlines()) == 2


class TestExamples:
    @pytest.mark.parametrize("words", EVERY, ids=" ".join)
    def test_three_stand_in_the_help_and_each_is_understood(
        self, run: Command, words: tuple[str, ...]
    ) -> None:
        if words[0] in GROUPS and len(words) == 1:
            return
        assert run(*words, "--help") == 0
        shown = re.findall(r"^  retrieval-bench (.*)$", run.out, re.M)
        assert len(shown) == len(set(shown)) == 3
        for example in shown:
            assert parsed(shlex.split(example)).run is not None

    def test_every_command_has_some(self) -> None:
        commands = [name for group in SHOWN.values() for name in group]
        commands += [f"{group} {name}" for group, (*_, two) in GROUPS.items() for name in two]
        assert set(commands) == set(EXAMPLES)


class TestNamesByTheirPlace:
    @pytest.mark.parametrize(
        ("words", "name", "value"),
        [
            ("tune bm25", "retriever", "bm25"),
            ("tune --retriever bm25", "retriever", "bm25"),
            ("data history bm25", "retriever", "bm25"),
            ("lab selftest bm25", "retriever", "bm25"),
            ("score outcomes answers.jsonl", "records", Path("answers.jsonl")),
            ("score run my.run --qrels q", "run_file", Path("my.run")),
            ("score run --run my.run --qrels q", "run_file", Path("my.run")),
        ],
    )
    def test_what_a_command_is_about(self, words: str, name: str, value: object) -> None:
        assert getattr(parsed(words.split()), name) == value

    @pytest.mark.parametrize(
        ("words", "sides"),
        [
            ("duet bm25 bm25s", (None, "bm25", "bm25s")),
            ("duet hybrid --rev-a main", ("hybrid", None, None)),
            ("duet --a bm25 --b bm25s", (None, "bm25", "bm25s")),
        ],
    )
    def test_the_sides_of_a_duet(self, words: str, sides: tuple[str | None, ...]) -> None:
        options = parsed(words.split())
        name_sides(options)
        assert (options.retriever, options.a, options.b) == sides


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        ("--help", set()),
        ("label --help", set()),
        (
            "explain @last",
            {"explain.explain", "explain.ledger", "explain.losses", "chunks.spans"},
        ),
        ("data list", {"catalog.list"}),
        *((f"score {name} --help", {"score.score"}) for name in ("run", "audit")),
        ("score qa --help", {"answers.qa"}),
        ("lab submit --help", {"answers.qa"}),
        ("label start --help", {"labels.label", "labels.start"}),
    ],
)
def test_only_the_module_of_the_command_that_is_asked_for_is_loaded(
    words: str, loaded: set[str]
) -> None:
    code = (
        "import sys\nfrom retrieval_bench.cli import main\n"
        "from retrieval_bench.cli.commands import parsed\n"
        f"try: parsed({words.split()})\nexcept SystemExit: pass\n"
        "print('modules', *(name for name in sys.modules if name.startswith('retrieval_bench')))"
        "\nprint({'numpy', 'pydantic', 'scipy', 'rich', 'yaml', 'torch'} & set(sys.modules))"
    )
    *_, told, heavy = python(code).splitlines()
    commands = re.findall(r"retrieval_bench(?:\.cli|_)\.?(\w+)(?:\.commands)?\.(\w+)(?= |$)", told)
    assert {
        f"{room}.{name}" for room, name in commands if name not in ("capability", "commands")
    } == loaded
    assert heavy == "set()"


class TestOptionsAsText:
    """Options are written as the help shows them; see :func:`.add`."""

    TEXT = """
runs RUN *  by their place
--n N [3]  a number
--out FILE  a path
--only {a,b} + []  some words, which
    go on here
--no-text [texts]  a switch that turns something off
| --this  one of two
| --that  the other
times:
--after S ...  seconds
"""

    def test_a_metavar_says_the_type_and_brackets_the_default(self) -> None:
        assert defaults(self.TEXT) == {
            "runs": [], "n": 3, "out": None, "only": [], "texts": True, "this": False,
            "that": False, "after": [],
        }  # fmt: skip
        parser = argparse.ArgumentParser()
        add(parser, self.TEXT, n={"dest": "many"})
        given = parser.parse_args(
            shlex.split("r --n 4 --out x --only a b --no-text --after 1 --after 2.5 --that")
        )
        assert vars(given) == {
            "runs": ["r"], "many": 4, "out": Path("x"), "only": ["a", "b"], "texts": False,
            "this": False, "that": True, "after": [1.0, 2.5],
        }  # fmt: skip

    def test_of_those_with_a_bar_one_may_be_given(self) -> None:
        parser = argparse.ArgumentParser(exit_on_error=False)
        add(parser, self.TEXT)
        with pytest.raises(argparse.ArgumentError, match="not allowed with"):
            parser.parse_args(["--this", "--that"])

    def test_a_line_that_is_no_option_is_a_mistake_of_ours(self) -> None:
        with pytest.raises(AssertionError, match="cannot be read: --n N"):
            defaults("--n N one blank is no sign of the help")
