"""`pb_utils.Logger`: log lines with the model's name, which is taken from the calling code."""

import logging
from enum import Enum, IntEnum
from typing import ClassVar

from naiad.errors import NotFoundError
from naiad_custom.context import PythonContext
from naiad_custom.loaded import package_of_caller
from naiad_custom.triton.texts import text_of

_logger = logging.getLogger("naiad.model")


class LogLevel(IntEnum):
    """Levels of `Logger`; VERBOSE lines are shown from `--log-verbose 1` on."""

    __str__ = Enum.__str__
    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


_LEVELS: dict[int, int] = {
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.VERBOSE: logging.DEBUG,
}


class Logger:
    """Writes to the server's log; each line carries the model and version, and the file and line of the caller.

    Raises TypeError for a message that is no text, and for a level that is none.
    """

    LogLevel: ClassVar = LogLevel
    INFO: ClassVar = LogLevel.INFO
    WARNING: ClassVar = LogLevel.WARNING
    ERROR: ClassVar = LogLevel.ERROR
    VERBOSE: ClassVar = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: int = LogLevel.INFO) -> None:
        """Write a line at one of the levels."""
        if level not in tuple(LogLevel):
            raise TypeError(f"the level of a log line must be one such as pb_utils.Logger.INFO, not {level!r}")
        _log(_LEVELS[level], message)

    @staticmethod
    def log_info(message: str) -> None:
        """Write a line at level INFO."""
        _log(logging.INFO, message)

    @staticmethod
    def log_warn(message: str) -> None:
        """Write a line at level WARNING."""
        _log(logging.WARNING, message)

    @staticmethod
    def log_error(message: str) -> None:
        """Write a line at level ERROR."""
        _log(logging.ERROR, message)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Write a line that verbose logs show."""
        _log(logging.DEBUG, message)


def get_model_dir() -> str:
    """The folder of the version whose code asks. Raises NotFoundError for code that belongs to no model."""
    context = context_of_caller()
    if context is None:
        raise NotFoundError(
            "get_model_dir() was called from code outside a model's folder; use args['model_repository']"
        )
    return str(context.version_directory)


def _log(level: int, message: str | bytes) -> None:
    if isinstance(message, bytes):
        message = message.decode("utf-8", "replace")  # a line of the log is no reason to fail
    message = text_of("the message of a log line", message)
    if not _logger.isEnabledFor(level):
        return
    context = context_of_caller()
    extra = {} if context is None else {"model": context.config.name, "version": str(context.version)}
    _logger.log(level, "%s", message, stacklevel=3, extra=extra)


def context_of_caller() -> PythonContext | None:
    """The context of the model whose code is nearest on the call stack."""
    package = package_of_caller()
    return None if package is None else package.context
