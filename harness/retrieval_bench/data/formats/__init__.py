"""The formats of datasets and of run files, a module each; the table of those of datasets."""

from collections.abc import Mapping

from retrieval_bench.data.formats import beir, halubench, plain, scienceqa, squad, trec
from retrieval_bench.data.source import DataFormat

FORMATS: Mapping[str, DataFormat] = {
    "beir": beir.FORMAT,
    "scienceqa": scienceqa.FORMAT,
    "squad": squad.FORMAT,
    "halubench": halubench.FORMAT,
    "trec": trec.FORMAT,
    "plain": plain.FORMAT,
}
"""By name, in the order in which a folder without a ``dataset.yaml`` is tried."""
