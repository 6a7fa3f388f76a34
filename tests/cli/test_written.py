"""``data schema retriever|dataset|policy|cases``: what people write in YAML is refused by the tool
with its line and key, and mostly by the schema of its file; what is valid passes both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema import Draft202012Validator

from retrieval_bench.core.config import for_editors, load_retriever_config, read_yaml, validate
from retrieval_bench.core.errors import HarnessError, with_line
from retrieval_bench.data import load_dataset
from retrieval_bench.data.settings import DatasetConfig, read_dataset_config
from retrieval_bench_catalog.documents import FILES, schema_of
from retrieval_bench_regress.policy import load_policy
from retrieval_bench_rules.formats.written import parse_as_written
from tests.builders.guide import GUIDE
from tests.cli.project import Command

CONFIGS = Path(__file__).parents[2] / "configs"


class Broken(NamedTuple):
    """A file with one fault.

    Attributes:
        kind: of file.
        text: of it.
        line: of the fault.
        key: that the message names.
        seen: whether its schema can see it.
    """

    kind: str
    text: str
    line: int
    key: str
    seen: bool = True


def of(target: str, *params: str) -> str:
    return "\n".join([f"target: {target}", "params:", *(f"  {line}" for line in params), ""])


DATASET = "format: beir\nlanguage: en\n"
CASES = "- question: what is a tide\n  must_contain: moon\n"
BROKEN = (
    Broken("retriever", "target: bm25\nparmas:\n  k1: 0.9\n", 2, "parmas"),
    Broken("retriever", "name: mine\nparams:\n  k1: 0.9\n", 1, "target"),
    Broken("retriever", of("bm25", "k1: 0.9", "kk: 2"), 4, "kk"),
    Broken("retriever", of("bm25", "k1: fast"), 3, "k1"),
    Broken("retriever", of("bm25", "b: [1, 2]"), 3, "b"),
    Broken("retriever", of("dense", "model: minilm", "cache: 7"), 4, "cache"),
    Broken("retriever", of("callable", "scores: true"), 2, "function"),
    Broken("retriever", "target: bm52\n", 1, "bm52"),
    Broken("retriever", "target: bm25\nrate_limit: 0\n", 2, "rate_limit"),
    Broken("retriever", "target: bm25\nretry:\n  times: 50\n", 3, "times"),
    Broken("retriever", "target: bm25\nprice:\n  token: 1\n", 3, "token"),
    Broken("retriever", "target: bm25\ntarget: dense\n", 2, "target", seen=False),
    Broken("dataset", f"{DATASET}fromat: trec\n", 3, "fromat"),
    Broken("dataset", "name: mine\nlanguage: en\n", 1, "format"),
    Broken("dataset", "format: beir\nlanguage: english\n", 2, "language"),
    Broken("dataset", f"{DATASET}drawn_from: 0\n", 3, "drawn_from"),
    Broken("dataset", f"{DATASET}self_hits: ignore\n", 3, "self_hits"),
    Broken("dataset", f"{DATASET}columns:\n  documents:\n    titel: t\n", 5, "titel"),
    Broken("dataset", "format: beir\nlanguage: no\n", 2, "language"),
    Broken("dataset", f"{DATASET}judges:\n  anna:\n    kind: robot\n", 5, "kind"),
    Broken("policy", "limits:\n  p50: 5%\n  nDCG@10: 0.01\n", 3, "nDCG@10"),
    Broken("policy", "limits:\n  p50: 0.05\n", 2, "p50"),
    Broken("policy", "limits:\n  p50: 5%\nundecided: maybe\n", 3, "undecided"),
    Broken("policy", "limits:\n  p99: 5%\n", 2, "p99"),
    Broken("policy", "limits:\n  p50: 0.01%\n", 2, "p50", seen=False),
    Broken("cases", f"{CASES}- must_contain: sun\n", 3, "question"),
    Broken("cases", f"{CASES}- question: 12\n  must_contain: sun\n", 3, "question"),
    Broken("cases", f"{CASES}- question: why\n  id: [1]\n  must_contain: a\n", 3, "id"),
    Broken("cases", f"{CASES}- question: why\n  must_contain: [a\n", 4, "", seen=False),
)
"""Those that no schema can see: a key that stands twice, a figure below what a gate can tell, and
text that is no YAML at all."""


@cache
def validator_of(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(kind))


def read(kind: str, text: str, folder: Path) -> Path:
    """Read a file as commands do, which refuse it."""
    name = {"dataset": "dataset.yaml", "cases": "cases.yaml"}.get(kind, f"{kind}.yaml")
    path = folder / name
    path.write_text(text, encoding="utf-8")
    reading: Mapping[str, Callable[[], object]] = {
        "retriever": lambda: load_retriever_config(str(path)).build(),
        "dataset": lambda: read_dataset_config(path),
        "policy": lambda: load_policy(path, k=10),
        "cases": lambda: load_dataset(str(folder)),
    }
    reading[kind]()
    return path


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: f"{one.kind}-{one.key}-{one.line}")
def test_a_broken_file_is_refused_with_its_name_line_and_key(
    broken: Broken, tmp_path: Path
) -> None:
    with pytest.raises(HarnessError) as refused:
        read(broken.kind, broken.text, tmp_path)
    said = refused.value.render()
    assert re.search(rf"\.yaml(:|.*\(line ){broken.line}\b", said), said
    assert broken.key in said


def test_the_schemas_see_what_a_schema_can_see() -> None:
    assert len(BROKEN) >= 24
    assert sum(broken.seen for broken in BROKEN) >= 18
    for broken in BROKEN:
        try:
            valid = validator_of(broken.kind).is_valid(_content(broken))
        except yaml.YAMLError:
            valid = True  # an editor marks it by itself
        assert valid != broken.seen, broken.text


def _content(broken: Broken) -> Any:
    reads = parse_as_written if broken.kind == "cases" else yaml.safe_load
    return reads(broken.text)


def _valid() -> list[tuple[str, str, str]]:
    """Every YAML file and block of one of these kinds that comes with the project."""
    known = [("retriever", path) for path in sorted((CONFIGS / "retrievers").glob("*.yaml"))]
    known += [("dataset", path) for path in sorted(CONFIGS.glob("datasets/*/dataset.yaml"))]
    known += [("policy", path) for path in sorted(CONFIGS.glob("policy*.yaml"))]
    files = [(kind, path.name, path.read_text("utf-8")) for kind, path in known]
    kinds = dict.fromkeys(["{.yaml .policy}", "{.yaml .limits}"], "policy")
    kinds["{.yaml .cases}"] = "cases"
    for page in sorted(GUIDE.rglob("*.md")):
        for mark, text in _BLOCK.findall(page.read_text("utf-8")):
            plain = "dataset" if re.search("^format:", text, re.M) else "retriever"
            kind = plain if mark == "yaml" else kinds.get(mark)
            files += [(kind, page.name, text)] if kind else []
    return files


_BLOCK = re.compile(r"^```(yaml|\{\.yaml [^}\n]*\})\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("kind", FILES)
def test_valid_files_pass_the_tool_and_the_schema(kind: str, tmp_path: Path) -> None:
    assert len(_valid()) >= 60
    validator = validator_of(kind)
    for of_kind, name, text in _valid():
        if of_kind != kind:
            continue
        content = parse_as_written(text) if kind == "cases" else yaml.safe_load(text)
        assert not [fault.message for fault in validator.iter_errors(content)], (name, text)
        if kind in ("policy", "cases"):
            read(kind, text, tmp_path)
        elif kind == "dataset":
            validate(DatasetConfig, content, where=name)
        else:
            path = tmp_path / name.replace(".md", ".yaml")
            path.write_text(text, encoding="utf-8")
            load_retriever_config(str(path))


@pytest.mark.parametrize(
    "metric",
    [
        "nDCG@10",
        "MRR@10",
        "SlotR@10",
        "Within",
        "SpanR(tokens=1000)",
        "own.py:metric",
        "ndcg_cut_5",
    ],
)
def test_a_policy_names_any_metric(metric: str) -> None:
    assert validator_of("policy").is_valid({"limits": {metric: -0.01}})
    assert not validator_of("policy").is_valid({"limits": {f"x{metric.partition(':')[0]}": -0.01}})


def test_every_target_has_its_parameters_with_types_defaults_and_an_example() -> None:
    made = validator_of("retriever").schema
    for choice in made["allOf"]:
        name = choice["if"]["properties"]["target"]["const"]
        params = made["$defs"][name]
        assert params["examples"]
        assert params["description"]
        told = [field for field in params["properties"].values() if field.get("description")]
        assert len(told) == len(params["properties"]), name
    assert made["$defs"]["bm25"]["properties"]["k1"]["default"] == 0.9


@pytest.mark.usefixtures("here")
def test_they_are_listed_apart_and_printed(run: Command) -> None:
    assert run("data schema") == 0
    _, apart = run.out.split("Files that you write")
    for name in FILES:
        assert f"\n  {name} " in apart
        assert run(f"data schema {name} --full") == 0
        Draft202012Validator.check_schema(yaml.safe_load(run.out))


def test_lines_are_those_of_keys_or_of_where_they_would_stand(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a:\n  - b: 1\n    c: 2\nd: 3\n", encoding="utf-8")
    assert with_line(str(path), [("a", 0, "c")]) == f"{path}:3"
    assert with_line(str(path), [("d",), ("a", 0, "x"), ("e",)]) == f"{path}:1, 2, 4"
    assert with_line("inline retriever", [("a",)]) == "inline retriever"
    assert read_yaml(path)["d"] == 3
    assert for_editors("dataset") == "# yaml-language-server: $schema=dataset.schema.json\n"
