"""`pb_utils.InferenceRequest`: a request in `execute`, and a request to another model."""

import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import repeat
from sys import getrefcount
from typing import Any, Literal, overload

import numpy as np

from naiad import types
from naiad.types import Trace
from naiad_custom.triton import arguments
from naiad_custom.triton.calling import ResponseIterator, at_once, begun, executed, streamed
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.execution import ExecutionScope, calls_in, current_scope, note_missing_input
from naiad_custom.triton.memory import MemoryType, PreferredMemory
from naiad_custom.triton.response import InferenceResponse
from naiad_custom.triton.sender import InferenceResponseSender, Senders
from naiad_custom.triton.tensor import Tensor, received_tensors
from naiad_tensors.devices import EveryOutput, gpu
from naiad_tensors.tensors import Tensor as ProtocolTensor
from naiad_tensors.tensors import bytes_array

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2


class InferenceTrace:
    """What `request.trace()` returns: the trace of a request, under which a model may begin spans of its own."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace

    def get_context(self) -> str | None:
        """The trace's W3C headers as the text of a JSON object; None for a request that is not traced."""
        return None if self._trace is None else self._trace.context() or None


class InferenceRequest:
    """A request to a model; `timeout` is in microseconds, `flags` are the sequence flags.

    Its inputs, outputs and model must be there. Raises TypeError for an argument of another type, TritonModelException
    for a correlation id that names no sequence, a version that no model has, None among the inputs or two of one name,
    and parameters that are neither a dict nor the text of a JSON object, or hold anything but bool, int of 64 bits,
    float and str.
    """

    __slots__ = (
        "_created_in",
        "_inputs",
        "_outputs",
        "_preferred_memory",
        "_release_flags",
        "_request",
        "_sender",
        "_senders",
    )

    def __init__(
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] = arguments.MISSING,
        requested_output_names: Sequence[str] = arguments.MISSING,
        model_name: str = arguments.MISSING,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: Mapping[str, Any] | str | None = None,
    ) -> None:
        model, caller_id = arguments.text("model_name", model_name), arguments.text("request_id", request_id)
        tensors = arguments.by_name(inputs, f"request with id '{caller_id}' and model name '{model}'")
        self._request = types.Request(
            model,
            {
                name: ProtocolTensor(name, each._datatype, tuple(each.shape()), _as_received(each))
                for name, each in tensors.items()
            },
            version=arguments.a_version(model_version),
            id=caller_id,
            requested=arguments.names(requested_output_names),
            parameters=arguments.a_dict(parameters),
            timeout_microseconds=arguments.number("timeout", timeout, 64),
            correlation_id=arguments.a_correlation_id(correlation_id),
            trace=None if trace is None else arguments.instance_of("trace", trace, InferenceTrace)._trace,
        )
        self._inputs: dict[str, Tensor] | None = tensors
        self._outputs: Sequence[str] = ()
        self._preferred_memory = _NO_MEMORY
        if preferred_memory is not None:
            self._preferred_memory = arguments.instance_of("preferred_memory", preferred_memory, PreferredMemory)
        if self._preferred_memory.memory_type() is MemoryType.TRITONSERVER_MEMORY_GPU:
            self._request.on_device = EveryOutput((gpu(self._preferred_memory.device_id()),))
        self._senders: Senders | None = None
        self._sender: InferenceResponseSender | None = None
        self._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        self._created_in: ExecutionScope | None = current_scope()
        self.set_flags(flags)

    def inputs(self) -> list[Tensor]:
        """The inputs, the same objects each time."""
        if self._inputs is None:
            self._inputs = received_tensors(self._request.inputs)
        return list(self._inputs.values())

    def request_id(self) -> str:
        """The caller's id, "" without one."""
        return self._request.id

    def correlation_id(self) -> int | str:
        """The sequence, 0 or "" without one."""
        return self._request.correlation_id

    def flags(self) -> int:
        """Sequence start (1) and end (2)."""
        request = self._request
        return (TRITONSERVER_REQUEST_FLAG_SEQUENCE_START if request.sequence_start else 0) | (
            TRITONSERVER_REQUEST_FLAG_SEQUENCE_END if request.sequence_end else 0
        )

    def set_flags(self, flags: int) -> None:
        """Set sequence start (1) and end (2). Raises TypeError for what is no int of 32 bits."""
        flags = arguments.number("flags", flags, 32)
        self._request.sequence_start = bool(flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
        self._request.sequence_end = bool(flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)

    def timeout(self) -> int:
        """The caller's queue timeout in microseconds, 0 for none."""
        return self._request.timeout_microseconds

    def parameters(self) -> str:
        """The custom parameters as the text of a JSON object."""
        return json.dumps(dict(self._request.parameters))

    def requested_output_names(self) -> set[str]:
        """The outputs that the caller wants: all of the model's where it named none."""
        return set(self._request.requested or self._outputs)

    def preferred_memory(self) -> PreferredMemory:
        """Where the outputs of a call should be, as a hint: they are where the called model has put them."""
        return self._preferred_memory

    def trace(self) -> InferenceTrace:
        """The trace that follows the request; its context is None where the request is not traced."""
        return InferenceTrace(self._request.trace)

    def is_cancelled(self) -> bool:
        """Whether the request is cancelled: its responses are dropped."""
        return self._request.cancelled

    def get_response_sender(self) -> InferenceResponseSender:
        """The way to send responses one by one, the same each time.

        Raises TritonModelException for a request that was made by a model, or answered by what `execute` returned.
        """
        if self._sender is None:
            if self._senders is None:
                raise TritonModelException(
                    "a request that a model made has no response sender; take that of a request that execute was given"
                )
            self._sender = self._senders.open(self._request)
        return self._sender

    def set_release_flags(self, flags: int) -> None:
        """Release the request (1), or reschedule it for another execution (2), which iterative sequences allow.

        Raises TypeError for what is no int of 32 bits, TritonModelException for other flags.
        """
        flags = arguments.number("release flags", flags, 32)
        if flags not in (TRITONSERVER_REQUEST_RELEASE_ALL, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE):
            raise TritonModelException(
                f"release flags {flags} are not known; use TRITONSERVER_REQUEST_RELEASE_ALL or "
                "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"
            )
        self._release_flags = flags

    @overload
    def exec(self, decoupled: Literal[False] = False) -> InferenceResponse: ...

    @overload
    def exec(self, decoupled: Literal[True]) -> ResponseIterator: ...

    def exec(self, decoupled: bool = False) -> InferenceResponse | ResponseIterator:
        """Ask the model, and wait for its response, or for its responses one by one if it is `decoupled`.

        What goes wrong is the error of a response. Raises TritonModelException outside of `execute`.
        """
        models = calls_in(self._created_in)
        return streamed(models, self._request) if decoupled else executed(models, self._request)

    @overload
    def async_exec(self, decoupled: Literal[False] = False) -> Awaitable[InferenceResponse]: ...

    @overload
    def async_exec(self, decoupled: Literal[True]) -> Awaitable[ResponseIterator]: ...

    def async_exec(self, decoupled: bool = False) -> Awaitable[InferenceResponse] | Awaitable[ResponseIterator]:
        """The same on the running event loop, to be awaited; the call has begun when this returns."""
        models = calls_in(self._created_in)
        return at_once(streamed(models, self._request)) if decoupled else begun(models, self._request)

    @property
    def _is_rescheduled(self) -> bool:
        return self._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE

    def _payloads(self) -> Iterable[Any]:
        for each in (self._inputs or {}).values():
            if getrefcount(each) <= _UNSHARED:  # else the model may write to the array through the tensor
                yield each._payload
        yield from (each.payload for each in self._request.inputs.values())

    def _holders_of(self, payload: Any) -> int:
        """How many tensors that the request alone holds are over that array."""
        holders = 0
        for each in (self._inputs or {}).values():
            if each._payload is payload and getrefcount(each) <= _UNSHARED:
                holders += 1
        for received in self._request.inputs.values():
            if received.payload is payload:
                holders += 1
        return holders


def _as_received(tensor: Tensor) -> Any:
    """The array of a tensor as a called model gets it: `str` elements become `bytes`."""
    return bytes_array(tensor._payload) if tensor._datatype == "BYTES" else tensor._payload


def _references_in(tensors: dict[str, Tensor]) -> int:
    references = 0
    for each in tensors.values():
        references = getrefcount(each)
    return references


_UNSHARED = _references_in({"input": Tensor("input", np.empty(1))})
"""References to a tensor that only its request holds; they differ between versions of Python."""

_new = InferenceRequest.__new__
_NO_MEMORY = PreferredMemory(MemoryType.DEFAULT)


def received_requests(
    requests: Sequence[types.Request],
    outputs: Sequence[str],
    senders: Senders | None,
    opened: Iterable[InferenceResponseSender | None] = repeat(None),
) -> list[InferenceRequest]:
    """The requests of a batch as a model sees them; `outputs` are the names that the model's configuration has.

    `senders` is where their senders come from, should they be asked for, unless they are `opened`.
    """
    received = []
    for request, sender in zip(requests, opened, strict=False):
        each = _new(InferenceRequest)
        each._request = request
        each._outputs = outputs
        each._inputs = None
        each._preferred_memory = _NO_MEMORY
        each._senders = senders
        each._sender = sender
        each._release_flags = TRITONSERVER_REQUEST_RELEASE_ALL
        each._created_in = None
        received.append(each)
    return received


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str | bytes) -> Tensor | None:
    """The request's input of that name, None when it has none."""
    if isinstance(name, bytes):
        name = name.decode()
    tensors = inference_request._inputs
    if tensors is None:  # they are made when first asked for; later calls give the same objects
        tensors = inference_request._inputs = received_tensors(inference_request._request.inputs)
    tensor = tensors.get(name)
    if tensor is None:
        note_missing_input(name, inference_request._request)
    return tensor
