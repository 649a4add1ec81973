"""The outputs of a model: checks what it has produced against its configuration, and makes tensors of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from naiad_config.errors import ModelFailedError, NaiadError, describe_error
from naiad_config.model import ModelConfig
from naiad_config.tensors import ModelOutput
from naiad_tensors.datatypes import tensor_type, wire_name, wire_name_of
from naiad_tensors.devices import HOST, Device, DeviceTensor, OnDevice, is_on_device
from naiad_tensors.laid_out import ArrayLayout, LaidOutArrays
from naiad_tensors.tensors import Tensor, bytes_array, host_array

_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs
_MOST_LAYOUTS = 1024


class Taker(Protocol):
    """A request, as far as the memory of its outputs is concerned."""

    @property
    def on_device(self) -> OnDevice | None:
        """The devices where it takes outputs, by name; None takes all in host memory."""


@dataclass(frozen=True, slots=True)
class _Output:
    """One output of the configuration: `dims` as the model produces them, `client_dims` where clients see others.

    `has_rows` says that the model's batch dimension comes in front of them. `plain_dtype` is the dtype of an output
    with rows that is sent as it comes, None for others.
    """

    datatype: str
    dtype: np.dtype
    dims: tuple[int, ...]
    client_dims: tuple[int, ...] | None
    has_rows: bool
    plain_dtype: np.dtype | None


class DeclaredOutputs:
    """The outputs that a configuration declares; `strict` holds names, datatypes and shapes against it."""

    def __init__(self, config: ModelConfig, strict: bool = True) -> None:
        self._model = config.name
        self._strict = strict
        self._outputs = {output.name: _output(output, config.max_batch_size > 0) for output in config.output}
        self._layouts: dict[tuple[object, ...], ArrayLayout | None] = {}  # by batch size and names in order

    def read(self, outputs: Mapping[str, Any], batch_size: int, requests: Sequence[Taker] = ()) -> Mapping[str, Tensor]:
        """The outputs as tensors. One on a device is brought to the host unless one of the requests takes it there.

        Raises ModelFailedError.
        """
        layout = self._layout(batch_size, outputs)
        if layout is not None:
            arrays = tuple(outputs.values())
            for array, dtype, shape in zip(arrays, layout.dtypes, layout.shapes, strict=True):
                if type(array) is not _ndarray or array.dtype is not dtype or array.shape != shape:
                    break
            else:
                return LaidOutArrays(layout, arrays)
        tensors = {}
        for name, value in outputs.items():
            declared = self._outputs.get(name)
            if declared is not None:
                tensors[name] = self._tensor(name, value, declared, batch_size, requests)
            elif self._strict:
                raise ModelFailedError(
                    f"model '{self._model}' produced output '{name}', which its configuration does not declare; "
                    f"declared are {list(self._outputs)}"
                )
        return tensors

    def _layout(self, batch_size: int, names: Iterable[str]) -> ArrayLayout | None:
        """The layout of these outputs, None unless all have rows of plain numbers of a fixed shape."""
        key = (batch_size, *names)
        try:
            return self._layouts[key]
        except KeyError:
            pass
        outputs = [(name, self._outputs.get(name)) for name in names]
        fields = [
            (name, each.datatype, each.plain_dtype, (batch_size, *each.dims))
            for name, each in outputs
            if each is not None and each.plain_dtype is not None and -1 not in each.dims
        ]
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        layout = self._layouts[key] = ArrayLayout(fields) if len(fields) == len(outputs) > 0 else None
        return layout

    def _tensor(self, name: str, value: Any, declared: _Output, batch_size: int, requests: Sequence[Taker]) -> Tensor:
        if type(value) is _ndarray:
            array = value
        else:
            opened = self._opened(name, value)
            if isinstance(opened, DeviceTensor):
                return self._resident(name, opened, declared, batch_size, requests)
            array = opened
        datatype = declared.datatype
        if (array.dtype is not declared.dtype and array.dtype != declared.dtype) or datatype == "BYTES":
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
        self, name: str, tensor: DeviceTensor, declared: _Output, batch_size: int, requests: Sequence[Taker]
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
            f"model '{self._model}', output '{name}' cannot be read as an array: {describe_error(error)}"
        )

    def _wrong_datatype(self, name: str, datatype: str, declared: _Output) -> ModelFailedError:
        return ModelFailedError(
            f"model '{self._model}' produced {datatype} for output '{name}', which its configuration declares as "
            f"{declared.datatype}"
        )

    def _converted(self, name: str, array: np.ndarray, declared: _Output) -> tuple[np.ndarray, str]:
        try:
            datatype = wire_name_of(array.dtype)
        except NaiadError as error:
            raise ModelFailedError(f"model '{self._model}', output '{name}': {error}") from error
        if datatype != declared.datatype and self._strict:
            raise self._wrong_datatype(name, datatype, declared)
        if datatype == "BYTES":
            try:
                return bytes_array(array), datatype
            except Exception as error:  # a string that UTF-8 cannot carry, an object whose __str__ raises
                raise self._unreadable(name, error) from error
        if datatype == "BF16":
            return array.view(np.uint16), datatype
        return array.astype(tensor_type(datatype).dtype, copy=False), datatype

    def _check_shape(self, name: str, shape: tuple[int, ...], declared: _Output, batch_size: int) -> None:
        dims = (batch_size, *declared.dims) if declared.has_rows else declared.dims
        if shape == dims:
            return
        if len(shape) != len(dims) or any(dim not in (-1, size) for size, dim in zip(shape, dims, strict=True)):
            raise ModelFailedError(
                f"model '{self._model}' produced shape {list(shape)} for output '{name}'; "
                f"its configuration and a batch of {batch_size} ask for {list(dims)}"
            )

    def _client_shape(self, shape: tuple[int, ...], declared: _Output) -> tuple[int, ...]:
        first = 1 if declared.has_rows else 0
        variable = iter([size for size, dim in zip(shape[first:], declared.dims, strict=False) if dim == -1])
        return shape[:first] + tuple(next(variable, -1) if dim == -1 else dim for dim in declared.client_dims or ())

    def cut(
        self, tensors: Mapping[str, Tensor], sizes: Sequence[int], occupied: Sequence[bool] | None = None
    ) -> Sequence[Mapping[str, Tensor] | None]:
        """The rows of each request, of which `sizes` says how many it has; None for those that are not `occupied`.

        Raises ModelFailedError for an output that does not have so many rows, which `read` has not checked.
        """
        has_single_rows = max(sizes) == 1
        if has_single_rows and type(tensors) is LaidOutArrays:
            layout = self._layout(1, tensors.layout.names)
            if layout is not None:
                parted = zip(*(array[:, None] for array in tensors.arrays), strict=True)  # two thirds of slices' time
                if occupied is None:
                    return [LaidOutArrays(layout, arrays) for arrays in parted]
                pairs = zip(parted, occupied, strict=True)
                return [LaidOutArrays(layout, arrays) if is_occupied else None for arrays, is_occupied in pairs]
        if not self._strict:
            self._check_rows(tensors, sum(sizes))
        parts: list[dict[str, Tensor] | None] = [{} for _ in sizes]
        if occupied is not None:  # half of the rows where many sequences take turns: 3 µs each
            parts = [part if is_occupied else None for part, is_occupied in zip(parts, occupied, strict=True)]
        for name, tensor in tensors.items():
            datatype, dims, rows = tensor.datatype, tensor.shape[1:], tensor.payload
            if has_single_rows and type(rows) is _ndarray:
                for part, row in zip(parts, rows[:, None], strict=True):
                    if part is not None:
                        part[name] = Tensor(name, datatype, (1, *dims), row)
                continue
            start = 0
            for part, size in zip(parts, sizes, strict=True):
                if part is not None:
                    part[name] = Tensor(name, datatype, (size, *dims), rows[start : start + size])  # type: ignore[index]
                start += size
        return parts

    def _check_rows(self, tensors: Mapping[str, Tensor], batch_size: int) -> None:
        for name, tensor in tensors.items():
            if tensor.shape[:1] != (batch_size,):
                rows = tensor.shape[0] if tensor.shape else "no"
                raise ModelFailedError(
                    f"model '{self._model}', output '{name}' has {rows} rows for a batch of {batch_size}"
                )


def are_arrays(tensors: Mapping[str, Tensor]) -> bool:
    """Whether all are in host memory."""
    return type(tensors) is LaidOutArrays or all(type(each.payload) is _ndarray for each in tensors.values())


def bring_to_host(tensors: Mapping[str, Tensor], request: Taker) -> None:
    """Give a request that does not take these outputs where they are what came to the host with its batch."""
    for name, tensor in tensors.items():
        payload = tensor.payload
        if isinstance(payload, DeviceTensor) and payload.device not in _wish(request, name):
            tensor.payload = payload.array


def _output(output: ModelOutput, batching: bool) -> _Output:
    datatype = wire_name(output.data_type)
    dims = tuple(output.dims)
    dtype = tensor_type(datatype).dtype
    has_rows = batching and not output.is_shape_tensor
    if output.reshape is None:
        plain_dtype = dtype if has_rows and datatype != "BYTES" else None
        return _Output(datatype, dtype, dims, None, has_rows, plain_dtype)
    return _Output(datatype, dtype, tuple(output.reshape.shape), dims, has_rows, None)


def _settle(output: str, tensor: DeviceTensor, requests: Sequence[Taker]) -> DeviceTensor | np.ndarray:
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


def _wish(request: Taker, output: str) -> Collection[Device]:
    """The devices where a request takes that output."""
    return () if request.on_device is None else request.on_device.get(output, ())
