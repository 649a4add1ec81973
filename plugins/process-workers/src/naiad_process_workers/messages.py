"""The messages between a server and the process of an instance: their kinds, and the bodies of batches and answers."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any, TypeGuard

import numpy as np

from naiad.backend import Answer, Batch, Reply, Reschedule
from naiad.batch import Sender
from naiad.errors import ModelFailedError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.types import Request, Response
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import LinkBrokenError, LinkClosedError
from naiad_process_workers.groups import Label
from naiad_process_workers.remote_errors import error_in, put_error
from naiad_process_workers.remote_trace import RemoteTrace, trace_value
from naiad_tensors.ragged import BatchLayout

ENDED_BY_MODEL, LINK_LOST = 70, 71
"""Exit codes of a process whose model raised what ends it, other than SystemExit, and of one without a link."""

MANY_STRINGS = 64 << 10
"""Bytes of strings that take a millisecond to read, which is too long for the event loop."""


class Kind(IntEnum):
    """What a frame is; the connection's own kinds are below 10."""

    COMPLETE = 10
    """Complete the configuration: answered by DONE."""
    LOAD = 11
    """Load the model: answered by DONE."""
    INSTANTIATE = 12
    """Make the instance: answered by DONE."""
    DONE = 13
    """It is done, with a value."""
    FAILED = 14
    """It failed, with an error."""
    EXECUTE = 15
    """Execute a batch, which has the number of the frame."""
    ANSWER = 16
    """The answer to a batch."""
    OPENED = 17
    """The sender of a request of a batch was taken."""
    RESPONSE = 18
    """A sender sends a response."""
    DROPPED = 19
    """A sender was dropped."""
    SEQUENCE_ENDED = 20
    """A sequence is over."""
    CLOSE = 21
    """Close the instance and the model: answered by DONE; the process ends."""
    DYING = 22
    """What the model raised ends the process."""
    STRINGS = 23
    """An answer with so many strings that a thread reads it."""
    STRING_RESPONSE = 26
    """A response of a sender with as many; later frames of the link are read after it."""

    EXECUTE_ALONE = 24
    """As EXECUTE, with a request that came alone: look for the next frame after it, before the process sleeps."""
    HELLO = 25
    """The process has begun to read its links."""

    CANCELLED = 30
    """A request of a batch is cancelled."""
    ROOM = 31
    """A sender may send one more response."""
    READY = 32
    """Whether the instance is ready: answered by READINESS."""
    CALL = 33
    """The model calls a service of the server: answered by REPLY."""
    REPLY = 34
    """What a call returned or raised."""
    LOG = 35
    """A line for the server's log."""
    ATTACH = 37
    """A further work link, whose descriptor comes with the frame, for an instance with the number of the frame."""
    READINESS = 36
    """Why the instance is not ready, "" when it is."""


_BATCH = struct.Struct("<IB11x")
_ANSWER = struct.Struct("<qqIB11x")
_EXTRAS = (
    "id",
    "parameters",
    "priority",
    "timeout_microseconds",
    "deadline",
    "correlation_id",
    "sequence_start",
    "sequence_end",
    "version",
)
_PLAIN = {each.name: each.default for each in fields(Request) if each.name in _EXTRAS} | {"parameters": {}}
_REPLY, _PARAMETERS, _ERROR, _AGAIN, _NONE = ("reply",), ("parameters",), ("error",), ("again",), ("none",)
_RESPONSE = ("response",)


class RemoteBatch(Batch):
    """A batch as the process of the instance has it; `trace` is the first one of its requests, None without any.

    `outputs` are those that are wanted, None if its requests say.
    """

    __slots__ = ("outputs", "trace")

    def __init__(
        self,
        requests: Sequence[Request],
        sizes: Sequence[int],
        open_sender: Callable[[int], Sender],
        layout: BatchLayout | None,
        outputs: frozenset[str] | None,
    ) -> None:
        super().__init__(requests, sizes, open_sender, layout)
        self.outputs = outputs
        self.trace: RemoteTrace | None = None

    def wants(self, output: str) -> bool:
        """Whether any request asks for that output."""
        return super().wants(output) if self.outputs is None else output in self.outputs


