"""Datasets: documents, queries and judgements, checked as a whole and streamed from their files.

>>> from retrieval_bench.data import load_dataset
>>> dataset = load_dataset("path/to/a/beir/folder", split="test")  # doctest: +SKIP

Layers, lowest first: ``faults`` (one report), ``files`` (lines, JSON, tables), ``source`` (what a
format is and gives), ``records`` and ``qrels``, the ``formats``, then ``build`` (checks) and
``catalog`` (names, folders, splits).
"""

from retrieval_bench.data.build import build_dataset
from retrieval_bench.data.catalog import (
    dataset_name,
    dataset_names,
    found_at,
    given_dataset,
    load_dataset,
    pinned,
    with_settings,
)
from retrieval_bench.data.faults import Faults
from retrieval_bench.data.fingerprint import dataset_fingerprint
from retrieval_bench.data.qrels import read_qrels
from retrieval_bench.data.settings import DatasetConfig
from retrieval_bench.data.source import DataFormat, Files, Found, Source

__all__ = [
    "DataFormat",
    "DatasetConfig",
    "Faults",
    "Files",
    "Found",
    "Source",
    "build_dataset",
    "dataset_fingerprint",
    "dataset_name",
    "dataset_names",
    "found_at",
    "given_dataset",
    "load_dataset",
    "pinned",
    "read_qrels",
    "with_settings",
]
