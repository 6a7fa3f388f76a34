"""Which layers of the set-up a retriever needs: `make` installs them before it runs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from retrieval_bench.cli.layers import layers
from tests.builders.files import save
from tests.builders.processes import python

ROOT = Path(__file__).parents[2]


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
        "runpy.run_module('retrieval_bench.cli.layers', run_name='__main__')\n"
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
