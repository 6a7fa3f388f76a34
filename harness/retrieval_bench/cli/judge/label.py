"""The commands of ``label``: what to judge, how far it is, and judgements in and out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval_bench.cli.console import OK, UNDECIDED, output_kept_clean, show, working
from retrieval_bench.cli.options import add_format, add_self_hits, add_several

if TYPE_CHECKING:
    from retrieval_bench.labels.store import Store

FOLDER = Path("results") / "labels"
"""Where files of labels lie."""


def add_labels_file(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the file of labels."""
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help=f"file of the labels (default: the newest in {FOLDER})",
    )


def add_pool(commands: Any, name: str, **texts: str) -> None:
    """Collect what is to be judged."""
    pool = commands.add_parser(name, **texts)
    pool.add_argument(
        "systems",
        nargs="+",
        metavar="SYSTEM",
        help="saved runs (@last, NAME@latest, a folder), files of runs of other programs, or "
        "retrievers, which are asked now",
    )
    pool.add_argument(
        "--dataset", metavar="NAME_OR_PATH", help="name or folder (default: that of the saved run)"
    )
    pool.add_argument("--split", help="split of the dataset (default: that of the saved run, test)")
    add_self_hits(pool)
    pool.add_argument("--depth", type=int, default=10, help="documents of each list (default: 10)")
    pool.add_argument(
        "--metric", metavar="METRIC", help="what the systems are compared by (default: nDCG@10)"
    )
    pool.add_argument(
        "--margin",
        type=float,
        default=0.01,
        metavar="D",
        help="largest difference that does not matter to you (default: 0.01)",
    )
    pool.add_argument(
        "--for",
        dest="target",
        choices=("population", "split"),
        default="population",
        help="whose mean you want to know: of questions like these (population, default: judged in "
        "plain random order), or of these very questions (split: those that can differ most come "
        "first, which takes fewer labels)",
    )
    pool.add_argument(
        "--seed", type=int, default=0, help="of the order of queries and documents (default: 0)"
    )
    pool.add_argument(
        "--guidelines",
        type=Path,
        metavar="FILE",
        help="YAML with a sentence for each grade, 0 to 3, shown while judging",
    )
    add_several(pool, "--set", "KEY=VALUE", "parameters of the retrievers")
    pool.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help=f"file of the labels (default: {FOLDER}/DATASET.sqlite); its judgements are kept",
    )
    add_format(pool)
    pool.set_defaults(run=_pool)


def add_status(commands: Any, name: str, **texts: str) -> None:
    """Say how far it is, and what it shows."""
    status = commands.add_parser(name, **texts)
    add_labels_file(status)
    add_format(status)
    status.set_defaults(run=_status)


def add_import(commands: Any, name: str, **texts: str) -> None:
    """Take over judgements that were made elsewhere."""
    taken = commands.add_parser(name, **texts)
    taken.add_argument("file", type=Path, metavar="FILE", help="the file of judgements")
    taken.add_argument("--who", metavar="NAME", help="who made them: a person, a model, a tool")
    taken.add_argument(
        "--kind",
        choices=("person", "model"),
        default="person",
        help="what NAME is; people's judgements count before a model's (default: person)",
    )
    taken.add_argument(
        "--from",
        dest="source",
        metavar="FORMAT",
        help="qrels, quepid, quotes (a table with question, answer, quote), ragas, langsmith, "
        "offline (default: what the content says)",
    )
    _add_dataset_of_labels(taken)
    add_labels_file(taken)
    add_format(taken)
    taken.set_defaults(run=_import)


