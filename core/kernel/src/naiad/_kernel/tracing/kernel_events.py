"""What the kernel tells the traces of requests, in functions that are only called for requests that have one."""

from collections.abc import Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from naiad._kernel.explaining.explanation import Explanation, Joined
from naiad.backend import Answer, Instance
from naiad.errors import NaiadError
from naiad.tracing import Trace
from naiad.types import Request, Response

if TYPE_CHECKING:
    from naiad._kernel.worker import Work


def tell_arrival(trace: Trace, version: int, request: Request, seen: Request) -> None:
    """A request waits for that version of its model, which sees it as `seen`."""
    now = monotonic_ns()
    trace.version = version
    trace.record("REQUEST_START", now)
    trace.record("QUEUE_START", now)
    if trace.wants_tensors:
        trace.tensors("TENSOR_QUEUE_INPUT", request.inputs.values())
        if seen is not request:
            trace.tensors("TENSOR_BACKEND_INPUT", seen.inputs.values())


def execute_traced(instance: Instance, work: "Work", name: str) -> Answer | Any:
    """Execute a batch some of whose requests are traced; the first one's span is the model's current one."""
    for trace in work.traces:
        if isinstance(trace, Explanation):
            trace.joined(Joined(name, work.batch.size, len(work.calls), work.reason), work.started_ns)
        trace.record("COMPUTE_START", work.started_ns)
    with work.traces[0].current():
        return instance.execute(work.batch)


def tell_execution(work: "Work", outcomes: Sequence[Response | NaiadError | None]) -> None:
    """A batch came back; None is the outcome of a request whose responses come one by one."""
    for call, outcome in zip(work.calls, outcomes, strict=True):
        trace = call.request.trace
        if trace is not None and outcome is not None and not call.over:
            tell_phases(trace, work)
            tell_response(trace, outcome)


def tell_phases(trace: Trace, work: "Work") -> None:
    """An execution of a request ended, and may not be its last."""
    input_done_ns = work.batch.input_done_ns or work.started_ns
    infer_done_ns = work.batch.infer_done_ns or work.done_ns
    _tell_phases(trace, input_done_ns, infer_done_ns, work.done_ns)


def tell_sent(trace: Trace, opened_ns: int, outcome: Response | NaiadError) -> None:
    """A model that took the sender of its responses at `opened_ns` has sent one; the last one ends its execution."""
    tell_response(trace, outcome)
    if isinstance(outcome, NaiadError) or outcome.final:
        now = monotonic_ns()
        _tell_phases(trace, opened_ns, now, now)


def tell_response(trace: Trace, outcome: Response | NaiadError) -> None:
    """A response goes out. An error in its place is one too; what only says that the request is over is none."""
    if isinstance(outcome, Response):
        if outcome.is_empty:
            return
        if trace.wants_tensors:
            trace.tensors("TENSOR_BACKEND_OUTPUT", outcome.outputs.values())
    trace.record("INFER_RESPONSE_COMPLETE")


def _tell_phases(trace: Trace, input_done_ns: int, infer_done_ns: int, done_ns: int) -> None:
    trace.record("COMPUTE_INPUT_END", input_done_ns)
    trace.record("COMPUTE_OUTPUT_START", infer_done_ns)
    trace.record("COMPUTE_END", done_ns)
