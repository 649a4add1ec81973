"""The C ABI of `naiad_custom.h`: its structs, functions and codes for ctypes and struct.

A test compiles the header and holds these against it.
"""

import ctypes
from ctypes import CFUNCTYPE, Structure, c_char_p, c_int, c_int64, c_uint64, c_void_p
from typing import Final

from naiad.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    ModelFailedError,
    NaiadError,
    NotFoundError,
    RequestCancelledError,
    UnavailableError,
    UnknownError,
    UnsupportedError,
)

VERSION: Final = 1
"""NAIAD_CUSTOM_ABI: changes when a library has to be built anew."""

ALL: Final = -1
"""NAIAD_ALL: all requests of a batch."""

INTERNAL: Final = 2
"""NAIAD_INTERNAL: the model failed."""

SetupFail = CFUNCTYPE(c_int, c_void_p, c_int, c_char_p)
Configure = CFUNCTYPE(None, c_void_p, c_char_p)
Output = CFUNCTYPE(c_void_p, c_void_p, c_int64, c_char_p, c_char_p, c_void_p, c_uint64, c_uint64)
Fail = CFUNCTYPE(c_int, c_void_p, c_int64, c_int, c_char_p)


class Setup(Structure):
    """naiad_setup."""

    _fields_ = (
        ("model_name", c_char_p),
        ("version", c_int64),
        ("instance_name", c_char_p),
        ("kind", c_char_p),
        ("device", c_int64),
        ("configuration", c_char_p),
        ("model_directory", c_char_p),
        ("version_directory", c_char_p),
        ("parameter_count", c_uint64),
        ("parameter_keys", ctypes.POINTER(c_char_p)),
        ("parameter_values", ctypes.POINTER(c_char_p)),
        ("fail", SetupFail),
        ("configure", Configure),
    )


class Batch(Structure):
    """naiad_batch."""

    _fields_ = (
        ("requests", c_void_p),
        ("request_count", c_uint64),
        ("batch_size", c_uint64),
        ("output", Output),
        ("fail", Fail),
    )


TENSOR_WORDS: Final = 6
"""The 64-bit words of a naiad_tensor: name, datatype, dims, ndims, content, byte_size."""

REQUEST_WORDS: Final = 7
"""The words of a naiad_request: id, parameters, inputs, input_count, outputs, output_count, batch_size."""

STAMP: Final = VERSION << 32 | (ctypes.sizeof(Setup) + ctypes.sizeof(Batch) + 8 * (TENSOR_WORDS + REQUEST_WORDS))
"""What naiad_abi of a library says that was built with this header for this kind of machine."""

_ERRORS: Final[tuple[type[NaiadError], ...]] = (
    UnknownError,
    UnknownError,
    ModelFailedError,
    NotFoundError,
    InvalidArgumentError,
    UnavailableError,
    UnsupportedError,
    AlreadyExistsError,
    RequestCancelledError,
)


def failure(code: int, message: str) -> NaiadError:
    """The error of a naiad_code; one that is none of them, 0 included, is a ModelFailedError that names it."""
    if 0 < code < len(_ERRORS):
        return _ERRORS[code](message)
    return ModelFailedError(f"{message} (code {code}, which is not a naiad_code)")


def text_of(raw: bytes | None) -> str:
    """A text that a library handed over; bytes that are not UTF-8 are shown as such, NULL as nothing."""
    return (raw or b"").decode("utf-8", "backslashreplace")
