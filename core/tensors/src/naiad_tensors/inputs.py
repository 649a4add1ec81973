"""The inputs of a model: checks the tensors of a request against its configuration, and reshapes them for the model."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from naiad_config.errors import InvalidArgumentError
from naiad_config.model import ModelConfig
from naiad_config.tensors import ModelInput, ModelTensorReshape
from naiad_tensors.datatypes import tensor_type, wire_name
from naiad_tensors.devices import DeviceTensor, is_on_device
from naiad_tensors.laid_out import LaidOutInputs
from naiad_tensors.tensors import DeferredPayload, Tensor

_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs
_USUAL_SIZES = 64
"""Batch sizes of requests whose shapes take one look-up to check."""
_BATCH_NOTE = (
    " (max_batch_size is greater than 0, so every input has a batch dimension in front of the configured dims;"
    " set max_batch_size to 0 for a model whose dims are complete)"
)


@dataclass(frozen=True, slots=True)
class _Input:
    """One input of the configuration: `dims` without the batch dimension, `keyed` when they decide on batching.

    Without `has_rows` an input of a model that batches has no batch dimension, and its values decide on batching: a
    shape tensor counts for the whole batch. `sizes` are the batch sizes of usual shapes.
    """

    datatype: str
    dtype: np.dtype
    dims: tuple[int, ...]
    keyed: bool
    has_rows: bool
    optional: bool
    reshape: ModelTensorReshape | None
    sizes: Mapping[tuple[int, ...], int]


class DeclaredInputs:
    """The inputs that a configuration declares; some may have `reshapes`."""

    def __init__(self, config: ModelConfig) -> None:
        self._model = config.name
        self._max_batch_size = config.max_batch_size
        batching = config.max_batch_size > 0
        self._inputs = {each.name: _input(each, config.max_batch_size) for each in config.input}
        inputs = self._inputs.items()
        self._required = frozenset(name for name, declared in inputs if not declared.optional)
        self._has_optional = len(self._required) < len(self._inputs)
        self._keyed = tuple(name for name, declared in inputs if declared.keyed)
        self._constants = tuple(name for name, declared in inputs if batching and not declared.has_rows)
        self._has_key = bool(self._has_optional or self._keyed or self._constants)
        self.reshapes = any(declared.reshape is not None for declared in self._inputs.values())

    def check(self, inputs: Mapping[str, Tensor]) -> tuple[int, Hashable]:
        """The batch size of a request (1 without batching) and its shape key: equal keys may share a batch.

        Raises InvalidArgumentError with what is wrong and what was expected.
        """
        if type(inputs) is not LaidOutInputs or self._constants:
            return self._checked(inputs)
        by, checked = inputs.layout.checked
        if by is not self:
            checked = self._checked(inputs)
            inputs.layout.checked = self, checked
        return checked

    def _checked(self, inputs: Mapping[str, Tensor]) -> tuple[int, Hashable]:
        if len(inputs) < len(self._inputs) or not self._required.issuperset(inputs):
            self._check_names(inputs)
        batch_size = 0
        for name, tensor in inputs.items():
            declared, shape, payload = self._inputs[name], tensor.shape, tensor.payload
            if (
                type(payload) is _ndarray
                and payload.dtype is declared.dtype
                and payload.shape == shape
                and tensor.datatype == declared.datatype
                and (size := declared.sizes.get(shape)) is not None
                and (size == batch_size or not batch_size)
            ):  # the usual case
                batch_size = size
                continue
            batch_size = self._check_tensor(name, tensor, declared, batch_size)
        if batch_size > self._max_batch_size:
            raise InvalidArgumentError(
                f"inference request batch-size must be <= {self._max_batch_size} for '{self._model}', got {batch_size}"
            )
        return batch_size or 1, self._shape_key(inputs) if self._has_key else None

    def measure(self, inputs: Mapping[str, Tensor]) -> tuple[int, Hashable]:
        """The result of `check` for inputs that have passed it."""
        rows = (tensor.shape[0] for name, tensor in inputs.items() if self._inputs[name].has_rows)
        return next(rows, 1), self._shape_key(inputs) if self._has_key else None

    def reshaped(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The inputs in the shapes that the model takes: views, no copies."""
        return {name: _reshaped(tensor, self._inputs[name]) for name, tensor in inputs.items()}

    def _check_tensor(self, name: str, tensor: Tensor, declared: _Input, batch_size: int) -> int:
        """The batch size of the request, 0 while no tensor has said it; `batch_size` is that of the tensors before."""
        shape, payload = tensor.shape, tensor.payload
        if tensor.datatype != declared.datatype:
            raise InvalidArgumentError(
                f"inference input '{name}' data-type is '{tensor.datatype}', but model '{self._model}' "
                f"expects '{declared.datatype}'"
            )
        if not isinstance(payload, _ndarray):
            self._check_payload(tensor)
        elif payload.shape != shape or (payload.dtype is not declared.dtype and payload.dtype != declared.dtype):
            raise _contradiction(tensor, f"{payload.dtype} {_dims(payload.shape)}")
        if not declared.has_rows:
            if shape != declared.dims and not _matches(shape, declared.dims):
                raise self._unexpected_shape(name, shape, declared.dims)
            return batch_size
        if not shape or (shape[1:] != declared.dims and not _matches(shape[1:], declared.dims)):
            raise self._unexpected_rows(name, shape, declared.dims)
        if batch_size == 0:
            batch_size = shape[0]
        if shape[0] != batch_size or batch_size == 0:
            raise self._unequal_batch(name, shape[0], batch_size)
        return batch_size

    def _check_payload(self, tensor: Tensor) -> None:
        """Check a payload that is not in host memory; one on a device is a DeviceTensor from here on."""
        if min(tensor.shape, default=0) < 0:
            raise InvalidArgumentError(
                f"All input dimensions should be specified for input '{tensor.name}' for model '{self._model}', "
                f"got {_dims(tensor.shape)}"
            )
        if is_on_device(tensor.payload):
            resident = tensor.payload = DeviceTensor.of(tensor.payload)
            if (resident.datatype, resident.shape) != (tensor.datatype, tensor.shape):
                content = f"{resident.datatype} {_dims(resident.shape)} on device {resident.device}"
                raise _contradiction(tensor, content)

    def _shape_key(self, inputs: Mapping[str, Tensor]) -> Hashable:
        first = 1 if self._max_batch_size > 0 else 0
        shapes: tuple[Hashable, ...] = tuple(
            inputs[name].shape[first:] if name in inputs else None for name in self._keyed
        )
        if self._constants:
            values = [inputs[name].array.tobytes() if name in inputs else None for name in self._constants]
            shapes = (*shapes, *values)
        return (shapes, frozenset(inputs)) if self._has_optional else shapes

    def _check_names(self, inputs: Mapping[str, Tensor]) -> None:
        for name in inputs:
            if name not in self._inputs:
                known = f"its inputs are {_quoted(self._inputs)}" if self._inputs else "its configuration has no input"
                raise InvalidArgumentError(f"unexpected inference input '{name}' for model '{self._model}'; {known}")
        missing = [name for name in self._inputs if name in self._required and name not in inputs]
        if missing:
            least, most = len(self._required), len(self._inputs)
            expected = f"{most} inputs" if least == most else f"number of inputs between {least} and {most}"
            raise InvalidArgumentError(
                f"expected {expected} but got {len(inputs)} inputs for model '{self._model}'. Got input(s) "
                f"[{_quoted(inputs)}], but missing required input(s) [{_quoted(missing)}]."
                " Please provide all required input(s)."
            )

    def _unexpected_shape(self, name: str, got: tuple[int, ...], dims: tuple[int, ...]) -> InvalidArgumentError:
        note = _BATCH_NOTE if self._max_batch_size > 0 else ""
        return InvalidArgumentError(
            f"unexpected shape for input '{name}' for model '{self._model}'. "
            f"Expected {_dims(dims)}, got {_dims(got)}.{note}"
        )

    def _unexpected_rows(self, name: str, got: tuple[int, ...], dims: tuple[int, ...]) -> InvalidArgumentError:
        if not got:
            return InvalidArgumentError(
                f"input '{name}' has no shape but model requires batch dimension for '{self._model}'"
            )
        return self._unexpected_shape(name, got, (-1, *dims))

    def _unequal_batch(self, name: str, got: int, others: int) -> InvalidArgumentError:
        if got == 0:
            return InvalidArgumentError(f"input '{name}' has batch size 0; model '{self._model}' needs at least 1")
        return InvalidArgumentError(
            f"input '{name}' batch size does not match other inputs for '{self._model}': {got} against {others}"
        )


