"""The requests of a warmup as the model sees them: past the scheduler, which would add to them otherwise."""

from collections.abc import Sequence
from dataclasses import replace

from naiad._engine.validation import RequestValidator
from naiad.codec import BatchCodec
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_config.sequence_tensors import extra_inputs
from naiad_tensors.datatypes import wire_name
from naiad_tensors.tensors import Tensor


class WarmupInputs:
    """Checks the requests of samples, and completes those of a model with a batch codec."""

    def __init__(self, config: ModelConfig, checker: RequestValidator, codec: BatchCodec | None) -> None:
        self._config = config
        self._checker = checker
        self._codec = codec
        batch = (1,) if config.max_batch_size > 0 else ()
        self._extra = {
            given.name: (wire_name(given.data_type), (*batch, *given.dims)) for given in extra_inputs(config)
        }
        self._made = {name for given in config.batch_input for name in given.target_name}

    def to_model_shape(self, requests: Sequence[Request]) -> tuple[list[Request], list[int]]:
        """The requests of one batch, and their batch sizes. Raises InvalidArgumentError for one that is wrong."""
        seen, sizes = [], []
        for index, request in enumerate(requests, 1):
            own = {name: tensor for name, tensor in request.inputs.items() if name in self._extra}
            sent = {
                name: tensor for name, tensor in request.inputs.items() if name not in own and name not in self._made
            }
            asked = replace(request, inputs=sent)
            sizes.append(self._checker.check(asked)[0])
            asked = self._checker.to_model_shape(asked)
            for tensor in own.values():
                self._check(tensor)
            if own:
                asked = replace(asked, inputs={**asked.inputs, **own})
            seen.append(asked if self._codec is None else self._codec.warmup_request(asked, index))
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
