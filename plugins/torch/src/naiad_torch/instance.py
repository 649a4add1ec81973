"""An instance of a PyTorch model: one call of the model per batch; outputs are arrays over its results' memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from naiad.backend import Answer, Batch
from naiad.errors import InvalidArgumentError
from naiad_config import DataType
from naiad_kit.backends.execution import run_or_each_alone
from naiad_torch.datatypes import TORCH_NAMES, datatype_of
from naiad_torch.described import check_shapes
from naiad_torch.devices import Device
from naiad_torch.parameters import RunSettings
from naiad_torch.plan import Plan, Result, missing_result
from naiad_torch.program import Program
from naiad_torch.runtime import describe_error, runtime

_STRING, _BF16 = DataType.TYPE_STRING, DataType.TYPE_BF16


class TorchInstance:
    """Executes batches. When one of several requests fails, each is run alone, so that only those fail that make it."""

    def __init__(self, program: Program, plan: Plan, model: str, device: Device, settings: RunSettings) -> None:
        torch = runtime()
        self._program = program
        self._feeds = plan.feeds
        self._results = plan.results
        self._names = [feed.name for feed in plan.feeds]
        described = [feed.described for feed in plan.feeds if feed.described is not None]
        self._described = described if len(described) == len(plan.feeds) else None
        self._model = model
        self._file = plan.file
        self._device = device
        self.input_devices = device.input_devices
        self._mode = torch.inference_mode if settings.inference_mode else torch.no_grad
        self._cleans = settings.cleans_cache and device.name.startswith("cuda")
        self._dtypes = {
            result.name: getattr(torch, TORCH_NAMES.get(result.datatype, ""), None) for result in plan.results
        }

    def execute(self, batch: Batch) -> Answer:
        """The outputs for the whole batch, or a reply or error for each request when the whole batch failed.

        Raises ModelFailedError, with what PyTorch says, for a batch of one request.
        """
        try:
            return run_or_each_alone(batch, self._run, self._model, _failure)
        finally:
            if self._cleans:
                runtime().cuda.empty_cache()

    def close(self) -> None:
        """Let go of the model."""
        del self._program

    def _run(self, batch: Batch) -> dict[str, Any]:
        with self._mode(), self._device.active():
            present = set(batch.input_names)
            feeds = [
                self._feed(batch, feed.name, feed.datatype) if feed.name in present else None for feed in self._feeds
            ]
            if self._described is not None:
                shapes = [None if feed is None else tuple(feed.shape) for feed in feeds]
                check_shapes(self._names, self._described, shapes, self._model, self._file)
            batch.mark_input_done()
            values = self._program.run(feeds)
            batch.mark_infer_done()
            return self._read(batch, values)

    def _feed(self, batch: Batch, name: str, datatype: DataType) -> Any:
        if datatype is not _STRING:
            return self._device.bring(batch, name, datatype is _BF16)
        flat = batch.input(name).ravel().tolist()
        try:
            return [element.decode() for element in flat]
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"input '{name}' of model '{self._model}' has an element that is not UTF-8 text; PyTorch takes text, "
                "so send other bytes as UINT8"
            ) from error

    def _read(self, batch: Batch, values: Sequence[Any]) -> dict[str, Any]:
        outputs: dict[str, Any] = {}
        tensors: dict[str, Any] = {}
        for result in self._results:
            if not batch.wants(result.name):
                continue
            if result.index >= len(values):
                raise missing_result(result.name, len(values))
            value = values[result.index]
            if isinstance(value, list):
                outputs[result.name] = _strings(value)
            else:
                tensors[result.name] = value
            self._check(result, value)
        outputs.update(self._device.fetch(batch, tensors))
        return outputs

    def _check(self, result: Result, value: Any) -> None:
        if isinstance(value, list):
            provided = _STRING
        elif value.dtype is self._dtypes[result.name]:
            provided = result.datatype
        else:
            provided = datatype_of(value.dtype)
        if provided is not result.datatype:
            datatype = provided.name if provided is not DataType.TYPE_INVALID else str(value.dtype)
            raise InvalidArgumentError(
                f"configuration expects datatype {result.datatype.name} for output '{result.name}', model provides "
                f"{datatype}; correct the data_type of the output of model '{self._model}'"
            )
        if not isinstance(value, list) and value.dim() == 0:
            raise InvalidArgumentError(
                f"output '{result.name}' of model '{self._model}' is a scalar which is not supported; let the model "
                "give it a dimension"
            )


def _failure(error: Exception) -> str:
    return f"PyTorch execute failure: {describe_error(error)}"


def _strings(values: Sequence[str]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = [value.encode() for value in values]
    return array
