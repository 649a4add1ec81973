"""`pb_utils.Tensor`: a named tensor, as a numpy array or through DLPack."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from naiad_config import DataType
from naiad_custom.triton.dlpack import content_of, copied
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.texts import text_of
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.devices import DeviceTensor
from naiad_tensors.dlpack import HOST_TYPES, Capsule, as_bf16
from naiad_tensors.laid_out import LaidOutArrays, LaidOutInputs
from naiad_tensors.tensors import Tensor as ProtocolTensor
from naiad_tensors.tensors import bytes_array

_ndarray = np.ndarray
_WIRE = {kind.dtype: kind.wire for kind in TENSOR_TYPES.values() if kind.wire not in ("BF16", "BYTES")}


class Tensor:
    """A tensor over a numpy array; no copy is made of it, unless it is not contiguous.

    `str` and `bytes` elements of an object array make a BYTES tensor, over an array of its own: as in Triton, the model
    may put other texts into the array that it gave. Raises TypeError for what is no numpy array, and
    TritonModelException for a dtype that the protocol cannot carry.
    """

    __slots__ = ("_datatype", "_name", "_payload")

    def __init__(self, name: str, array: np.ndarray) -> None:
        self._name = name if type(name) is str else text_of("the name of a pb_utils.Tensor", name)
        datatype = _WIRE.get(array.dtype) if type(array) is _ndarray and array.flags.c_contiguous else None
        if datatype is not None:
            self._payload: Any = array
            self._datatype = datatype
        else:
            self._payload, self._datatype = _converted(self._name, array)

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> "Tensor":
        """A tensor over the memory of a DLPack capsule, or of an object with `__dlpack__`; no copy but for bfloat16.

        Raises TritonModelException for tensors that are not contiguous or have no datatype of the protocol.
        """
        name = text_of("the name of a pb_utils.Tensor", name)
        capsule = tensor.__dlpack__() if hasattr(tensor, "__dlpack__") else tensor
        content = content_of(capsule)
        if content.device[0] not in HOST_TYPES:
            here = (content.address, content.device, content.datatype, content.shape, capsule)
            payload: Any = tensor if capsule is not tensor else DeviceTensor.at(*here)
        elif content.datatype == "BF16":
            payload = copied(content)
        else:
            payload = np.from_dlpack(Capsule(capsule, content.device))
        return received(name, ProtocolTensor(name, content.datatype, content.shape, payload))

    def name(self) -> str:
        """Its name."""
        return self._name

    def triton_dtype(self) -> DataType:
        """The datatype as the number that model configurations use."""
        return TENSOR_TYPES[self._datatype].config

    def shape(self) -> list[int]:
        """Its shape, batch dimension included."""
        shape = getattr(self._payload, "shape", None)
        return list(content_of(self._payload.__dlpack__()).shape if shape is None else shape)

    def is_cpu(self) -> bool:
        """Whether the memory can be read by the host."""
        return type(self._payload) is np.ndarray or self._payload.__dlpack_device__()[0] in HOST_TYPES

    def as_numpy(self) -> np.ndarray:
        """The tensor as an array that may be written to; received memory that may not is copied the first time.

        What another model left on a device is copied from there. Raises TritonModelException for other memory of a
        device, and for BF16, which numpy has no dtype for.
        """
        payload = self._payload
        if self._datatype == "BF16":
            raise TritonModelException(f"tensor '{self._name}' is BF16, which numpy does not know; use to_dlpack()")
        array: np.ndarray
        if type(payload) is _ndarray and payload.flags.writeable:
            array = payload
        else:
            array = self._payload = payload.copy() if type(payload) is _ndarray else self._host_array()
        return array

    def to_dlpack(self) -> Any:
        """A DLPack capsule of the tensor's memory. Raises TritonModelException for BYTES."""
        return self.__dlpack__()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if self._datatype == "BYTES":
            raise TritonModelException(f"tensor '{self._name}' is BYTES, which DLPack cannot carry; use as_numpy()")
        if type(self._payload) is not np.ndarray:
            return self._payload.__dlpack__(stream=stream, **options)
        if not self._payload.flags.writeable:
            self._payload = self._payload.copy()
        if self._datatype == "BF16":
            return as_bf16(self._payload.__dlpack__())
        return self._payload.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, device = self._payload.__dlpack_device__()
        return int(kind), device

    def _host_array(self) -> np.ndarray:
        if isinstance(self._payload, DeviceTensor):
            return self._payload.array.copy()
        if not self.is_cpu():
            raise TritonModelException(f"tensor '{self._name}' is not in host memory; read it with to_dlpack()")
        return np.from_dlpack(self._payload).copy()


_new = Tensor.__new__


def received(name: str, tensor: ProtocolTensor) -> Tensor:
    """The kernel's tensor as a model sees it."""
    self = _new(Tensor)
    self._name = name
    self._payload = tensor.payload
    self._datatype = tensor.datatype
    return self


def received_tensors(inputs: Mapping[str, ProtocolTensor]) -> dict[str, Tensor]:
    """The tensors of a request as a model sees them, by name.

    Small ones are copied from the request's bytes at once, where models may write to them.
    """
    tensors: dict[str, Tensor] = {}
    if type(inputs) is LaidOutInputs and inputs.is_small:
        content, offset = inputs.content, inputs.start
        for name, datatype, shape, dtype, start, size in inputs.layout.fields:
            start += offset
            tensors[name] = each = _new(Tensor)
            each._name = name
            each._payload = _ndarray(shape, dtype, bytearray(content[start : start + size]))
            each._datatype = datatype
        return tensors
    if type(inputs) is LaidOutArrays:
        layout = inputs.layout
        for name, datatype, array in zip(layout.names, layout.datatypes, inputs.arrays, strict=True):
            tensors[name] = each = _new(Tensor)
            each._name = name
            each._payload = array
            each._datatype = datatype
        return tensors
    for name, tensor in inputs.items():  # without a call for each: that costs as much as the rest
        tensors[name] = each = _new(Tensor)
        each._name = name
        each._payload = tensor.payload
        each._datatype = tensor.datatype
    return tensors


def _converted(name: str, array: Any) -> tuple[np.ndarray, str]:
    """The array, contiguous and of a dtype of the protocol, with its datatype; strings of bytes become objects."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"tensor '{name}' needs a numpy array, not {type(array).__name__}")
    if array.dtype.kind == "O":
        return np.array(array, order="C"), "BYTES"
    contiguous = np.asarray(array, order="C")
    if array.dtype.kind == "S":
        return bytes_array(contiguous), "BYTES"
    if array.dtype.name == "bfloat16":
        return contiguous.view(np.uint16), "BF16"
    datatype = next((wire for dtype, wire in _WIRE.items() if dtype == array.dtype), "")  # a long long is an int64
    if not datatype:
        hint = "an array of objects" if array.dtype.kind == "U" else "another dtype"
        raise TritonModelException(
            f"NumPy dtype is not supported. Tensor '{name}' has dtype '{array.dtype.str}', which the protocol cannot "
            f"carry; make it {hint} with astype"
        )
    return contiguous, datatype
