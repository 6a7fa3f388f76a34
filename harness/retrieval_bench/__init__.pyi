from retrieval_bench.api.measuring import bench as bench, compare as compare
from retrieval_bench.core.calls.usage import report_usage as report_usage
from retrieval_bench.core.retriever import Capabilities as Capabilities, Retriever as Retriever
from retrieval_bench.core.types import (
    Dataset as Dataset,
    Document as Document,
    Hit as Hit,
    Query as Query,
    Ranking as Ranking,
    Usage as Usage,
)
from retrieval_bench.data import load_dataset as load_dataset
from retrieval_bench_answers.api import reader as reader
from retrieval_bench_duet.api import duet as duet
from retrieval_bench_exchange.export import export_dataset as export_dataset
from retrieval_bench_exchange.trackers.sent import export_run as export_run
from retrieval_bench_explain.api import diff as diff
from retrieval_bench_pages.api import report as report
from retrieval_bench_regress.api import baseline as baseline, history as history, regress as regress
from retrieval_bench_score.api import audit as audit, evaluate as evaluate
from retrieval_bench_tune.api import tune as tune

__version__: str
__all__: list[str]
