from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval_bench_retrievers.encoders.cache import EmbeddingCache, default_root, text_key

DIMENSION = 4
TEXTS = ["photosynthesis", "광합성", "光合作用", "التمثيل الضوئي", "🌱", ""]
KEYS = [text_key(text) for text in TEXTS]


def made(n: int = len(TEXTS), start: int = 0) -> NDArray[np.float32]:
    return np.arange(start, start + n * DIMENSION, dtype=np.float32).reshape(n, DIMENSION)


def empty(n: int = len(TEXTS)) -> NDArray[np.float32]:
    return np.full((n, DIMENSION), -1, dtype=np.float32)


def opened(root: Path, **identity: object) -> EmbeddingCache:
    return EmbeddingCache(root, {"model": "m", **identity}, DIMENSION)


def filled(root: Path) -> EmbeddingCache:
    cache = opened(root)
    cache.store(KEYS, made())
    return cache


def only_file(cache: EmbeddingCache) -> Path:
    (path,) = cache.folder.iterdir()
    return path


def test_vectors_come_back_to_the_rows_of_their_texts_whatever_the_order(tmp_path: Path) -> None:
    filled(tmp_path)
    vectors = empty()
    assert opened(tmp_path).fill(KEYS[::-1], vectors) == []
    np.testing.assert_array_equal(vectors, made()[::-1])


def test_texts_that_are_not_known_are_named_and_their_rows_left_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    vectors = empty(3)
    assert opened(tmp_path).fill([text_key("new"), KEYS[2], text_key("newer")], vectors) == [0, 2]
    np.testing.assert_array_equal(vectors, [[-1] * 4, made()[2], [-1] * 4])


def test_a_cache_grows_by_files_and_keeps_what_it_had(tmp_path: Path) -> None:
    filled(tmp_path)
    more = [text_key("a"), text_key("b")]
    opened(tmp_path).store(more, made(2, start=100))
    vectors = empty(4)
    assert opened(tmp_path).fill([*more, *KEYS[:2]], vectors) == []
    np.testing.assert_array_equal(vectors, np.concatenate([made(2, start=100), made()[:2]]))


def test_another_identity_knows_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    assert opened(tmp_path, prompt="passage: ").fill(KEYS, empty()) == list(range(len(KEYS)))


def test_the_order_of_the_identity_does_not_matter(tmp_path: Path) -> None:
    one = EmbeddingCache(tmp_path, {"a": 1, "b": "é"}, DIMENSION)
    assert one.folder == EmbeddingCache(tmp_path, {"b": "é", "a": 1}, DIMENSION).folder


def test_the_same_vectors_stored_twice_are_one_file(tmp_path: Path) -> None:
    first = only_file(filled(tmp_path))
    assert only_file(filled(tmp_path)) == first


