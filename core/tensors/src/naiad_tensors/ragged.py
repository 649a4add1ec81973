"""The tensors of a batch that do not hold one row an item: ragged inputs, batch inputs and outputs, shape tensors.

Kinds and fields are those of `BatchInput` and `BatchOutput` in `model_config.proto` of Triton's extensions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any, Protocol

import numpy as np

from naiad_config.errors import ModelFailedError
from naiad_config.model import ModelConfig
from naiad_config.tensors import BatchInput, BatchInputKind, DataType, ModelOutput
from naiad_tensors.tensors import Tensor, host_array


class Request(Protocol):
    """A request of a batch, as far as its layout is concerned."""

    @property
    def inputs(self) -> Mapping[str, Tensor]:
        """The inputs by name."""


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """Which tensors of a model's batches do not hold one row for each item; computed once a load.

    `ragged` inputs are joined in one dimension. `shape_tensors` are inputs, and `shape_outputs` outputs, whose first
    value is the batch size where the model batches. `generated` are the batch inputs by target name. `scattered` are
    the outputs that come in one piece for the whole batch, each with the input that gives its parts their shapes.
    """

    model: str
    batching: bool
    ragged: frozenset[str]
    shape_tensors: frozenset[str]
    generated: Mapping[str, BatchInput]
    scattered: Mapping[str, tuple[ModelOutput, str]]
    shape_outputs: frozenset[str]

    def covers(self, name: str) -> bool:
        """Whether that input is made by `input`, and not by joining rows."""
        return name in self.generated or name in self.ragged or name in self.shape_tensors

    def generated_names(self, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """The batch inputs of requests with these inputs: those whose source is there."""
        return tuple(name for name, batch_input in self.generated.items() if batch_input.source_input[0] in inputs)

    def input(self, name: str, requests: Sequence[Request], sizes: Sequence[int]) -> np.ndarray:
        """An input that this layout covers, for a batch of these requests. Raises KeyError when they lack it."""
        batch_input = self.generated.get(name)
        if batch_input is not None:
            return _generated(batch_input, requests, sizes, self.batching)
        arrays = [request.inputs[name].array for request in requests]
        if name in self.ragged:
            flat = [array.reshape(-1) for array in arrays]
            return flat[0] if len(flat) == 1 else np.concatenate(flat)
        first = arrays[0].reshape(-1)
        return np.concatenate((np.asarray([sum(sizes)], dtype=first.dtype), first))

    @property
    def cuts(self) -> bool:
        """Whether outputs do not hold one row for each item."""
        return bool(self.scattered or self.shape_outputs)

    def cut(
        self, outputs: Mapping[str, Any], requests: Sequence[Request], sizes: Sequence[int]
    ) -> list[dict[str, Any]]:
        """The outputs of a batch for each of these requests, in the shapes that it gets.

        Raises ModelFailedError when an array does not have as many elements as the batch asks for.
        """
        cut: list[dict[str, Any]] = [{} for _ in requests]
        for name, value in outputs.items():
            array = host_array(value)
            if name in self.scattered:
                parts = self._scattered(name, array, requests, sizes)
            elif name in self.shape_outputs:
                parts = [array.reshape(-1)[1:]] * len(cut)
            else:
                parts = self._rows(name, array, sizes)
            for own, part in zip(cut, parts, strict=True):
                own[name] = part
        return cut

    def shaped(self, outputs: Mapping[str, Any], request: Request, size: int) -> Mapping[str, Any]:
        """The outputs for one request of that batch size, the flat ones in the shapes that they are scattered by.

        A backend that answers requests one by one may well have given an output its shape, or another one.
        """
        if not any(name in self.scattered for name in outputs):
            return outputs
        shaped = dict(outputs)
        for name in self.scattered.keys() & shaped.keys():
            array = host_array(shaped[name])
            if array.ndim == 1 and self.scattered[name][1] in request.inputs:
                shape = self._scattered_shape(name, request, size)
                shaped[name] = array.reshape(shape) if array.size == prod(shape) else array
        return shaped

    def _scattered(
        self, name: str, array: np.ndarray, requests: Sequence[Request], sizes: Sequence[int]
    ) -> list[np.ndarray]:
        shapes = [self._scattered_shape(name, *each) for each in zip(requests, sizes, strict=True)]
        ends = list(accumulate(map(prod, shapes)))
        if array.size != ends[-1]:
            source = self.scattered[name][1]
            raise ModelFailedError(
                f"model '{self.model}' produced {array.size} elements for output '{name}', which is scattered by the "
                f"shapes of input '{source}'; the {len(shapes)} requests of the batch take {ends[-1]} together"
            )
        flat = array.reshape(-1)
        starts = [0, *ends[:-1]]
        return [flat[start:end].reshape(shape) for start, end, shape in zip(starts, ends, shapes, strict=True)]

    def _scattered_shape(self, name: str, request: Request, size: int) -> tuple[int, ...]:
        """The configuration's dims, with the dims of the source in place of variable ones."""
        output, source = self.scattered[name]
        dims = tuple(output.dims)
        if -1 in dims:
            tensor = request.inputs.get(source)
            if tensor is None:
                raise ModelFailedError(
                    f"model '{self.model}' produced output '{name}', which takes its shape from the optional input "
                    f"'{source}', and no request of the batch has it; send '{source}'"
                )
            actual = tensor.shape[1:] if self.batching else tensor.shape
            dims = tuple(size if dim == -1 else dim for dim, size in zip(dims, actual, strict=True))
        return (size, *dims) if self.batching else dims

    def _rows(self, name: str, array: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
        if not self.batching:
            return [array]
        ends = list(accumulate(sizes))
        if array.shape[:1] != (ends[-1],):
            rows = array.shape[0] if array.ndim else "no"
            raise ModelFailedError(
                f"model '{self.model}', output '{name}' has {rows} rows for a batch of {ends[-1]}; an output that "
                "comes in one piece for all requests is a target of batch_output"
            )
        return [array[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def layout_of(config: ModelConfig) -> BatchLayout | None:
    """The layout of a complete configuration; None where every tensor holds one row for each item of a batch."""
    batching = config.max_batch_size > 0
    outputs = {output.name: output for output in config.output}
    layout = BatchLayout(
        config.name,
        batching,
        frozenset(tensor.name for tensor in config.input if tensor.allow_ragged_batch),
        frozenset(tensor.name for tensor in config.input if tensor.is_shape_tensor and batching),
        {name: each for each in config.batch_input for name in each.target_name},
        {name: (outputs[name], each.source_input[0]) for each in config.batch_output for name in each.target_name},
        frozenset(output.name for output in config.output if output.is_shape_tensor and batching),
    )
    tensors = (layout.ragged, layout.shape_tensors, layout.generated, layout.scattered, layout.shape_outputs)
    return layout if any(tensors) else None


def batch_input_shape(batch_input: BatchInput, config: ModelConfig) -> tuple[int, ...]:
    """The shape that the model must take for a batch input, with -1 for what follows from the batch."""
    if batch_input.kind is not BatchInputKind.BATCH_ITEM_SHAPE:
        return (-1,)
    source = next(each for each in config.input if each.name == batch_input.source_input[0])
    return -1, len(source.dims if source.reshape is None else source.reshape.shape)


def _generated(each: BatchInput, requests: Sequence[Request], sizes: Sequence[int], batching: bool) -> np.ndarray:
    dtype = np.dtype(np.float32 if each.data_type is DataType.TYPE_FP32 else np.int32)
    shapes = [request.inputs[each.source_input[0]].shape for request in requests]
    kind = each.kind
    if kind in (BatchInputKind.BATCH_ITEM_SHAPE, BatchInputKind.BATCH_ITEM_SHAPE_FLATTEN):
        items = [shape[1:] if batching else shape for shape in shapes]
        rows = np.repeat(np.asarray(items, dtype=dtype).reshape(len(items), -1), list(sizes), axis=0)
        return rows if kind is BatchInputKind.BATCH_ITEM_SHAPE else rows.reshape(-1)
    counts = [prod(shape) for shape in shapes]
    if kind is BatchInputKind.BATCH_MAX_ELEMENT_COUNT_AS_SHAPE:
        return np.zeros(max(counts), dtype=dtype)
    if kind is BatchInputKind.BATCH_ACCUMULATED_ELEMENT_COUNT:
        counts = list(accumulate(counts))
    elif kind is BatchInputKind.BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO:
        counts = list(accumulate(counts, initial=0))
    return np.asarray(counts, dtype=dtype)
