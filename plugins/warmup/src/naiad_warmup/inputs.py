"""Checks warm-up requests, and adds the inputs that the scheduler would add."""

from collections.abc import Sequence
from dataclasses import replace

from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad.warmup import VersionParts
from naiad_config import ModelConfig
from naiad_config.sequence_tensors import extra_inputs
from naiad_tensors.datatypes import wire_name
from naiad_tensors.tensors import Tensor


class WarmupInputs:
    """Checks the requests of samples, and completes those of a model with a batch codec."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        batch = (1,) if config.max_batch_size > 0 else ()
        self._extra = {
            extra.name: (wire_name(extra.data_type), (*batch, *extra.dims)) for extra in extra_inputs(config)
        }
        self._batch_inputs = {name for each in config.batch_input for name in each.target_name}

    def to_model_shape(self, requests: Sequence[Request], parts: VersionParts) -> tuple[list[Request], list[int]]:
        """The requests of one batch, and their batch sizes. Raises InvalidArgumentError for one that is wrong."""
        seen, sizes = [], []
        for index, request in enumerate(requests, 1):
            own = {name: tensor for name, tensor in request.inputs.items() if name in self._extra}
            skipped = own.keys() | self._batch_inputs
            sent = {name: tensor for name, tensor in request.inputs.items() if name not in skipped}
            shaped, size = parts.validate(replace(request, inputs=sent))
            sizes.append(size)
            for tensor in own.values():
                self._check(tensor)
            if own:
                shaped = replace(shaped, inputs={**shaped.inputs, **own})
            seen.append(shaped if parts.codec is None else parts.codec.warmup_request(shaped, index))
        return seen, sizes

    def _check(self, tensor: Tensor) -> None:
        datatype, dims = self._extra[tensor.name]
        fits = len(tensor.shape) == len(dims) and all(
            dim in (-1, size) for size, dim in zip(tensor.shape, dims, strict=True)
        )
        if tensor.datatype != datatype or not fits:
            raise InvalidArgumentError(
                f"input '{tensor.name}', which sequence_batching of model '{self._config.name}' adds, is "
                f"{tensor.datatype} {list(tensor.shape)}; it must be {datatype} {list(dims)}"
            )