def put_batch(encoder: Encoder, batch: Batch, outputs: Sequence[str]) -> None:
    """Write a batch; `outputs` are those of the model."""
    own = type(batch) is not Batch  # which may want what no request asks for, such as a state
    encoder.numbers(_BATCH, len(batch.requests), own)
    if own:
        encoder.value([output for output in outputs if batch.wants(output)])
    for request, size in zip(batch.requests, batch.sizes, strict=True):
        put_request(encoder, request, size)


def batch_in(
    decoder: Decoder, model: str, open_sender: Callable[[int], Sender], layout: BatchLayout | None, number: int = 0
) -> RemoteBatch:
    """Read the batch of that number for that model."""
    count, own = decoder.numbers(_BATCH)
    outputs = frozenset(decoder.value()) if own else None
    requests: list[Request] = []
    sizes: list[int] = []
    trace: RemoteTrace | None = None
    while len(requests) < count:
        for request, size in _requests_in(decoder, model, count - len(requests)):
            if isinstance(request.trace, RemoteTrace):
                request.trace.number, request.trace.index = number, len(requests)
                trace = trace or request.trace
            requests.append(request)
            sizes.append(size)
    batch = RemoteBatch(requests, sizes, open_sender, layout, outputs)
    batch.trace = trace
    return batch


def put_request(encoder: Encoder, request: Request, size: int = 1) -> None:
    """Write a request of that batch size."""
    has_extras = bool(
        request.id
        or request.parameters
        or request.correlation_id != 0
        or request.deadline is not None
        or request.version
        or request.priority
        or request.timeout_microseconds
        or request.sequence_start
        or request.sequence_end
        or request.trace is not None
    )
    encoder.tensors((size, request.requested, has_extras), request.inputs)
    if has_extras:
        extras = {name: getattr(request, name) for name in _EXTRAS if getattr(request, name) != _PLAIN[name]}
        if request.trace is not None:
            extras["trace"] = trace_value(request.trace, request.trace.context())
        encoder.value(extras)


def request_in(decoder: Decoder, model: str) -> Request:
    """Read a request to that model."""
    ((request, _),) = _requests_in(decoder, model, 1)
    return request


def _requests_in(decoder: Decoder, model: str, most: int) -> Iterator[tuple[Request, int]]:
    """Read 1 to `most` requests of one form, each with its batch size."""
    (size, requested, has_extras), rows = decoder.tensor_rows(most)
    for inputs in rows:
        request = Request(model, inputs, requested=requested)
        if has_extras:
            _read_extras(decoder, request)
        yield request, size


def _read_extras(decoder: Decoder, request: Request) -> None:
    extras = decoder.value()
    trace = extras.pop("trace", None)
    request.trace = None if trace is None else RemoteTrace(*trace)
    for name, value in extras.items():
        if name not in _PLAIN:
            raise LinkBrokenError(f"a request has '{name}'")
        setattr(request, name, value)


def encoded_answer(connection: Connection, answer: Answer, batch: Batch) -> Encoder:
    """An encoder with the answer to a batch. In place of a reply that cannot be sent, its error is written.

    Raises NaiadError for what is not an answer.
    """
    encoder = Encoder(connection)
    try:
        put_answer(encoder, answer, batch)
    except NaiadError:
        encoder = Encoder(connection)
        put_answer(encoder, _sendable(connection, answer), batch)
    return encoder


def _sendable(connection: Connection, answer: Answer) -> Answer:
    """The answer, with the errors of those replies that cannot be sent."""
    if not _is_list(answer):
        return answer
    return [_reply_or_error(connection, each) for each in answer]


def _reply_or_error(connection: Connection, reply: Any) -> Any:
    try:
        put_reply(Encoder(connection), reply)
    except NaiadError as error:
        return error
    return reply


def put_answer(encoder: Encoder, answer: Answer, batch: Batch) -> None:
    """Write the answer to a batch. Raises NaiadError for what is not an answer, or cannot be sent."""
    if not isinstance(answer, list) and isinstance(answer, Mapping):  # the usual kind first: an abstract class costs
        encoder.numbers(_ANSWER, batch.input_done_ns, batch.infer_done_ns, 0, True)
        _put_outputs(encoder, _REPLY, answer)
        return
    if not _is_list(answer):
        raise ModelFailedError(
            f"a batch of {len(batch.requests)} requests was answered with {type(answer).__name__}; it must return one "
            "array per output, or one reply for each request"
        )
    encoder.numbers(_ANSWER, batch.input_done_ns, batch.infer_done_ns, len(answer), False)
    for each in answer:
        put_reply(encoder, each)


