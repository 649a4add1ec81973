"""Traces of requests over gRPC, one by one and on streams, and of what they cause: ensembles and calls of models."""

import json
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from . import models, streaming
from .collecting import collecting
from .conftest import Start
from .running import PATIENCE, Running
from .test_tracing import ERROR, EXPORTS, FAILS, KERNEL, PARENT, SERVER, UNSET, events, traces, tracing

SENT = ["GRPC_SEND_START", "GRPC_SEND_END"]
OVER_GRPC = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", *KERNEL, *SENT]


CALLING = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x")
        call = pb_utils.InferenceRequest(
            model_name="echo", requested_output_names=["output"], inputs=[x], trace=request.trace()
        )
        assert not call.exec().has_error()
        context = request.trace().get_context()
        return pb_utils.InferenceResponse([pb_utils.Tensor("context", np.array([context or ""], dtype=object))])
"""


def tensor(name: str, values: Any, datatype: str) -> Any:
    tensor = triton.InferInput(name, [len(values)], datatype)
    tensor.set_data_from_numpy(values)
    return tensor


ONE = np.ones(1, np.float32)


def ask(running: Running, model: str, name: str, **more: Any) -> Any:
    with triton.InferenceServerClient(f"127.0.0.1:{running.grpc_port}") as client:
        return client.infer(model, [tensor(name, ONE, "FP32")], client_timeout=PATIENCE, **more)


def test_requests_over_grpc_are_reported_with_what_happens_on_the_wire(
    start: Start, repository: Path, tmp_path: Path
) -> None:
    streaming.write_tells(repository)
    running = start(*tracing(tmp_path / "t.json"))
    ask(running, "echo", "x", request_id="alone")
    answers: Queue[Any] = Queue()
    with triton.InferenceServerClient(f"127.0.0.1:{running.grpc_port}") as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("echo", [tensor("x", ONE, "FP32")], request_id="of a stream")
        requests = [tensor("count", np.array([2], np.int32), "INT32"), tensor("size", np.array([1], np.int32), "INT32")]
        client.async_stream_infer("tells", requests, request_id="of two responses")
        assert [answers.get(timeout=PATIENCE)[1] for _ in range(3)] == [None] * 3
    running.stop()

    report = {objects[0]["request_id"]: events(objects) for objects in traces(tmp_path / "t.json").values()}

    assert report["alone"] == report["of a stream"] == OVER_GRPC
    assert sorted(report["of two responses"]) == sorted([*OVER_GRPC, "INFER_RESPONSE_COMPLETE", *SENT])


def test_a_request_over_grpc_that_is_refused_is_reported_to_its_end(
    start: Start, repository: Path, tmp_path: Path
) -> None:
    running = start(*tracing(tmp_path / "t.json"))
    with pytest.raises(InferenceServerException, match="unexpected inference input 'y'"):
        ask(running, "echo", "y")
    running.stop()

    assert events(traces(tmp_path / "t.json")[1]) == ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", *SENT]


def test_the_caller_s_span_is_taken_over_from_metadata_and_handed_to_the_model(start: Start, repository: Path) -> None:
    models.write(repository, "calling", CALLING, models.triton_config({"x": "FP32"}, {"context": "BYTES"}, "-1"))
    with collecting() as collector:
        options = ("mode=opentelemetry", "level=TIMESTAMPS", "rate=0", f"opentelemetry,url={collector.url}")
        running = start(*(f"--trace-config={option}" for option in options))
        headers = {"traceparent": PARENT, "tracestate": "vendor=x"}
        untraced = ask(running, "calling", "x").as_numpy("context")[0]
        context = json.loads(ask(running, "calling", "x", headers=headers).as_numpy("context")[0])
        running.stop()

    _, trace_id, span_id, _ = PARENT.split("-")
    calling = collector.named("calling")
    (computing,) = [
        span for span in collector.spans if span.name == "compute" and span.parent_span_id == calling.span_id
    ]
    assert untraced == b""
    assert context == {"traceparent": f"00-{trace_id}-{computing.span_id.hex()}-01", "tracestate": "vendor=x"}
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id}
    assert collector.named("InferRequest").parent_span_id.hex() == span_id
    assert collector.named("echo").parent_span_id == computing.span_id


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "code"), [("echo", "OK"), ("fails", "INTERNAL")])
def test_the_span_of_a_call_has_the_attributes_of_the_semantic_conventions(
    start: Start, repository: Path, model: str, code: str, stream: bool
) -> None:
    models.write(repository, "fails", FAILS)
    with collecting() as collector:
        running = start(*EXPORTS, f"--trace-config=opentelemetry,url={collector.url}")
        answers: Queue[Any] = Queue()
        with triton.InferenceServerClient(f"127.0.0.1:{running.grpc_port}") as client:
            if stream:
                client.start_stream(lambda result, error: answers.put((result, error)))
                client.async_stream_infer(model, [tensor("x", ONE, "FP32")])
            else:
                client.async_infer(
                    model, [tensor("x", ONE, "FP32")], lambda result, error: answers.put((result, error))
                )
            _, error = answers.get(timeout=PATIENCE)
        running.stop()

    span = collector.named("InferRequest")
    failed = {"error.type": code} if error else {}
    status = {"rpc.response.status_code": code} if error or not stream else {}  # a stream has its status when it ends
    method = "ModelStreamInfer" if stream else "ModelInfer"
    assert (error is None) == (code == "OK")
    assert collector.attributes("InferRequest") == {
        "rpc.system.name": "grpc",
        "rpc.method": f"inference.GRPCInferenceService/{method}",
        **status,
        **failed,
    }
    assert (span.kind, span.status.code) == (SERVER, ERROR if error else UNSET)
