"""Pictures of timings and of quality as SVG text, drawn with matplotlib (the extra ``plots``).

Every picture stands for itself: light or dark as the reader's system is, readable in black and
white and by a screen reader, without any reference to another file. Equal data gives equal bytes,
in every process and whatever the user's matplotlib settings are. Texts from data are shown as
they are, in any script, and never interpreted.
"""

from retrieval_bench.reports.pictures.gains import gains
from retrieval_bench.reports.pictures.history import history
from retrieval_bench.reports.pictures.latency import Calls, ecdf
from retrieval_bench.reports.pictures.ledger import PartBar, parts
from retrieval_bench.reports.pictures.pareto import Spot, pareto
from retrieval_bench.reports.pictures.quality import quality
from retrieval_bench.reports.pictures.queries import per_query
from retrieval_bench.reports.pictures.rounds import rounds
from retrieval_bench.reports.pictures.stages import StageTimes, stages

__all__ = [
    "Calls",
    "PartBar",
    "Spot",
    "StageTimes",
    "ecdf",
    "gains",
    "history",
    "pareto",
    "parts",
    "per_query",
    "quality",
    "rounds",
    "stages",
]
