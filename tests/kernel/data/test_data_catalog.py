"""Names, folders and splits, dataset.yaml, plug-ins, and corpora that stay in their files."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
import types
from pathlib import Path

import pytest

from retrieval_bench.core.errors import ConfigError, DataError, HarnessError, PluginError
from retrieval_bench.core.types import Dataset, Document, Documents, Query
from retrieval_bench.data import build_dataset, dataset_names, given_dataset, load_dataset
from retrieval_bench.data.build import UNJUDGED, assemble
from retrieval_bench.data.faults import Faults, Place
from retrieval_bench.data.needs_judgements import require_judged
from retrieval_bench.data.source import Judgement, Located, Source, file_stream, held_stream
from tests.builders import some
from tests.builders.files import save, save_all

CORPUS = '{"_id": "d1", "text": "one"}\n{"_id": "d2", "text": "two", "metadata": {"page": 7}}\n'
QUERIES = '{"_id": "q1", "text": "1"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t1\n"


def beir(folder: Path, config: str | None = None) -> Path:
    files = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": QRELS}
    return save_all(folder, files if config is None else files | {"dataset.yaml": config})


def unjudged(folder: Path, config: str | None = None) -> Path:
    files = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES}
    return save_all(folder, files if config is None else files | {"dataset.yaml": config})


def test_a_name_is_a_folder_of_the_catalog(here: Path) -> None:
    beir(here / "configs" / "datasets" / "mine", "format: beir\nlanguage: fr\n")
    dataset = load_dataset("mine")
    assert (dataset.name, dataset.language, dataset.n_documents) == ("mine", "fr", 2)
    assert "mine" in dataset_names()


def test_a_language_that_is_given_stands_above_that_of_the_card(here: Path) -> None:
    folder = beir(here / "mine", "format: beir\nlanguage: fr\n")
    card, given = load_dataset(folder), load_dataset(folder, language="de")
    assert (card.language, given.language) == ("fr", "de")
    again = given_dataset(card, "test", language="de")
    assert (given.fingerprint, again.language) == (card.fingerprint, "de")
    assert given_dataset(card, "test") is card
    with pytest.raises(ConfigError, match="language 'deutsch'"):
        given_dataset(card, "test", language="deutsch")
    with pytest.raises(ConfigError, match="language 'DE'"):  # before anything is looked for
        load_dataset("nowhere", language="DE")


def test_a_name_wins_over_a_folder_and_a_path_is_the_folder(here: Path) -> None:
    beir(here / "configs" / "datasets" / "mine", "format: beir\nname: catalog\n")
    beir(here / "mine", "format: beir\nname: folder\n")
    assert load_dataset("mine").name == "catalog"
    assert load_dataset("./mine").name == "folder"
    assert load_dataset(Path("mine")).name == "folder"
    assert load_dataset("mine/dataset.yaml").name == "folder"


@pytest.mark.needs("retrieval_bench_exchange")
def test_an_unknown_name_is_answered_with_near_ones(here: Path) -> None:
    beir(here / "configs" / "datasets" / "scifact-mini", "format: beir\n")
    with pytest.raises(ConfigError) as caught:
        load_dataset("scifact_mini")
    text = str(caught.value)
    assert "dataset 'scifact_mini' is neither a known name nor a folder" in text
    assert "did you mean scifact-mini" in text
    assert "a path to a folder, or ir_datasets:NAME" in text


@pytest.mark.slow
@pytest.mark.parametrize("given", ["", "no/such/folder", "../x", "a\0b", "x" * 5000])
def test_what_is_no_dataset_is_a_clear_error(here: Path, given: str) -> None:
    with pytest.raises(ConfigError):
        load_dataset(given)


@pytest.mark.slow
def test_a_file_is_no_dataset(here: Path) -> None:
    (here / "x.jsonl").write_text("{}")
    with pytest.raises(ConfigError, match="is a file"):
        load_dataset("x.jsonl")


@pytest.mark.needs("retrieval_bench_answers", "retrieval_bench_exchange")
def test_an_unknown_layout_names_the_known_ones_and_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_text("x")
    (tmp_path / "raw").mkdir()
    with pytest.raises(ConfigError) as caught:
        load_dataset(tmp_path)
    text = str(caught.value)
    assert "found data.parquet, raw/" in text
    for word in ("dataset.yaml", "BEIR", "scienceqa", "SQuAD", "trec", "plain"):
        assert word in text


def test_an_unknown_split_names_those_there_are(tmp_path: Path) -> None:
    folder = beir(tmp_path / "x")
    (folder / "qrels" / "train.tsv.gz").write_bytes(b"never opened")
    with pytest.raises(ConfigError) as caught:
        load_dataset(folder, "tset")
    assert "dataset 'x' has no split 'tset'" in str(caught.value)
    assert "did you mean test? all: test, train" in str(caught.value)


@pytest.mark.parametrize("name", ["qrels/", "qrels/test.txt", "QRELS.txt", "judgments.tsv"])
def test_what_is_called_judgements_and_not_read_as_such_is_no_split(
    tmp_path: Path, name: str
) -> None:
    folder = unjudged(tmp_path / "x")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).mkdir() if name.endswith("/") else (folder / name).touch()
    with pytest.raises(
        ConfigError, match=r"add the judgements \(BEIR: .*qrels/SPLIT.tsv"
    ) as caught:
        load_dataset(folder)
    assert f"{name.partition('/')[0]}" in str(caught.value)
    assert "is not read as such: take it away to go without" in str(caught.value)
    pasted = f"name it in dataset.yaml:\n      format: beir\n      splits: {{test: {name}}}"
    assert (pasted in str(caught.value)) == (not name.endswith("/"))


class TestWithoutJudgements:
    """Most people have documents and questions only."""

    def test_a_beir_folder_has_documents_and_queries(self, tmp_path: Path) -> None:
        dataset = load_dataset(unjudged(tmp_path / "x"), "any")
        assert (dataset.judged, dataset.split, dict(dataset.qrels)) == (False, "any", {})
        assert (dataset.n_documents, dataset.evaluated) == (2, ())
        assert [query.id for query in dataset.asked] == ["q1"]
        assert dataset.warnings == (UNJUDGED,)
        assert "retrieval-bench label pool" in UNJUDGED

    @pytest.mark.parametrize(
        "config",
        [
            "format: beir",
            "format: beir\nsplits: {test: {queries: queries.jsonl}}",
            (
                "format: plain\nfiles: {documents: corpus.jsonl, queries: queries.jsonl}\n"
                "columns: {documents: {id: _id}, queries: {id: _id}}"
            ),
            "format: trec\nfiles: {documents: corpus.jsonl, queries: topics.tsv}",
        ],
    )
    def test_a_dataset_yaml_need_not_name_judgements(self, tmp_path: Path, config: str) -> None:
        folder = unjudged(tmp_path / "x", config)
        save(folder / "topics.tsv", "q1\t1\n")
        dataset = load_dataset(folder)
        assert (dataset.judged, dataset.n_documents, len(dataset.queries)) == (False, 2, 1)

    def test_a_file_of_judgements_that_is_empty_stays_a_fault(self, tmp_path: Path) -> None:
        folder = beir(tmp_path / "x")
        save(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n")
        with pytest.raises(DataError, match="no judgements in this split"):
            load_dataset(folder)

    @pytest.mark.needs("retrieval_bench_exchange")
    def test_a_format_whose_queries_are_judgements_needs_them(self, tmp_path: Path) -> None:
        folder = unjudged(tmp_path / "x", "format: squad")
        with pytest.raises(ConfigError, match="has no split 'test'") as caught:
            load_dataset(folder)
        assert "take it away" not in str(caught.value)

    def test_its_fingerprint_is_of_documents_and_queries(self, tmp_path: Path) -> None:
        one, other = load_dataset(unjudged(tmp_path / "x")), load_dataset(beir(tmp_path / "y"))
        assert one.fingerprint == load_dataset(unjudged(tmp_path / "z")).fingerprint
        assert one.fingerprint != other.fingerprint

    def test_records_in_memory_have_none_for_judgements(self) -> None:
        documents, queries = [Document("d", "text")], [Query("q", "text")]
        dataset = build_dataset("mine", documents, queries, None)
        assert (dataset.judged, dataset.warnings) == (False, (UNJUDGED,))
        with pytest.raises(DataError, match="no judgements in this split"):  # lost on the way
            build_dataset("mine", documents, queries, {})

    def test_a_plugin_may_give_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = types.ModuleType("asked_only")
        module.made = lambda split: build_dataset(  # type: ignore[attr-defined]
            "mine", [Document("d", "text")], [Query("q", "text")], None, split=split
        )
        monkeypatch.setitem(sys.modules, "asked_only", module)
        assert not load_dataset("asked_only:made").judged

    def test_queries_that_are_all_unanswerable_are_judged(self) -> None:
        none = Query("q", "hello", metadata={"answerable": False})
        dataset = build_dataset("mine", [Document("d", "text")], [none], None)
        assert (dataset.judged, dataset.asked) == (True, (none,))

    def test_what_needs_judgements_says_what_to_do(self, tmp_path: Path) -> None:
        dataset = load_dataset(unjudged(tmp_path / "x"))
        with pytest.raises(DataError) as caught:
            require_judged(dataset, "tuning", instead="look at it")
        assert caught.value.render() == (
            "nothing is judged in 'x', and tuning rests on judgements\n"
            "  where: dataset 'x', split 'test'\n"
            "  accepted: a dataset of which some queries are judged\n"
            "  do: judge some: measure with bench or compare, then retrieval-bench label pool "
            "@last; look at it"
        )
        require_judged(load_dataset(beir(tmp_path / "y")), "tuning")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("format: bier", "format 'bier'"),
        ("format: beir\nlicense: MIT", "unknown key 'license'"),
        ("format: beir\nlicense: MIT", "accepted: keys format, name, description, language,"),
        ("format: plain\nfiles: {qrels: x}", "accepted: keys of files: documents, queries\n"),
        (
            "format: plain\ncolumns: {judgements: {doc_id: x}}\nlicense: MIT",
            "accepted: keys of columns.judgements: query, document, grade; keys format, name,",
        ),
        ("format: beir\nlanguage: English", "'language'"),
        ("format: beir\nlanguage: no", "'language'"),
        ("format: squad\ncolumns: {}", "`columns` has no meaning for format squad"),
        ("format: beir\nsplits: {test: {judgement: x}}", "unknown key 'splits.test.judgement'"),
        ("format: beir\nsplits: [test]", "'splits'"),
        ("name: x", "'format' is missing"),
        ("format: plain\nsplits: {test: x.csv}", "no file of queries named for split 'test'"),
        ("format: quepid\nsplits: {test: {queries: x}}", "no file of judgements named"),
        ("format: beir\nname: ${NOT_SET_ANYWHERE}", "NOT_SET_ANYWHERE"),
        ("- beir", "list"),
    ],
)
@pytest.mark.needs("retrieval_bench_exchange")
def test_faults_of_the_yaml_file(tmp_path: Path, config: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_dataset(beir(tmp_path / "x", config))
    assert told in str(caught.value)
    assert "dataset.yaml" in str(caught.value)


def test_the_yaml_file_names_files_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_FOLDER", str(beir(tmp_path / "data")))
    described = tmp_path / "described"
    save(
        described / "dataset.yaml",
        "format: beir\nfiles:\n  documents: ${DATA_FOLDER}/corpus.jsonl\n"
        "  queries: ../data/queries.jsonl\nsplits: {all: '${DATA_FOLDER}/qrels/test.tsv'}\n",
    )
    assert load_dataset(described, "all").n_documents == 2
    (tmp_path / "data" / "corpus.jsonl").write_text("x\n")
    with pytest.raises(DataError) as caught:
        load_dataset(described, "all")
    assert caught.value.faults[0].startswith("${DATA_FOLDER}/corpus.jsonl:1: no JSON")


def test_the_yaml_file_may_leave_out_the_corpus_and_reads_the_usual_names(tmp_path: Path) -> None:
    folder = beir(tmp_path / "x", "format: beir\nfiles: {documents: null}\nname: 2019\n")
    dataset = load_dataset(folder)
    assert dataset.documents is None
    assert dataset.name == "2019"


def test_units_come_from_the_metadata(tmp_path: Path) -> None:
    folder = beir(tmp_path / "x", "format: beir\nunit_key: page\n")
    with pytest.raises(DataError) as caught:
        load_dataset(folder)
    assert "corpus.jsonl:1: no 'page'" in caught.value.faults[0]
    (folder / "corpus.jsonl").write_text(CORPUS.replace('"one"', '"one", "page": "d1"'))
    assert load_dataset(folder).unit_of == {"d1": "d1", "d2": "7"}


def test_a_corpus_can_be_walked_again_and_within_a_walk(tmp_path: Path) -> None:
    corpus = some(load_dataset(beir(tmp_path)).documents)
    assert len(corpus) == 2
    assert list(corpus) == list(corpus)
    assert [(a.id, b.id) for a in corpus for b in corpus] == [
        ("d1", "d1"),
        ("d1", "d2"),
        ("d2", "d1"),
        ("d2", "d2"),
    ]
    assert isinstance(corpus, Documents)


def test_a_relative_path_survives_a_change_of_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beir(here / "x")
    corpus = some(load_dataset("x").documents)
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    assert len(list(corpus)) == 2


@pytest.mark.slow
def test_no_text_is_held_during_the_check_or_a_walk(tmp_path: Path) -> None:
    folder = beir(tmp_path)
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as stream:
        for number in range(2_000):
            stream.write(json.dumps({"_id": f"x{number}", "text": f"{number} " * 400}) + "\n")
    size = (folder / "corpus.jsonl").stat().st_size
    load_dataset(folder)  # imports and caches are no matter of this test
    tracemalloc.start()
    try:
        dataset = load_dataset(folder)
        assert sum(1 for _ in some(dataset.documents)) == 2_002
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < size / 50
    assert peak < size / 3


def test_a_file_that_changed_since_the_check_is_an_error(tmp_path: Path) -> None:
    folder = beir(tmp_path)
    corpus = some(load_dataset(folder).documents)
    path = folder / "corpus.jsonl"
    before = path.stat()
    path.write_text(CORPUS.replace("two", "2wo"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(DataError, match="changed or removed after it was checked"):
        next(iter(corpus))
    path.unlink()
    with pytest.raises(DataError, match="changed or removed"):
        list(corpus)


def test_a_file_that_changes_during_a_walk_is_an_error(tmp_path: Path) -> None:
    folder = beir(tmp_path)
    walk = iter(some(load_dataset(folder).documents))
    next(walk)
    with (folder / "corpus.jsonl").open("a") as stream:
        stream.write('{"_id": "d3", "text": "three"}\n')
    with pytest.raises(DataError, match="changed or removed"):
        list(walk)


def test_a_file_that_changes_during_the_check_is_an_error(tmp_path: Path) -> None:
    path = beir(tmp_path) / "corpus.jsonl"

    def read(path: Path, faults: Faults) -> Located[Document]:
        yield 1, Document("d1", "one")
        path.write_text(CORPUS + CORPUS)

    queries: list[tuple[Place, Query]] = [(1, Query("q1", "1"))]
    judged: list[tuple[Place, Judgement]] = [(1, Judgement("q1", "d1", 1))]
    source = Source(
        file_stream(path, read), held_stream("queries", queries), held_stream("judged", judged)
    )
    with pytest.raises(DataError, match="changed or removed"):
        assemble(source, Faults(), name="x", split="test", language=None, unit_key=None)


def loader(split: str) -> Dataset:
    if split == "boom":
        raise KeyError(split)
    if split == "harness":
        raise ConfigError("no such split")
    if split == "other":
        split = "test"
    qrels = {"q1": {"d1": 1}} if split != "faulty" else {"q7": {"d1": 1}}
    documents = [Document("d1", "one")]
    made = build_dataset("plugged", documents, [Query("q1", "1"), Query("q7", "7")], qrels)
    queries = made.queries[:1] if split == "faulty" else made.queries
    return Dataset("plugged", documents, queries, qrels, split, "en", "made up")


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> str:
    module = types.ModuleType("some_plugin_of_datasets")
    vars(module).update(loader=loader, nothing=lambda split: None, number=5)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


def test_a_plug_in_is_called_with_the_split_and_checked(plugin: str) -> None:
    dataset = load_dataset(f"{plugin}:loader", "dev")
    assert (dataset.name, dataset.split, dataset.language) == ("plugged", "dev", "en")
    assert len(dataset.fingerprint) == 32
    with pytest.raises(
        DataError, match="among the queries, 'q7' for example; accepted: ids such as 'q1'"
    ):
        load_dataset(f"{plugin}:loader", "faulty")


@pytest.mark.parametrize(
    ("name", "split", "told"),
    [
        ("loader", "boom", "failed with KeyError"),
        ("loader", "other", "gave split 'test' when asked for 'other'"),
        ("nothing", "test", "gave NoneType"),
        ("number", "test", "is no function"),
        ("lodaer", "test", "did you mean loader"),
    ],
)
def test_a_plug_in_that_fails_is_told(plugin: str, name: str, split: str, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        load_dataset(f"{plugin}:{name}", split)


def test_an_error_of_the_harness_passes_through_a_plug_in(plugin: str) -> None:
    with pytest.raises(HarnessError, match=r"^no such split$"):
        load_dataset(f"{plugin}:loader", "harness")


def test_a_registered_name_is_found(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrieval_bench.core import plugins

    monkeypatch.setitem(plugins.BUILT_IN, "dataset", {"plugged": f"{plugin}:loader"})
    assert "plugged" in dataset_names()
    assert load_dataset("plugged").name == "plugged"


OWN_FORMAT = """
from retrieval_bench.data import DataFormat, Source
from retrieval_bench.data.settings import DocumentColumns, JudgementColumns, QueryColumns
from retrieval_bench.data.parts import documents, judgements, queries


