from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml

from retrieval_bench.core.errors import ConfigError, HarnessError
from retrieval_bench.core.plugins import construct
from retrieval_bench.experiment.preparation import Problems
from retrieval_bench_tune.grid import (
    MOST_SETTINGS,
    Setting,
    as_yaml,
    checked_grid,
    make_grid,
    numeric,
    ordered,
    parse_grid,
)
from tests.builders.reference import TermOverlap


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("k1=[0.5, 1]", (0.5, 1)),
        ("k1=0.5,1", (0.5, 1)),
        ("k1=1.2", (1.2,)),
        ("fusion.weights=[[1, 2], [2, 1]]", ([1, 2], [2, 1])),
        ("fusion.weights=[1, 2],[2, 1]", ([1, 2], [2, 1])),
        ("tokenizer=[word, {name: ngram, n: 3}]", ("word", {"name": "ngram", "n": 3})),
        ("fusion={method: rrf},{method: convex}", ({"method": "rrf"}, {"method": "convex"})),
        ("depth=null,20", (None, 20)),
        ("이름=가,나", ("가", "나")),
        ("b=0,0,1", (0, 1)),
    ],
)
def test_values_are_yaml_with_or_without_brackets(text: str, values: tuple[Any, ...]) -> None:
    assert tuple(_parsed([text]).values()) == (values,)


def _parsed(given: list[str]) -> dict[str, tuple[Any, ...]]:
    return _raised(parse_grid, given)


def _raised(read: Any, given: Any) -> dict[str, tuple[Any, ...]]:
    problems = Problems()
    found: dict[str, tuple[Any, ...]] = read(given, problems)
    problems.raise_if_any()
    return found


def test_all_faults_of_a_grid_are_told_at_once_beside_what_is_right() -> None:
    with pytest.raises(HarnessError) as problem:
        _parsed(["k1", "b=[]", "=1", "depth=", "x=[1", "variant=l", "variant=plus"])
    text = str(problem.value)
    assert text.startswith("6 problems")
    for given in ("'k1'", "'b=[]'", "'=1'", "'depth='", "x=[1", "'variant=plus'"):
        assert given in text
    assert parse_grid(["k1=[1,2]", "b=[]", "x"], Problems()) == {"k1": (1, 2)}
    with pytest.raises(ConfigError, match=r"either 'fusion' as a whole or what is inside"):
        _parsed(["fusion.k=[1]", "fusion=[{method: rrf}]"])


@pytest.mark.parametrize("values", [[], "abc", 3])
def test_a_grid_from_python_needs_lists_of_values(values: Any) -> None:
    with pytest.raises(ConfigError, match="a list of one value or more"):
        _raised(checked_grid, {"k1": values})


def test_numbers_of_numpy_are_those_of_python() -> None:
    given: Any = {"a": [np.float64(0.5), np.int64(2)], "b": np.array([[1, 2]]), "c": [(np.True_,)]}
    checked = checked_grid(given, Problems())
    assert checked == {"a": (0.5, 2), "b": ([1, 2],), "c": ([True],)}
    first = Setting({path: values[0] for path, values in checked.items()})
    assert str(first) == "a=0.5 b=[1, 2] c=[true]"


def test_the_default_is_written_as_on_the_grid() -> None:
    grid = make_grid({"k1": (0.5, 1.0), "on": (1, True)}, {"k1": 1, "on": True}, seed=0)
    assert str(grid.settings[0]) == "k1=1.0 on=true"


def test_the_default_is_the_first_setting_and_there_once() -> None:
    grid = make_grid({"a": (1, 2), "b": (3, 4)}, {"a": 2, "b": 3}, seed=0)
    assert [str(setting) for setting in grid.settings] == [
        "a=2 b=3",
        "a=1 b=3",
        "a=1 b=4",
        "a=2 b=4",
    ]
    assert [setting.as_is for setting in grid.settings] == [True, False, False, False]
    assert grid.settings[0].overrides == []
    assert grid.settings[1].overrides == ["a=1", "b=3"]
    assert grid.default_on_grid
    assert not grid.sampled


@pytest.mark.parametrize("current", [{"a": 9, "b": 3}, {"b": 3}, {}])
def test_a_default_that_is_not_on_the_grid_stands_before_it(current: dict[str, int]) -> None:
    grid = make_grid({"a": (1, 2), "b": (3,)}, current, seed=0)
    assert [str(setting) for setting in grid.settings] == ["as it is", "a=1 b=3", "a=2 b=3"]
    assert not grid.default_on_grid
    assert not grid.sampled


def test_a_large_grid_is_refused_with_the_way_out() -> None:
    sizes = {"a": tuple(range(50)), "b": tuple(range(41))}
    with pytest.raises(ConfigError) as problem:
        make_grid(sizes, {}, seed=0)
    assert "2,050 settings" in str(problem.value)
    assert "50 a x 41 b" in str(problem.value)
    assert "--sample" in str(problem.value)
    assert len(make_grid({"a": sizes["a"], "b": tuple(range(40))}, {}, seed=0).settings) == 2001
    with pytest.raises(ConfigError, match="--sample"):
        make_grid(sizes, {}, sample=MOST_SETTINGS + 1, seed=0)


