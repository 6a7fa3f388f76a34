"""The commands of ``label``: what to judge, how far it is, and judgements in and out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.capabilities import offered
from retrieval_bench.cli.console import OK, UNDECIDED, output_kept_clean, show, working
from retrieval_bench.cli.options import SELF_HITS, command, values

if TYPE_CHECKING:
    from retrieval_bench_labels.store import Store

_RULES = (
    "What hits of this dataset must have is said by rules: judgements of documents stand in their "
    "place, and make another dataset."
)

FOLDER = Path("results") / "labels"
"""Where files of labels lie."""


LABELS_FILE = f"--labels FILE  file of the labels (default: the newest in {FOLDER})"

_POOL = f"""
systems SYSTEM +  saved runs (@last, NAME@latest, a folder), files of runs of other programs, or
    retrievers, which are asked now
--dataset NAME_OR_PATH  name or folder (default: that of the saved run)
--split SPLIT  split of the dataset (default: that of the saved run, test)
{SELF_HITS}
--depth DEPTH [10]  documents of each list (default: 10)
--metric METRIC  what the systems are compared by (default: nDCG@10)
--margin D [0.01]  largest difference that does not matter to you (default: 0.01)
--for {{population,split}} [population]  whose mean you want to know: of questions like these
    (population, default: judged in plain random order), or of these very questions (split: those
    that can differ most come first, which takes fewer labels)
--seed SEED [0]  of the order of queries and documents (default: 0)
--guidelines FILE  YAML with a sentence for each grade, 0 to 3, shown while judging
--set KEY=VALUE ...  parameters of the retrievers
--labels FILE  file of the labels (default: {FOLDER}/DATASET.sqlite); its judgements are kept
"""
_KEPT = f"""
--dataset NAME_OR_PATH  where the dataset is now (default: where it was when the pool was made)
{LABELS_FILE}
"""
_IMPORT = f"""
file FILE  the file of judgements
--who NAME  who made them: a person, a model, a tool
--kind {{person,model}} [person]  what NAME is; people's judgements count before a model's (default:
    person)
--from FORMAT  qrels, quepid, quotes (a table with question, answer, quote), ragas, langsmith,
    offline (default: what the content says)
{_KEPT}
"""
_EXPORT = f"""
--to FORMAT [beir]  a format that `retrieval-bench data export` writes (default: beir)
--out FOLDER [required]  made here; holds all files
--only {{person,model,dataset}} + []  whose judgements (default: everybody's; people count before
    the dataset, that before models)
--partly  also queries that are not judged to the end; what is missing counts as not relevant
--set KEY=VALUE ...  settings of the format
{_KEPT}
"""
_QUESTIONS = """
source SOURCE  a function of yours, module:name or file.py:name, called with a document, which
    gives a question or None; or a log of queries, rows with text and count
