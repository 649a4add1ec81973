"""Runs of a session on a GPU with tensors that stay there: inputs are bound by address, outputs are not copied."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from naiad.backend import Batch
from naiad_kit.backends.interface import Interface
from naiad_kit.backends.onnx_runtime import CUDA_PROVIDER
from naiad_onnx.runners import BFLOAT16, bind_array, host_value
from naiad_onnx.sessions import runtime
from naiad_tensors.datatypes import TENSOR_TYPES, wire_name
from naiad_tensors.devices import Device, DeviceTensor, gpu

_PROVIDERS = (CUDA_PROVIDER, "TensorrtExecutionProvider")


class DeviceRuns:
    """Runs of a session on a GPU, which is `device` to the kernel and `ort_device` to ONNX Runtime."""

    def __init__(self, session: Any, interface: Interface, device: Device, ort_device: tuple[str, int]) -> None:
        self.input_devices: Collection[Device] = (device,)
        self._session = session
        self._device = device
        self._ort_device = ort_device
        self._datatypes = {
            tensor.name: wire_name(tensor.data_type)
            for tensor in (*interface.inputs, *interface.outputs)
            if tensor.data_type is not None
        }

    def device_inputs(self, batch: Batch) -> dict[str, Sequence[DeviceTensor]]:
        """The inputs of the batch that are on the GPU already, in C order without gaps: they are bound by address."""
        tensors_of = {name: batch.resident(name, self.input_devices) for name in batch.input_names}
        return {
            name: tensors
            for name, tensors in tensors_of.items()
            if tensors and all(tensor.is_contiguous for tensor in tensors)
        }

    def device_outputs(self, batch: Batch, names: Sequence[str]) -> Collection[str]:
        """The outputs that may stay there."""
        return [name for name in names if batch.may_stay(name, self._device)]

    def run(
        self,
        batch: Batch,
        names: Sequence[str],
        device_inputs: Mapping[str, Sequence[DeviceTensor]],
        feed: Callable[[str, Batch], np.ndarray],
        options: Any,
    ) -> dict[str, Any]:
        """The outputs of these names, for the whole batch; `feed` returns an input that is in host memory."""
        binding = self._session.io_binding()
        held: list[Any] = []  # what is bound by its address
        for name in batch.input_names:
            if name in device_inputs:
                held.append(self._joined(device_inputs[name]))
                self._bind(binding, name, held[-1])
            else:
                held.append(bind_array(binding, name, feed(name, batch), self._datatypes[name] == "BF16"))
        staying = self.device_outputs(batch, names)
        for name in names:
            binding.bind_output(name, *(self._ort_device if name in staying else ("cpu", 0)))
        binding.synchronize_inputs()
        batch.mark_input_done()
        self._session.run_with_iobinding(binding, options)
        binding.synchronize_outputs()
        batch.mark_infer_done()
        values = binding.get_outputs()
        return {
            name: self._kept(name, value, held)
            if name in staying
            else host_value(value, self._datatypes[name] == "BF16", held)
            for name, value in zip(names, values, strict=True)
        }

    def _bind(self, binding: Any, name: str, tensor: DeviceTensor) -> None:
        datatype = tensor.datatype
        element = BFLOAT16 if datatype == "BF16" else TENSOR_TYPES[datatype].dtype
        binding.bind_input(name, *self._ort_device, element, tensor.shape, tensor.address)

    def _kept(self, name: str, value: Any, held: Sequence[Any]) -> DeviceTensor:
        """An output where it is; its memory belongs to the arena of the session, or to the bound input that it is."""
        inputs = [each for each in held if isinstance(each, DeviceTensor) and each.address == value.data_ptr()]
        owner = (value, self._session, inputs)
        return DeviceTensor.at(value.data_ptr(), self._device, self._datatypes[name], tuple(value.shape()), owner)

    def _joined(self, tensors: Sequence[DeviceTensor]) -> DeviceTensor:
        """One tensor of all rows, copied on the GPU; the tensor itself where it is alone."""
        first = tensors[0]
        if len(tensors) == 1:
            return first
        size = sum(tensor.nbytes for tensor in tensors)
        memory = runtime().OrtValue.ortvalue_from_shape_and_type([size], np.uint8, *self._ort_device)
        address = memory.data_ptr()
        for tensor in tensors:
            tensor.copy_to(address)
            address += tensor.nbytes
        shape = (sum(tensor.shape[0] for tensor in tensors), *first.shape[1:])
        return DeviceTensor.at(memory.data_ptr(), self._device, first.datatype, shape, memory)


def device_runs(session: Any, interface: Interface) -> DeviceRuns | None:
    """For a session on a GPU; None for any other, and where tensors cannot stay.

    Those are strings, which are never on a GPU, and CUDA graphs, which have their inputs and outputs in memory of their
    own.
    """
    provider = next((name for name in session.get_providers()[:1] if name in _PROVIDERS), None)
    if provider is None or any(tensor.type == "tensor(string)" for tensor in (*interface.inputs, *interface.outputs)):
        return None
    options = session.get_provider_options()[provider]
    if any(options.get(key, "0") in ("1", "True") for key in ("enable_cuda_graph", "trt_cuda_graph_enable")):
        return None
    number = int(options.get("device_id", 0))
    return DeviceRuns(session, interface, gpu(number), ("cuda", number))
