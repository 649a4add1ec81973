"""Runs whose tensors stay on the GPU: inputs bound where they lie, outputs left where ONNX Runtime made them."""

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


class ResidentRuns:
    """Runs of a session on a GPU, which is `device` to the kernel and `place` to ONNX Runtime."""

    def __init__(self, session: Any, interface: Interface, device: Device, place: tuple[str, int]) -> None:
        self.input_devices: Collection[Device] = (device,)
        self._session = session
        self._device = device
        self._place = place
        self._datatypes = {
            tensor.name: wire_name(tensor.data_type)
            for tensor in (*interface.inputs, *interface.outputs)
            if tensor.data_type is not None
        }

    def residents(self, batch: Batch) -> dict[str, Sequence[DeviceTensor]]:
        """The inputs of the batch that are on the GPU already."""
        found = {name: batch.resident(name, self.input_devices) for name in batch.input_names}
        return {name: tensors for name, tensors in found.items() if tensors}

    def staying(self, batch: Batch, wanted: Sequence[str]) -> Collection[str]:
        """The outputs that may stay there."""
        return [name for name in wanted if batch.may_stay(name, self._device)]

    def run(
        self,
        batch: Batch,
        wanted: Sequence[str],
        residents: Mapping[str, Sequence[DeviceTensor]],
        feed: Callable[[str, Batch], np.ndarray],
        options: Any,
    ) -> dict[str, Any]:
        """The wanted outputs, all of them whole; `feed` gives the inputs that are in host memory."""
        binding = self._session.io_binding()
        held: list[Any] = []  # what is bound by its address
        for name in batch.input_names:
            if name in residents:
                held.append(self._joined(residents[name]))
                self._bind(binding, name, held[-1])
            else:
                held.append(bind_array(binding, name, feed(name, batch), self._datatypes[name] == "BF16"))
        staying = self.staying(batch, wanted)
        for name in wanted:
            binding.bind_output(name, *(self._place if name in staying else ("cpu", 0)))
        binding.synchronize_inputs()
        batch.mark_input_done()
        self._session.run_with_iobinding(binding, options)
        binding.synchronize_outputs()
        batch.mark_infer_done()
        values = binding.get_outputs()
        return {
            name: self._kept(name, value) if name in staying else host_value(value, self._datatypes[name] == "BF16")
            for name, value in zip(wanted, values, strict=True)
        }

    def _bind(self, binding: Any, name: str, tensor: DeviceTensor) -> None:
        datatype = tensor.datatype
        element = BFLOAT16 if datatype == "BF16" else TENSOR_TYPES[datatype].dtype
        binding.bind_input(name, *self._place, element, tensor.shape, tensor.address)

    def _kept(self, name: str, value: Any) -> DeviceTensor:
        """An output where it is; its memory belongs to the arena of the session."""
        owner = (value, self._session)
        return DeviceTensor.at(value.data_ptr(), self._device, self._datatypes[name], tuple(value.shape()), owner)

    def _joined(self, tensors: Sequence[DeviceTensor]) -> DeviceTensor:
        """One tensor of all rows, copied on the GPU; the tensor itself where it is alone."""
        first = tensors[0]
        if len(tensors) == 1:
            return first
        size = sum(tensor.nbytes for tensor in tensors)
        memory = runtime().OrtValue.ortvalue_from_shape_and_type([size], np.uint8, *self._place)
        address = memory.data_ptr()
        for tensor in tensors:
            tensor.copy_to(address)
            address += tensor.nbytes
        shape = (sum(tensor.shape[0] for tensor in tensors), *first.shape[1:])
        return DeviceTensor.at(memory.data_ptr(), self._device, first.datatype, shape, memory)


def resident_runs(session: Any, interface: Interface) -> ResidentRuns | None:
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
    return ResidentRuns(session, interface, gpu(number), ("cuda", number))
