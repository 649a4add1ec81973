"""Errors in messages: those of Naiad keep their class, exceptions of a model their name and traceback."""

from dataclasses import astuple
from functools import lru_cache
from traceback import format_exception
from typing import Any

from naiad import errors
from naiad.errors import ConfigError, InternalError, NaiadError, Problem, UnavailableError
from naiad_config.user_code import RemoteTraceback, describe_failure, foreign_cause
from naiad_process_workers.codec import Decoder, Encoder


class RemoteError(Exception):
    """An exception of a model in another process, which is not an error of Naiad's."""


def put_error(encoder: Encoder, error: BaseException, traceback: str = "") -> None:
    """Write an error; one of Naiad's keeps its class and what it says, of another the name of the class is kept."""
    known = isinstance(error, NaiadError)
    text = str(error) if known else describe_failure(error)
    detail = getattr(error, "retry_after", None)
    if isinstance(error, ConfigError):
        detail = [astuple(problem) for problem in error.problems]
    encoder.value([_class_of(error) if known else "", text, type(error).__name__, traceback, detail])


def put_failure(encoder: Encoder, error: BaseException) -> None:
    """Write what a model has raised, with its traceback unless the log has it."""
    cause = None if isinstance(error, NaiadError) and error.logged else foreign_cause(error)
    put_error(encoder, error, "" if cause is None else "".join(format_exception(cause)).rstrip())


def error_in(decoder: Decoder) -> Exception:
    """Read an error."""
    known, text, name, traceback, detail = decoder.value()
    error: Exception
    if known:
        kind = getattr(errors, str(known), InternalError)
        error = _error(kind if isinstance(kind, type) and issubclass(kind, NaiadError) else InternalError, text, detail)
    else:
        kind = _class_named(str(name))
        words = text.removeprefix(name).removeprefix(":").strip()
        error = kind(words) if words else kind()
    if traceback:
        error.__cause__ = RemoteTraceback(traceback)
    return error


def _class_of(error: BaseException) -> str:
    """The nearest class of `naiad.errors`: those of plugins may be unknown in the other process."""
    for each in type(error).__mro__:
        if getattr(errors, each.__name__, None) is each:
            return str(each.__name__)
    return "InternalError"


@lru_cache(256)
def _class_named(name: str) -> type[RemoteError]:
    """A class costs 8 µs, and is freed by the garbage collector alone."""
    return type(name, (RemoteError,), {"__module__": "builtins"})


def _error(kind: type[NaiadError], text: str, detail: Any) -> NaiadError:
    if issubclass(kind, ConfigError):
        return kind([Problem(*problem) for problem in detail])
    if issubclass(kind, UnavailableError):
        return kind(text, detail)
    return kind(text)
