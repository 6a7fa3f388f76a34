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
from retrieval_bench.data.formats.questions import question_tables
from retrieval_bench.data.source import DataFormat

FORMATS: Mapping[str, DataFormat] = {
    "beir": beir.FORMAT,
    "scienceqa": scienceqa.FORMAT,
    "squad": squad.FORMAT,
    "halubench": halubench.FORMAT,
    "ragas": question_tables.FORMATS["ragas"],
    "quepid": quepid.FORMAT,
    "rank_eval": rank_eval.FORMAT,
    "trec": trec.FORMAT,
    "marco": marco.FORMAT,
    "plain": plain.FORMAT,
    "quotes": question_tables.FORMATS["quotes"],
    "langsmith": question_tables.FORMATS["langsmith"],
}
"""By name, in the order in which a folder without a ``dataset.yaml`` is tried."""