def _is_list(answer: Any) -> TypeGuard[Sequence[Any]]:
    """Whether it may have a reply for each request."""
    return isinstance(answer, list) or (isinstance(answer, Sequence) and not isinstance(answer, str | bytes))


def answer_in(decoder: Decoder, batch: Batch) -> Answer:
    """Read the answer to a batch, which gets the times of its execution."""
    batch.input_done_ns, batch.infer_done_ns, count, whole = decoder.numbers(_ANSWER)
    if whole:
        return decoder.output_rows(1)[1][0]
    if batch.size > 1 and count == len(batch.requests) == batch.size and batch.layout is None:
        joined = decoder.joined_outputs(_REPLY, count)
        if joined is not None:
            return joined
    replies: list[Reply | NaiadError | Reschedule | None] = []
    while len(replies) < count:
        label, rows = decoder.output_rows(count - len(replies))
        if label == _REPLY:
            replies += [Reply(outputs) for outputs in rows]
        else:
            replies += [_reply(decoder, label, outputs) for outputs in rows]
    return replies


def put_reply(encoder: Encoder, reply: Any) -> None:
    """Write a reply, an error, a Reschedule or None. Raises NaiadError."""
    if isinstance(reply, Reply):
        if not reply.parameters:
            _put_outputs(encoder, _REPLY, reply.outputs)
            return
        _put_outputs(encoder, _PARAMETERS, reply.outputs)
        try:
            encoder.value(dict(reply.parameters))
        except (TypeError, struct.error) as error:
            raise ModelFailedError(f"a parameter of a response cannot be sent: {error}") from error
    elif reply is None:
        encoder.outputs(_NONE, {})
    elif isinstance(reply, BaseException):
        encoder.outputs(_ERROR, {})
        put_error(encoder, reply)
    elif isinstance(reply, Reschedule):
        _put_outputs(encoder, _AGAIN, reply.outputs)
    else:
        raise ModelFailedError(
            f"a request was answered with {type(reply).__name__}; it must be a naiad.backend.Reply or a NaiadError"
        )


def reply_in(decoder: Decoder) -> Reply | NaiadError | Reschedule | None:
    """Read a reply, an error, a Reschedule or None."""
    label, (outputs,) = decoder.output_rows(1)
    return _reply(decoder, label, outputs)


def _reply(decoder: Decoder, label: Label, outputs: dict[str, np.ndarray]) -> Reply | NaiadError | Reschedule | None:
    """What has that label and these outputs; the rest of it is read."""
    if label == _REPLY:
        return Reply(outputs)
    if label == _PARAMETERS:
        return Reply(outputs, decoder.value())
    if label == _NONE:
        return None
    if label == _ERROR:
        error = error_in(decoder)
        return error if isinstance(error, NaiadError) else ModelFailedError(describe_error(error))
    if label == _AGAIN:
        return Reschedule(outputs)
    raise LinkBrokenError(f"a reply has the label {label}")


def put_response(encoder: Encoder, response: Response) -> None:
    """Write the response to a model call."""
    error = response.error
    flags = [response.final, response.explicit, error is None]
    encoder.value([response.model_name, response.version, response.id, dict(response.parameters), *flags])
    if error is not None:
        put_error(encoder, error)
    encoder.tensors(_RESPONSE, response.outputs)


def response_in(decoder: Decoder) -> Response:
    """Read the response to a model call."""
    model, version, number, parameters, final, explicit, is_fine = decoder.value()
    error = None if is_fine else error_in(decoder)
    _, outputs = decoder.tensors()
    error = error if isinstance(error, NaiadError) else None
    return Response(model, version, number, outputs, parameters, final, error, explicit)


def _put_outputs(encoder: Encoder, label: Label, outputs: Mapping[str, Any]) -> None:
    try:
        encoder.outputs(label, outputs)
    except (LinkClosedError, OSError, MemoryError):
        raise
    except Exception as error:  # an array of objects may be anything
        raise ModelFailedError(f"an answer cannot be sent: {describe_error(error)}") from error
