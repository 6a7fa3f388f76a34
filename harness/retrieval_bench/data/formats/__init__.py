"""The formats of datasets and of run files, a module each; the table of those of datasets."""

from collections.abc import Mapping
from functools import cache

from retrieval_bench.capabilities import capabilities, named
from retrieval_bench.data.source import DataFormat


@cache
def formats() -> Mapping[str, DataFormat]:
    """All formats of datasets by name, in the order in which a folder without a ``dataset.yaml`` is
    tried: those of other tools stand before those that are told by the names of files alone."""
    from retrieval_bench.data.formats import beir, plain, trec

    added = {
        name: named(place) for package in capabilities() for name, place in package.formats.items()
    }
    return {"beir": beir.FORMAT, **added, "trec": trec.FORMAT, "plain": plain.FORMAT}
