"""The docs say what the code does: names, options, fields, links, and examples that can work.

A YAML block is a dataset.yaml when it has the key ``format``, otherwise a retriever config; a block
of another kind says so behind the word ``yaml``. Commands in bash blocks are parsed, not run.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import yaml

from harness import bench, cli, plugins
from harness.config import RetrieverConfig, validate
from harness.data import build_dataset
from harness.data.config import DatasetConfig, Format
from harness.measure import protocol
from harness.metrics.names import DEFINITIONS
from harness.retriever import Capabilities, Retriever
from harness.stats import SMALLEST_SAMPLE
from harness.types import Document, LegTrace, Query, Ranking
from retrievers import tokenizers

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "harness" / "docs"

GENERATED = {"build", "dist", "runs"}
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(
        part.startswith(".") or part in GENERATED for part in path.relative_to(ROOT).parts[:-1]
    )
)
INSTRUCTIONS = [ROOT / "README.md", ROOT / "README.ko.md", ROOT / "CONTRIBUTING.md"]
INSTRUCTIONS += [*sorted(GUIDE.glob("*.md")), *sorted(ROOT.glob("*/README.md"))]

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
    for action in cli._parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    raise AssertionError("the parser has no commands")


# -- names ---------------------------------------------------------------------------------------


def test_every_command_is_in_the_guide() -> None:
    for command in _commands():
        assert f"`retrieval-bench {command}`" in _text(GUIDE / "README.md"), command


def test_every_option_is_explained_in_the_guide() -> None:
    explained = _quoted(_text(GUIDE / "README.md"))
    for command, parser in _commands().items():
        for action in parser._actions:
            for option in action.option_strings:
                assert option in explained, f"{command} {option}"


def test_every_metric_and_its_parameters_are_defined_in_the_guide() -> None:
    page = _text(GUIDE / "metrics.md")
    for name, definition in DEFINITIONS.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", page, re.MULTILINE)
        assert f"| {definition.cut} |" in row, name
        for parameter in definition.params:
            assert f"`{parameter}`" in row, f"{name}({parameter})"


@pytest.mark.parametrize("name", plugins.BUILT_IN["retriever"])
def test_every_built_in_retriever_has_a_section_with_its_parameters(name: str) -> None:
    page = _text(GUIDE / "retrievers.md")
    title = "## LangChain" if name == "langchain" else f"### {name}"
    _, found, section = page.partition(f"\n{title}\n")
    assert found, f"no section {title!r}"
    explained = _quoted(re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0])
    for parameter in _parameters(name):
        assert parameter in explained, parameter


def test_every_config_is_described() -> None:
    in_guide = _quoted(_text(GUIDE / "retrievers.md"))
    in_folder = _quoted(_text(ROOT / "configs" / "README.md"))
    for path in (ROOT / "configs" / "retrievers").glob("*.yaml"):
        assert path.stem in in_guide & in_folder
    for path in (ROOT / "configs" / "datasets").glob("*/dataset.yaml"):
        assert path.parent.name in in_folder


def test_every_tokenizer_is_in_the_guide() -> None:
    page = _text(GUIDE / "retrievers.md")
    for name in tokenizers._TOKENIZERS:
        assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE), name


def test_every_format_and_key_of_dataset_yaml_is_in_the_guide() -> None:
    page = _text(GUIDE / "data.md")
    for name in get_args(Format):
        assert f"\n### {name}\n" in page
    for key in DatasetConfig.model_fields:
        assert key in _quoted(page), key


def test_the_numbers_of_the_protocol_are_those_of_the_code() -> None:
    page = " ".join(_text(GUIDE / "measuring.md").split())
    for level, n in SMALLEST_SAMPLE.items():
        assert f"| p{level:g} | {n:,} calls |" in page
    assert f"at least {protocol.WARM_UP_CALLS} calls" in page
    assert f"{protocol.WARM_UP_SECONDS:g} seconds have passed" in page


def test_every_exit_code_is_in_the_guide() -> None:
    page = _text(GUIDE / "results.md")
    for code in (cli.OK, cli.BAD_INPUT, cli.NOT_JUDGED, cli.INTERRUPTED):
        assert f"\n| {code} |" in page


# -- what a run leaves ---------------------------------------------------------------------------


class _Everything(Retriever):
    """Reports all that a ranking can carry."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(external=True)

    def search(self, query: Query, k: int) -> Ranking:
        return Ranking(["d"], [1.0], {"encode": 1}, {"one": LegTrace([1], [1.0])})


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "run"
    dataset = build_dataset("tiny", [Document("d", "text")], [Query("q", "text")], {"q": {"d": 1}})
    bench(_Everything(), dataset, protocol=protocol.Protocol(rounds=1), out=folder)
    return folder


