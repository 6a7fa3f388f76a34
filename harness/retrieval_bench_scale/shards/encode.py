"""``data encode``: the vectors of a corpus, made by several processes or machines."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import foreign_code
from retrieval_bench.core.errors import ConfigError, ContractError, Interrupted, counted
from retrieval_bench.core.installed.cache import cache_folder, write_whole
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.retriever import DocumentEncoder, require_k
from retrieval_bench.core.types import Documents
from retrieval_bench.data.formats.trec_runs import write_run
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.experiment.experiment import Experiment
from retrieval_bench.experiment.preparation import prepare
from retrieval_bench.measure.threads import search_threads
from retrieval_bench.runs.records import cannot_write
from retrieval_bench_launches import child
from retrieval_bench_scale import cluster
from retrieval_bench_scale.shards.blocks import (
    FOLDER,
    SIZE,
    BlockFolder,
    Corpus,
    Reader,
    State,
    Vectors,
    digest_of,
    facts_of,
)
from retrieval_bench_scale.shards.exact import Search
from retrieval_bench_scale.shards.executors import executor, one_at_a_time, run_all

_SHARD = re.compile(r"([1-9]\d*)/([1-9]\d*)")
_FIX = "name them, as for a config"


@dataclass(frozen=True, slots=True)
class EncodedCorpus(Documented):
    """Vectors of a corpus.

    Attributes:
        retriever, dataset: their names.
        documents, blocks: of the corpus.
        made: blocks that this call made.
        damaged: blocks that were there, and were made anew.
        missing: blocks that are not there yet: those of other shards.
        merged: every run of this retriever finds them now.
        on: what computed.
        seconds: of making blocks.
        bytes: of all blocks that are there.
        folder: that they lie in.
        exact_run: a run of the documents that are exactly nearest to each query, beside which they
            stand as judgements (.qrels); null where these were not asked for.
    """

    KEYS = "retriever dataset documents blocks made damaged missing merged on seconds bytes"
    KEYS += " folder exact_run"

    retriever: str
    dataset: str
    documents: int
    blocks: int
    made: int
    damaged: int
    missing: int
    merged: bool
    on: str
    seconds: float
    bytes: int
    folder: Path
    exact_run: Path | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What a process is told of a retriever and a dataset.

    Attributes:
        retriever: name, YAML file, or an inline mapping of plain values.
        folder: that relative paths start from.
        files: what must be equal where it is opened.
        corpus: hash of its texts: a process opens anew what has changed since.
    """

    retriever: Any
    dataset: str
    split: str
    language: str | None
    overrides: Sequence[str]
    folder: str
    files: Mapping[str, str]
    corpus: str = ""

    def opened(self) -> Opened:
        """Both, checked, with the model loaded.

        Raises:
            ConfigError: this process differs from who asks, or the retriever encodes no documents.
        """
        cluster.check_same(self.files)
        experiment = prepare(
            [self.retriever],
            self.dataset,
            split=self.split,
            language=self.language,
            overrides=self.overrides,
            every_query=True,
            save=False,
        )
        (candidate,), documents = experiment.candidates, experiment.dataset.documents
        with ExitStack() as stack:
            stack.callback(experiment.close)
            with candidate.folder.lent(), foreign_code(candidate.failed_to_index):
                encoder = candidate.retriever.document_encoder()
                if encoder is not None:
                    encoder.load()
                facts = None if encoder is None else facts_of(encoder)
            if encoder is None or facts is None or documents is None:
                raise ConfigError(
                    f"{candidate.name} has no encoder of documents, or several, or one whose files "
                    "are not known",
                    accepted="dense, a hybrid with one such leg, or a retriever of your own with "
                    "document_encoder()",
                    fix="name the config of a dense leg",
                )
            stack.pop_all()
        return Opened(experiment, documents, Reader(documents), encoder, facts)


@dataclass(frozen=True, slots=True)
class Opened:
    """What a :class:`Source` names; ``facts`` are those of the encoder."""

    experiment: Experiment
    documents: Documents
    reader: Reader
    encoder: DocumentEncoder
    facts: Mapping[str, Any]

    @property
    def candidate(self) -> Candidate:
        """The retriever."""
        return self.experiment.candidates[0]

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """One row for each text.

        Raises:
            ContractError: the encoder gives something else.
        """
        with self.candidate.folder.lent(), foreign_code(self.candidate.failed_to_index):
            made = np.ascontiguousarray(self.encoder.documents(texts), np.float32)
        return self._checked(made, (len(texts), self.encoder.dimension))

    def queries(self) -> dict[str, Vectors]:
        """The vector of each query that has a text, by id, made with one thread.

        Raises:
            ContractError: the encoder gives something else.
        """
        asked = {query.id: query.text for query in self.experiment.queries if query.text.strip()}
        guarded = foreign_code(self.candidate.failed_to_index)
        with self.candidate.folder.lent(), search_threads(1), guarded:
            made = {
                name: np.ascontiguousarray(self.encoder.query(text), np.float32)
                for name, text in asked.items()
            }
        return {name: self._checked(one, (self.encoder.dimension,)) for name, one in made.items()}

    def _checked(self, made: Vectors, wanted: tuple[int, ...]) -> Vectors:
        if made.shape != wanted or not np.isfinite(made).all():
            raise ContractError(
                f"the encoder of {self.candidate.name} gave an array of shape {made.shape}",
                accepted=f"finite numbers of shape {wanted}",
            )
        return made