def test_of_vectors_that_come_first_those_that_were_written_last_are_taken(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    for turn in range(6):
        cache.store(KEYS, made(start=turn), first=True)
        (new,) = set(cache.folder.iterdir()) - set(cache.folder.glob("*.seen"))
        os.utime(new, ns=(turn, turn))
        new.rename(new.with_suffix(".seen"))
    for path in cache.folder.iterdir():
        path.rename(path.with_suffix(".vectors"))
    cache.store(KEYS[:2], made(2, start=50))
    vectors = empty()
    assert opened(tmp_path).fill(KEYS, vectors) == []
    np.testing.assert_array_equal(vectors, made(start=5))


def test_a_key_that_a_file_holds_twice_is_read(tmp_path: Path) -> None:
    opened(tmp_path).store([*KEYS, KEYS[0]], np.concatenate([made(), made(1)]))
    vectors = empty()
    assert opened(tmp_path).fill(KEYS, vectors) == []
    np.testing.assert_array_equal(vectors, made())


def test_nothing_to_store_writes_nothing(tmp_path: Path) -> None:
    opened(tmp_path / "root").store([], empty(0))
    assert not (tmp_path / "root").exists()


def test_used_bytes_are_those_of_files_that_gave_or_took_vectors(tmp_path: Path) -> None:
    written = filled(tmp_path)
    size = only_file(written).stat().st_size
    reader, stranger = opened(tmp_path), opened(tmp_path)
    reader.fill(KEYS[:1], empty(1))
    stranger.fill([text_key("new")], empty(1))
    assert (written.bytes_used, reader.bytes_used, stranger.bytes_used) == (size, size, 0)


def flip(place: int) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        changed = bytearray(content)
        changed[place] ^= 1
        return bytes(changed)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(flip(0), id="magic"),
        pytest.param(flip(8), id="number of vectors"),
        pytest.param(
            lambda content: content[:8] + b"\xff" * 4 + content[12:],
            id="a number of vectors beyond all memory",
        ),
        pytest.param(flip(12), id="dimension"),
        pytest.param(flip(20), id="checksum of the keys"),
        pytest.param(flip(60), id="checksum of the vectors"),
        pytest.param(flip(90), id="a key"),
        pytest.param(flip(-1), id="the last byte of a vector"),
        pytest.param(lambda content: content[:-1], id="one byte missing"),
        pytest.param(lambda content: content + b"\0", id="one byte too many"),
        pytest.param(lambda content: content[:50], id="cut in the head"),
        pytest.param(lambda _: b"", id="empty"),
    ],
)
def test_a_damaged_file_is_noted_removed_and_rebuilt(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = only_file(filled(tmp_path))
    path.write_bytes(damage(path.read_bytes()))
    cache, vectors = opened(tmp_path), empty()
    assert cache.fill(KEYS, vectors) == list(range(len(KEYS)))
    np.testing.assert_array_equal(vectors, empty())
    assert cache.notes == [
        "1 damaged file of the embedding cache removed: the texts in it are encoded again"
    ]
    assert not path.exists()
    cache.store(KEYS, made())
    again = opened(tmp_path)
    assert again.fill(KEYS, vectors) == []
    assert again.notes == []


def test_one_damaged_file_does_not_harm_the_others(tmp_path: Path) -> None:
    path = only_file(filled(tmp_path))
    path.write_bytes(b"rubbish")
    opened(tmp_path).store([text_key("a")], made(1))
    vectors = empty(2)
    assert opened(tmp_path).fill([KEYS[0], text_key("a")], vectors) == [0]
    np.testing.assert_array_equal(vectors[1], made(1)[0])


def test_a_file_that_another_process_removes_meanwhile_is_just_not_there(tmp_path: Path) -> None:
    cache = filled(tmp_path)
    (cache.folder / "gone.vectors").symlink_to("nowhere")
    assert cache.fill(KEYS, empty()) == []
    assert cache.notes == []


def test_a_full_disk_ends_the_writing_with_one_note_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def no_space(path: Path, content: bytes) -> int:
        tried.append(path)
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_space)
    cache = opened(tmp_path)
    cache.store(KEYS[:1], made(1))
    cache.store(KEYS[1:2], made(1))
    assert len(tried) == 1
    (note,) = cache.notes
    assert note.startswith("the embedding cache cannot be written, so the next run encodes again (")
    assert note.endswith("No space left on device)")
    assert list(cache.folder.iterdir()) == []
    assert cache.bytes_used == 0


def test_a_place_that_cannot_hold_a_cache_is_noted_and_stops_nothing(tmp_path: Path) -> None:
    root = tmp_path / "a file"
    root.write_text("in the way")
    cache = opened(root)
    assert cache.fill(KEYS, empty()) == list(range(len(KEYS)))
    cache.store(KEYS, made())
    assert [note.partition(" (")[0] for note in cache.notes] == [
        "the embedding cache cannot be read, so texts are encoded again",
        "the embedding cache cannot be written, so the next run encodes again",
    ]


def test_an_interrupted_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    cache = opened(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cache.store(KEYS, made())
    assert list(cache.folder.iterdir()) == []


def test_many_may_write_and_read_at_once(tmp_path: Path) -> None:
    def work(turn: int) -> list[str]:
        cache = opened(tmp_path)
        keys = [*KEYS, text_key(str(turn % 5))]
        vectors = np.concatenate([made(), made(1, start=turn % 5)])
        cache.store(keys, vectors)
        read = empty(len(keys))
        assert cache.fill(keys, read) == []
        np.testing.assert_array_equal(read, vectors)
        return cache.notes

    with ThreadPoolExecutor(8) as pool:
        assert [note for notes in pool.map(work, range(40)) for note in notes] == []
    assert len(list(opened(tmp_path).folder.iterdir())) == 5


def test_the_key_tells_texts_apart_that_look_alike() -> None:
    assert len({text_key(text) for text in ["é", "e\u0301", "é ", "É"]}) == 4


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RETRIEVAL_BENCH_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own/embeddings"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/retrieval-bench/embeddings"),
        ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/retrieval-bench/embeddings"),
        ({"RETRIEVAL_BENCH_CACHE": "~/c"}, "/home/me/c/embeddings"),
    ],
)
def test_the_folder_of_caches_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name in ("RETRIEVAL_BENCH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", "USERPROFILE": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    assert default_root() == Path(expected)


def test_without_a_home_there_is_no_folder_of_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("RETRIEVAL_BENCH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert default_root() is None