def open_source(files, columns, faults):
    return Source(
        documents(files.documents, DocumentColumns()),
        queries(files.queries, QueryColumns()),
        judgements(files.judgements, JudgementColumns()),
    )


FORMAT = DataFormat("tabs: three tables", ("documents", "queries", "judgements"), open_source)
NONE = "no format"
"""


@pytest.fixture
def tabs(tmp_path: Path) -> Path:
    files = {
        "tabs_format.py": OWN_FORMAT,
        "d.tsv": "id\ttext\nd1\tpaid leave\n",
        "q.tsv": "id\ttext\nq1\tleave\n",
        "j.tsv": "query_id\tdoc_id\tgrade\nq1\td1\t1\n",
    }
    return save_all(tmp_path, files)


def described(folder: Path, named: str, more: str = "") -> Path:
    files = "files: {documents: d.tsv, queries: q.tsv}\nsplits: {test: j.tsv}\n"
    return save_all(folder, {"dataset.yaml": f"format: {named}\n{files}{more}"})


@pytest.mark.parametrize("named", ["tabs_format:FORMAT", "tabs_format.py:FORMAT"])
def test_a_format_of_ones_own_is_named_as_a_retriever_is(tabs: Path, named: str) -> None:
    data = load_dataset(described(tabs, named))
    assert [query.id for query in data.evaluated] == ["q1"]
    assert data.n_documents == 1


@pytest.mark.parametrize(
    ("named", "more", "told"),
    [
        ("tabs_format:NONE", "", "is str"),
        ("tabs_format:GONE", "", "no 'GONE'"),
        ("beer", "", "did you mean beir"),
        ("tabs_format:FORMAT", "columns: {}\n", "columns"),
    ],
)
def test_what_is_no_format_is_told(tabs: Path, named: str, more: str, told: str) -> None:
    with pytest.raises(HarnessError, match=told):
        load_dataset(described(tabs, named, more))