def _input(declared: ModelInput, max_batch_size: int) -> _Input:
    datatype = wire_name(declared.data_type)
    dims = tuple(declared.dims)
    batching = max_batch_size > 0
    has_rows = batching and not declared.is_shape_tensor
    has_usual_shapes = has_rows and -1 not in dims
    return _Input(
        datatype=datatype,
        dtype=tensor_type(datatype).dtype,
        dims=dims,
        keyed=-1 in dims and not declared.allow_ragged_batch and (has_rows or not batching),
        has_rows=has_rows,
        optional=declared.optional,
        reshape=declared.reshape,
        sizes={(size, *dims): size for size in range(1, min(max_batch_size, _USUAL_SIZES) + 1) if has_usual_shapes},
    )


def _reshaped(tensor: Tensor, declared: _Input) -> Tensor:
    if declared.reshape is None:
        return tensor
    first = 1 if declared.has_rows else 0
    variable = iter([size for size, dim in zip(tensor.shape[first:], declared.dims, strict=True) if dim == -1])
    shape = tensor.shape[:first] + tuple(next(variable) if dim == -1 else dim for dim in declared.reshape.shape)
    if isinstance(tensor.payload, DeferredPayload):  # which the worker fetches in this shape
        return Tensor(tensor.name, tensor.datatype, shape, tensor.payload)
    payload = tensor.payload if isinstance(tensor.payload, DeviceTensor) else tensor.array
    return Tensor(tensor.name, tensor.datatype, shape, payload.reshape(shape))


def _contradiction(tensor: Tensor, content: str) -> InvalidArgumentError:
    """The error for a tensor made by hand that contradicts its own payload; the codecs' never do."""
    return InvalidArgumentError(
        f"input '{tensor.name}' says {tensor.datatype} {_dims(tensor.shape)} and holds {content}"
    )


def _matches(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return len(shape) == len(dims) and all(
        size == dim or (dim == -1 and size >= 0) for size, dim in zip(shape, dims, strict=True)
    )


def _dims(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def _quoted(names: object) -> str:
    return ",".join(f"'{name}'" for name in names)  # type: ignore[attr-defined]
