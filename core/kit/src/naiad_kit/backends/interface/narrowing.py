"""Checks at execution of input dims that are variable in the configuration and fixed in the model."""

from collections.abc import Mapping

from naiad.batch import Batch
from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig
from naiad_kit.backends.interface.tensors import Interface, shape_text
from naiad_kit.backends.interface.written import model_dims


class NarrowInputs:
    """Refuses requests that fit the configuration and not the model, where the framework's words would not name them.

    Usually there are no such inputs, and `check` costs nothing. `file` is what messages call the model.
    """

    def __init__(self, config: ModelConfig, interface: Interface, file: str) -> None:
        self._model = config.name
        self._file = file
        shapes = {tensor.name: tensor.shape for tensor in interface.inputs}
        batching = config.max_batch_size > 0
        self._shapes: Mapping[str, tuple[int, ...]] = {
            tensor.name: shapes[tensor.name][1 if batching and tensor.is_shape_tensor else 0 :]
            for tensor in config.input
            if not tensor.allow_ragged_batch
            and _leaves_open(model_dims(tensor), shapes.get(tensor.name, ())[1 if batching else 0 :])
        }

    def check(self, batch: Batch) -> None:
        """Raises InvalidArgumentError with both shapes for the first request that does not fit."""
        for name, shape in self._shapes.items():
            for request in batch.requests:
                tensor = request.inputs.get(name)
                if tensor is not None and not _fits(tensor.shape, shape):
                    raise InvalidArgumentError(
                        f"input '{name}' of model '{self._model}' has shape {shape_text(tensor.shape)}, and "
                        f"{self._file} takes {shape_text(shape)}"
                    )


def _leaves_open(written: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return any(one == -1 != other for one, other in zip(written, dims, strict=False))


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) == len(target) and all(other in (-1, one) for one, other in zip(shape, target, strict=True))
