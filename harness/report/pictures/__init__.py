"""Pictures of timings and of quality as SVG text, drawn with matplotlib (the extra ``plots``).

Every picture stands for itself: light or dark as the reader's system is, readable in black and
white and by a screen reader, without any reference to another file. Equal data gives equal bytes,
in every process and whatever the user's matplotlib settings are. Texts from data are shown as
they are, in any script, and never interpreted.
"""

from harness.report.pictures.gains import gains
from harness.report.pictures.history import history
from harness.report.pictures.latency import Calls, ecdf
from harness.report.pictures.pareto import Spot, pareto
from harness.report.pictures.quality import quality
from harness.report.pictures.queries import per_query
from harness.report.pictures.rounds import rounds
from harness.report.pictures.stages import StageTimes, stages

__all__ = [
    "Calls",
    "Spot",
    "StageTimes",
    "ecdf",
    "gains",
    "history",
    "pareto",
    "per_query",
    "quality",
    "rounds",
    "stages",
]
