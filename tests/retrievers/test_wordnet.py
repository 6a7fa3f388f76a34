"""Synonyms from WordNet's own files, wherever they lie."""

from __future__ import annotations

import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from retrieval_bench.core.errors import ConfigError, DataError, MissingDependencyError
from retrieval_bench_retrievers.hybrid.dynamic import wordnet
from retrieval_bench_retrievers.hybrid.dynamic.wordnet import WordNet, find_wordnet
from tests.builders.tiny_wordnet import write_wordnet


@pytest.fixture
def tiny(tmp_path: Path) -> WordNet:
    return WordNet(write_wordnet(tmp_path / "wordnet"))


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without WordNet; gives its home folder."""
    for name in ("WNSEARCHDIR", "WNHOME", "NLTK_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(wordnet, "_SYSTEM", (str(tmp_path / "usr"),))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix"))
    return tmp_path / "home"


def test_synonyms_come_in_the_order_of_the_senses(tiny: WordNet) -> None:
    assert tiny.synonyms("car", 10) == ["auto", "automobile", "motorcar", "railcar"]
    assert tiny.synonyms("car", 2) == ["auto", "automobile"]


def test_the_word_itself_in_any_form_is_no_synonym(tiny: WordNet) -> None:
    assert tiny.synonyms("Cars", 10) == ["auto", "automobile", "motorcar", "railcar"]
    assert tiny.synonyms("goose", 10) == ["fathead", "twat"]


def test_all_four_parts_of_speech_are_looked_at_nouns_first(tiny: WordNet) -> None:
    assert tiny.synonyms("run", 10) == ["scat", "operate"]
    assert tiny.synonyms("good", 10) == ["beneficial", "well"]
    assert tiny.synonyms("well", 10) == ["good"]


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("geese", "fathead"),
        ("doctors", "physician"),
        ("policemen", "officer"),
        ("runs", "scat"),
        ("operated", "run"),
    ],
)
def test_inflected_words_are_found_under_their_lemma(tiny: WordNet, form: str, first: str) -> None:
    assert tiny.synonyms(form, 1) == [first]


def test_markers_and_underscores_do_not_reach_a_query(tiny: WordNet) -> None:
    assert tiny.synonyms("abundant", 5) == ["galore"]
    assert tiny.synonyms("new world", 5) == ["western hemisphere"]


@pytest.mark.parametrize("word", ["", "nothing", "자동차", "🚗", "this is a tiny", "s", "1"])
def test_an_unknown_word_has_no_synonyms(tiny: WordNet, word: str) -> None:
    assert tiny.synonyms(word, 3) == []


def test_version_and_hash_say_which_wordnet_it_was(tmp_path: Path) -> None:
    one = WordNet(write_wordnet(tmp_path / "one")).describe()
    same = WordNet(write_wordnet(tmp_path / "same")).describe()
    other = WordNet(write_wordnet(tmp_path / "other", {"noun": [["a", "b"]]})).describe()
    assert one["version"] == "9.9"
    assert one == same
    assert one["sha256"] != other["sha256"]


def test_a_zip_of_nltk_is_read_like_the_folder(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wordnet")
    path = tmp_path / "nltk_data" / "corpora" / "wordnet.zip"
    path.parent.mkdir(parents=True)
    with ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"wordnet/{file.name}")
    found = find_wordnet(tmp_path / "nltk_data")
    assert found == path
    assert WordNet(found).describe() == WordNet(folder).describe()
    assert WordNet(found).synonyms("geese", 1) == ["fathead"]


@pytest.mark.parametrize("inner", ["", "dict", "corpora/wordnet"])
def test_a_given_folder_may_hold_the_files_further_down(tmp_path: Path, inner: str) -> None:
    folder = write_wordnet(tmp_path / "given" / inner)
    assert find_wordnet(tmp_path / "given") == folder


@pytest.mark.parametrize(
    ("variable", "inner"),
    [("WNSEARCHDIR", ""), ("WNHOME", "dict"), ("NLTK_DATA", "corpora/wordnet")],
)
def test_the_usual_variables_lead_to_it(
    tmp_path: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch, variable: str, inner: str
) -> None:
    folder = write_wordnet(tmp_path / "place" / inner)
    monkeypatch.setenv(variable, str(tmp_path / "place"))
    assert find_wordnet() == folder


def test_it_is_found_in_the_folders_of_system_and_home(tmp_path: Path, nowhere: Path) -> None:
    at_home = write_wordnet(nowhere / "nltk_data" / "corpora" / "wordnet")
    assert find_wordnet() == at_home
    system = write_wordnet(tmp_path / "usr" / "share" / "wordnet")
    assert find_wordnet() == system


def test_without_wordnet_the_message_has_the_line_that_installs_it(nowhere: Path) -> None:
    with pytest.raises(MissingDependencyError) as raised:
        find_wordnet()
    text = str(raised.value)
    assert "apt install wordnet-base" in text
    assert "nltk.downloader wordnet" in text
    assert "expansion: false" in text


def test_a_given_folder_without_wordnet_is_an_error_though_there_is_another(
    tmp_path: Path, nowhere: Path
) -> None:
    write_wordnet(tmp_path / "usr" / "share" / "wordnet")
    with pytest.raises(ConfigError, match=r"no WordNet in .*empty"):
        find_wordnet(tmp_path / "empty")


def test_a_part_of_speech_that_is_missing_is_told(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wordnet")
    (folder / "data.adv").unlink()
    with pytest.raises(DataError, match=r"without data\.adv"):
        WordNet(folder)


@pytest.mark.parametrize(("front", "cut"), [(b"x", 0), (b"", 1)])
def test_a_shifted_file_is_an_error_not_a_wrong_synonym(
    tmp_path: Path, front: bytes, cut: int
) -> None:
    folder = write_wordnet(tmp_path / "wordnet")
    path = folder / "data.noun"
    path.write_bytes(front + path.read_bytes()[cut:])
    with pytest.raises(DataError, match=r"data\.noun: no sense of 'car' at byte"):
        WordNet(folder).synonyms("car", 1)


def test_a_damaged_entry_of_the_index_is_told(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wordnet")
    path = folder / "index.noun"
    path.write_bytes(path.read_bytes().replace(b"car n 2 2 @", b"car n 2 x @"))
    with pytest.raises(DataError, match=r"index\.noun: the entry of 'car'"):
        WordNet(folder).synonyms("car", 1)


def test_a_file_that_is_no_zip_is_told(tmp_path: Path) -> None:
    path = tmp_path / "wordnet.zip"
    path.write_bytes(b"no zip")
    with pytest.raises(DataError, match="cannot be read"):
        WordNet(find_wordnet(path))


def test_irregular_forms_are_not_needed(tmp_path: Path) -> None:
    folder = write_wordnet(tmp_path / "wordnet")
    (folder / "noun.exc").unlink()
    moved = shutil.move(folder, tmp_path / "moved")
    assert WordNet(Path(moved)).synonyms("geese", 1) == []
