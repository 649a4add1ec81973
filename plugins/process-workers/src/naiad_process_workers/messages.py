"""The messages between a server and the process of an instance: their kinds, and the bodies of batches and answers."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from enum import IntEnum
from typing import Any

from naiad import errors
from naiad.backend import Answer, Batch, Reply, Reschedule
from naiad.batch import Sender
from naiad.errors import ConfigError, InternalError, ModelFailedError, NaiadError, Problem, UnavailableError
from naiad.foreign_errors import describe_error
from naiad.types import Request, Response
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.frames import LinkBrokenError
from naiad_tensors.ragged import BatchLayout

ENDED_BY_MODEL, LINK_LOST = 70, 71
"""Exit codes of a process whose model raised what ends it, other than SystemExit, and of one without a link."""

MANY_STRINGS = 64 << 10
"""So many bytes of strings take a millisecond to read, which is too long for the event loop."""


class Kind(IntEnum):
    """What a frame is; the first three are those of the connection."""

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
    READINESS = 36
    """Why the instance is not ready, "" when it is."""


class RemoteError(Exception):
    """An exception of a model in another process, which is not an error of Naiad's."""


class _RemoteTraceback(Exception):  # noqa: N818 - it stands in front of the error in a log
    """The traceback in the other process, as the cause of the error here."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


_HEAD = struct.Struct("<HB")
_PART = struct.Struct("<IHB")
_COUNT = struct.Struct("<H")
_TIMES = struct.Struct("<qqB")
_BYTE = struct.Struct("<B")
_EXTRAS = (
    "id",
    "requested",
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


class RemoteBatch(Batch):
    """A batch as the process of the instance has it; `outputs` are those that are wanted, None for all."""

    __slots__ = ("outputs",)

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

    def wants(self, output: str) -> bool:
        """Whether any request asks for that output."""
        return self.outputs is None or output in self.outputs


def put_batch(encoder: Encoder, batch: Batch, outputs: Sequence[str]) -> None:
    """Write a batch; `outputs` are those of the model."""
    some = any(request.requested for request in batch.requests)
    encoder.raw(_HEAD.pack(len(batch.requests), some))
    if some:
        encoder.value([output for output in outputs if batch.wants(output)])
    for request, size in zip(batch.requests, batch.sizes, strict=True):
        put_request(encoder, request, size)


def batch_in(
    decoder: Decoder, model: str, open_sender: Callable[[int], Sender], layout: BatchLayout | None
) -> RemoteBatch:
    """Read a batch for that model."""
    count, some = decoder.unpack(_HEAD)
    outputs = frozenset(decoder.value()) if some else None
    requests, sizes = [], []
    for _ in range(count):
        request, size = request_in(decoder, model)
        requests.append(request)
        sizes.append(size)
    return RemoteBatch(requests, sizes, open_sender, layout, outputs)


def put_request(encoder: Encoder, request: Request, size: int = 1) -> None:
    """Write a request of that batch size."""
    extras = {name: getattr(request, name) for name in _EXTRAS if getattr(request, name) != _PLAIN[name]}
    encoder.raw(_PART.pack(size, len(request.inputs), bool(extras)))
    if extras:
        encoder.value(extras)
    for name, tensor in request.inputs.items():
        encoder.tensor(name, tensor.datatype, tensor.array)


def request_in(decoder: Decoder, model: str) -> tuple[Request, int]:
    """Read a request to that model, and its batch size."""
    size, count, has_extras = decoder.unpack(_PART)
    extras: dict[str, Any] = decoder.value() if has_extras else {}
    inputs = {}
    for _ in range(count):
        tensor = decoder.tensor()
        inputs[tensor.name] = tensor
    request = Request(model, inputs)
    for name, value in extras.items():
        if name not in _PLAIN:
            raise LinkBrokenError(f"a request has '{name}'")
        setattr(request, name, tuple(value) if name == "requested" else value)
    return request, size


def put_answer(encoder: Encoder, answer: Answer, batch: Batch) -> None:
    """Write the answer to a batch. Raises NaiadError for what is no answer, or cannot be sent."""
    whole = isinstance(answer, Mapping)
    encoder.raw(_TIMES.pack(batch.input_done_ns, batch.infer_done_ns, whole))
    if isinstance(answer, Mapping):
        _put_outputs(encoder, answer)
        return
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        raise ModelFailedError(
            f"a batch of {len(batch.requests)} requests was answered with {type(answer).__name__}; it must return one "
            "array an output, or one reply for each request"
        )
    encoder.raw(_COUNT.pack(len(answer)))
    for each in answer:
        put_reply(encoder, each)


def answer_in(decoder: Decoder, batch: Batch) -> Answer:
    """Read the answer to a batch, which gets the times of its execution."""
    batch.input_done_ns, batch.infer_done_ns, whole = decoder.unpack(_TIMES)
    if whole:
        return _outputs_in(decoder)
    (count,) = decoder.unpack(_COUNT)
    return [reply_in(decoder) for _ in range(count)]


def put_reply(encoder: Encoder, reply: Any) -> None:
    """Write a reply, an error, a Reschedule or None. Raises NaiadError."""
    if reply is None:
        encoder.raw(b"n")
    elif isinstance(reply, Reply):
        encoder.raw(b"r")
        try:
            encoder.value(dict(reply.parameters) if reply.parameters else None)
        except (TypeError, struct.error) as error:
            raise ModelFailedError(f"a parameter of a response cannot be sent: {error}") from error
        _put_outputs(encoder, reply.outputs)
    elif isinstance(reply, BaseException):
        encoder.raw(b"e")
        put_error(encoder, reply)
    elif isinstance(reply, Reschedule):
        encoder.raw(b"a")
        _put_outputs(encoder, reply.outputs)
    else:
        raise ModelFailedError(
            f"a request was answered with {type(reply).__name__}; it must be a naiad.backend.Reply or a NaiadError"
        )


def reply_in(decoder: Decoder) -> Reply | NaiadError | Reschedule | None:
    """Read a reply, an error, a Reschedule or None."""
    tag = decoder.raw(1)
    if tag == b"n":
        return None
    if tag == b"r":
        parameters = decoder.value() or {}
        return Reply(_outputs_in(decoder), parameters)
    if tag == b"e":
        error = error_in(decoder)
        return error if isinstance(error, NaiadError) else ModelFailedError(describe_error(error))
    if tag == b"a":
        return Reschedule(_outputs_in(decoder))
    raise LinkBrokenError(f"a reply begins with {tag!r}")


def put_response(encoder: Encoder, response: Response) -> None:
    """Write the response to a model call."""
    error = response.error
    encoder.value([response.model_name, response.version, response.id, dict(response.parameters), response.final])
    encoder.raw(_BYTE.pack(error is not None))
    if error is not None:
        put_error(encoder, error)
    encoder.raw(_COUNT.pack(len(response.outputs)))
    for name, tensor in response.outputs.items():
        encoder.tensor(name, tensor.datatype, tensor.array)


def response_in(decoder: Decoder) -> Response:
    """Read the response to a model call."""
    model, version, number, parameters, final = decoder.value()
    (failed,) = decoder.unpack(_BYTE)
    error = error_in(decoder) if failed else None
    outputs = {}
    for _ in range(decoder.unpack(_COUNT)[0]):
        tensor = decoder.tensor()
        outputs[tensor.name] = tensor
    return Response(
        model, version, number, outputs, parameters, final, error if isinstance(error, NaiadError) else None
    )


def put_error(encoder: Encoder, error: BaseException, traceback: str = "") -> None:
    """Write an error; one of Naiad's keeps its class and what it says, of another the name of the class is kept."""
    known = isinstance(error, NaiadError)
    text = str(error) if known else describe_error(error)
    detail = getattr(error, "retry_after", None)
    if isinstance(error, ConfigError):
        detail = [astuple(problem) for problem in error.problems]
    encoder.value([_class_of(error) if known else "", text, type(error).__name__, traceback, detail])