def test_every_file_of_a_run_is_in_the_guide(run_folder: Path) -> None:
    explained = _quoted(_text(GUIDE / "results.md"))
    for path in run_folder.iterdir():
        assert path.name in explained, path.name


def test_every_array_of_a_run_is_in_the_guide(run_folder: Path) -> None:
    explained = _quoted(_text(GUIDE / "results.md"))
    for path in run_folder.glob("*.npz"):
        with np.load(path) as arrays:
            for name in arrays.files:
                general = re.sub(r":.*", ":NAME", name)
                assert general in explained, f"{path.name}: {name}"


def test_every_field_of_the_summary_and_manifest_is_in_the_guide(run_folder: Path) -> None:
    explained = _quoted(_text(GUIDE / "results.md"))
    summary = json.loads(_text(run_folder / "summary.json"))
    manifest = json.loads(_text(run_folder / "manifest.json"))
    parts = [summary, *(summary[key] for key in ("dataset", "unanswerable", "latency_ms", "index"))]
    parts += [summary["metrics"]["nDCG@10"], summary["latency_ms"]["p50"]]
    parts += [summary["stages_ms"]["encode"], manifest]
    parts += [manifest[key] for key in ("retriever", "protocol", "environment")]
    for part in parts:
        for field in part:
            assert field in explained, field


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
    pages = {path.name for path in GUIDE.glob("*.md")} - {"README.md"}
    assert pages <= set(index)
    records = _LINK.findall(_text(GUIDE / "decisions" / "README.md"))
    assert {path.name for path in (GUIDE / "decisions").glob("0*.md")} <= set(records)


# -- examples ------------------------------------------------------------------------------------

YAML, PYTHON, BASH, JSON = (_blocks(name) for name in ("yaml", "python", "bash", "json"))


def test_there_are_examples_of_each_kind() -> None:
    for blocks in (YAML, PYTHON, BASH, JSON):
        assert len(blocks) >= 5


@pytest.mark.parametrize(("place", "text"), YAML, ids=_places(YAML))
def test_yaml_blocks_are_configs(place: str, text: str) -> None:
    content = yaml.safe_load(text)
    if "format" in content:
        validate(DatasetConfig, content, where=place)
        return
    config = validate(RetrieverConfig, {"name": "unnamed", **content}, where=place)
    if config.target in plugins.BUILT_IN["retriever"]:
        accepted = _parameters(config.target)
        if config.target != "langchain":
            assert set(config.params) <= set(accepted)
        required = {name for name, needed in accepted.items() if needed}
        assert required <= set(config.params)


@pytest.mark.parametrize(("place", "text"), PYTHON, ids=_places(PYTHON))
def test_python_blocks_parse_and_what_they_import_from_here_exists(place: str, text: str) -> None:
    for node in ast.walk(ast.parse(text, filename=place)):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if node.module.partition(".")[0] in ("harness", "retrievers"):
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
        cli._parser().parse_args(arguments)
    except SystemExit as stop:
        if stop.code:  # `--help` and `--version` stop with 0
            pytest.fail(f"{shlex.join(arguments)}: {capsys.readouterr().err}")


def _made(words: list[str]) -> Iterator[list[str]]:
    """What a make command calls, as far as its ``ARGS`` say it."""
    makefile = _text(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE))
    given = dict(word.split("=", 1) for word in words if "=" in word)
    assert set(given) <= variables | {"BENCH_DATA"}
    for target in (word for word in words if "=" not in word):
        assert target in targets, target
        if target == "bench":
            yield ["bench", "--retriever", "any", *shlex.split(given.get("ARGS", ""))]
        elif target == "compare":
            yield ["compare", *shlex.split(given.get("ARGS", ""))]
