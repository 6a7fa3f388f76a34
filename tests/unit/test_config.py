from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness import plugins, secrets
from harness.config import (
    RetrieverConfig,
    build_retriever,
    load_retriever_config,
    read_yaml,
    retriever_names,
)
from harness.errors import ConfigError, PluginError
from harness.retriever import Retriever
from harness.types import Document, Query, Ranking


class Sample(Retriever):
    """A retriever with one parameter of each kind."""

    def __init__(
        self, *, size: int, label: str = "x", fusion: dict[str, Any] | None = None
    ) -> None:
        self.params = {"size": size, "label": label, "fusion": fusion}

    def index(self, documents: Iterable[Document]) -> None:
        return

    def search(self, query: Query, k: int) -> Ranking:
        return Ranking(())


SAMPLE = f"{__name__}:Sample"


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_yaml_file_becomes_a_retriever(tmp_path: Path) -> None:
    given = write(tmp_path / "mine.yaml", f"target: {SAMPLE}\nparams: {{size: 3, label: 한국어}}\n")
    config = load_retriever_config(given)
    assert config.name == "mine"
    retriever = config.build()
    assert isinstance(retriever, Sample)
    assert retriever.params == {"size": 3, "label": "한국어", "fusion": None}


def test_every_shipped_config_is_valid() -> None:
    for name in retriever_names():
        assert load_retriever_config(name).target


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("target: a:b\nparms: {}\n", "unknown key 'parms'"),
        ("params: {}\n", "'target' is missing"),
        ("target: a:b\nparams: 3\n", "'params'"),
        ("- a\n", "holds list"),
        ("target: [\n", "not readable as YAML"),
        ("target: a:b\ntarget: c:d\n", "given twice"),
        ("target: a:b\nsource: x\n", "unknown key 'source'"),
        ("", "holds NoneType"),
    ],
)
def test_faults_of_a_file_are_named_with_the_file(tmp_path: Path, text: str, says: str) -> None:
    given = write(tmp_path / "bad.yaml", text)
    with pytest.raises(ConfigError, match=says) as raised:
        load_retriever_config(given)
    assert "bad.yaml" in raised.value.where


def test_a_file_in_another_encoding_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: caf\xe9\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="not readable as YAML"):
        read_yaml(path)


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(ConfigError, match=r"did you mean bm25"):
        load_retriever_config("bm52")


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no retriever file") as raised:
        load_retriever_config(str(tmp_path / "none.yaml"))
    assert str(tmp_path) in raised.value.where


def test_the_user_s_own_configs_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "configs" / "retrievers"
    folder.mkdir(parents=True)
    write(folder / "bm25.yaml", f"target: {SAMPLE}\nparams: {{size: 1}}\n")
    monkeypatch.chdir(tmp_path)
    assert load_retriever_config("bm25").target == SAMPLE


def test_overrides_reach_dotted_paths_and_list_positions(tmp_path: Path) -> None:
    given = write(
        tmp_path / "m.yaml", f"target: {SAMPLE}\nparams: {{size: 3, fusion: {{w: [1, 2]}}}}\n"
    )
    config = load_retriever_config(given, ["size=5", "fusion.k=10", "fusion.w.1=7", "label=[a, b]"])
    assert config.params == {"size": 5, "fusion": {"w": [1, 7], "k": 10}, "label": ["a", "b"]}
    assert load_retriever_config(given).params["size"] == 3


@pytest.mark.parametrize(
    "wrong", ["size", "=3", "fusion.w.9=1", "size.x=1", "label=[", "fusion.w.x.y=1"]
)
def test_a_senseless_override_is_refused(tmp_path: Path, wrong: str) -> None:
    given = write(
        tmp_path / "m.yaml", f"target: {SAMPLE}\nparams: {{size: 3, fusion: {{w: [1, 2]}}}}\n"
    )
    with pytest.raises(ConfigError):
        load_retriever_config(given, [wrong])


def test_parameters_are_checked_all_at_once_and_accepted_ones_named() -> None:
    config = RetrieverConfig(name="s", target=SAMPLE, params={"sise": 3, "label": 4})
    with pytest.raises(ConfigError) as raised:
        config.build()
    text = str(raised.value)
    assert "unknown key 'sise'" in text
    assert "'size' is missing" in text
    assert "'label'" in text
    assert "fusion, label, size" in text


