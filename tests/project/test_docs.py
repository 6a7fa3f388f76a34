"""The docs say what the code does: names, options, fields, links, and examples that can work.

A YAML block is a dataset.yaml when it has the key ``format``, otherwise a retriever config; a block
of another kind says so behind the word ``yaml``. Commands in bash blocks are parsed, not run.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import inspect
import json
import os
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import yaml

from retrieval_bench import bench, cli
from retrieval_bench.cli import console
from retrieval_bench.cli.commands import GROUPS
from retrieval_bench.core import plugins
from retrieval_bench.core.config import RetrieverConfig, validate
from retrieval_bench.core.errors import Kind
from retrieval_bench.core.retriever import Capabilities, Retriever
from retrieval_bench.core.types import Document, LegTrace, Query, Ranking
from retrieval_bench.data import build_dataset
from retrieval_bench.data.formats import formats
from retrieval_bench.data.settings import DatasetConfig
from retrieval_bench.measure import protocol, steady
from retrieval_bench.metrics import Judgements, judge_lists, parse_metric
from retrieval_bench.metrics.definitions import DEFINITIONS
from retrieval_bench.stats.percentiles import NEEDS
from retrieval_bench_answers.answers import Answer, GoldQuestion, Predictions, Span
from retrieval_bench_answers.reader import score_reader
from retrieval_bench_explain.diff import explain
from retrieval_bench_explain.kept_lists import FATES
from retrieval_bench_regress.history import subjects
from retrieval_bench_regress.history.facts import read_history
from retrieval_bench_regress.policy import load_policy
from retrieval_bench_regress.tables.github_benchmark import benchmark_entries
from retrieval_bench_retrievers.text import tokenizers
from retrieval_bench_score.conventions import CONVENTIONS
from tests.builders.guide import GUIDE, guide_page, guide_pages
from tests.builders.history_sample import save_run
from tests.builders.hybrid_runs import make_dataset, make_run
from tests.builders.reference_pages import commands

ROOT = Path(__file__).parents[2]

HANDING_ON = {"langchain", "llamaindex", "haystack", "pyterrier", "callable"}
"""Targets that take parameters for what users name."""

GENERATED = {"build", "dist", "runs"}
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(
        part.startswith(".") or part in GENERATED for part in path.relative_to(ROOT).parts[:-1]
    )
)
INSTRUCTIONS = [ROOT / "README.md", ROOT / "README.ko.md", ROOT / "CONTRIBUTING.md"]
INSTRUCTIONS += [*guide_pages(), *sorted(ROOT.glob("*/README.md"))]
INSTRUCTIONS += sorted(GUIDE.glob("skills/*/SKILL.md"))
AGENTS = ROOT / "harness" / "AGENTS.md"

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _blocks(language: str) -> list[tuple[str, str]]:
    """Place and text of every block of ``language`` in the instructions."""
    found = []
    for page in INSTRUCTIONS:
        text = _text(page)
        for match in _FENCE.finditer(text):
            if match[1].strip() == language:
                line = text.count("\n", 0, match.start()) + 2
                found.append((f"{page.relative_to(ROOT)}:{line}", match[2]))
    return found


def _places(blocks: list[tuple[str, str]]) -> list[str]:
    return [place for place, _ in blocks]


def _quoted(text: str) -> set[str]:
    """The words that stand in `code` outside of blocks."""
    spans = re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    return {word for span in spans for word in (span, *re.findall(r"[\w:./-]+", span))}


@cache
def _commands() -> dict[str, argparse.ArgumentParser]:
    for action in cli.parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("the parser has no commands")


# -- names ---------------------------------------------------------------------------------------


def test_every_metric_and_its_parameters_are_defined_in_the_guide() -> None:
    section = _section("Definitions")
    for name, definition in DEFINITIONS.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", section, re.MULTILINE)
        assert f"| {definition.cut} |" in row, name
        for parameter in definition.params:
            assert f"`{parameter}`" in row, f"{name}({parameter})"


def test_every_metric_has_a_worked_example() -> None:
    shown = {parse_metric(name).name for _, _, values in _examples() for name in values}
    assert shown == set(DEFINITIONS)


def test_the_worked_examples_are_what_the_code_computes() -> None:
    for judged, ranking, values in _examples():
        run = judge_lists({"q": ranking}, ["q"], Judgements({"q": judged}))
        for name, value in values.items():
            metric = parse_metric(name)
            assert str(metric) == name
            assert metric.compute(run)[0] == pytest.approx(float(value), abs=5e-5), name


def test_other_names_of_metrics_are_read_as_the_guide_says() -> None:
    rows = re.findall(
        r"^\| (`.*`) \| (`.*`) \|$", _section("Other names that are read"), re.MULTILINE
    )
    assert len(rows) >= 10
    for ours, read in rows:
        known = {str(parse_metric(name)) for name in re.findall(r"`([^`]+)`", ours)}
        assert known == set(re.findall(r"`([^`]+)`", ours))
        assert {str(parse_metric(name)) for name in re.findall(r"`([^`]+)`", read)} <= known


def test_every_convention_is_in_both_tables_with_its_metrics_and_rules() -> None:
    section = _section("Conventions")
    for name, convention in CONVENTIONS.items():
        names, rules = re.findall(rf"^\| `{name}` \|.*$", section, re.MULTILINE)
        for plain, explicit in (convention.metrics or {}).items():
            assert {f"`{plain}`", f"`{explicit}`"} <= set(re.findall(r"`[^`]+`", names)), name
        assert (f"| {convention.cut} only |" if convention.cut else "| any |") in names
        assert convention.tie_rule in rules
        assert ("counted again" in rules) == (convention.duplicates == "counted again"), name
        assert ("left out" in rules) == (convention.missing == "left out"), name
        assert ("apart" in rules) == (convention.unanswerable == "apart"), name


def _section(title: str) -> str:
    """One section of metrics.md."""
    return guide_page("metrics.md").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _examples() -> list[tuple[dict[str, int], list[str], dict[str, str]]]:
    """Judgements, ranking and values of each worked example."""
    found = []
    for part in _section("Worked examples").split("\n### ")[1:]:
        given = re.search(r"Judgements\s`(\{.*?\})`,\sranking\s`(\[.*?\])`", part)
        assert given is not None, part
        values = dict(re.findall(r"^\| `([^`]+)` \| ([\d.]+) \|", part, re.MULTILINE))
        found.append((json.loads(given[1]), json.loads(given[2]), values))
    return found


@pytest.mark.parametrize("name", plugins.BUILT_IN["retriever"])
def test_every_built_in_retriever_has_a_section_with_its_parameters(name: str) -> None:
    page = guide_page("retrievers.md") + guide_page("frameworks.md")
    title = "## LangChain" if name == "langchain" else f"### {name}"
    _, found, section = page.partition(f"\n{title}\n")
    assert found, f"no section {title!r}"
    explained = _quoted(re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0])
    for parameter in _parameters(name):
        assert parameter in explained, parameter


def test_every_config_is_described() -> None:
    in_guide = _quoted(guide_page("retrievers.md") + guide_page("services.md"))
    in_folder = _quoted(_text(ROOT / "configs" / "README.md"))
    for path in (ROOT / "configs" / "retrievers").glob("*.yaml"):
        assert path.stem in in_guide & in_folder
    for path in (ROOT / "configs" / "datasets").glob("*/dataset.yaml"):
        assert path.parent.name in in_folder


def test_every_tokenizer_is_in_the_guide() -> None:
    page = guide_page("retrievers.md")
    for name in tokenizers._TOKENIZERS:
        assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE), name


def test_every_format_and_key_of_dataset_yaml_is_in_the_guide() -> None:
    page = guide_page("data.md")
    for name in formats():
        assert f"\n### {name}\n" in page
    for key in DatasetConfig.model_fields:
        assert key in _quoted(page), key


def test_the_numbers_of_the_protocol_are_those_of_the_code() -> None:
    page = " ".join(guide_page("measuring.md").split())
    for level, needs in NEEDS.items():
        calls = f"{needs.printed:,} calls | {needs.gated:,}"
        assert f"| p{level:g} | {calls} |" in page
    assert f"at least {protocol.WARM_UP_CALLS} calls" in page
    assert f"After {protocol.Protocol().warm_up_s:g} seconds" in page
    assert (
        f"windows of {steady.WINDOW} calls agree within {steady.TOLERANCE:.0%}".replace("%", " %")
        in page
    )
    release = protocol.PROFILES["release"]
    assert f"{release['min_calls']:,} calls in {release['launches']} launches" in page


def test_every_exit_code_is_in_the_guide() -> None:
    page = guide_page("results.md")
    codes = (console.OK, console.REGRESSION, console.BAD_INPUT, console.UNDECIDED)
    for code in (*codes, console.NOT_MEASURED, console.BUG, console.INTERRUPTED):
        assert f"\n| {code} |" in page


# -- what a run leaves ---------------------------------------------------------------------------


class _Everything(Retriever):
    """Reports all that a ranking can carry."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=True)

    def search(self, query: Query, k: int) -> Ranking:
        return Ranking(["d"], [1.0], {"encode": 1}, {"one": LegTrace([1], [1.0], ["d"])})


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "run"
    queries = [Query("q", "text"), Query("none", "text", metadata={"answerable": False})]
    dataset = build_dataset("tiny", [Document("d", "text")], queries, {"q": {"d": 1}})
    bench(_Everything(), dataset, protocol=protocol.Protocol(rounds=1, warm_up_s=0), out=folder)
    return folder


