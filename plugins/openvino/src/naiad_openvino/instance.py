"""An instance of an OpenVINO model: one infer request, executed once per batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch
from naiad_kit.backends.execution import run_each_alone, run_or_each_alone
from naiad_kit.backends.interface import NarrowInputs
from naiad_kit.sequences import SequenceEndReason
from naiad_openvino.runtime import describe_error
from naiad_openvino.tensors import OutputMemory, read_output, to_input
from naiad_openvino.variables import Variables


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the tensors of a configuration: the index and element type of each, by name."""

    inputs: Mapping[str, tuple[int, str]]
    outputs: Mapping[str, tuple[int, str]]


class OpenVinoInstance:
    """Executes batches; those smaller than `padded_to` are filled up to it with zeros, whose results are dropped.

    When a batch of several requests fails, each is run alone, so that only those fail that make it fail. The requests
    of sequences are always run alone on a model with variables, each with those of its sequence.
    """

    def __init__(self, compiled: Any, model: str, ports: Ports, narrow: NarrowInputs, padded_to: int) -> None:
        self._request = compiled.create_infer_request()
        self._model = model
        self._ports = ports
        self._narrow = narrow
        self._padded_to = padded_to
        self._variables = Variables.of(self._request)
        memories = {index: OutputMemory.of(compiled.outputs[index]) for index, _ in ports.outputs.values()}
        self._memories = {index: memory for index, memory in memories.items() if memory is not None}
        self._has_strings = any(port.element_type.get_type_name() == "string" for port in compiled.outputs)

    def execute(self, batch: Batch) -> Answer:
        """The outputs for the whole batch, or a reply or error for each request where they were run alone.

        Raises ModelFailedError, with what OpenVINO says, and InvalidArgumentError for a batch of one request.
        """
        if self._variables is not None and any(request.correlation_id for request in batch.requests):
            return run_each_alone(batch, self._run, self._model, describe_error)
        return run_or_each_alone(batch, self._run, self._model, describe_error)

    def sequence_ended(self, correlation_id: int | str, _reason: SequenceEndReason) -> None:
        """Let go of the variables of that sequence."""
        if self._variables is not None:
            self._variables.forget(correlation_id)

    def close(self) -> None:
        """Let go of the request."""
        self._variables = None
        del self._request

    def _run(self, batch: Batch) -> dict[str, np.ndarray]:
        if self._variables is None:
            return self._infer(batch)
        self._variables.recall(batch.requests[0])
        outputs = self._infer(batch)
        self._variables.keep(batch.requests[0])
        return outputs

    def _infer(self, batch: Batch) -> dict[str, np.ndarray]:
        self._narrow.check(batch)
        feeds = {self._ports.inputs[name][0]: self._feed(batch, name) for name in batch.input_names}
        own = {index: memory.provide(self._request, index) for index, memory in self._memories.items()}
        batch.mark_input_done()
        self._run_request(feeds)
        batch.mark_infer_done()
        outputs = {}
        for name, (index, kind) in self._ports.outputs.items():
            if batch.wants(name):
                value = own[index] if index in own else read_output(self._request, index, kind)
                outputs[name] = value[: batch.size] if self._padded_to > batch.size else value
        return outputs

    def _run_request(self, feeds: Mapping[int, Any]) -> None:
        if self._has_strings:  # infer would make fixed-width arrays of the outputs, that nothing reads
            self._request.start_async(feeds, share_inputs=True)
            self._request.wait()
        else:
            self._request.infer(feeds, share_inputs=True, share_outputs=True)

    def _feed(self, batch: Batch, name: str) -> Any:
        array = batch.input(name)
        if self._padded_to > batch.size:
            padding = [(0, self._padded_to - batch.size)] + [(0, 0)] * (array.ndim - 1)
            array = np.pad(array, padding, constant_values=b"" if array.dtype.hasobject else 0)
        return to_input(array, self._ports.inputs[name][1], name, self._model)