def error_in(decoder: Decoder) -> Exception:
    """Read an error."""
    known, text, name, traceback, detail = decoder.value()
    error: Exception
    if known:
        kind = getattr(errors, str(known), InternalError)
        error = _error(kind if isinstance(kind, type) and issubclass(kind, NaiadError) else InternalError, text, detail)
    else:
        prefix = f"{name}: "
        kind = type(str(name), (RemoteError,), {"__module__": "builtins"})
        error = kind(text.removeprefix(prefix)) if text != name else kind()
    if traceback:
        error.__cause__ = _RemoteTraceback(traceback)
    return error


def _class_of(error: BaseException) -> str:
    """The nearest class of `naiad.errors`: those of plugins may be unknown in the other process."""
    for each in type(error).__mro__:
        if getattr(errors, each.__name__, None) is each:
            return str(each.__name__)
    return "InternalError"


def _error(kind: type[NaiadError], text: str, detail: Any) -> NaiadError:
    if issubclass(kind, ConfigError):
        return kind([Problem(*problem) for problem in detail])
    if issubclass(kind, UnavailableError):
        return kind(text, detail)
    return kind(text)


def _put_outputs(encoder: Encoder, outputs: Mapping[str, Any]) -> None:
    encoder.raw(_COUNT.pack(len(outputs)))
    for name, value in outputs.items():
        try:
            encoder.output(str(name), value)
        except NaiadError as error:
            raise ModelFailedError(f"output '{name}' cannot be sent: {error}") from error


def _outputs_in(decoder: Decoder) -> dict[str, Any]:
    outputs = {}
    for _ in range(decoder.unpack(_COUNT)[0]):
        tensor = decoder.tensor()
        outputs[tensor.name] = tensor.payload
    return outputs