def test_every_file_of_a_run_is_in_the_guide(run_folder: Path) -> None:
    explained = _quoted(guide_page("results.md"))
    for path in run_folder.iterdir():
        assert path.name in explained, path.name


def test_every_array_of_a_run_is_in_the_guide(run_folder: Path) -> None:
    explained = _quoted(guide_page("results.md"))
    for path in run_folder.glob("*.npz"):
        with np.load(path) as arrays:
            for name in arrays.files:
                general = re.sub(r":.*", ":NAME", name)
                assert general in explained, f"{path.name}: {name}"


def test_every_field_of_the_summary_and_manifest_is_in_the_guide(run_folder: Path) -> None:
    explained = _quoted(guide_page("results.md") + guide_page("json.md"))
    summary = json.loads(_text(run_folder / "summary.json"))
    manifest = json.loads(_text(run_folder / "manifest.json"))
    parts = [summary, *(summary[key] for key in ("dataset", "unanswerable", "latency_ms", "index"))]
    parts += [summary["metrics"]["nDCG@10"], summary["latency_ms"]["p50"]]
    parts += [summary["stages_ms"]["encode"], manifest]
    parts += [manifest[key] for key in ("retriever", "protocol", "environment")]
    for part in parts:
        for field in part:
            assert field in explained, field


