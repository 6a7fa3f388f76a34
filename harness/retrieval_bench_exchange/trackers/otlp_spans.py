"""A saved run as one trace of OpenTelemetry, sent over OTLP: a span for each measured call.

Names are those of the conventions for generative AI, version 0.1.0, as texts of our own: the
package of OpenTelemetry does not have all of them. Texts of queries are sent only on request, as
those conventions ask. Figures are attributes ``retrieval_bench.*`` of the root span.

When a call began is not kept, so calls stand end to end in the order made, and the last one ends
when the run was saved. How long each took is exact. The id of the trace follows from that of the
run: sent twice, a run is one trace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from retrieval_bench.core.errors import HarnessError
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.installed.version import VERSION
from retrieval_bench.runs.dataset import dataset_of
from retrieval_bench.runs.run import Run
from retrieval_bench_exchange.trackers.sent import facts, figures, unreachable

OPERATION = "gen_ai.operation.name"
SOURCE = "gen_ai.data_source.id"
DOCUMENTS = "gen_ai.retrieval.documents"
QUERY_TEXT = "gen_ai.retrieval.query.text"
TOP_K = "gen_ai.retrieval.top_k"
ERROR = "error.type"
OWN = "retrieval_bench"

_PATH = "/v1/traces"
_AT_ONCE = 512


def send(run: Run, address: str, settings: Mapping[str, Any]) -> str:
    """Send ``run`` to a receiver of OTLP over HTTP; the id of its trace.

    Args:
        address: of the receiver; ``/v1/traces`` is added where it has no path. Headers come from
            ``OTEL_EXPORTER_OTLP_HEADERS``.
        settings: ``texts``: also those of queries, where the dataset is found again.

    Raises:
        ConfigError: nothing answers there, or it refuses.
        MissingDependencyError: the extra ``otlp`` is not installed.
    """
    require("opentelemetry-exporter-otlp-proto-http", "otlp", "--to otlp")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    trace_id, spans = trace_of(run, texts=bool(settings["texts"]))
    try:
        if not spans:
            raise OSError("OpenTelemetry records nothing while OTEL_SDK_DISABLED is set")
        whole = address if urlsplit(address).path.strip("/") else address.rstrip("/") + _PATH
        exporter = OTLPSpanExporter(endpoint=whole)
        for start in range(0, len(spans), _AT_ONCE):
            if exporter.export(spans[start : start + _AT_ONCE]) is not SpanExportResult.SUCCESS:
                raise OSError("the receiver did not answer, or refused")
    except (OSError, ValueError) as problem:
        raise unreachable(address, "otlp", problem) from problem
    return trace_id


def trace_of(run: Run, *, texts: bool = False) -> tuple[str, list[Any]]:
    """The id of its trace, and its spans, calls first and the root last."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON
    from opentelemetry.trace import SpanKind, set_span_in_context

    seed = hashlib.sha256(run.summary.run_id.encode()).digest()
    numbers = count(int.from_bytes(seed[16:23]) + 1)

    class FromRun(IdGenerator):  # type: ignore[misc]  # whose package mypy does not read
        def generate_trace_id(self) -> int:
            return int.from_bytes(seed[:16])

        def generate_span_id(self) -> int:
            return next(numbers)

    class Kept(SpanProcessor):  # type: ignore[misc]
        def on_end(self, span: Any) -> None:
            spans.append(span)

    spans: list[Any] = []
    resource = Resource.create({"service.name": "retrieval-bench", "service.version": VERSION})
    # Whatever the environment says: none is left out, and none is cut off.
    free = SpanLimits.UNSET
    whole = SpanLimits(max_span_attributes=free, max_span_attribute_length=free)
    provider = TracerProvider(ALWAYS_ON, resource, False, None, FromRun(), whole)
    provider.add_span_processor(Kept())
    tracer = provider.get_tracer(OWN, VERSION)

    end = int(datetime.fromisoformat(run.manifest["created"]).timestamp()) * 1_000_000_000
    now = end - int(run.timings.wall_ns.sum())
    said = {f"{OWN}.{name}": value for name, value in {**facts(run), **figures(run)}.items()}
    root = tracer.start_span(f"{OWN} {run.name}", None, SpanKind.INTERNAL, said, start_time=now)
    inside, data = set_span_in_context(root), run.summary.dataset.name
    for wall_ns, of_call in _calls(run, texts):
        span = tracer.start_span(
            f"retrieval {data}", inside, SpanKind.INTERNAL, of_call, start_time=now
        )
        now += wall_ns
        span.end(now)
    root.end(end)
    return f"{root.get_span_context().trace_id:032x}", spans


def _calls(run: Run, texts: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Nanoseconds and attributes of each call, in the order made."""
    rankings, timings = run.rankings, run.timings
    known = _texts(run) if texts else {}
    documents = [_documents(run, at) for at in range(len(rankings.query_ids))]
    columns = (timings.query, timings.wall_ns, timings.failed, timings.launch, timings.round)
    for query, wall_ns, failed, launch, round_ in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        name = rankings.query_ids[query]
        said = {
            OPERATION: "retrieval",
            SOURCE: run.summary.dataset.name,
            TOP_K: run.summary.k,
            f"{OWN}.query": name,
            f"{OWN}.launch": launch,
            f"{OWN}.round": round_,
        }
        said |= {QUERY_TEXT: known[name]} if name in known else {}
        yield wall_ns, said | ({ERROR: "failed"} if failed else {DOCUMENTS: documents[query]})


def _documents(run: Run, query: int) -> str:
    """The ranking that counts, as JSON; a hit without a score has none."""
    row = run.rankings.row(query)
    scores = row.scores if row.scores is not None else [None] * len(row)
    hits = zip(row.doc_ids, scores, strict=True)
    known = [{"id": name} | ({} if s is None else {"score": float(s)}) for name, s in hits]
    return json.dumps(known, ensure_ascii=False)


def _texts(run: Run) -> Mapping[str, str]:
    try:
        return {query.id: query.text for query in dataset_of([run]).queries}
    except HarnessError:  # the data moved or changed
        return {}
