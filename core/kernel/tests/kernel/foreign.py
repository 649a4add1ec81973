"""A tensor of some framework, known by the DLPack protocol alone."""

from typing import Any

import numpy as np


class Foreign:
    """Shows an array by DLPack; with `on_device` its memory cannot be read from the host."""

    def __init__(self, array: np.ndarray, on_device: bool = False) -> None:
        self.shape = array.shape
        self._array = array
        self._on_device = on_device

    def __dlpack__(self, **options: Any) -> Any:
        if self._on_device:
            raise BufferError("the memory is on a device")
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._array.__dlpack_device__()
