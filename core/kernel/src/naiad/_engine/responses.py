"""Responses: builds one response or error for each request from what an instance answered, by the configuration."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from naiad.backend import Answer, Batch, Reply, Reschedule
from naiad.codec import BatchCodec
from naiad.errors import ModelFailedError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.server import Outcome
from naiad.types import ParameterValue, Request, Response
from naiad_config import ModelConfig, ModelOutput
from naiad_tensors.datatypes import is_text, tensor_type, wire_name, wire_name_of
from naiad_tensors.devices import HOST, Device, DeviceTensor, is_on_device
from naiad_tensors.ragged import layout_of
from naiad_tensors.tensors import Tensor, bytes_array, host_array

_NO_PARAMETERS: Mapping[str, ParameterValue] = {}


@dataclass(frozen=True, slots=True)
class _Output:
    """One output of the configuration: `dims` as the model produces them, `client_dims` where clients see others.

    `has_rows` says that the model's batch dimension comes in front of them.
    """

    datatype: str
    dtype: np.dtype
    dims: tuple[int, ...]
    client_dims: tuple[int, ...] | None
    has_rows: bool


class ResponseBuilder:
    """Builds the responses of one model version; made once a load. See `naiad.codec.ResponseBuilder`.

    `strict` holds names, datatypes and shapes against the configuration.
    """

    def __init__(self, config: ModelConfig, version: int, strict: bool = True) -> None:
        self.model = config.name
        self.version = version
        self.decoupled = config.model_transaction_policy is not None and config.model_transaction_policy.decoupled
        self.layout = layout_of(config)
        self._strict = strict
        self._outputs = {output.name: _output(output, config.max_batch_size > 0) for output in config.output}

    def read(self, answer: Answer, batch: Batch) -> "Sequence[Outcome | None]":
        """One outcome a request, in order; None for one that is answered through its sender.

        Raises ModelFailedError when the answer as a whole is invalid.
        """
        if self.layout is not None:
            answer = batch.cut(answer)
        if not isinstance(answer, list):  # the usual kinds come first: an abstract class takes longer to check
            if isinstance(answer, (dict, Mapping)):
                return self._read_whole(answer, batch)
            if not isinstance(answer, Sequence):
                raise self._not_an_answer(batch, type(answer).__name__)
        if len(answer) != len(batch.requests):
            raise self._not_an_answer(batch, f"{len(answer)} replies")
        return list(map(self._read_one, answer, batch.requests, batch.sizes))

    def read_rows(
        self, answer: Mapping[str, Any], batch: Batch, occupied: Sequence[bool]
    ) -> "Sequence[Outcome | None]":
        """As `read`, for a batch of one row a request: None for the rows that are not occupied.

        All outputs are brought to the host.
        """
        whole = answer if self.layout is None else batch.cut(answer)
        if not isinstance(whole, Mapping) or len(occupied) == 1:
            return self.read(answer, batch)
        return self._cut(self._tensors(whole, batch.size), batch, occupied)

    def _read_whole(self, answer: Mapping[str, Any], batch: Batch) -> Sequence[Outcome | None]:
        requests = batch.requests
        tensors = self._tensors(answer, batch.size, requests)
        if len(requests) == 1:
            return [self._response_or_error(requests[0], tensors)]
        outcomes = self._cut(tensors, batch)
        resident = [name for name, tensor in tensors.items() if type(tensor.payload) is not np.ndarray]
        if resident:
            _bring_to_host(resident, requests, outcomes)
        return outcomes

    def _cut(
        self, tensors: Mapping[str, Tensor], batch: Batch, occupied: Sequence[bool] | None = None
    ) -> list[Outcome | None]:
        """A response with its rows for each request, None for those whose row is not occupied."""
        if not self._strict:
            self._check_rows(tensors, batch.size)
        wholes: list[tuple[str, str, tuple[int, ...], Any]] = [
            (name, tensor.datatype, tensor.shape[1:], tensor.payload) for name, tensor in tensors.items()
        ]
        outcomes: list[Outcome | None] = []
        start = 0
        for index, (request, size) in enumerate(zip(batch.requests, batch.sizes, strict=True)):
            stop = start + size
            if occupied is None or occupied[index]:  # half of the rows where many sequences take turns: 3 µs each
                part = {name: Tensor(name, kind, (size, *dims), rows[start:stop]) for name, kind, dims, rows in wholes}
                outcomes.append(self._response_or_error(request, part))
            else:
                outcomes.append(None)
            start = stop
        return outcomes

    def response(self, reply: Reply | Reschedule, request: Request, size: int) -> Response:
        """The response in that reply to a request of batch size `size`. Raises ModelFailedError."""
        if isinstance(reply, Reschedule):
            raise ModelFailedError(
                "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured "
                f"to handle such a flag: set sequence_batching {{ iterative_sequence: true }} for model '{self.model}'"
            )
        if not isinstance(reply, Reply):
            raise ModelFailedError(
                f"model '{self.model}' answered a request with {type(reply).__name__}; "
                "it must be a naiad.backend.Reply or a NaiadError"
            )
        if reply.parameters:
            _check_parameters(reply.parameters, self.model)
        return self._response(request, self._tensors(reply.outputs, size, (request,)), reply.parameters)

    def _read_one(self, reply: Reply | NaiadError | Reschedule | None, request: Request, size: int) -> Outcome | None:
        if reply is None or isinstance(reply, NaiadError):
            return reply
        try:
            return self.response(reply, request, size)
        except NaiadError as error:
            return error

    def _not_an_answer(self, batch: Batch, answer: str) -> ModelFailedError:
        return ModelFailedError(
            f"model '{self.model}' answered a batch of {len(batch.requests)} requests with {answer}; "
            "it must return one array an output, or one reply for each request"
        )

    def _response_or_error(self, request: Request, tensors: dict[str, Tensor]) -> Outcome:
        try:
            return self._response(request, tensors, _NO_PARAMETERS)
        except ModelFailedError as error:
            return error

    def _response(
        self, request: Request, tensors: dict[str, Tensor], parameters: Mapping[str, ParameterValue]
    ) -> Response:
        if request.requested and tensors.keys() != set(request.requested):
            missing = [name for name in request.requested if name not in tensors]
            if missing and self._strict and not self.decoupled:
                raise ModelFailedError(
                    f"model '{self.model}' did not produce the requested output '{missing[0]}'; "
                    f"it produced {list(tensors)}"
                )
            tensors = {name: tensor for name, tensor in tensors.items() if name in request.requested}
        return Response(self.model, self.version, request.id, tensors, parameters)

    def _check_rows(self, tensors: Mapping[str, Tensor], batch_size: int) -> None:
        for name, tensor in tensors.items():
            if tensor.shape[:1] != (batch_size,):
                rows = tensor.shape[0] if tensor.shape else "no"
                raise ModelFailedError(
                    f"model '{self.model}', output '{name}' has {rows} rows for a batch of {batch_size}"
                )

    def _tensors(
        self, outputs: Mapping[str, Any], batch_size: int, requests: Sequence[Request] = ()
    ) -> dict[str, Tensor]:
        """The outputs as tensors. One on a device is brought to the host unless one of the requests takes it there."""
        tensors = {}
        for name, value in outputs.items():
            declared = self._outputs.get(name)
            if declared is not None:
                tensors[name] = self._tensor(name, value, declared, batch_size, requests)
            elif self._strict:
                raise ModelFailedError(
                    f"model '{self.model}' produced output '{name}', which its configuration does not declare; "
                    f"declared are {list(self._outputs)}"
                )
        return tensors

    def _tensor(self, name: str, value: Any, declared: _Output, batch_size: int, requests: Sequence[Request]) -> Tensor:
        if type(value) is np.ndarray:
            array = value
        else:
            opened = self._opened(name, value)
            if isinstance(opened, DeviceTensor):
                return self._resident(name, opened, declared, batch_size, requests)
            array = opened
        datatype = declared.datatype
        if array.dtype != declared.dtype or datatype == "BYTES":
            array, datatype = self._converted(name, array, declared)
        shape = array.shape
        if self._strict:
            self._check_shape(name, shape, declared, batch_size)
        if declared.client_dims is not None:
            shape = self._client_shape(shape, declared)
            array = array.reshape(shape)
        return Tensor(name, datatype, shape, array)

    def _opened(self, name: str, value: Any) -> np.ndarray | DeviceTensor:
        """A value that is no array of numpy as one, or where it is."""
        try:
            return DeviceTensor.of(value) if is_on_device(value) else host_array(value)
        except Exception as error:
            raise self._unreadable(name, error) from error

    def _resident(
        self, name: str, tensor: DeviceTensor, declared: _Output, batch_size: int, requests: Sequence[Request]
    ) -> Tensor:
        """An output on a device, checked as it lies there; brought to the host unless a request takes it there."""
        if self._strict:
            if tensor.datatype != declared.datatype:
                raise self._wrong_datatype(name, tensor.datatype, declared)
            self._check_shape(name, tensor.shape, declared, batch_size)
        shape = tensor.shape if declared.client_dims is None else self._client_shape(tensor.shape, declared)
        try:
            return Tensor(name, tensor.datatype, shape, _settle(name, tensor, requests).reshape(shape))
        except Exception as error:
            raise self._unreadable(name, error) from error

    def _unreadable(self, name: str, error: Exception) -> ModelFailedError:
        return ModelFailedError(
            f"model '{self.model}', output '{name}' cannot be read as an array: {describe_error(error)}"
        )

    def _wrong_datatype(self, name: str, datatype: str, declared: _Output) -> ModelFailedError:
        return ModelFailedError(
            f"model '{self.model}' produced {datatype} for output '{name}', which its configuration declares as "
            f"{declared.datatype}"
        )

    def _converted(self, name: str, array: np.ndarray, declared: _Output) -> tuple[np.ndarray, str]:
        try:
            datatype = wire_name_of(array.dtype)
        except NaiadError as error:
            raise ModelFailedError(f"model '{self.model}', output '{name}': {error}") from error
        if datatype != declared.datatype and self._strict:
            raise self._wrong_datatype(name, datatype, declared)
        if datatype == "BYTES":
            return bytes_array(array), datatype
        if datatype == "BF16":
            return array.view(np.uint16), datatype
        return array.astype(tensor_type(datatype).dtype, copy=False), datatype

    def _check_shape(self, name: str, shape: tuple[int, ...], declared: _Output, batch_size: int) -> None:
        dims = (batch_size, *declared.dims) if declared.has_rows else declared.dims
        if shape == dims:
            return
        if len(shape) != len(dims) or any(dim not in (-1, size) for size, dim in zip(shape, dims, strict=True)):
            raise ModelFailedError(
                f"model '{self.model}' produced shape {list(shape)} for output '{name}'; "
                f"its configuration and a batch of {batch_size} ask for {list(dims)}"
            )

    def _client_shape(self, shape: tuple[int, ...], declared: _Output) -> tuple[int, ...]:
        first = 1 if declared.has_rows else 0
        variable = iter([size for size, dim in zip(shape[first:], declared.dims, strict=False) if dim == -1])
        return shape[:first] + tuple(next(variable, -1) if dim == -1 else dim for dim in declared.client_dims or ())


class CodecResponseBuilder:
    """Builds the responses of a model version with a batch codec; see `ResponseBuilder`."""

    def __init__(self, responses: ResponseBuilder, codec: BatchCodec) -> None:
        self.model, self.version, self.layout = responses.model, responses.version, responses.layout
        self._responses = responses
        self._codec = codec

    def read(self, answer: Answer, batch: Batch) -> "Sequence[Outcome | None]":
        """One outcome a request, in order; the codec alone looks at a Reschedule among them when the batch is back.

        Raises ModelFailedError when the answer as a whole is invalid.
        """
        return cast("Sequence[Outcome | None]", self._codec.read(answer, batch, self._responses))


def _output(output: ModelOutput, batching: bool) -> _Output:
    datatype = wire_name(output.data_type)
    dims = tuple(output.dims)
    dtype = tensor_type(datatype).dtype
    has_rows = batching and not output.is_shape_tensor
    if output.reshape is None:
        return _Output(datatype, dtype, dims, None, has_rows)
    return _Output(datatype, dtype, tuple(output.reshape.shape), dims, has_rows)


def _settle(output: str, tensor: DeviceTensor, requests: Sequence[Request]) -> DeviceTensor | np.ndarray:
    """The tensor where it is, if any of the requests takes it there and it has no gaps; else in host memory.

    If one of them wants it in host memory, it is brought there now, for all of the batch at once, on the thread of the
    instance: nothing else waits for that.
    """
    wishes = [_wish(request, output) for request in requests]
    if not (tensor.is_contiguous and any(tensor.device in wish for wish in wishes)):
        return tensor.array
    if any(HOST in wish or tensor.device not in wish for wish in wishes):
        _ = tensor.array
    return tensor


def _bring_to_host(
    outputs: Sequence[str], requests: Sequence[Request], outcomes: Sequence[Response | NaiadError | None]
) -> None:
    """Give the requests that do not take these outputs where they are what came to the host with the batch."""
    for request, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, Response):
            for tensor in [outcome.outputs[name] for name in outputs if name in outcome.outputs]:
                payload = tensor.payload
                if isinstance(payload, DeviceTensor) and payload.device not in _wish(request, tensor.name):
                    tensor.payload = payload.array


def _wish(request: Request, output: str) -> Collection[Device]:
    """The devices where a request takes that output."""
    return () if request.on_device is None else request.on_device.get(output, ())


def _check_parameters(parameters: Mapping[str, Any], model: str) -> None:
    """Raises ModelFailedError for a parameter of a response that some protocol cannot carry."""
    for name, value in parameters.items():
        if not (type(name) is str and is_text(name)):
            raise ModelFailedError(f"model '{model}' gave a parameter of its response the name {name!r:.80}; use text")
        if not _can_be_sent(value.item() if isinstance(value, np.generic) else value):
            raise ModelFailedError(
                f"model '{model}' gave its response the parameter '{name:.80}' = {value!r:.80}; "
                "use a bool, an integer of 64 bits, a float, or text that UTF-8 can carry"
            )


def _can_be_sent(value: Any) -> bool:
    if isinstance(value, str):
        return is_text(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, float)
