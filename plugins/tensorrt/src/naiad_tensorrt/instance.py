"""An instance of an engine: selects the profile for a batch, runs it, and returns the outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch
from naiad.errors import InvalidArgumentError
from naiad_kit.backends.execution import run_or_each_alone
from naiad_kit.backends.interface import shape_text
from naiad_tensorrt.choices import profile_for
from naiad_tensorrt.description import EngineDescription, Profile, Shape
from naiad_tensorrt.machine import Executor
from naiad_tensors.devices import DeviceTensor, gpu


class TensorRtInstance:
    """Executes batches, each on that of its profiles whose optimum is nearest to the batch's shapes.

    `outputs` are those of the configuration and the states of sequences; `device` is the GPU of the executor.
    """

    def __init__(
        self,
        executor: Executor,
        description: EngineDescription,
        profiles: Sequence[int],
        outputs: Sequence[str],
        model: str,
        device: int,
    ) -> None:
        self.device = device
        self.input_devices = (gpu(device),)
        self._executor = executor
        self._is_open = True
        self._model = model
        self._outputs = tuple(outputs)
        self._profiles = [description.profiles[index] for index in profiles]
        self._shape_tensors = frozenset(tensor.name for tensor in description.inputs if tensor.is_shape_tensor)
        self._groups = {
            tensor.name: (tensor.vectorized_dim, tensor.components)
            for tensor in description.inputs
            if tensor.is_linear and tensor.components > 1 and tensor.vectorized_dim >= 0
        }

    def execute(self, batch: Batch) -> Answer:
        """The outputs for the whole batch, or a reply or error for each request when the whole batch failed.

        Raises InvalidArgumentError for shapes that no profile takes, and ModelFailedError with what TensorRT says, for
        a batch of one request.
        """
        return run_or_each_alone(batch, self._run, self._model, _describe_error)

    def memory_usage(self) -> int:
        """The bytes of device memory that this instance holds besides the engine's weights."""
        return self._executor.memory_usage() if self._is_open else 0

    def close(self) -> None:
        """Free the executor."""
        self._is_open = False
        self._executor.close()

    def ready(self) -> str:
        """Why the device cannot be used any more, "" while it can."""
        return self._executor.ready()

    def _run(self, batch: Batch) -> Mapping[str, Any]:
        inputs: dict[str, Any] = {}
        shapes: dict[str, Shape] = {}
        for name in batch.input_names:
            parts = None if name in self._shape_tensors else batch.resident(name, self.input_devices)
            if parts is None:
                array = inputs[name] = _contiguous(batch.input(name))
                shapes[name] = array.shape
            else:
                inputs[name] = list(parts)
                shapes[name] = _joined(parts)
        values = {name: tuple(inputs[name].reshape(-1).tolist()) for name in self._shape_tensors & inputs.keys()}
        profile = self._profile(shapes, values)
        requested = [name for name in self._outputs if batch.wants(name)]
        (here,) = self.input_devices
        stay = [name for name in requested if batch.may_stay(name, here)]
        return self._executor.run(inputs, profile, requested=requested, stay=stay, marks=batch)

    def _profile(self, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> int:
        profile = profile_for(shapes, values, self._profiles)
        if profile is None:
            raise InvalidArgumentError(misfit(self._model, shapes, values, self._profiles))
        for name, (dim, components) in self._groups.items():
            if shapes[name][dim] % components:
                raise InvalidArgumentError(
                    f"input '{name}' of model '{self._model}' has shape {shape_text(shapes[name])}; its format keeps "
                    f"{components} elements of dim {dim} together, so send a multiple of {components} of them"
                )
        return profile


def misfit(model: str, shapes: Mapping[str, Shape], values: Mapping[str, Shape], profiles: Sequence[Profile]) -> str:
    """The sentence that says which input fits which profile not, for shapes and values that none takes."""
    parts = []
    for profile in profiles:
        for word, actual, ranges in (("shape", shapes, profile.shapes), ("the values", values, profile.values)):
            for name, have in actual.items():
                if name in ranges and profile_for({name: have}, {}, [Profile(0, {name: ranges[name]}, {})]) is None:
                    least, _, most = ranges[name]
                    parts.append(
                        f"input '{name}' has {word} {shape_text(have)}, and profile {profile.index} takes "
                        f"{shape_text(least)} to {shape_text(most)}"
                    )
    return (
        f"model '{model}' has no optimisation profile for this batch: {'; '.join(parts)}; send other shapes, or name "
        "further profiles of the engine in 'profile' of the instance group"
    )


def _joined(parts: Sequence[DeviceTensor]) -> Shape:
    """The shape of tensors that are joined along dimension 0; that of one alone as it is."""
    first = parts[0].shape
    return first if len(parts) == 1 else (sum(part.shape[0] for part in parts), *first[1:])


def _contiguous(array: np.ndarray) -> np.ndarray:
    """The array with its elements in order and each at an address that is a multiple of its size."""
    return array if array.flags.c_contiguous and array.flags.aligned else np.array(array, order="C")


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
