"""Commands on a run that is there: what it is called by, and the same measurement once more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import join

from retrieval_bench.core.config import chunker_in
from retrieval_bench.core.installed.installation import packaged_configs, typed
from retrieval_bench.runs.records import DEFAULT_ROOT
from retrieval_bench.runs.run import Run, from_here, relative_folder


def named_again(runs: Sequence[Run]) -> str:
    """Name ``runs`` as a command does, which were measured last and together: by their folders
    where they lie elsewhere than runs usually do."""
    usual = DEFAULT_ROOT.absolute()
    if any(run.folder is not None and run.folder.parent != usual for run in runs):
        return join(map(relative_folder, runs))
    return "@last"


_WITH_LANGUAGE = ("bench", "compare")


def same_of(run: Run, command: str, *words: str, set_: Sequence[str] = ()) -> str:
    """``command`` with the retriever of ``run``, ``words``, and the same dataset and depth."""
    told, summary = run.manifest.get("retriever", {}), run.summary
    source, name = Path(told.get("source") or ""), run.name
    cut = chunker_in(name, told.get("chunk"))
    if not source.suffix:
        name = str(told["target"]) + cut if told.get("hash") else name  # an object has no hash
    elif not source.is_relative_to(packaged_configs()):
        name = from_here(source) + cut
    data = run.manifest.get("dataset", {}).get("source") or summary.dataset.name
    where = {"dataset": from_here(data), "split": summary.dataset.split}
    if command in _WITH_LANGUAGE:
        where["language"] = run.manifest.get("dataset", {}).get("given_language")
    return typed(command, name, *words, **where, k=summary.k, set=set_)
