from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.config import (
    RetrieverConfig,
    build_retriever,
    config_hash,
    inline_config,
    load_retriever_config,
    read_yaml,
    retriever_names,
)
from retrieval_bench.core.errors import ConfigError, PluginError
from retrieval_bench.core.retriever import Retriever
from retrieval_bench.core.types import Document, Query, Ranking


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


class Typed(Sample):
    """A retriever with parameters of many types, two of them named as methods of pydantic."""

    def __init__(
        self,
        *,
        flag: bool = False,
        k1: float = 0.9,
        depth: int | list[int] = 100,
        shape: tuple[int, ...] = (),
        folder: Path | None = None,
        label: str | None = None,
        variant: Literal["a", "b"] = "a",
        weights: Mapping[str, float] | None = None,
        words: Iterable[str] = (),
        legs: list[Any] | None = None,
        json: int = 0,
        copy: int = 0,
    ) -> None:
        self.given = {name: value for name, value in locals().items() if name != "self"}


TYPED = f"{__name__}:Typed"


def built(**params: Any) -> dict[str, Any]:
    made = plugins.construct(TYPED, params)
    assert isinstance(made, Typed)
    return {name: made.given[name] for name in params}


class Failing(Sample):
    """Fails as libraries do."""

    def __init__(self, how: str = "ValueError") -> None:
        raise {"ValueError": ValueError, "SystemExit": SystemExit, "stop": KeyboardInterrupt}[how](
            "no such index"
        )


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


@pytest.mark.slow
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


def test_what_is_no_yaml_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: caf\xe9\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="not readable as YAML"):
        read_yaml(path)
    path = tmp_path / "dataset.yaml"
    path.write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "utf-8"
    )
    with pytest.raises(ConfigError, match="pointer of Git LFS") as caught:
        read_yaml(path)
    assert "git lfs pull" in str(caught.value.fix)


@pytest.mark.slow
def test_a_file_that_is_far_too_large_for_settings_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "data.yaml"
    path.write_text("name: x\n" + "# data\n" * 200_000, encoding="utf-8")
    with pytest.raises(ConfigError, match="more than") as caught:
        read_yaml(path)
    assert str(path) in str(caught.value)
    path.write_text("name: x\n" + "# data\n" * 100_000, encoding="utf-8")
    assert read_yaml(path) == {"name": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(
            ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40))]
        ),
        "a: &a [*a]",
        "a: &a {b: *a}",
    ],
    ids=["doubled 40 times", "a list in itself", "a mapping in itself"],
)
def test_aliases_that_stand_for_too_much_are_refused_before_they_are_values(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="aliases"):
        read_yaml(path)
    path.write_text("a: &a [x, y]\nb: {c: *a, d: *a}", encoding="utf-8")
    assert read_yaml(path) == {"a": ["x", "y"], "b": {"c": ["x", "y"], "d": ["x", "y"]}}


def test_an_unknown_name_is_answered_with_near_ones_and_a_missing_file_with_its_place(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=r"did you mean bm25"):
        load_retriever_config("bm52")
    with pytest.raises(ConfigError, match="no retriever file") as raised:
        load_retriever_config(str(tmp_path / "none.yaml"))
    assert str(tmp_path) in raised.value.where


def test_the_user_s_own_configs_come_first(here: Path) -> None:
    folder = here / "configs" / "retrievers"
    folder.mkdir(parents=True)
    write(folder / "bm25.yaml", f"target: {SAMPLE}\nparams: {{size: 1}}\n")
    assert load_retriever_config("bm25").target == SAMPLE


def test_overrides_reach_dotted_paths_and_list_positions(tmp_path: Path) -> None:
    given = write(
        tmp_path / "m.yaml", f"target: {SAMPLE}\nparams: {{size: 3, fusion: {{w: [1, 2]}}}}\n"
    )
    config = load_retriever_config(given, ["size=5", "fusion.k=10", "fusion.w.1=7", "label=[a, b]"])
    assert config.params == {"size": 5, "fusion": {"w": [1, 7], "k": 10}, "label": ["a", "b"]}
    assert load_retriever_config(given).params["size"] == 3


@pytest.mark.parametrize(
    "wrong",
    [
        *("size", "=3", "fusion.w.9=1", "size.x=1", "label=[", "fusion.w.x.y=1"),
        *(f"fusion.w.{'9' * 5_000}=1", f"{'a.' * 5_000}b=1"),
    ],
    ids=range(8),
)
def test_a_senseless_override_is_refused(tmp_path: Path, wrong: str) -> None:
    given = write(
        tmp_path / "m.yaml", f"target: {SAMPLE}\nparams: {{size: 3, fusion: {{w: [1, 2]}}}}\n"
    )
    with pytest.raises(ConfigError):
        load_retriever_config(given, [wrong])


