"""Datatypes of configurations and of PyTorch, and numpy arrays as tensors without a copy."""

from typing import Any

import numpy as np

from naiad_config import DataType
from naiad_torch.runtime import runtime

TORCH_NAMES: dict[DataType, str] = {
    DataType.TYPE_BOOL: "bool",
    DataType.TYPE_UINT8: "uint8",
    DataType.TYPE_UINT16: "uint16",
    DataType.TYPE_UINT32: "uint32",
    DataType.TYPE_UINT64: "uint64",
    DataType.TYPE_INT8: "int8",
    DataType.TYPE_INT16: "int16",
    DataType.TYPE_INT32: "int32",
    DataType.TYPE_INT64: "int64",
    DataType.TYPE_FP16: "float16",
    DataType.TYPE_FP32: "float32",
    DataType.TYPE_FP64: "float64",
    DataType.TYPE_BF16: "bfloat16",
}
"""The attribute of `torch` that is the dtype; strings are no tensors there."""

_TYPES = {name: datatype for datatype, name in TORCH_NAMES.items()}


def datatype_of(dtype: Any) -> DataType:
    """The datatype for a `torch.dtype`, or its name, TYPE_INVALID for one that no client can take."""
    return _TYPES.get(str(dtype).removeprefix("torch."), DataType.TYPE_INVALID)


class _Writable:
    """Memory that numpy takes for writable: PyTorch knows no other, and warns of it with every tensor."""

    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # which owns the memory
        described = dict(array.__array_interface__)
        described["data"] = (described["data"][0], False)
        self.__array_interface__ = described


def tensor_of(array: np.ndarray, is_bf16: bool) -> Any:
    """A `torch.Tensor` over the array's memory; a copy only where the memory is not aligned or has another order.

    `is_bf16` says that its 16-bit integers are the bits of BF16.
    """
    torch = runtime()
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, order="C")
    elif not array.flags.writeable:
        array = np.asarray(_Writable(array))
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if is_bf16 else tensor


def array_of(tensor: Any) -> np.ndarray:
    """The array over the memory of a tensor on the CPU; BF16 as its bits, `uint16`."""
    torch = runtime()
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        bits: np.ndarray = tensor.contiguous().view(torch.uint16).numpy()
        return bits
    array: np.ndarray = tensor.numpy()
    return array
