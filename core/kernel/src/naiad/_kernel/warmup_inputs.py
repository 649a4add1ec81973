"""The requests of a warmup as the model sees them: past the scheduler, which would add to them otherwise."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from naiad._kernel.requests import RequestChecker
from naiad.datatypes import wire_name
from naiad.errors import InvalidArgumentError
from naiad.types import Request, Tensor
from naiad_config import ModelConfig
from naiad_config.sequence_tensors import extra_inputs

Complete = Callable[[Request], Request]
"""Adds the controls and initial states that a request lacks."""


class WarmupInputs:
    """Checks the requests of samples, and completes those for a model of sequences."""

    def __init__(self, config: ModelConfig, checker: RequestChecker, complete: Complete | None) -> None:
        self._config = config
        self._checker = checker
        self._complete = complete
        batch = (1,) if config.max_batch_size > 0 else ()
        self._extra = {
            given.name: (wire_name(given.data_type), (*batch, *given.dims)) for given in extra_inputs(config)
        }
        self._made = {name for given in config.batch_input for name in given.target_name}

    def as_the_model_sees(self, requests: Sequence[Request]) -> tuple[list[Request], list[int]]:
        """The requests of one batch, and their batch sizes. Raises InvalidArgumentError for one that is wrong.

        A request without a correlation id is a sequence of its own: its first and last request.
        """
        seen, sizes = [], []
        for index, request in enumerate(requests, 1):
            own = {name: tensor for name, tensor in request.inputs.items() if name in self._extra}
            sent = {
                name: tensor for name, tensor in request.inputs.items() if name not in own and name not in self._made
            }
            asked = replace(request, inputs=sent)
            sizes.append(self._checker.check(asked)[0])
            asked = self._checker.as_the_model_sees(asked)
            for tensor in own.values():
                self._check(tensor)
            if own:
                asked = replace(asked, inputs={**asked.inputs, **own})
            seen.append(asked if self._complete is None else self._complete(_in_a_sequence(asked, index)))
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


def _in_a_sequence(request: Request, index: int) -> Request:
    if request.correlation_id:
        return request
    return replace(request, correlation_id=index, sequence_start=True, sequence_end=True)
