"""Pictures of timings and of quality: specifications of Vega-Lite, drawn to SVG (extra ``plots``).

A module for each picture: a function from data to a specification, a plain dict. Each takes
``about``, a line under the heading, and ``width``, that of the picture in px. :func:`svg` draws it
with vl-convert-python: light or dark as the reader's system is, readable in black and white and by
a screen reader, without any reference to another file. Equal data gives equal bytes in every
process. Texts from data are shown as they are, in any script, and never interpreted.
"""

from retrieval_bench.reports.pictures.draw import svg
from retrieval_bench.reports.pictures.gains import gains
from retrieval_bench.reports.pictures.latency import Calls, ecdf
from retrieval_bench.reports.pictures.ledger import PartBar, parts
from retrieval_bench.reports.pictures.pareto import Spot, pareto
from retrieval_bench.reports.pictures.quality import quality
from retrieval_bench.reports.pictures.queries import per_query
from retrieval_bench.reports.pictures.rounds import rounds
from retrieval_bench.reports.pictures.stages import StageTimes, stages
from retrieval_bench.reports.pictures.vega import NARROW, WIDTH, Spec

__all__ = [
    "NARROW", "WIDTH", "Calls", "PartBar", "Spec", "Spot", "StageTimes", "ecdf", "gains",
    "pareto", "parts", "per_query", "quality", "rounds", "stages", "svg",
]  # fmt: skip