def encode_corpus(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path,
    *,
    split: str = "test",
    language: str | None = None,
    overrides: Sequence[str] = (),
    shard: str | None = None,
    merge: bool = False,
    on: str = "local:2",
    out: Path | None = None,
    exact: int | None = None,
    reporter: Reporter | None = None,
) -> EncodedCorpus:
    """Make the vectors that ``retriever`` has of the documents of ``dataset``, and put them where
    its runs find them. Blocks that are there and sound are not made again.

    Args:
        shard: such as ``3/16``: only this part is made, and nothing is put anywhere.
        merge: nothing is made: what is there must be all.
        on: see :func:`.executor`.
        out: folder of the blocks; None = one in the cache, named by what decides them.
        exact: so many documents that are exactly nearest to each query are written there, too.

    Raises:
        ConfigError: blocks are missing, or made by something else; what was given can't be used.
        RecordError: they cannot be written; what was finished stays.
        KeyboardInterrupt: likewise.
    """
    if shard and (merge or exact):
        word = "--merge" if merge else "--exact"
        raise ConfigError(f"{word} with --shard", accepted="one of them", fix="merge all shards")
    if exact is not None:
        require_k(exact)
    part = _parsed(shard)
    given = child.retriever_to_send(retriever, _FIX), child.dataset_to_send(dataset, _FIX)
    here, files = str(Path.cwd()), cluster.facts()
    source = Source(*given, split, language, tuple(overrides), here, files)
    opened = source.opened()
    where = out or cache_folder() or Path()
    try:
        if exact and any(query.filter for query in opened.experiment.queries):
            raise ConfigError("--exact of queries with filters", accepted="queries without")
        job = Job.of(opened, source, out, reporter or Silent())
        where = job.place.folder
        if shard is None and not merge:
            job.check_kept()
        wanted = range(*(job.n * at // part[1] for at in (part[0] - 1, part[0])))
        with job.kept(), executor(on, job.place.folder) as (pool, workers):
            begin = time.perf_counter()
            made = () if merge else job.make(wanted, pool)
            seconds = time.perf_counter() - begin
            missing = job.missing()
            if shard is None:
                job.merge(missing)
            found = None if exact is None else job.exact(exact, pool, workers)
        return EncodedCorpus(
            opened.candidate.name,
            opened.experiment.dataset.name,
            len(job.corpus.ids),
            job.n,
            len(made),
            sum(job.states[at] is State.DAMAGED for at in made),
            len(missing),
            shard is None,
            on,
            seconds,
            sum(
                path.stat().st_size for at in range(job.n) if (path := job.place.path(at)).exists()
            ),
            job.place.folder,
            found,
        )
    except OSError as problem:
        raise cannot_write(where, problem, "vectors") from None
    finally:
        opened.experiment.close()


@dataclass(frozen=True, slots=True)
class Job:
    """One call, from the side of whoever waits.

    Attributes:
        states: of the blocks as they were found.
    """

    source: Source
    opened: Opened
    corpus: Corpus
    place: BlockFolder
    states: Sequence[State]
    reporter: Reporter

    @classmethod
    def of(cls, opened: Opened, source: Source, out: Path | None, reporter: Reporter) -> Job:
        """Look at what is there."""
        corpus = Corpus.of(opened.documents)
        decided = json.dumps([opened.facts, corpus.digests], sort_keys=True).encode()
        usual = (cache_folder() or Path()) / FOLDER / hashlib.sha256(decided).hexdigest()[:32]
        of_texts = hashlib.sha256("".join(corpus.digests).encode()).hexdigest()
        source = replace(source, corpus=of_texts)
        folder = (out or usual).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        place = BlockFolder(folder, opened.facts, opened.encoder.dimension)
        states = [place.look(at, digest) for at, digest in enumerate(corpus.digests)]
        return cls(source, opened, corpus, place, states, reporter)

    @property
    def n(self) -> int:
        """Blocks of the corpus."""
        return len(self.states)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Say after Ctrl-C what is there."""
        try:
            yield
        except KeyboardInterrupt:
            left = len(self.missing())
            raise Interrupted(
                f"{self.n - left:,} of {counted(self.n, 'block')} are in {self.place.folder}: the "
                "same command goes on from there"
            ) from None

    def check_kept(self) -> None:
        """Find out before hours of work that vectors are kept nowhere.

        Raises:
            ConfigError: the cache is off, or no home folder is known for it.
        """
        with foreign_code(self.opened.candidate.failed_to_index):
            self.opened.encoder.keep([], np.empty((0, self.place.dimension), np.float32))

    def make(self, wanted: Sequence[int], pool: Executor) -> Sequence[int]:
        """Those of the ``wanted`` blocks that are not there; gives which these were."""
        numbers = [at for at in wanted if self.states[at] is not State.SOUND]
        tasks = [(self.source, self.place, at, self.corpus.digests[at]) for at in numbers]
        with self.reporter.phase(Phase(Step.ENCODING, self.opened.candidate.name)) as tell:
            run_all(pool, make_block, tasks, tell)
        return numbers

    def missing(self) -> Sequence[int]:
        """Blocks that are still not there, or damaged; those that were sound are not read again."""
        unsound = [at for at, state in enumerate(self.states) if state is not State.SOUND]
        digests = self.corpus.digests
        return [at for at in unsound if self.place.look(at, digests[at]) is not State.SOUND]

    def merge(self, missing: Sequence[int]) -> None:
        """Put all vectors where runs find them.

        Raises:
            ConfigError: some are not there.
        """
        if missing:
            raise ConfigError(
                f"of {counted(self.n, 'block')} {_ranges(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing or damaged",
                where=str(self.place.folder),
                accepted="all of them",
                fix="make them: the same command without --merge, or with --shard",
            )
        self.place.clear()
        name = self.opened.candidate.name
        with self.reporter.phase(Phase(Step.LOADING, f"the vectors of {name}")) as tell:
            for number in range(self.n):
                texts, vectors = self.opened.reader.texts(number), self.place.vectors(number)
                here = np.arange(number * SIZE, number * SIZE + len(texts))
                rows = np.flatnonzero(self.corpus.first[here] == here)
                self.opened.encoder.keep([texts[row] for row in rows], vectors[rows])
                tell(number + 1, self.n)

    def exact(self, k: int, pool: Executor, workers: int) -> Path:
        """Write the ``k`` documents that are exactly nearest to each query of the dataset, as a run
        and as judgements."""
        asked, encoder = self.opened.queries(), self.opened.encoder
        search = Search(self.place, self.source.files, encoder.compared, encoder.normalized, k)
        with self.reporter.phase(Phase(Step.SEARCHING, "exact products")) as tell:
            lists = search.lists(asked, self.corpus, pool, 2 * workers, tell)
        return _write_lists(self.place.folder / f"exact-{k}.run", lists)


_here: list[tuple[Source, Opened]] = []
"""What this process has open: at most one, since a model is large."""


@contextmanager
def at_work(source: Source) -> Iterator[Opened]:
    """On a worker: what ``source`` names, with one thread to compute with."""
    with one_at_a_time, chdir(source.folder):
        if not _here or _here[0][0] != source:
            while _here:
                _here.pop()[1].experiment.close()
            _here.append((source, source.opened()))
        with search_threads(1):
            yield _here[0][1]


def make_block(source: Source, place: BlockFolder, number: int, digest: str) -> None:
    """On a worker: write one block.

    Args:
        digest: of its texts.

    Raises:
        ConfigError: it would be made by something else than the others, or of other texts.
    """
    with at_work(source) as here:
        cluster.check_same(place.facts, here.facts)
        texts = here.reader.texts(number)
        if digest_of(texts) != digest:
            raise ConfigError(
                f"block {number} has other texts on the worker than where the work was cut",
                where=str(source.dataset),
                accepted="a corpus that is the same for all, and stays as it is",
                fix="give all workers the same files, and run it again",
            )
        place.write(number, texts, here.vectors(texts))


def _write_lists(run: Path, lists: Mapping[str, Sequence[tuple[str, float]]]) -> Path:
    """A run and judgements; beside what is there under this name, where that holds other lists."""
    text = StringIO()
    write_run(text, lists, "exact")
    content = text.getvalue().encode()
    if run.exists() and run.read_bytes() != content:
        run = run.with_stem(f"{run.stem}-{hashlib.sha256(content).hexdigest()[:8]}")
    lines = (f"{query} 0 {hit} 1\n" for query, hits in lists.items() for hit, _ in hits)
    write_whole(run.with_suffix(".qrels"), "".join(lines).encode())
    write_whole(run, content)
    return run


def _parsed(shard: str | None) -> tuple[int, int]:
    parts = _SHARD.fullmatch(shard or "1/1")
    if not parts or int(parts[1]) > int(parts[2]):
        raise ConfigError(
            f"--shard {shard}", accepted="I/N, from 1/N to N/N", fix="such as --shard 3/16"
        )
    return int(parts[1]), int(parts[2])


def _ranges(numbers: Sequence[int]) -> str:
    """As people say it: "3-5, 9"."""
    there = set(numbers)
    starts = [at for at in numbers if at - 1 not in there]
    ends = [at for at in numbers if at + 1 not in there]
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
