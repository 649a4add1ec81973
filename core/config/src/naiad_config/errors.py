"""Errors of model configurations, and those that every other distribution builds on.

They stand here and not in the kernel because `naiad-config` and `naiad-tensors` are useful without it; `naiad.errors`
has all that callers tell apart.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class NaiadError(Exception):
    """The base class of all errors of Naiad; `code` is its name in the taxonomy of the Triton protocol.

    `logged` says that the log has it already, with its traceback, so that frontends do not log it again. `versions`
    are the versions of the model that failed to load, where they are known.
    """

    code: ClassVar[str] = "UNKNOWN"
    logged: bool = False
    versions: tuple[int, ...] = ()

    @property
    def reason(self) -> str:
        """The message, without words around it that repeat what a list of models says already."""
        return str(self)


class InvalidArgumentError(NaiadError):
    """The caller's request or configuration is wrong."""

    code = "INVALID_ARG"


class UsageError(InvalidArgumentError):
    """A mistake in an option: in the command line, a variable or an options file. `naiad` ends with status 2 for it."""


class LoadFailedError(InvalidArgumentError):
    """A version of a model cannot be loaded. The message is that of Triton; `reason` is the version and the cause."""

    def __init__(self, model: str, version: int, cause: NaiadError) -> None:
        super().__init__(f"load failed for model '{model}': version {version} is at UNAVAILABLE state: {cause};")
        self._reason = f"version {version}: {cause}"

    @property
    def reason(self) -> str:
        """`version 1: ` and the cause."""
        return self._reason


class NotFoundError(NaiadError):
    """There is no such model, version, plugin or file."""

    code = "NOT_FOUND"


class UnavailableError(NaiadError):
    """It exists and cannot answer now; `retry_after` (seconds) is our guess at when it may, None when we have none."""

    code = "UNAVAILABLE"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class InternalError(NaiadError):
    """Our side failed."""

    code = "INTERNAL"


class ModelFailedError(InternalError):
    """The model raised, or answered with something else than it declares."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a model configuration.

    `line` and `column` count from 1, and are 0 where the text is not known (a default, an override without text).
    `path` is the key's path, as `dynamic_batching.preferred_batch_size[1]`; `hint` is the next step, or "".
    """

    message: str
    path: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        reason = ": ".join(part for part in (position, self.path, self.message) if part)
        return f"{reason} ({self.hint})" if self.hint else reason


MOST_PROBLEMS = 100
"""The most problems of one configuration that are listed."""


class ConfigError(InvalidArgumentError):
    """A model configuration has these `problems`; the message lists all of them, one a line.

    Of more than MOST_PROBLEMS the first ones count, and a last one says that there are more.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        if len(problems) > MOST_PROBLEMS:
            more = Problem("there are more problems; mend these first", file=problems[0].file)
            problems = [*problems[:MOST_PROBLEMS], more]
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


def describe_error(error: BaseException) -> str:
    """`ValueError: its text`; the type alone where there is no text, or where asking for it raises too.

    For a limit of the system on open files or processes the text is followed by what to raise.
    """
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - the error's own code, which must not hide the error
        text = ""
    advice = advice_for(error)
    text = f"{text}; {advice}" if advice else text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def advice_for(error: BaseException) -> str:
    """Which limit of the system to raise, for an error that says that it is reached; "" for any other error."""
    if isinstance(error, OSError):
        return _ADVICE.get(error.errno or 0, "")
    if type(error) is RuntimeError and error.args == ("can't start new thread",):
        return MORE_PROCESSES
    return ""


MORE_PROCESSES = "raise 'ulimit -u' of the user, or the limit of processes of the container"
"""What to do where the system starts no more threads or processes."""

_ADVICE = {
    errno.EMFILE: "raise 'ulimit -n', the most open files of this process",
    errno.ENFILE: "raise the most open files of the machine (sysctl fs.file-max)",
}


def drop_tracebacks(error: BaseException) -> None:
    """Clear the tracebacks of an error and its causes: their frames hold tensors, and often the error, in a cycle."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = None
            waiting += (each.__cause__, each.__context__)
            waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()


def errors_of(error: NaiadError, count: int) -> Sequence[NaiadError]:
    """That error for each of `count` callers, none of which is shared or has a traceback.

    Each caller raises its own, which adds to the traceback; and the frames of a traceback hold the tensors of a batch.
    """
    drop_tracebacks(error)
    return [error, *(_twin(error) for _ in range(count - 1))] if count else []


def _twin(error: NaiadError) -> NaiadError:
    """A copy of an error; the error itself where its class cannot be copied."""
    kind = type(error)
    try:
        twin = kind.__new__(kind, *error.args)  # in a fifth of the time of copy.copy
    except Exception:  # noqa: BLE001 - a model's own class of errors may need other arguments
        return error
    twin.__dict__.update(error.__dict__)
    twin.__cause__ = error.__cause__
    return twin
