"""String tensors: BYTES of the protocol to and from ONNX Runtime, whose strings are `str` in Python."""

import numpy as np

from naiad.errors import InvalidArgumentError


def as_text(array: np.ndarray, model: str, name: str) -> np.ndarray:
    """An object array of `str`, same shape, from one of `bytes`.

    Raises InvalidArgumentError when an element is not UTF-8: the Python interface of ONNX Runtime takes no other bytes.
    """
    flat = array.ravel().tolist()
    try:
        return _object_array([value.decode() for value in flat], array.shape)
    except UnicodeDecodeError as error:
        index = next(index for index, value in enumerate(flat) if value == error.object)
        raise InvalidArgumentError(
            f"input '{name}' of model '{model}': element {index} is not UTF-8 text (byte "
            f"0x{error.object[error.start]:02x} at position {error.start}); ONNX Runtime takes text, so send "
            "other bytes as UINT8, or in base64"
        ) from error


def as_bytes(array: np.ndarray) -> np.ndarray:
    """An object array of `bytes` (UTF-8), same shape, from one of `str`."""
    return _object_array([value.encode() for value in array.ravel().tolist()], array.shape)


def _object_array(values: list[str] | list[bytes], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)
