"""The trace events of a request in a server: functions that the kernel and plugins call for requests with a trace."""

from collections.abc import Iterable
from time import monotonic_ns

from naiad.backend import Batch
from naiad.errors import NaiadError
from naiad.tracing import FollowsBatches, JoinedBatch, Trace
from naiad.types import Request, Response


def record_arrival(trace: Trace, version: int, request: Request, model_request: Request) -> None:
    """Record that a request is queued at that version of its model, which gets it as `model_request`."""
    now = monotonic_ns()
    trace.version = version
    trace.record("REQUEST_START", now)
    trace.record("QUEUE_START", now)
    if trace.wants_tensors:
        trace.tensors("TENSOR_QUEUE_INPUT", request.inputs.values())
        if model_request is not request:
            trace.tensors("TENSOR_BACKEND_INPUT", model_request.inputs.values())


def record_execution_start(traces: Iterable[Trace], batch: JoinedBatch, started_ns: int) -> None:
    """Record that a batch started to execute at `started_ns`, for those of its requests that are traced."""
    for trace in traces:
        if isinstance(trace, FollowsBatches):
            trace.joined(batch, started_ns)
        trace.record("COMPUTE_START", started_ns)


def record_phases(trace: Trace, batch: Batch, started_ns: int, done_ns: int) -> None:
    """Record the phases of an execution that ended, and may not be the request's last."""
    _record_phases(trace, batch.input_done_ns or started_ns, batch.infer_done_ns or done_ns, done_ns)


def record_response(trace: Trace, outcome: Response | NaiadError) -> None:
    """Record a response or an error; an empty response, which only says that the request is over, is not recorded."""
    if isinstance(outcome, Response):
        if outcome.is_empty:
            return
        if trace.wants_tensors:
            trace.tensors("TENSOR_BACKEND_OUTPUT", outcome.outputs.values())
    trace.record("INFER_RESPONSE_COMPLETE")


def record_sent(trace: Trace, opened_ns: int, outcome: Response | NaiadError) -> None:
    """Record a response sent by a model that took its sender at `opened_ns`; the final one ends its execution."""
    record_response(trace, outcome)
    if isinstance(outcome, NaiadError) or outcome.final:
        now = monotonic_ns()
        _record_phases(trace, opened_ns, now, now)


def _record_phases(trace: Trace, input_done_ns: int, infer_done_ns: int, done_ns: int) -> None:
    trace.record("COMPUTE_INPUT_END", input_done_ns)
    trace.record("COMPUTE_OUTPUT_START", infer_done_ns)
    trace.record("COMPUTE_END", done_ns)