--dataset NAME_OR_PATH [required]  the documents to ask about
--split SPLIT [test]  split of the dataset (default: test)
--n N [50]  questions wanted (default: 50)
--seed SEED [0]  of the sample (default: 0)
--out FOLDER [required]  made here, a BEIR folder
"""


def labels_file(options: argparse.Namespace) -> Path:
    """The file that ``--labels`` names, or the one that was changed last.

    Raises:
        ConfigError: there is none.
    """
    from retrieval_bench.core.errors import ConfigError

    if options.labels is not None:
        return Path(options.labels)
    files = sorted(FOLDER.glob("*.sqlite"), key=_changed) if FOLDER.is_dir() else []
    if not files:
        raise ConfigError(
            "no file of labels",
            kind="no-file",
            where=str(FOLDER),
            accepted="a file that `retrieval-bench label pool` made",
            fix="make one: retrieval-bench label pool @last",
        )
    return files[-1]


def _changed(path: Path) -> float:
    """When a file, or the log beside it, was written last."""
    beside = (path, path.with_name(f"{path.name}-wal"))
    return max(item.stat().st_mtime for item in beside if item.exists())


def opened(options: argparse.Namespace) -> Store:
    """The store that ``--labels`` names."""
    from retrieval_bench_labels.store import Store

    return Store(labels_file(options))


@command(_POOL, **{"for": {"dest": "target"}})
def run_pool(options: argparse.Namespace) -> int:
    """Collect what is to be judged."""
    from retrieval_bench.core.types import by_rule
    from retrieval_bench.experiment.until import Target
    from retrieval_bench_labels.decide.status import Pooled, status
    from retrieval_bench_labels.pool import Wanted, default_file, make_pool
    from retrieval_bench_labels.store import Store
    from retrieval_bench_labels.systems import gather
    from retrieval_bench_labels.tables.labelling import pool_tables

    wanted = Wanted(
        options.depth,
        options.metric,
        options.margin,
        options.seed,
        None if options.guidelines is None else _guidelines(options.guidelines),
        Target(options.target),
    )
    wanted.checked()
    with working(options) as bars:
        gathered = gather(
            options.systems,
            options.dataset,
            **values(options, "split self_hits depth"),
            overrides=options.set,
            reporter=bars,
        )
        data = gathered.dataset
        path = options.labels or default_file(data.name, FOLDER)
        store = Store.create(path)
        make_pool(
            store, data, gathered.lists, wanted, source=gathered.source, failed=gathered.failed
        )
        pool_status = status(store)
    rules = [_RULES] if by_rule(data.qrels) else []
    warnings = (*gathered.warnings, *rules, *pool_status.warnings)
    show(
        options,
        Pooled(pool_status, str(path), warnings),
        lambda: pool_tables(pool_status, str(path), warnings),
    )
    return OK


def _guidelines(path: Path) -> dict[int, str]:
    """A sentence for each grade.

    Raises:
        ConfigError: the file cannot be read, or says something else.
    """
    from retrieval_bench.core.config import read_yaml
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench_labels.label import GRADES

    content = read_yaml(path)
    guidelines = {int(grade): text for grade, text in content.items() if str(grade).isdecimal()}
    if sorted(guidelines) != list(GRADES) or not all(
        isinstance(text, str) for text in guidelines.values()
    ):
        raise ConfigError(
            f"guidelines for grades {', '.join(map(str, content)) or 'none'}",
            where=str(path),
            accepted="0: sentence, 1: sentence, 2: sentence, 3: sentence",
            fix="write a sentence for each of the four grades",
        )
    return guidelines


@command(LABELS_FILE)
def run_status(options: argparse.Namespace) -> int:
    """Say how far it is, and what it shows."""
    from retrieval_bench_labels.decide.status import LabelStatus, status
    from retrieval_bench_labels.tables.labelling import status_tables

    with output_kept_clean():
        store = opened(options)
        pool_status = status(store)
    file = str(store.path)
    judges: Callable[[Store], list[Any]] = offered("show judges") or (lambda _store: [])
    show(
        options,
        LabelStatus(pool_status, file),
        lambda: [*status_tables(pool_status, file), *judges(store)],
        lambda: [*status_tables(pool_status, file, verbose=False), *judges(store)],
    )
    return OK if pool_status.done else UNDECIDED


def _dataset_of(options: argparse.Namespace, store: Store) -> Any:
    """The dataset of the pool, as it is now.

    Raises:
        ConfigError: nothing says where it is.
    """
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.data import load_dataset

    pool = store.pool()
    source = options.dataset or pool.source
    if source is None:
        raise ConfigError(
            f"nothing says where the dataset {pool.dataset!r} is",
            where="--dataset",
            accepted="its name or folder",
            fix="add --dataset my/folder",
        )
    return load_dataset(source, pool.split)


@command(_IMPORT, **{"from": {"dest": "source"}})
def run_import(options: argparse.Namespace) -> int:
    """Take over judgements that were made elsewhere."""
    from retrieval_bench_labels.exchange.importing import import_labels
    from retrieval_bench_labels.label import Kind
    from retrieval_bench_labels.tables.labelling import import_tables

    with output_kept_clean():
        store = opened(options)
        imported = import_labels(
            store,
            options.file,
            _dataset_of(options, store),
            who=options.who,
            kind=Kind(options.kind),
            kind_of_file=options.source,
        )
    show(options, imported, lambda: import_tables(imported, str(store.path)))
    return OK


@command(_EXPORT)
def run_export(options: argparse.Namespace) -> int:
    """Write the dataset with its new judgements."""
    from retrieval_bench.core.config import inline_config
    from retrieval_bench_labels.exchange.exporting import export_labels
    from retrieval_bench_labels.label import Kind
    from retrieval_bench_labels.tables.labelling import export_tables

    settings = inline_config({"target": options.to}, options.set).params
    with output_kept_clean():
        store = opened(options)
        made = export_labels(
            store,
            _dataset_of(options, store),
            options.to,
            options.out,
            kinds=[Kind(kind) for kind in options.only] or list(Kind),
            partly=options.partly,
            settings=settings,
        )
    show(options, made, lambda: export_tables(made))
    return OK


@command(_QUESTIONS)
def run_questions(options: argparse.Namespace) -> int:
    """Make questions where there are none."""
    from retrieval_bench.data import load_dataset
    from retrieval_bench_labels.exchange.questions import from_log, known_items
    from retrieval_bench_labels.tables.labelling import question_tables

    log = Path(options.source)
    with output_kept_clean():
        data = load_dataset(options.dataset, options.split)
        how = {"n": options.n, "seed": options.seed}
        if log.is_file():
            made = from_log(log, data, options.out, **how)
        else:
            made = known_items(options.source, data, options.out, **how)
    show(options, made, lambda: question_tables(made))
    return OK
