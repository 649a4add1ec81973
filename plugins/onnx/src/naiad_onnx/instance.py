"""An instance of an ONNX model: one run of the session per batch; outputs are views."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch
from naiad_kit.backends.execution import aligned, run_or_each_alone
from naiad_kit.backends.interface import Interface, NarrowInputs
from naiad_kit.backends.onnx_runtime import describe_error
from naiad_onnx.device_runs import DeviceRuns
from naiad_onnx.runners import runner_for
from naiad_onnx.text import as_bytes, as_text
from naiad_tensors.devices import Device

_STRING = "tensor(string)"


class OnnxInstance:
    """Executes batches on a session, which other instances may share: a session may run in many threads at once.

    `outputs` are those of the configuration and the states of sequences; what a batch does not ask for is not
    given. `narrow` refuses what fits the configuration and not the model. `device_runs` are the runs of a session on a
    GPU whose tensors stay there. When a batch of several requests fails, each is run alone, so that only those fail
    that make it fail.
    """

    def __init__(
        self,
        session: Any,
        interface: Interface,
        model: str,
        outputs: Sequence[str],
        run_options: Any,
        narrow: NarrowInputs,
        device_runs: DeviceRuns | None = None,
    ) -> None:
        self._run_session = runner_for(session, interface)
        self._model = model
        self._outputs = tuple(outputs)
        self._run_options = run_options
        self._narrow = narrow
        self._on_gpu = device_runs
        self.input_devices: Collection[Device] = () if device_runs is None else device_runs.input_devices
        self._texts = frozenset(tensor.name for tensor in interface.inputs if tensor.type == _STRING)
        self._text_outputs = frozenset(tensor.name for tensor in interface.outputs if tensor.type == _STRING)

    def execute(self, batch: Batch) -> Answer:
        """The outputs for the whole batch, or a reply or error for each request when the whole batch failed.

        Raises ModelFailedError, with what ONNX Runtime says, for a batch of one request.
        """
        return run_or_each_alone(batch, self._run, self._model, describe_error)

    def close(self) -> None:
        """Let go of the session."""
        del self._run_session, self._on_gpu

    def _run(self, batch: Batch) -> dict[str, Any]:
        self._narrow.check(batch)
        names = list(self._outputs)
        if batch.requests[0].requested not in ((), self._outputs):
            names = [name for name in names if batch.wants(name)]
        if self._on_gpu is not None:
            inputs = self._on_gpu.device_inputs(batch)
            if inputs or self._on_gpu.device_outputs(batch, names):
                return self._on_gpu.run(batch, names, inputs, self._feed, self._run_options)
        feeds = {name: self._feed(name, batch) for name in batch.input_names}
        batch.mark_input_done()
        values = self._run_session(names, feeds, self._run_options)
        batch.mark_infer_done()
        outputs = dict(zip(names, values, strict=True))
        for name in self._text_outputs:
            if name in outputs:
                outputs[name] = as_bytes(outputs[name])
        return outputs

    def _feed(self, name: str, batch: Batch) -> np.ndarray:
        array = batch.input(name)
        if name in self._texts:
            return as_text(array, self._model, name)
        return aligned(array)
