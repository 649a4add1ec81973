"""An instance of a Caffe2 model: one run of the ONNX Runtime session per batch; outputs are views."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch
from naiad_kit.backends.execution import aligned, run_or_each_alone
from naiad_kit.backends.onnx_runtime import describe_error


class Caffe2Instance:
    """Executes batches on a session that other instances may share; `outputs` are values by the names of blobs.

    What a batch does not ask for is not given. When a batch of several requests fails, each is run alone.
    """

    def __init__(self, session: Any, model: str, outputs: Mapping[str, str]) -> None:
        self._session = session
        self._model = model
        self._outputs = outputs

    def execute(self, batch: Batch) -> Answer:
        """The outputs for the whole batch, or a reply or error for each request when the whole batch failed.

        Raises ModelFailedError, with what ONNX Runtime says, for a batch of one request.
        """
        return run_or_each_alone(batch, self._run, self._model, describe_error)

    def close(self) -> None:
        """Let go of the session."""
        del self._session

    def _run(self, batch: Batch) -> dict[str, np.ndarray]:
        requested = {name: value for name, value in self._outputs.items() if batch.wants(name)}
        feeds = {name: aligned(batch.input(name)) for name in batch.input_names}
        batch.mark_input_done()
        values = self._session.run(list(requested.values()), feeds)
        batch.mark_infer_done()
        return dict(zip(requested, values, strict=True))