def add_export(commands: Any, name: str, **texts: str) -> None:
    """Write the dataset with its new judgements."""
    export = commands.add_parser(name, **texts)
    export.add_argument(
        "--to",
        default="beir",
        metavar="FORMAT",
        help="a format that `retrieval-bench data export` writes (default: beir)",
    )
    export.add_argument(
        "--out", required=True, type=Path, metavar="FOLDER", help="made here; holds all files"
    )
    export.add_argument(
        "--only",
        choices=("person", "model", "dataset"),
        nargs="+",
        default=[],
        help="whose judgements (default: everybody's; people count before the dataset, that before "
        "models)",
    )
    export.add_argument(
        "--partly",
        action="store_true",
        help="also queries that are not judged to the end; what is missing counts as not relevant",
    )
    add_several(export, "--set", "KEY=VALUE", "settings of the format")
    _add_dataset_of_labels(export)
    add_labels_file(export)
    add_format(export)
    export.set_defaults(run=_export)


def add_questions(commands: Any, name: str, **texts: str) -> None:
    """Make questions where there are none."""
    questions = commands.add_parser(name, **texts)
    questions.add_argument(
        "source",
        metavar="SOURCE",
        help="a function of yours, module:name or file.py:name, called with a document, which "
        "gives a question or None; or a log of queries, rows with text and count",
    )
    questions.add_argument(
        "--dataset", required=True, metavar="NAME_OR_PATH", help="the documents to ask about"
    )
    questions.add_argument("--split", default="test", help="split of the dataset (default: test)")
    questions.add_argument(
        "--n", type=int, default=50, metavar="N", help="questions wanted (default: 50)"
    )
    questions.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    questions.add_argument(
        "--out", required=True, type=Path, metavar="FOLDER", help="made here, a BEIR folder"
    )
    add_format(questions)
    questions.set_defaults(run=_questions)


def _add_dataset_of_labels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset",
        metavar="NAME_OR_PATH",
        help="where the dataset is now (default: where it was when the pool was made)",
    )


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
    from retrieval_bench.labels.store import Store

    return Store(labels_file(options))


def _pool(options: argparse.Namespace) -> int:
    from retrieval_bench.experiment.until import Target
    from retrieval_bench.labels.decide.status import Pooled, status
    from retrieval_bench.labels.pool import Wanted, default_file, make_pool
    from retrieval_bench.labels.store import Store
    from retrieval_bench.labels.systems import gather
    from retrieval_bench.reports.tables.judge.labelling import pool_tables

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
            split=options.split,
            self_hits=options.self_hits,
            depth=options.depth,
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
    show(
        options,
        Pooled(pool_status, str(path), gathered.warnings),
        lambda: pool_tables(pool_status, str(path), gathered.warnings),
    )
    return OK


def _guidelines(path: Path) -> dict[int, str]:
    """A sentence for each grade.

    Raises:
        ConfigError: the file cannot be read, or says something else.
    """
    from retrieval_bench.core.config import read_yaml
    from retrieval_bench.core.errors import ConfigError
    from retrieval_bench.labels.label import GRADES

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


def _status(options: argparse.Namespace) -> int:
    from retrieval_bench.labels.decide.status import LabelStatus, status
    from retrieval_bench.reports.tables.judge.labelling import status_tables

    with output_kept_clean():
        store = opened(options)
        pool_status = status(store)
    file = str(store.path)
    show(
        options,
        LabelStatus(pool_status, file),
        lambda: status_tables(pool_status, file),
        lambda: status_tables(pool_status, file, verbose=False),
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


def _import(options: argparse.Namespace) -> int:
    from retrieval_bench.labels.exchange.importing import import_labels
    from retrieval_bench.labels.label import Kind
    from retrieval_bench.reports.tables.judge.labelling import import_tables

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


def _export(options: argparse.Namespace) -> int:
    from retrieval_bench.core.config import inline_config
    from retrieval_bench.labels.exchange.exporting import export_labels
    from retrieval_bench.labels.label import Kind
    from retrieval_bench.reports.tables.judge.labelling import export_tables

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


def _questions(options: argparse.Namespace) -> int:
    from retrieval_bench.data import load_dataset
    from retrieval_bench.labels.exchange.questions import from_log, known_items
    from retrieval_bench.reports.tables.judge.labelling import question_tables

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
