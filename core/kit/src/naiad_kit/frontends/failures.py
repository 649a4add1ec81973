"""Failure log: a line for every answer with a status of 5xx, and at `--log-verbose=1` for every refusal.

A fault of the server or of a model has its traceback, unless it was logged where it happened. What a client may try
again (503, 504) and what is not offered (501) is a warning, one a minute for each kind of error and model, with the
number of those that were omitted: an overloaded server answers thousands of these in a second.
"""

import logging
import re

from naiad.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    InvalidArgumentError,
    NaiadError,
    NotFoundError,
    RequestCancelledError,
    UnavailableError,
    UnsupportedError,
)
from naiad_config.user_code import foreign_cause
from naiad_kit.sparse_log import SparseLog

_OF_CALLERS = (InvalidArgumentError, NotFoundError, AlreadyExistsError, RequestCancelledError)
_EXPECTED = (UnavailableError, DeadlineExceededError, UnsupportedError)
_MOST_KINDS = 1000
_MODEL = re.compile("model '([^']*)'")


class FailureLog:
    """The failed requests of one protocol. For any thread."""

    def __init__(self, protocol: str, logger: logging.Logger) -> None:
        self._protocol = protocol
        self._logger = logger
        self._sparse: dict[tuple[type[Exception], str], SparseLog] = {}

    def record(self, error: Exception, status: int | str, message: str, request_id: str = "") -> None:
        """A request was answered with that error; `message` is what its caller reads."""
        verbose = self._logger.isEnabledFor(logging.DEBUG)
        if isinstance(error, NaiadError) and not isinstance(error, _OF_CALLERS + _EXPECTED) and not error.logged:
            cause = foreign_cause(error) or error
            error.logged = True
            self._logger.error(
                "%s %s: %s",
                self._protocol,
                status,
                message,
                exc_info=cause if cause.__traceback__ is not None else None,
                extra={"request_id": request_id},
            )
        elif verbose:
            self._logger.debug("%s %s: %s", self._protocol, status, message, extra={"request_id": request_id})
        elif isinstance(error, _EXPECTED) or (not isinstance(error, NaiadError) and status in range(500, 600)):
            self._warn(error, status, message)

    def _warn(self, error: Exception, status: int | str, message: str) -> None:
        model = _MODEL.search(message)
        kind = (type(error), model.group(1) if model else "")
        log = self._sparse.get(kind)
        if log is None:
            if len(self._sparse) >= _MOST_KINDS:
                self._sparse.clear()
            log = self._sparse[kind] = SparseLog(self._logger)
        log.warning("%s %s: %s", self._protocol, status, message)