def test_the_hash_of_a_config_has_the_configs_that_legs_name_but_not_what_is_called_legs_elsewhere(
    here: Path,
) -> None:
    (here / "configs/retrievers").mkdir(parents=True)
    leg = here / "configs/retrievers/leg.yaml"
    hashes = []
    for k1 in (1, 1, 2):
        leg.write_text(f"{{target: bm25, params: {{k1: {k1}}}}}", encoding="utf-8")
        hashes.append(config_hash("hybrid", {"legs": ["leg", {"target": "bm25"}]}))
    assert hashes[0] == hashes[1] != hashes[2]
    one, other = (config_hash("m:Mine", {"legs": [name, "body"]}) for name in ("title", "text"))
    assert one != other


def test_an_inline_retriever_is_built() -> None:
    built = build_retriever({"target": SAMPLE, "params": {"size": 1}})
    assert isinstance(built, Sample)
    with pytest.raises(ConfigError, match="unknown key 'prams'"):
        build_retriever({"target": SAMPLE, "prams": {"size": 1}})


def test_an_inline_mapping_is_checked_without_showing_values_and_takes_overrides() -> None:
    leg = Sample(size=1)
    config = inline_config({"target": TYPED, "params": {"legs": [leg]}}, ["k1=2", "legs.0=bm25"])
    assert (config.name, config.params) == (TYPED, {"legs": ["bm25"], "k1": 2})
    kept = inline_config({"target": TYPED, "params": {"legs": [leg]}}, ["k1=2"])
    assert kept.params["legs"][0] is leg
    with pytest.raises(ConfigError, match="'params'") as raised:
        inline_config({"target": TYPED, "params": "s3cret"})
    assert "s3cret" not in str(raised.value)
    with pytest.raises(ConfigError, match="unknown key 'source'"):
        inline_config({"target": TYPED, "source": "x"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["2024-02-30", "!!bool x", "!!timestamp x", "!!int ''", "[" * 1000]
)
def test_a_value_that_yaml_cannot_convert_is_a_config_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="not a YAML value"):
        inline_config({"target": TYPED}, [f"k1={text}"])
    path = tmp_path / "m.yaml"
    write(path, f"k1: {text}\n")
    with pytest.raises(ConfigError, match="not readable as YAML"):
        read_yaml(path)


@pytest.mark.parametrize(
    "name", ["~no_such_user_1/x.yaml", "x" * 5000, "x" * 5000 + ".yaml", "x" * 5000 + ".py:R"]
)
def test_a_name_that_no_file_can_have_is_a_config_error(name: str) -> None:
    with pytest.raises(ConfigError, match="no file can be looked for") as raised:
        load_retriever_config(name).build()
    assert len(str(raised.value)) < 400


