"""N4: a target's parameters are printed from the declarations of its class."""

from __future__ import annotations

import inspect

import pytest
import yaml

from retrieval_bench.core import plugins
from retrieval_bench.core.config import inline_config
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.reports.render.terminal import plain
from retrieval_bench_catalog.tables.parameters import details, details_tables


@pytest.mark.parametrize("target", sorted(plugins.BUILT_IN["retriever"]))
def test_every_parameter_has_a_type_and_a_meaning_and_the_example_names_known_ones(
    target: str,
) -> None:
    found = details(target)
    assert found.description
    for entry in found.parameters:
        assert entry.meaning, f"{target} does not say what {entry.name} means"
        assert entry.type
        assert entry.required == (entry.default == "")
        assert ":class:" not in entry.meaning
    example = yaml.safe_load(found.yaml)
    assert example["target"] == target
    taken = inspect.signature(plugins.resolve("retriever", target)).parameters
    open_ended = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    assert open_ended or set(example.get("params", {})) <= set(taken)


def test_a_pipeline_says_its_grammar_and_the_rerankers() -> None:
    text = " ".join(plain(details_tables(details("pipeline"))).split())
    for word in ("{retrieve:", "minilm-l12", "maxsim", "required", "- rerank: minilm-l12"):
        assert word in text


def test_a_reference_is_followed_and_a_config_stands_for_its_target() -> None:
    model = details("dense-light").parameters[0]
    assert "a name that sentence-transformers knows" in model.meaning


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"target": "pipeline"}, ("'steps' is missing", "{rerank: NAME", "minilm-l12")),
        (
            {"target": "pipeline", "params": {"steps": ["bm25"]}},
            ("'steps.0'", "{retrieve: RETRIEVER", "minilm-l12"),
        ),
        (
            {"target": "pipeline", "params": {"steps": [{"retrieve": "bm25"}, {"rerank": {}}]}},
            ("{} is no name", "minilm-l12", "such as cross-encoder/"),
        ),
        (
            {"target": "pipeline", "params": {"steps": [{"retrieve": "bm25"}, {"rerank": None}]}},
            ("None is no name", "minilm-l12"),
        ),
        (
            {"target": "qdrant", "params": {"encoder": "bge-small-en-v1.5-int8"}},
            ("'encoder'", "{model: NAME", "bge-small-en-v1.5-int8"),
        ),
        (
            {"target": "lancedb", "params": {"load": "hnsw"}},
            ("'load'", "{index: exact or hnsw, m, ef_construction, cache}"),
        ),
    ],
)
def test_the_first_error_shows_the_grammar_and_the_names(
    config: dict[str, object], said: tuple[str, ...]
) -> None:
    """N4, N5."""
    with pytest.raises(ConfigError) as caught:
        inline_config(config).build()
    for words in said:
        assert words in str(caught.value)