def test_an_inline_retriever_is_built() -> None:
    built = build_retriever({"target": SAMPLE, "params": {"size": 1}})
    assert isinstance(built, Sample)
    with pytest.raises(ConfigError, match="unknown key 'prams'"):
        build_retriever({"target": SAMPLE, "prams": {"size": 1}})


class TestTargets:
    def test_an_unknown_short_name_lists_what_there_is(self) -> None:
        with pytest.raises(PluginError, match="did you mean dense"):
            plugins.resolve("retriever", "dens")

    def test_a_missing_module_and_a_missing_attribute_are_told_apart(self) -> None:
        with pytest.raises(PluginError, match="no module named 'nowhere_at_all'"):
            plugins.load("nowhere_at_all:Thing")
        with pytest.raises(PluginError, match="no 'Smaple'") as raised:
            plugins.load(f"{__name__}:Smaple")
        assert "Sample" in raised.value.accepted

    def test_a_file_beside_the_config_is_found(self, tmp_path: Path) -> None:
        write(tmp_path / "mine.py", f"from {__name__} import Sample as Own\n")
        given = write(tmp_path / "m.yaml", "target: mine.py:Own\nparams: {size: 2}\n")
        assert isinstance(load_retriever_config(given).build(), Sample)

    def test_a_file_that_fails_to_import_says_why(self, tmp_path: Path) -> None:
        write(tmp_path / "broken_one.py", "1 / 0\n")
        with pytest.raises(PluginError, match="ZeroDivisionError"):
            plugins.load(f"{tmp_path}/broken_one.py:X")

    def test_a_user_s_package_of_our_name_is_explained(self) -> None:
        with pytest.raises(PluginError, match=r"\./retrievers/my_own\.py:attribute"):
            plugins.load("retrievers.my_own:Thing")

    def test_a_target_that_is_no_retriever_says_what_to_use_instead(self) -> None:
        with pytest.raises(PluginError, match="target: langchain"):
            plugins.construct("builtins:dict", {})

    def test_the_listing_names_every_short_name_and_why_one_fails(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = {
            "retriever": {"good": SAMPLE, "bad": "nowhere_at_all:X"},
            "metric": {},
            "dataset": {},
        }
        monkeypatch.setattr(plugins, "BUILT_IN", table)
        entries = {entry.name: entry for entry in plugins.listing("retriever")}
        assert entries["good"].error is None
        assert "nowhere_at_all" in str(entries["bad"].error)


class TestSecrets:
    @pytest.fixture(autouse=True)
    def _forget(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(secrets, "_filled", {})

    def test_names_are_filled_when_building_only(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_TOKEN", "s3cret-value")
        given = write(
            tmp_path / "m.yaml",
            f"target: {SAMPLE}\nparams: {{size: 1, label: 'Bearer ${{MY_TOKEN}}'}}\n",
        )
        config = load_retriever_config(given)
        assert "s3cret" not in config.model_dump_json()
        built = config.build()
        assert isinstance(built, Sample)
        assert built.params["label"] == "Bearer s3cret-value"

    def test_a_name_that_is_not_set_is_an_error_without_any_value(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("NOT_SET_1", raising=False)
        monkeypatch.delenv("NOT_SET_2", raising=False)
        with pytest.raises(ConfigError, match="NOT_SET_1, NOT_SET_2"):
            secrets.expand({"a": ["${NOT_SET_2}"], "b": "x${NOT_SET_1}"}, "here")

    def test_filled_values_are_taken_out_of_everything(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_TOKEN", "s3cret-value")
        secrets.expand("${MY_TOKEN}", "here")
        shown = secrets.redact({"k s3cret-value": ["a s3cret-value b", 3, None]})
        assert shown == {"k ${MY_TOKEN}": ["a ${MY_TOKEN} b", 3, None]}

    def test_wrong_parameters_do_not_show_a_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_TOKEN", "s3cret-value")
        config = RetrieverConfig(name="s", target=SAMPLE, params={"size": "${MY_TOKEN}"})
        with pytest.raises(ConfigError) as raised:
            config.build()
        assert "s3cret" not in str(raised.value)
