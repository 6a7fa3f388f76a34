"""``data index``: an index is built once, and opened by every run that needs it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval_bench.core.as_json.document import Documented
from retrieval_bench.core.calls.foreign import foreign_code
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.core.progress import Phase, Reporter, Silent, Step
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.saved_indexes import SavedIndex, documents_to_index
from retrieval_bench.experiment.candidate import Candidate
from retrieval_bench.experiment.preparation import prepare


@dataclass(frozen=True, slots=True)
class KeptIndex(Documented):
    """An index that is kept.

    Attributes:
        retriever, dataset: their names.
        documents: that are in it.
        built: by this call; false where it was there, and sound.
        damage: of the one that was there, and was built anew; null where there was none.
        seconds: of building and saving, or of opening.
        bytes: on disk.
        folder: where it lies.
    """

    KEYS = "retriever dataset documents built damage seconds bytes folder"

    retriever: str
    dataset: str
    documents: int
    built: bool
    damage: str | None
    seconds: float
    bytes: int
    folder: Path


def keep_index(
    retriever: str | Path | Mapping[str, Any],
    dataset: str | Path | Dataset,
    *,
    split: str = "test",
    language: str | None = None,
    overrides: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> KeptIndex:
    """Build the index of a retriever over the documents of a dataset and keep it, unless a sound
    one is kept already.

    Raises:
        ConfigError: the retriever keeps none, or it cannot be written.
        HarnessError: what was given cannot be used.
    """
    reporter = reporter or Silent()
    experiment = prepare(
        [retriever],
        dataset,
        split=split,
        language=language,
        overrides=overrides,
        every_query=True,
        save=False,
    )
    (candidate,) = experiment.candidates
    try:
        with candidate.folder.lent(), foreign_code(candidate.failed_to_index):
            return _kept(candidate, experiment.dataset, reporter)
    finally:
        experiment.close()


def _kept(candidate: Candidate, data: Dataset, reporter: Reporter) -> KeptIndex:
    retriever = candidate.retriever
    documents = documents_to_index(retriever, data)
    saved = SavedIndex.of(retriever, data)
    if saved is None or documents is None:
        raise ConfigError(
            f"{candidate.name} keeps no index",
            accepted="bm25, dense or a hybrid of both over documents; or a retriever of your own "
            "with save(), load() and index_identity()",
            fix="leave this out: each run builds its index",
        )
    begin = time.perf_counter()
    damage = saved.damage() if saved.there else None
    build = damage is None or bool(damage)
    with reporter.phase(Phase(Step.INDEXING, candidate.name)) as task:
        if build:
            retriever.progress = task
            retriever.index(documents)
            saved.keep(retriever, candidate.name)
        retriever.load(saved.folder)
    return KeptIndex(
        candidate.name,
        data.name,
        data.n_documents,
        build,
        damage or None,
        time.perf_counter() - begin,
        sum(path.stat().st_size for path in saved.folder.rglob("*") if path.is_file()),
        saved.folder,
    )
