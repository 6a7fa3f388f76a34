"""Runs that are sent to trackers: what they hold there is what the run has, to the bit."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval_bench import bench, export_run
from retrieval_bench.core.errors import ConfigError
from retrieval_bench.measure.protocol import Protocol
from retrieval_bench.runs.records import read_run, write_run
from retrieval_bench.runs.run import Run
from retrieval_bench_exchange.trackers.mlflow_runs import keys
from retrieval_bench_exchange.trackers.sent import facts, figures
from tests.builders.runs import run as bare_run
from tests.builders.service import Reply, Service, service

pytestmark = pytest.mark.slow

METRICS = ["nDCG@10", "nDCG(gain=exp)@5", "RR@10"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = bench("bm25", protocol=Protocol(rounds=2, warm_up_s=0.0), metrics=METRICS).run
    folder = tmp_path_factory.mktemp("saved") / "run"
    write_run(made, folder)
    return read_run(folder)


@pytest.fixture
def receiver() -> Iterator[Service]:
    """A receiver of OTLP in this process."""
    with service(lambda _request: Reply(b"")) as there:
        yield there


def spans(receiver: Service) -> list[Any]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    messages = [ExportTraceServiceRequest.FromString(r.content) for r in receiver.requests]
    return [
        span
        for message in messages
        for of_resource in message.resource_spans
        for scope in of_resource.scope_spans
        for span in scope.spans
    ]


def attributes(span: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


def test_figures_are_those_of_the_run(run: Run) -> None:
    told = figures(run)
    mean = run.summary.metrics["nDCG@10"]
    assert (told["nDCG@10"], told["nDCG@10.n"]) == (mean.mean, mean.n)
    assert (told["nDCG@10.low"], told["nDCG@10.high"]) == mean.ci95
    assert told["p50_ms"] == run.summary.latency_ms.levels["p50"].value
    assert told["failed_queries"] == 0
    assert facts(run)["params.k1"] == "0.9"


# Of SQLAlchemy 2.1, about MLflow.
@pytest.mark.filterwarnings("ignore:The ..noload:DeprecationWarning")
@pytest.mark.needs("mlflow")
def test_every_figure_is_found_again_in_mlflow_equal_to_the_bit(run: Run, tmp_path: Path) -> None:
    import mlflow

    store = f"sqlite:///{tmp_path}/mlflow.db"
    sent = export_run(run, "mlflow", store, settings={"experiment": "검색"})
    mlflow.set_tracking_uri(store)
    (there,) = mlflow.search_runs(experiment_names=["검색"], output_format="list")
    assert there.info.run_id == sent.id
    assert there.info.status == "FINISHED"
    told, of = figures(run), facts(run)
    named = keys([*told, *of])
    assert there.data.metrics == {key: told[name] for key, name in named.items() if name in told}
    assert len(there.data.metrics) == sent.figures
    assert there.data.params == {key: str(of[name]) for key, name in named.items() if name in of}
    assert there.data.tags["retrieval_bench.run"] == run.summary.run_id
    assert {n: named[n] for n in named if n != named[n]} == {
        name.removeprefix("retrieval_bench.name."): text
        for name, text in there.data.tags.items()
        if name.startswith("retrieval_bench.name.")
    }
    assert named["nDCG_10.low"] == "nDCG@10.low"
    with pytest.raises(ConfigError) as refused:
        export_run(run, "mlflow", store, settings={"experiment": "검색"})
    assert f"is there already, as {sent.id}" in refused.value.given


@pytest.mark.needs("opentelemetry")
def test_every_figure_and_call_arrives_at_a_receiver_equal_to_the_bit(
    run: Run, receiver: Service
) -> None:
    sent = export_run(run, "otlp", receiver.url)
    assert {request.path for request in receiver.requests} == {"/v1/traces"}
    *calls, root = spans(receiver)
    told = {f"retrieval_bench.{name}": value for name, value in figures(run).items()}
    said = attributes(root)
    assert {name: said[name] for name in told} == told
    assert len(told) == sent.figures
    assert {f"retrieval_bench.{n}": v for n, v in facts(run).items()}.items() <= said.items()
    assert {span.trace_id.hex() for span in (*calls, root)} == {sent.id}
    assert {span.parent_span_id for span in calls} == {root.span_id}
    took = [span.end_time_unix_nano - span.start_time_unix_nano for span in calls]
    assert took == run.timings.wall_ns.tolist()
    assert root.end_time_unix_nano - root.start_time_unix_nano == sum(took)
    ids = [run.rankings.query_ids[at] for at in run.timings.query.tolist()]
    assert [attributes(span)["retrieval_bench.query"] for span in calls] == ids
    first = attributes(calls[0])
    assert first["gen_ai.operation.name"] == "retrieval"
    assert first["gen_ai.data_source.id"] == "science-mini"
    assert first["gen_ai.retrieval.top_k"] == 10
    assert "gen_ai.retrieval.query.text" not in first
    row = run.rankings.row(run.timings.query.tolist()[0])
    hits = json.loads(first["gen_ai.retrieval.documents"])
    assert [hit["id"] for hit in hits] == list(row.doc_ids)
    assert [hit["score"] for hit in hits] == np.asarray(row.scores).tolist()


@pytest.mark.needs("opentelemetry")
def test_a_run_that_is_sent_twice_is_one_trace_and_texts_go_on_request(
    run: Run, receiver: Service
) -> None:
    export_run(run, "otlp", receiver.url)
    before = [(span.trace_id, span.span_id) for span in spans(receiver)]
    receiver.requests.clear()
    export_run(run, "otlp", f"{receiver.url}/own/path", settings={"texts": True})
    assert {request.path for request in receiver.requests} == {"/own/path"}
    assert [(span.trace_id, span.span_id) for span in spans(receiver)] == before
    assert attributes(spans(receiver)[0])["gen_ai.retrieval.query.text"]


@pytest.mark.needs("opentelemetry")
def test_what_the_environment_says_of_opentelemetry_leaves_nothing_out_unsaid(
    run: Run, receiver: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "3")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3")
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3")
    export_run(run, "otlp", receiver.url)
    said = attributes(spans(receiver)[-1])
    assert said["retrieval_bench.run"] == run.summary.run_id
    assert len(spans(receiver)) == len(run.timings.wall_ns) + 1
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(ConfigError, match="OTEL_SDK_DISABLED"):
        export_run(run, "otlp", receiver.url)


@pytest.mark.needs("opentelemetry")
def test_a_receiver_that_refuses_is_told_without_its_password(run: Run, receiver: Service) -> None:
    receiver.answer = lambda _request: Reply({}, status=400)
    address = receiver.url.replace("://", "://me:geheim-wort@")
    with pytest.raises(ConfigError) as refused:
        export_run(run, "otlp", address)
    assert "did not take the run" in refused.value.given
    assert "geheim-wort" not in refused.value.render()


@pytest.mark.needs("mlflow")
def test_a_tracker_that_is_not_there_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    for place in (address, "nowhere://x"):
        with pytest.raises(ConfigError) as refused:
            export_run(run, "mlflow", place)
        assert "mlflow did not take the run" in refused.value.given
        assert "such as sqlite:///mlflow.db" in refused.value.accepted


@pytest.mark.needs("mlflow")
def test_each_name_has_a_key_of_its_own_that_mlflow_takes() -> None:
    from mlflow.utils.validation import _validate_param_name

    named = keys(names := ["params.url.http://x", "params.x/", "params.a b", "params.a@b", "/c"])
    assert [*named.values()] == names
    assert [*named][2:4] == ["params.a_b", "params.a_b_2"]
    for key in named:
        _validate_param_name(key)


def test_what_cannot_be_sent_is_refused(run: Run) -> None:
    for to, settings, said in (
        ("mlflov", {}, "did you mean mlflow?"),
        ("otlp", {"experiment": "x"}, "texts"),
    ):
        with pytest.raises(ConfigError) as refused:
            export_run(run, to, "sqlite://", settings=settings)
        assert said in refused.value.accepted
    with pytest.raises(ConfigError, match="not saved"):
        export_run(bare_run("a", [1.0]), "mlflow", "sqlite://")
