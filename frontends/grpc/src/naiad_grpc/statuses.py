"""gRPC statuses of errors, and the messages of errors; independent of the transport."""

import logging
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from naiad import errors
from naiad_kit.frontends.failures import FailureLog
from naiad_kit.frontends.request_ids import with_request_id

_log = logging.getLogger("naiad.grpc")
_failures = FailureLog("gRPC", _log)

_MOST_ESCAPED = 7000
"""The maximum of an escaped message in its header: each byte but printable ASCII takes three; clients refuse 8 KiB."""


class Code(IntEnum):
    """The status codes of gRPC, by their names and numbers on the wire."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


CODES: Mapping[type[errors.NaiadError], Code] = MappingProxyType(
    {
        errors.NaiadError: Code.UNKNOWN,
        errors.InvalidArgumentError: Code.INVALID_ARGUMENT,
        errors.ConfigError: Code.INVALID_ARGUMENT,
        errors.UsageError: Code.INVALID_ARGUMENT,
        errors.TooLargeError: Code.INVALID_ARGUMENT,
        errors.NotFoundError: Code.NOT_FOUND,
        errors.AlreadyExistsError: Code.ALREADY_EXISTS,
        errors.UnavailableError: Code.UNAVAILABLE,
        errors.ModelNotReadyError: Code.UNAVAILABLE,
        errors.QueueFullError: Code.UNAVAILABLE,
        errors.QueueTimeoutError: Code.UNAVAILABLE,
        errors.CallRingError: Code.UNAVAILABLE,
        errors.ShuttingDownError: Code.UNAVAILABLE,
        errors.DeadlineExceededError: Code.DEADLINE_EXCEEDED,
        errors.RequestCancelledError: Code.CANCELLED,
        errors.UnsupportedError: Code.UNIMPLEMENTED,
        errors.UnknownError: Code.UNKNOWN,
        errors.InternalError: Code.INTERNAL,
        errors.ModelFailedError: Code.INTERNAL,
        errors.WorkerDiedError: Code.INTERNAL,
        errors.PluginError: Code.INTERNAL,
    }
)
"""The status code of every error. A class not listed has that of its nearest parent."""


class RpcError(Exception):
    """The status that ends an RPC: its code and its message."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def code_of(error: errors.NaiadError) -> Code:
    """The status code of an error: that of its class, or of the nearest base class in `CODES`."""
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)


def rpc_error(error: BaseException, request_id: str = "") -> RpcError:
    """The status that an error ends an RPC with; the message starts with the request id if any.

    An unexpected error of ours becomes INTERNAL: its traceback goes to the log, never to the caller. The error loses
    its traceback, and a long message is truncated.
    """
    if isinstance(error, RpcError):
        errors.drop_tracebacks(error)
        error.message = _shortened(error.message)
        return error
    if isinstance(error, errors.NaiadError):
        code, message = code_of(error), _shortened(caller_message(str(error), request_id))
        _failures.record(error, code.name, message, request_id)
    else:
        _log.error("unexpected error while answering a call", exc_info=error)
        reason = "the server failed to answer; its log tells why"
        code, message = Code.INTERNAL, _shortened(caller_message(reason, request_id))
    errors.drop_tracebacks(error)
    return RpcError(code, message)


def too_long(size: int, most: int, request_id: str = "") -> RpcError:
    """The status of a request whose response has `size` bytes and exceeds the limit `most`."""
    reason = (
        f"the response is a message of {size} bytes, more than the {most} that --grpc-max-response-size allows; "
        "ask for fewer outputs, have them in shared memory, or raise the option"
    )
    return RpcError(Code.RESOURCE_EXHAUSTED, _shortened(caller_message(reason, request_id)))


def caller_message(message: str, request_id: str = "") -> str:
    """The message for the caller: with the id of its request as `with_request_id` has it, and always valid UTF-8."""
    return with_request_id(message, request_id).encode("utf-8", "replace").decode()


def _shortened(message: str) -> str:
    """The message, truncated to fit into a header."""
    if len(message) * 4 * 3 <= _MOST_ESCAPED:
        return message
    room = _MOST_ESCAPED
    for index, character in enumerate(message):
        room -= 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())
        if room < 0:
            return f"{message[:index]} …"
    return message
