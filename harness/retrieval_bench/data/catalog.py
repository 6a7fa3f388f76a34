"""The way from a name or a folder to a dataset: where it lies, which layout it has, which
splits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from retrieval_bench.capabilities import capabilities, named, offered
from retrieval_bench.core import plugins
from retrieval_bench.core.calls.foreign import folder_kept, foreign_code, message_of
from retrieval_bench.core.errors import ConfigError, PluginError, near_names
from retrieval_bench.core.installed.installation import config_folders
from retrieval_bench.core.installed.modules import user_path
from retrieval_bench.core.types import Dataset
from retrieval_bench.data.build import assemble, build_dataset
from retrieval_bench.data.faults import reporting
from retrieval_bench.data.files.shards import Location, Shards, located
from retrieval_bench.data.formats import formats
from retrieval_bench.data.recognition import like_judgements, pasted, unread_documents
from retrieval_bench.data.self_queries import with_self_hits
from retrieval_bench.data.settings import (
    CONFIG_NAME,
    LANGUAGE,
    DatasetConfig,
    Names,
    SplitFiles,
    read_dataset_config,
)
from retrieval_bench.data.source import DataFormat, Files, Found

_SHOWN_FILES = 12
_OF_CASES = (".yaml", ".yml", ".json", ".jsonl", ".csv")


def dataset_names() -> list[str]:
    """Names that :func:`load_dataset` takes, without the paths: sorted, nothing is loaded."""
    return sorted({*_catalog_folders(), *plugins.names("dataset")})


def load_dataset(
    name_or_path: str | Path,
    split: str = "test",
    *,
    language: str | None = None,
    self_hits: str | None = None,
) -> Dataset:
    """The dataset that a name or a path stands for, checked as a whole.

    A name is a folder ``configs/datasets/NAME`` with a ``dataset.yaml`` (the user's own first),
    or what a plug-in registered; ``module:function`` is called with the split. A path is a folder
    with a ``dataset.yaml``, or one whose layout is recognised. A name wins over a folder of that
    name; ``./NAME`` is the folder. What begins as a package has it, such as
    ``ir_datasets:NAME``, is loaded by that; nothing is downloaded.

    The corpus is not held in memory: ``documents`` reads its file on each walk.

    Args:
        name_or_path: the name or the path.
        split: which judgements.
        language: ISO 639 code, as if ``dataset.yaml`` named it; None = what it names.
        self_hits: "keep" or "drop", likewise.

    Raises:
        ConfigError: no such dataset or split (close names are offered), unknown layout, faults in
            ``dataset.yaml``, no language code.
        DataError: all faults of the files in one message, with file and line.
        PluginError: a plug-in that cannot be loaded or gives something else.
    """
    _check_language(language)
    return with_settings(_loaded(name_or_path, split), language=language, self_hits=self_hits)


def given_dataset(
    given: str | Path | Dataset,
    split: str,
    *,
    language: str | None = None,
    self_hits: str | None = None,
) -> Dataset:
    """A dataset that is given as it is, or by what :func:`load_dataset` takes.

    Raises:
        HarnessError: as :func:`load_dataset`.
    """
    if isinstance(given, Dataset):
        return with_settings(given, language=language, self_hits=self_hits)
    return load_dataset(given, split, language=language, self_hits=self_hits)


def with_settings(dataset: Dataset, *, language: str | None, self_hits: str | None) -> Dataset:
    """``dataset`` as if it named these settings itself; None = what it names.

    Raises:
        ConfigError: no language code, or no rule for hits on the query itself.
        DataError: see :func:`.with_self_hits`.
    """
    _check_language(language)
    if language is not None:
        dataset = replace(dataset, language=language)
    return with_self_hits(dataset, self_hits)


def _check_language(language: str | None) -> None:
    if language is not None and not re.fullmatch(LANGUAGE, language):
        raise ConfigError(
            f"language {language!r}",
            where="--language",
            accepted="an ISO 639 code of two or three small letters, such as en, fr, ko",
            fix="give the code of the language that the queries are written in",
        )


def _loaded(name_or_path: str | Path, split: str) -> Dataset:
    text = str(name_or_path)
    is_name = isinstance(name_or_path, str)
    if is_name and (load := _elsewhere(text)) is not None:
        return load(text, split)
    if is_name and text in (folders := _catalog_folders()):
        return _from_folder(folders[text], split)
    if is_name and text in plugins.names("dataset"):
        return _from_plugin(text, split)
    path = user_path(text).absolute()
    try:
        if text and path.is_dir():
            return _from_folder(path, split)
        if path.name == CONFIG_NAME and path.is_file():
            return _from_folder(path.parent, split)
        exists = path.exists()
    except OSError as problem:
        raise ConfigError(f"dataset {text!r}: {problem.strerror}", where=str(path)) from None
    if is_name and ":" in text and not exists:
        return _from_plugin(text, split)
    fix = "correct the name or the path"
    fetch = offered("fetch a well-known dataset")
    if fetch is not None and not exists and (command := fetch(text)) is not None:
        fix = f"give the folder where you have it, or get it: {command}"
    if exists and "cases" in formats() and path.suffix in _OF_CASES:
        lines = pasted("cases", {"queries": path.name}, "", "")
        fix = (
            f"if it holds questions and their truth, name its folder, with a {CONFIG_NAME}:{lines}"
        )
    elsewhere = (f", or {name}NAME" for package in capabilities() for name in package.datasets)
    raise ConfigError(
        f"dataset {text!r} is " + ("a file" if exists else "neither a known name nor a folder"),
        where=f"names: configs/datasets and plug-ins; folder: {path}",
        kind="unknown-name",
        accepted=f"a name ({near_names(text, dataset_names())}), a path to a folder"
        + "".join(elsewhere),
        fix=fix,
    )


def _elsewhere(name: str) -> Callable[[str, str], Dataset] | None:
    """Loader of the datasets of this name, if a package does."""
    for package in capabilities():
        for beginning, place in package.datasets.items():
            if name.startswith(beginning):
                load: Callable[[str, str], Dataset] = named(place)
                return load
    return None


def found_at(name_or_path: str | Path) -> str:
    """Make the address of a dataset hold from any working folder: a known name and
    ``module:function`` as they are, a path made absolute. Nothing is loaded or checked."""
    text = str(name_or_path)
    if isinstance(name_or_path, str) and (_elsewhere(text) or text in dataset_names()):
        return text
    path = user_path(text).absolute()
    return text if ":" in text and not path.exists() else str(path)


def dataset_name(name_or_path: str | Path) -> str:
    """The name of the dataset that :func:`load_dataset` finds, without loading it; what was given
    where there is no such folder, or its ``dataset.yaml`` has faults."""
    folder = Path(found_at(name_or_path))
    folder = folder.parent if folder.name == CONFIG_NAME else folder
    if not folder.is_absolute() or not folder.is_dir():
        return str(name_or_path)
    try:
        return _name(_described(folder)[0], folder)
    except ConfigError:
        return str(name_or_path)


def pinned(name_or_path: str | Path) -> str:
    """Resolve it as :func:`found_at`, and a name of ``configs/datasets`` to the folder that it
    means here: another process that stands elsewhere, with other configs, loads the same data."""
    folder = _catalog_folders().get(str(name_or_path))
    return found_at(name_or_path) if folder is None else str(folder.absolute())


def _catalog_folders() -> dict[str, Path]:
    folders: dict[str, Path] = {}
    for catalog in config_folders("datasets"):
        for folder in sorted(catalog.iterdir()):
            if (folder / CONFIG_NAME).is_file():
                folders.setdefault(folder.name, folder)
    return folders


def _from_plugin(target: str, split: str) -> Dataset:
    """Load the dataset of a plug-in's function, checked and with a fingerprint of our own."""
    with folder_kept():
        function = plugins.resolve("dataset", target)
    if not callable(function):
        raise PluginError(f"dataset {target!r} is no function", accepted="a function of the split")

    def failed(problem: BaseException) -> PluginError:
        return PluginError(
            f"dataset {target!r} failed with {message_of(problem)}",
            accepted="a function called as function(split) that gives a Dataset",
        )

    with folder_kept(), foreign_code(failed):
        made = function(split)
    if not isinstance(made, Dataset):
        raise PluginError(
            f"dataset {target!r} gave {type(made).__name__}",
            accepted="a retrieval_bench.core.types.Dataset",
            fix="let the function return retrieval_bench.data.build_dataset(...)",
        )
    if made.split != split:
        raise PluginError(f"dataset {target!r} gave split {made.split!r} when asked for {split!r}")
    built = build_dataset(
        made.name,
        made.documents,
        made.queries,
        made.qrels or None,
        split=split,
        language=made.language,
        unit_key=made.unit_key,
    )
    built = replace(built, judges=made.judges, drawn_from=made.drawn_from)
    return with_self_hits(_in_clusters(built, made.cluster_key), made.self_hits)


def _in_clusters(dataset: Dataset, key: str | None) -> Dataset:
    """``dataset``, whose queries ``key`` of their metadata puts into clusters.

    Raises:
        ConfigError: no query has it.
    """
    if key is not None and not any(key in query.metadata for query in dataset.queries):
        known = dict.fromkeys(name for query in dataset.queries for name in query.metadata)
        raise ConfigError(
            f"cluster_key {key!r}, which no query of {dataset.name!r} has",
            where=CONFIG_NAME,
            kind="unknown-name",
            accepted=near_names(key, known),
            fix="name the key that tells which queries belong together, or leave cluster_key out",
        )
    return replace(dataset, cluster_key=key)


def _from_folder(folder: Path, split: str) -> Dataset:
    config, format_, layout = _described(folder)
    name = _name(config, folder)
    splits = dict(config.splits) or {
        key: files if isinstance(files, SplitFiles) else SplitFiles(judgements=files)
        for key, files in layout.splits.items()
    }
    unread = like_judgements(folder)
    if not splits and not unread and "judgements" not in format_.needs:
        splits = {split: SplitFiles()}  # nothing is judged yet
    if split not in splits:
        fix = f"add the judgements ({format_.layout})"
        if unread and "judgements" not in format_.needs:
            fix += f"; {unread[0]} is not read as such: take it away to go without"
            if not unread[0].endswith("/"):
                fix += f", or name it in {CONFIG_NAME}:"
                fix += pasted(config.format, {}, split, unread[0])
        raise ConfigError(
            f"dataset {name!r} has no split {split!r}",
            where=str(folder),
            kind="unknown-name",
            accepted=near_names(split, splits),
            fix="choose one of them with --split" if splits else fix,
        )
    files = _files(folder, config, format_, layout, split=split, chosen=splits[split])
    with reporting(f"dataset {name!r}, split {split!r},", folder) as faults:
        dataset = assemble(
            format_.open_source(files, config.columns, faults),
            faults,
            name=name,
            split=split,
            language=config.language,
            unit_key=config.unit_key,
        )
    judges = {who: judge.kind for who, judge in config.judges.items()}
    dataset = replace(dataset, judges=judges, drawn_from=config.drawn_from)
    dataset = _in_clusters(dataset, config.cluster_key)
    undecided = files.documents is None and "documents" not in config.files.model_fields_set
    if undecided and (unread_text := unread_documents(folder, config.format)):
        dataset = replace(dataset, warnings=(*dataset.warnings, unread_text))
    return with_self_hits(dataset, config.self_hits)


def _name(config: DatasetConfig, folder: Path) -> str:
    return config.name or folder.resolve().name


def _described(folder: Path) -> tuple[DatasetConfig, DataFormat, Found]:
    path = folder / CONFIG_NAME
    if path.is_file():
        config = read_dataset_config(path)
        format_ = _format_of(config, path)
        return config, format_, format_.find(folder) or Found()
    for name, format_ in formats().items():
        files = format_.find(folder)
        if files is not None:
            return DatasetConfig(format=name), format_, files
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    listed = ", ".join(names[:_SHOWN_FILES]) or "nothing"
    more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
    suggest = offered("suggest a dataset.yaml")
    raise ConfigError(
        f"no layout of a dataset recognised; found {listed}{more}",
        where=str(folder),
        accepted="; ".join(
            [f"a {CONFIG_NAME}", *(format_.layout for format_ in formats().values())]
        ),
        fix=(suggest(folder) if suggest else "")
        or f"add a {CONFIG_NAME} that names format, files and splits",
    )


def _format_of(config: DatasetConfig, path: Path) -> DataFormat:
    """The format that a ``dataset.yaml`` names.

    Raises:
        ConfigError: an unknown name, or columns where the format fixes them.
        PluginError: a format of one's own that cannot be loaded.
    """
    named = formats().get(config.format)
    if named is None and ":" in config.format:
        with folder_kept():
            named = plugins.load(config.format, base=path.parent)
        if not isinstance(named, DataFormat):
            raise PluginError(
                f"format {config.format!r} is {type(named).__name__}",
                where=str(path),
                accepted="a retrieval_bench.data.DataFormat",
            )
    if named is None:
        raise ConfigError(
            f"format {config.format!r}",
            where=str(path),
            kind="unknown-name",
            accepted=f"{near_names(config.format, formats())}; or module:name of your own",
            fix="correct `format`",
        )
    idle = sorted(config.columns.model_fields_set - set(named.columns))
    if "columns" in config.model_fields_set and (idle or not named.columns):
        which = f"`columns: {{{idle[0]}: ...}}`" if named.columns else "`columns`"
        able = (name for name, format_ in formats().items() if format_.columns)
        raise ConfigError(
            f"{which} has no meaning for format {config.format}",
            where=str(path),
            accepted=", ".join(named.columns) or "columns for " + ", ".join(able),
            fix=f"leave {which} out",
        )
    return named


def _files(
    folder: Path,
    config: DatasetConfig,
    format_: DataFormat,
    listing: Found,
    *,
    split: str,
    chosen: SplitFiles,
) -> Files:
    def resolved(part: str) -> Location | None:
        name: Names = getattr(listing, part, None)
        for given in (config.files, chosen):
            if part in given.model_fields_set:
                name = getattr(given, part)
        location = None if name is None else located(folder, name)
        if isinstance(location, Shards) and part not in format_.sharded:
            raise ConfigError(
                f"{len(location.paths)} files of {part}",
                where=str(folder / CONFIG_NAME),
                accepted=f"one file: format {config.format} reads {part} from a single one",
                fix="join the files, or use a format that reads several, such as plain or beir",
            )
        return location

    files = Files(resolved("documents"), resolved("queries"), resolved("judgements"))
    missing = [part for part in format_.needs if getattr(files, part) is None]
    if missing:
        raise ConfigError(
            f"no file of {' and no file of '.join(missing)} named for split {split!r}",
            where=str(folder / CONFIG_NAME),
            accepted=format_.layout,
            fix="name it: files: {queries: FILE}, splits: {" + split + ": FILE}",
        )
    return files
