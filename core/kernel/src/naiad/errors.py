"""Every error that Naiad raises, named after what went wrong and free of any wire protocol.

    NaiadError
    ├── InvalidArgumentError        the caller's request or configuration is wrong
    │   ├── ConfigError             … a model configuration, with all its problems
    │   ├── UsageError              … an option of the server or of a command
    │   └── TooLargeError           … it passes a configured limit
    ├── NotFoundError               no such model, version, plugin or file
    ├── AlreadyExistsError          the name is taken
    ├── UnavailableError            it exists and cannot answer now; trying again later may help
    │   ├── ModelNotReadyError      … it is loading, unloaded, or failed to load
    │   ├── QueueFullError          … its queue has reached the configured size
    │   ├── QueueTimeoutError       … the request waited longer than its queue policy allows
    │   ├── CallRingError           … every instance that could answer a model's call waits for that model
    │   └── ShuttingDownError       … the server or this model stops
    ├── DeadlineExceededError       the caller's own deadline passed
    ├── RequestCancelledError       the caller went away
    ├── UnsupportedError            well formed, and not offered here
    ├── UnknownError                a model's own error of no known kind
    └── InternalError               our side failed
        ├── ModelFailedError        … the model raised, or answered with something else than it declares
        ├── WorkerDiedError         … the worker of an instance ended while it held the request
        └── PluginError             … a plugin is broken, missing or clashes with another

A message says what happened, to which model, input or plugin and with which value, and what to do next.
"""

from naiad_config.errors import ConfigError as ConfigError
from naiad_config.errors import InternalError as InternalError
from naiad_config.errors import InvalidArgumentError as InvalidArgumentError
from naiad_config.errors import ModelFailedError as ModelFailedError
from naiad_config.errors import NaiadError as NaiadError
from naiad_config.errors import NotFoundError as NotFoundError
from naiad_config.errors import Problem as Problem
from naiad_config.errors import UnavailableError as UnavailableError
from naiad_config.errors import UsageError as UsageError
from naiad_config.errors import drop_tracebacks as drop_tracebacks


class TooLargeError(InvalidArgumentError):
    """Something passes a configured limit; the message names the option that sets it."""


class AlreadyExistsError(NaiadError):
    """The name is taken."""

    code = "ALREADY_EXISTS"


class ModelNotReadyError(UnavailableError):
    """The model is loading, was unloaded, or failed to load."""


class QueueFullError(UnavailableError):
    """The queue of the model has reached its configured size."""


class QueueTimeoutError(UnavailableError):
    """The request waited longer than its queue policy allows."""


class CallRingError(UnavailableError):
    """A model's call to another can never be answered: every instance that could answer it waits for the caller."""


class ShuttingDownError(UnavailableError):
    """The server or this model stops and takes no new requests."""


class DeadlineExceededError(NaiadError):
    """The caller's own deadline passed before the answer was there."""

    code = "UNAVAILABLE"


class RequestCancelledError(NaiadError):
    """The caller went away or took the request back."""

    code = "CANCELLED"


class UnsupportedError(NaiadError):
    """Well formed, and not offered here."""

    code = "UNSUPPORTED"


class UnknownError(NaiadError):
    """A model's own error of no known kind."""


class WorkerDiedError(InternalError):
    """The worker of an instance ended while it held the request."""


class PluginError(InternalError):
    """A plugin is broken, missing or clashes with another."""
