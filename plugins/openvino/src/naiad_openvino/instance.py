"""One instance of a model: a batch in, a request of OpenVINO, its outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch
from naiad.errors import InvalidArgumentError
from naiad.execution import run_or_each_alone
from naiad.interface import Interface
from naiad_openvino.runtime import runtime, told


class OpenVinoInstance:
    """Executes batches; those smaller than `padded_to` are filled up to it with zeros, whose results are dropped.

    When a batch of several requests fails, each is run alone, so that only those fail that make it fail.
    """

    def __init__(
        self,
        request: Any,
        model: str,
        interface: Interface,
        inputs: Mapping[str, int],
        outputs: Mapping[str, int],
        padded_to: int,
    ) -> None:
        self._request = request
        self._model = model
        self._inputs = inputs
        self._outputs = outputs
        self._padded_to = padded_to
        self._input_types = [tensor.type for tensor in interface.inputs]
        self._output_types = [tensor.type for tensor in interface.outputs]

    def execute(self, batch: Batch) -> Answer:
        """The outputs for the whole batch, or a reply or error for each request when the whole batch failed.

        Raises ModelFailedError, with what OpenVINO says, for a batch of one request.
        """
        return run_or_each_alone(batch, self._run, self._model, told)

    def close(self) -> None:
        """Let go of the request."""
        del self._request

    def _run(self, batch: Batch) -> dict[str, np.ndarray]:
        feeds = {place: self._feed(batch, name, place) for name, place in self._places(batch)}
        batch.mark_input_done()
        # outputs are copied: the request writes into the same memory again with the next batch
        values = self._request.infer(feeds, share_inputs=True, share_outputs=False)
        batch.mark_infer_done()
        return {
            name: self._read(values[place], self._output_types[place], batch)
            for name, place in self._outputs.items()
            if batch.wants(name)
        }

    def _places(self, batch: Batch) -> Sequence[tuple[str, int]]:
        return [(name, self._inputs[name]) for name in batch.input_names]

    def _feed(self, batch: Batch, name: str, place: int) -> Any:
        array = batch.input(name)
        if self._padded_to > batch.size:
            padding = [(0, self._padded_to - batch.size)] + [(0, 0)] * (array.ndim - 1)
            array = np.pad(array, padding)
        if not (array.flags.aligned and array.flags.c_contiguous):
            array = np.array(array, order="C")
        kind = self._input_types[place]
        if kind == "bf16":
            openvino = runtime()
            return openvino.Tensor(array, list(array.shape), openvino.Type.bf16)
        return _as_text(array, name, self._model) if kind == "string" else array

    def _read(self, value: np.ndarray, kind: str, batch: Batch) -> np.ndarray:
        if self._padded_to > batch.size:
            value = value[: batch.size]
        if kind == "bf16":
            return value.view(np.uint16)
        if kind == "string":
            array = np.empty(value.size, dtype=object)
            array[:] = [str(each).encode() for each in value.ravel()]
            return array.reshape(value.shape)
        return value


def _as_text(array: np.ndarray, name: str, model: str) -> np.ndarray:
    try:
        texts = [element.decode() for element in array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"input '{name}' of model '{model}' has an element that is not UTF-8 text; OpenVINO takes text, so send "
            "other bytes as UINT8"
        ) from error
    return np.array(texts, dtype=str).reshape(array.shape)