def test_a_sample_is_seeded_distinct_and_from_all_over_a_grid_too_large_to_list() -> None:
    huge = {name: tuple(range(1000)) for name in "abcde"}
    current = dict.fromkeys(huge, 0)
    grid = make_grid(huge, current, sample=50, seed=1)
    assert len(grid.settings) == 51
    assert grid.sampled
    assert grid.settings[0].as_is
    assert len({str(setting) for setting in grid.settings}) == 51
    assert len({setting.values["a"] for setting in grid.settings}) > 30
    assert grid == make_grid(huge, current, sample=50, seed=1)
    assert grid != make_grid(huge, current, sample=50, seed=2)


def test_a_sample_combines_values_as_the_whole_grid_does_and_needs_a_size() -> None:
    parameters = {"a": (1, 2, 3), "b": (4, 5), "c": (6, 7)}
    whole = {str(setting) for setting in make_grid(parameters, {}, seed=0).settings}
    found: set[str] = set()
    for seed in range(40):
        found |= {
            str(setting) for setting in make_grid(parameters, {}, sample=4, seed=seed).settings
        }
    assert found == whole
    parameters, current = {"a": (1, 2), "b": (3, 4)}, {"a": 1, "b": 3}
    assert make_grid(parameters, current, sample=9, seed=0) == make_grid(
        parameters, current, seed=0
    )
    with pytest.raises(ConfigError, match="--sample 0"):
        make_grid({"a": (1,)}, {}, sample=0, seed=0)


@pytest.mark.parametrize(
    "value", [1, 0.00001, 1e22, "가 나", "1.5", "a: b", [0.5, 1], {"k": [1]}, None]
)
def test_a_value_written_as_an_override_is_read_back(value: Any) -> None:
    (override,) = Setting({"x": value}).overrides
    assert "\n" not in override
    assert yaml.safe_load(override.partition("=")[2]) == value


def test_numbers_and_lists_of_numbers_have_an_order_and_short_yaml() -> None:
    assert ordered([3, 1, 2.5]) == [1, 2.5, 3]
    assert ordered([[1, 0], [0, 1]]) == [[0, 1], [1, 0]]
    assert ordered(["b", "a", 1]) == ["b", "a", 1]
    assert not numeric([True, 1])
    assert not numeric([[1], [1, 2]])
    assert not numeric([[1], 2])
    assert (as_yaml(60), as_yaml([0.5, 0.5]), as_yaml("word")) == ("60", "[0.5, 0.5]", "word")


LEGS = ["bm25", {"target": "bm25", "params": {"tokenizer": "whitespace"}}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "params", "names"),
    [
        ("bm25", {}, {"k1", "b"}),
        ("bm25", {"k1": 1.7, "b": 0}, {"k1", "b"}),
        ("bm25s", {}, {"k1", "b"}),
        ("hybrid", {"legs": LEGS}, {"fusion.k", "fusion.weights", "depth"}),
        ("hybrid", {"legs": LEGS, "depth": [7, 9]}, {"fusion.k", "fusion.weights", "depth"}),
        (
            "hybrid",
            {"legs": [*LEGS, "bm25s"], "fusion": {"method": "convex", "weights": [1, 1, 2]}},
            {"fusion.weights", "depth"},
        ),
        (
            "hybrid",
            {"legs": [*LEGS, "bm25s", "bm25s"], "fusion": {"k": 3}},
            {"fusion.k", "fusion.weights", "depth"},
        ),
    ],
)
def test_a_search_space_has_the_instances_own_value_first_and_only_values_it_takes(
    target: str, params: dict[str, Any], names: set[str]
) -> None:
    own = construct(target, params)
    space = own.search_space()
    assert set(space) == names
    for path, values in space.items():
        assert len(values) == len({str(value) for value in values}) >= 3
        for value in values:
            changed = _with(params, path, value)
            other = construct(target, changed)
            same = value == values[0]
            assert (_shares(other.describe()) == _shares(own.describe())) is same, (path, value)
            other.close()
    own.close()


def _with(params: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    first, dot, rest = path.partition(".")
    if not dot:
        return {**params, first: value}
    return {**params, first: {**params.get(first, {}), rest: value}}


def _shares(facts: Any) -> str:
    """The facts with weights as shares of their sum."""
    fusion = dict(facts.get("fusion", {}))
    weights = fusion.get("weights", {})
    fusion["weights"] = [round(w / sum(weights.values()), 4) for w in weights.values()]
    fusion.pop("text", None)
    return str({**facts, "fusion": fusion})


def test_weights_of_a_search_space_leave_out_no_leg_alone() -> None:
    space = construct("hybrid", {"legs": [*LEGS, "bm25s"]}).search_space()
    weights = [tuple(w) for w in space["fusion.weights"]]
    assert {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)} < set(weights)
    assert all(sum(w) == pytest.approx(1, abs=1e-5) for w in weights)
    assert len(weights) == 22  # 21 in fifths, and equal ones


def test_a_retriever_need_not_have_a_search_space() -> None:
    own = TermOverlap()
    assert own.search_space() == {}
    assert own.named_legs() == {}


@pytest.mark.parametrize("of", [tuple, np.array])
def test_a_default_that_is_no_plain_list_is_on_the_grid(of: Any) -> None:
    values = [of([1.0, 1.0]), of([1.0, 2.0])]
    grid = make_grid(checked_grid({"w": values}, Problems()), {"w": values[0]}, seed=0)
    assert grid.default_on_grid
    assert len(grid.settings) == 2