# -- what commands give as JSON ------------------------------------------------------------------
#
# ``json.md`` is made from the types of all documents, and each key of each command's document is
# one of its type (``tests/golden``): here stand the names that are data there.


def test_the_document_of_every_command_is_in_the_guide() -> None:
    titles = set(re.findall(r"^## (\w+)$", guide_page("json.md"), re.MULTILINE))
    same = {"explain": "diff", **dict.fromkeys(("score", "data", "label", "lab"), "bench")}
    assert {same.get(name, name) for name in _commands()} <= titles


def test_every_metric_of_a_reader_is_in_the_guide() -> None:
    span = Span("d", 0, 4)
    gold = (GoldQuestion("q", ("text",), (span,), ("d",)), GoldQuestion("none", ()))
    answers = {"q": (Answer("text", span),), "none": (Answer(""),)}
    document = score_reader(gold, Predictions(answers, has_spans=True)).as_dict()
    explained = _quoted(guide_page("reader.md") + guide_page("json.md"))
    for name in document["metrics"]:
        general = re.sub(r"^reader_.*(?=_has_answer$)", "...", name)
        assert name in explained or general in explained, name
    official = {re.sub(r"^(HasAns|NoAns)_", "", name) for name in document["official"]}
    assert official | set(document["conventions"]) <= explained


