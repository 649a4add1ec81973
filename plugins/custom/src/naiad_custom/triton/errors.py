"""Errors of a TritonPythonModel: `TritonError` in a response, `TritonModelException` to raise."""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import ClassVar

from naiad.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    NaiadError,
    NotFoundError,
    RequestCancelledError,
    UnavailableError,
    UnknownError,
    UnsupportedError,
)
from naiad_custom.triton.texts import text_of


class TritonModelException(Exception):  # noqa: N818 - the name is the interface's
    """What a model raises to fail the requests at hand; `message()` is its text."""

    def message(self) -> str:
        """The text it was made with."""
        return str(self)


class TritonErrorCode(IntEnum):
    """`TRITONSERVER_Error_Code`."""

    __str__ = Enum.__str__

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


_KINDS: Mapping[TritonErrorCode, type[NaiadError]] = {
    TritonErrorCode.UNKNOWN: UnknownError,
    TritonErrorCode.INTERNAL: InternalError,
    TritonErrorCode.NOT_FOUND: NotFoundError,
    TritonErrorCode.INVALID_ARG: InvalidArgumentError,
    TritonErrorCode.UNAVAILABLE: UnavailableError,
    TritonErrorCode.UNSUPPORTED: UnsupportedError,
    TritonErrorCode.ALREADY_EXISTS: AlreadyExistsError,
    TritonErrorCode.CANCELLED: RequestCancelledError,
}


_CODES = tuple(TritonErrorCode)


class TritonError:
    """Why one request failed: a message and one of the codes below. Raises TypeError for anything else."""

    UNKNOWN: ClassVar = TritonErrorCode.UNKNOWN
    INTERNAL: ClassVar = TritonErrorCode.INTERNAL
    NOT_FOUND: ClassVar = TritonErrorCode.NOT_FOUND
    INVALID_ARG: ClassVar = TritonErrorCode.INVALID_ARG
    UNAVAILABLE: ClassVar = TritonErrorCode.UNAVAILABLE
    UNSUPPORTED: ClassVar = TritonErrorCode.UNSUPPORTED
    ALREADY_EXISTS: ClassVar = TritonErrorCode.ALREADY_EXISTS
    CANCELLED: ClassVar = TritonErrorCode.CANCELLED

    __slots__ = ("_cause", "_code", "_message")

    def __init__(self, message: str, code: int = TritonErrorCode.INTERNAL) -> None:
        self._message = text_of("the message of a pb_utils.TritonError", message)
        if code not in _CODES:
            raise TypeError(
                f"the code of a pb_utils.TritonError must be one such as TritonError.INTERNAL, not {code!r}"
            )
        self._code = TritonErrorCode(code)
        self._cause: NaiadError | None = None

    def message(self) -> str:
        """What happened."""
        return self._message

    def code(self) -> TritonErrorCode:
        """The kind of error."""
        return self._code

    def __str__(self) -> str:
        return self._message


def as_naiad_error(error: TritonError) -> NaiadError:
    """As an error of the kernel: the original one, if the error came from a call to another model."""
    return error._cause or _KINDS[error.code()](error.message())


def as_triton_error(error: NaiadError) -> TritonError:
    """The kernel's error as a model sees it."""
    translated = TritonError(str(error), TritonErrorCode[error.code])
    translated._cause = error
    return translated
