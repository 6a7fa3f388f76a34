"""The formats of datasets and of run files, a module each; the table of those of datasets."""

from collections.abc import Mapping

from retrieval_bench.data.formats import (
    beir,
    halubench,
    marco,
    plain,
    quepid,
    rank_eval,
    scienceqa,
    squad,
    trec,
)
from retrieval_bench.data.formats.questions import langsmith, quotes, ragas
from retrieval_bench.data.source import DataFormat

FORMATS: Mapping[str, DataFormat] = {
    "beir": beir.FORMAT,
    "scienceqa": scienceqa.FORMAT,
    "squad": squad.FORMAT,
    "halubench": halubench.FORMAT,
    "ragas": ragas.FORMAT,
    "quepid": quepid.FORMAT,
    "rank_eval": rank_eval.FORMAT,
    "trec": trec.FORMAT,
    "marco": marco.FORMAT,
    "plain": plain.FORMAT,
    "quotes": quotes.FORMAT,
    "langsmith": langsmith.FORMAT,
}
"""By name, in the order in which a folder without a ``dataset.yaml`` is tried."""