def test_every_word_of_diff_is_in_the_guide() -> None:
    data = make_dataset({"q": {"a": 1}})
    found = explain([make_run("mixed", data, {"q": "a"}, {"x": {"q": "a"}})], data)
    page = guide_page("explaining.md") + guide_page("json.md")
    for fate in FATES:
        assert f"`{fate}`" in page
    for partition in found.partitions:
        assert f"`{partition.kind}`" in page
        for label in partition.labels[2 if partition.kind == "best leg" else 0 :]:
            assert f"`{label}`" in page


def test_every_field_of_an_entry_of_the_action_is_in_the_guide(tmp_path: Path) -> None:
    save_run(tmp_path, 1)
    found = read_history([tmp_path])
    (entry,) = benchmark_entries(subjects(found.runs, found.duets), "latency")
    assert set(entry) <= _quoted(guide_page("history.md") + guide_page("json.md"))


def test_the_policy_of_the_guide_is_the_shipped_one(tmp_path: Path) -> None:
    (text,) = (text for _, text in _blocks("{.yaml .policy}"))
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    shipped, shown = load_policy(ROOT / "configs" / "policy.yaml", k=10), load_policy(path, k=10)
    assert (shown.quality, shown.latency, shown.undecided) == (
        shipped.quality,
        shipped.latency,
        shipped.undecided,
    )


# -- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_carry_no_anchors(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", _text(page))):
        if re.match(r"[a-z]+:", target):
            continue
        assert "#" not in target, target
        assert (page.parent / target).exists(), target


def test_every_page_of_the_guide_is_in_its_index() -> None:
    index = _LINK.findall(_text(GUIDE / "README.md"))
    assert {str(path.relative_to(GUIDE)) for path in guide_pages()} - {"README.md"} <= set(index)
    records = _LINK.findall(_text(GUIDE / "decisions" / "README.md"))
    assert {path.name for path in (GUIDE / "decisions").glob("0*.md")} <= set(records)


# -- examples ------------------------------------------------------------------------------------

YAML, PYTHON, BASH, JSON = (_blocks(name) for name in ("yaml", "python", "bash", "json"))


def test_there_are_examples_of_each_kind() -> None:
    for blocks in (YAML, PYTHON, BASH, JSON):
        assert len(blocks) >= 5


def test_other_blocks_of_yaml_are_yaml() -> None:
    kinds = {match[1].strip() for page in INSTRUCTIONS for match in _FENCE.finditer(_text(page))}
    others = [kind for kind in kinds if kind.startswith("{.yaml")]
    assert len(others) >= 5
    for _, text in (block for kind in others for block in _blocks(kind)):
        yaml.safe_load(text)


@pytest.mark.parametrize(("place", "text"), YAML, ids=_places(YAML))
def test_yaml_blocks_are_configs(place: str, text: str) -> None:
    content = yaml.safe_load(text)
    if "format" in content:
        validate(DatasetConfig, content, where=place)
        return
    config = validate(RetrieverConfig, {"name": "unnamed", **content}, where=place)
    if config.target in plugins.BUILT_IN["retriever"]:
        accepted = _parameters(config.target)
        if config.target not in HANDING_ON:
            assert set(config.params) <= set(accepted)
        required = {name for name, needed in accepted.items() if needed}
        assert required <= set(config.params)


@pytest.mark.parametrize(("place", "text"), PYTHON, ids=_places(PYTHON))
def test_python_blocks_parse_and_what_they_import_from_here_exists(place: str, text: str) -> None:
    for node in ast.walk(ast.parse(text, filename=place)):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if node.module.startswith("retrieval_bench"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module}.{alias.name}"


