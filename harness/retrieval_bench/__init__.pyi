from retrieval_bench.api.measuring import (
    baseline as baseline,
)
from retrieval_bench.api.measuring import (
    bench as bench,
)
from retrieval_bench.api.measuring import (
    compare as compare,
)
from retrieval_bench.api.measuring import (
    duet as duet,
)
from retrieval_bench.api.measuring import (
    regress as regress,
)
from retrieval_bench.api.measuring import (
    tune as tune,
)
from retrieval_bench.api.reading import (
    audit as audit,
)
from retrieval_bench.api.reading import (
    diff as diff,
)
from retrieval_bench.api.reading import (
    evaluate as evaluate,
)
from retrieval_bench.api.reading import (
    history as history,
)
from retrieval_bench.api.reading import (
    report as report,
)
from retrieval_bench.core.calls.usage import report_usage as report_usage
from retrieval_bench.core.retriever import Capabilities as Capabilities
from retrieval_bench.core.retriever import Retriever as Retriever
from retrieval_bench.core.types import (
    Dataset as Dataset,
)
from retrieval_bench.core.types import (
    Document as Document,
)
from retrieval_bench.core.types import (
    Hit as Hit,
)
from retrieval_bench.core.types import (
    Query as Query,
)
from retrieval_bench.core.types import (
    Ranking as Ranking,
)
from retrieval_bench.core.types import (
    Usage as Usage,
)
from retrieval_bench.data import export_dataset as export_dataset
from retrieval_bench.data import load_dataset as load_dataset
from retrieval_bench_answers.api import reader as reader

__version__: str
__all__: list[str]