def test_a_path_in_a_parameter_that_no_file_can_have_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="no file can be looked for"):
        plugins.beside_config("~no_such_user_1/x")


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "given", "wanted"),
        [
            ("flag", "off", False),
            ("k1", "1.5", 1.5),
            ("k1", 2, 2),
            ("depth", "7", 7),
            ("depth", [7, 8], [7, 8]),
            ("shape", [1, 2], (1, 2)),
            ("folder", "a/b", Path("a/b")),
            ("label", "7", "7"),
            ("label", None, None),
            ("weights", {"a": 1}, {"a": 1.0}),
            ("json", "3", 3),
        ],
    )
    def test_a_value_comes_as_the_type_that_is_hinted(
        self, name: str, given: Any, wanted: Any
    ) -> None:
        value = built(**{name: given})[name]
        assert value == wanted
        assert type(value) is type(wanted)

    @pytest.mark.parametrize(
        ("name", "given"),
        [
            ("flag", 1),
            ("flag", "perhaps"),
            ("k1", True),
            ("k1", "many"),
            ("depth", [True]),
            ("depth", 1.5),
            ("shape", ["a"]),
            ("label", 7),
            ("variant", "c"),
            ("weights", {"a": True}),
        ],
    )
    def test_what_would_lose_its_meaning_is_refused(self, name: str, given: Any) -> None:
        with pytest.raises(ConfigError, match=f"'{name}"):
            built(**{name: given})

    def test_objects_are_handed_on_as_they_are(self) -> None:
        leg, words = Sample(size=1), ["a", "b"]
        given = built(legs=[leg, {"target": leg}], words=words)
        assert given["legs"][0] is leg
        assert given["legs"][1]["target"] is leg
        assert given["words"] is words

    def test_all_faults_come_in_one_message(self) -> None:
        with pytest.raises(ConfigError) as raised:
            plugins.construct(SAMPLE, {"label": 3, "sise": 1, "copy": 1})
        text = str(raised.value)
        assert "'size' is missing" in text
        assert "'label': Input should be a valid string" in text
        assert "unknown key 'sise'; unknown key 'copy'" in text
        assert "accepted: fusion, label, size" in text

    @pytest.mark.parametrize("how", ["ValueError", "SystemExit"])
    def test_a_constructor_that_fails_says_where(self, how: str) -> None:
        with pytest.raises(ConfigError, match=rf"Failing' failed with {how}: no such") as raised:
            plugins.construct(f"{__name__}:Failing", {"how": how}, where="mine.yaml")
        assert raised.value.where.startswith(f"mine.yaml, {__file__}:")
        assert raised.value.fix

    def test_an_interruption_is_none_of_it(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            plugins.construct(f"{__name__}:Failing", {"how": "stop"})


class TestTargets:
    def test_files_with_alike_names_are_two_modules(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        write(tmp_path / "a" / "b.py", "X = 1\n")
        write(tmp_path / "a_b.py", "X = 2\n")
        assert plugins.load(f"{tmp_path}/a/b.py:X") == 1
        assert plugins.load(f"{tmp_path}/a_b.py:X") == 2

    @pytest.mark.parametrize("package", [False, True])
    def test_a_second_module_of_one_name_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: bool
    ) -> None:
        name = f"namesake_{package}".lower()
        monkeypatch.setattr(sys, "path", [*sys.path])
        file = f"{name}/__init__.py" if package else f"{name}.py"
        for folder in ("one", "two"):
            (tmp_path / folder / file).parent.mkdir(parents=True)
            write(tmp_path / folder / file, f"from {__name__} import Sample as R\n")
            write(tmp_path / folder / "m.yaml", f"target: {name}:R\nparams: {{size: 1}}\n")
        first = load_retriever_config(str(tmp_path / "one" / "m.yaml"))
        assert isinstance(first.build(), Sample)
        assert isinstance(first.build(), Sample)
        with pytest.raises(PluginError, match="means two modules") as raised:
            load_retriever_config(str(tmp_path / "two" / "m.yaml")).build()
        assert f"./{file}:R" in raised.value.fix
        del sys.modules[name]

    def test_a_file_of_the_user_does_not_stand_in_the_way_of_what_is_built_in(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "retrievers").mkdir()
        write(tmp_path / "retrievers" / "bm25.py", "")
        given = write(tmp_path / "m.yaml", "target: bm25\n")
        assert load_retriever_config(given).build().describe()

    @pytest.mark.parametrize(
        "line",
        [
            "1 / 0",
            "from retrieval_bench.core.errors import PluginError; raise PluginError('x')",
            "exit(1)",
        ],
    )
    def test_a_file_that_failed_leaves_no_half_made_module(self, tmp_path: Path, line: str) -> None:
        path = tmp_path / "half.py"
        write(path, f"X = 1\n{line}\n")
        for _ in range(2):
            with pytest.raises(PluginError):
                plugins.load(f"{path}:X")
        write(path, "X = 22\n")
        assert plugins.load(f"{path}:X") == 22

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

    def test_a_user_s_own_package_called_retrievers_is_theirs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "retrievers").mkdir()
        write(tmp_path / "retrievers" / "__init__.py", "")
        write(tmp_path / "retrievers" / "terms.py", "X = 1\n")
        write(
            tmp_path / "retrievers" / "mine.py",
            "from . import terms\nfrom retrievers.terms import X\n",
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.delitem(sys.modules, "retrievers", raising=False)
        assert plugins.load("retrievers.mine:X") == 1
        assert plugins.load("retrievers/mine.py:X") == 1

    def test_a_target_that_is_no_retriever_says_what_to_use_instead(self) -> None:
        with pytest.raises(PluginError, match=r"inherits from retrieval_bench\.Retriever"):
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

    def test_names_are_filled_in_the_target_and_as_the_type_that_is_hinted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_CLASS", "Typed")
        monkeypatch.setenv("FLAG", "off")
        target = f"{__name__}:${{MY_CLASS}}"
        config = inline_config({"target": target, "params": {"flag": "${FLAG}"}})
        made = config.build()
        assert isinstance(made, Typed)
        assert made.given["flag"] is False
        assert (config.target, config.params) == (target, {"flag": "${FLAG}"})

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
        assert shown["k s3cret-value"] == ["a ${MY_TOKEN} b", 3, None]

    def test_wrong_parameters_do_not_show_a_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_TOKEN", "s3cret-value")
        config = RetrieverConfig(name="s", target=SAMPLE, params={"size": "${MY_TOKEN}"})
        with pytest.raises(ConfigError) as raised:
            config.build()
        assert "s3cret" not in str(raised.value)