@pytest.mark.parametrize(("place", "text"), JSON, ids=_places(JSON))
def test_json_blocks_are_one_value_or_one_a_line(place: str, text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        for line in text.splitlines():
            json.loads(line)


@pytest.mark.parametrize(("place", "text"), BASH, ids=_places(BASH))
def test_commands_use_targets_and_options_that_exist(
    place: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in _command_lines(text):
        if Path(words[0]).name == "retrieval-bench":
            _parse(words[1:], capsys)
        elif words[0] == "make":
            for arguments in _made(words[1:]):
                _parse(arguments, capsys)
        else:
            assert words[0] in {"python", "pip", "git", "cd"}, words[0]


def test_what_agents_are_told_to_run_exists_and_is_short() -> None:
    text = _text(AGENTS)
    assert len(text.splitlines()) <= 15
    (block,) = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    lines = [*_command_lines(block), shlex.split(re.findall(r"`(python [^`]+)`", text)[0])]
    assert len(lines) == len(block.splitlines()) + 1
    for command, *words in lines:
        if command == "make":
            assert list(_made(words)) == []
        elif command == "python":
            (flag, module, *paths) = words
            assert flag == "-m"
            assert importlib.util.find_spec(module)
            assert all((ROOT / path).is_dir() for path in paths)
        else:
            assert os.access(ROOT / command, os.X_OK), command


def _parameters(name: str) -> dict[str, bool]:
    """Parameters of a built-in retriever, and whether each must be given."""
    parameters = inspect.signature(plugins.resolve("retriever", name)).parameters.values()
    return {
        parameter.name: parameter.default is inspect.Parameter.empty
        for parameter in parameters
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }


def _command_lines(text: str) -> Iterator[list[str]]:
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words:
            yield words


def _parse(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        cli.parser().parse_args(arguments)
    except SystemExit as stop:
        if stop.code:  # `--help` and `--version` stop with 0
            pytest.fail(f"{shlex.join(arguments)}: {capsys.readouterr().err}")


def _made(words: list[str]) -> Iterator[list[str]]:
    """What a make command calls, as far as its ``ARGS`` say it."""
    makefile, every = _text(ROOT / "Makefile"), dict(commands())
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE))
    given = dict(word.split("=", 1) for word in words if "=" in word)
    assert set(given) <= variables | {"BENCH_DATA"}
    for target in (word for word in words if "=" not in word):
        assert target in targets, target
        command = rf"((?:(?:{'|'.join(GROUPS)}) )?\S+)"
        called = rf"^{target}:.*\n\t@\$\(BENCH\) {command}(.*)$"
        recipe = re.search(called, makefile, re.MULTILINE)
        if recipe is None or not re.search(r"\$\((ARGS|HOW)\)", recipe[2]):
            assert "ARGS" not in given, f"{target} takes no ARGS"
            continue
        options = [one for one in every[recipe[1]]._actions if one.option_strings]
        filled = [w for one in options if one.required for w in (one.option_strings[0], "any")]
        yield [*recipe[1].split(), *filled, *shlex.split(given.get("ARGS", ""))]


@pytest.mark.slow
def test_what_make_calls_is_found_for_every_target_that_takes_args() -> None:
    makefile = _text(ROOT / "Makefile")
    assert 'HOW = --split "$(SPLIT)" --k $(K) $(ARGS)' in makefile
    told = set(re.findall(r"^([a-z-]+):.*?## .*\bARGS\b", makefile, re.MULTILINE))
    assert {"bench", "duet", "regress", "history"} <= told
    for target in told | {"tune", "selftest", "reproduce"}:
        ((*command, last),) = _made([target, "ARGS=--format json"])
        assert target in command[:2]
        assert last == "json"
    assert list(_made(["test-all"])) == []
    with pytest.raises(AssertionError, match="takes no ARGS"):
        list(_made(["list", "ARGS=--format json"]))


def test_the_guide_names_every_kind_of_error_and_no_other() -> None:
    rows = re.findall(r"^\| (`[a-z]+-[-a-z`, ]+`) \|", guide_page("results.md"), re.M)
    assert {name for row in rows for name in re.findall(r"[\w-]+", row)} == {*get_args(Kind)}
