"""Models written as a function or class that `@model` marked."""

import inspect
from collections.abc import Callable
from typing import Any

from naiad.backend import Answer, Batch, Instance, ModelContext, Placement
from naiad.errors import ConfigError, ModelFailedError, NaiadError, Problem
from naiad_custom.annotations import Way
from naiad_custom.api import MARK, Declaration
from naiad_custom.asynchronous import AsyncInstance, Awaited
from naiad_custom.conversion import Conversion
from naiad_custom.failures import Failures
from naiad_custom.signature import read_signature
from naiad_custom.streaming import AsyncStreams, StreamInstance

Listener = Callable[[int | str, str], Any]
"""Takes the correlation id of a sequence that has ended, and why: `end`, `idle`, `cancelled` or `unload`."""


Ready = Callable[[], object]
"""Says why an instance is not ready, with something false when it is."""


class Marked:
    """A function or class that `@model` marked, with its signature.

    Raises ConfigError for annotations that do not tell what the model takes and gives, and for an `async def ready`.
    """

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target
        self.declaration: Declaration = vars(target)[MARK]
        self.is_class = inspect.isclass(target)
        if inspect.isclass(target):
            _refuse_async_ready(target)
        function = _execute_of(target) if inspect.isclass(target) else target
        self.signature = read_signature(function, self.declaration, self.is_class)


class MarkedModel:
    """One loaded version of a marked function or class; a class is made once an instance.

    Raises ConfigError when the function gives several responses and the configuration does not say so.
    """

    def __init__(
        self,
        marked: Marked,
        context: ModelContext,
        on_close: Callable[[], None] = lambda: None,
        place: Callable[[BaseException], str] = lambda error: "",
    ) -> None:
        policy = context.config.model_transaction_policy
        if marked.signature.way is not Way.ONCE and (policy is None or not policy.decoupled):
            message = f"'{marked.signature.function}' gives several responses to a request"
            hint = "write model_transaction_policy { decoupled: true }"
            raise ConfigError([Problem(message, "model_transaction_policy.decoupled", hint=hint)])
        self._marked = marked
        self._context = context
        self._on_close = on_close
        self._place = place
        self._convert = Conversion(marked.signature, context.models)

    def instantiate(self, placement: Placement) -> Instance:
        """Make and load the object there. Raises ModelFailedError with file, line and what the user's load raised."""
        try:
            return self._instantiated(placement)
        except NaiadError:
            raise
        except Exception as error:
            message = f"{self._place(error)}: loading the model failed: {type(error).__name__}: {error}"
            raise ModelFailedError(message) from error

    def _instantiated(self, placement: Placement) -> Instance:
        marked = self._marked
        subject = Subject(marked.target() if marked.is_class else marked.target, marked.is_class)
        failures = Failures(self._context, placement)
        if not marked.signature.is_async:
            subject.load(self._context, placement)
            if marked.signature.way is Way.ONCE:
                return MarkedInstance(subject, self._convert)
            return StreamInstance(subject, self._convert, failures)
        answer: Awaited | AsyncStreams = Awaited(subject.call, self._convert)
        if marked.signature.way is not Way.ONCE:
            answer = AsyncStreams(subject.call, self._convert, failures)
        instance = AsyncInstance(subject, answer, marked.declaration.concurrency)
        try:
            instance.wait_for(lambda: subject.load(self._context, placement))
        except BaseException:
            instance.abandon()
            raise
        return instance

    def close(self) -> None:
        """Forget the model's modules."""
        self._on_close()


class Subject:
    """The user's side of an instance: what to call, and the optional load, ready and close of a class."""

    def __init__(self, target: Any, is_object: bool) -> None:
        self.call: Callable[..., Any] = target.execute if is_object else target
        self._target = target if is_object else None

    def load(self, context: ModelContext, placement: Placement) -> Any:
        """Call `load(context)` or `load(context, placement)`."""
        load = getattr(self._target, "load", None)
        if load is None:
            return None
        return load(*(context, placement)[: len(inspect.signature(load).parameters)])

    @property
    def ready(self) -> Ready:
        """Why it is not ready, "" when it is; the user's `ready` may also answer with True or False.

        Raises AttributeError where the user's object has none, so that no thread is needed to call it.
        """
        ready: Callable[[], object] = getattr(self._target, "ready")  # noqa: B009 - it raises where there is none
        return lambda: _reason_of(ready())

    @property
    def sequence_ended(self) -> Listener:
        """The method to call when a sequence has ended. Raises AttributeError when the model has none."""
        listener: Listener = getattr(self._target, "sequence_ended")  # noqa: B009 - it raises where there is none
        return listener

    def close(self) -> Any:
        """Call `close()`."""
        close = getattr(self._target, "close", None)
        return None if close is None else close()


class MarkedInstance:
    """One copy of a plain function or object: a batch in, one call, its arrays out."""

    def __init__(self, subject: Subject, convert: Conversion) -> None:
        self._subject = subject
        self._call = subject.call
        self._convert = convert

    def execute(self, batch: Batch) -> Answer:
        """Call the function with the whole batch."""
        arguments = self._convert.arguments(batch)
        return self._convert.outputs(self._call(**arguments), arguments)

    @property
    def ready(self) -> Ready:
        """Says why the user's object is not ready, "" when it is; there only where the object has a `ready`."""
        return self._subject.ready

    @property
    def sequence_ended(self) -> Listener:
        """Tells the user's object that a sequence is over, and why; there only where it listens."""
        return self._subject.sequence_ended

    def close(self) -> None:
        """Close the user's object."""
        self._subject.close()


def _reason_of(answer: object) -> object:
    """Why it is not ready, of what the user's `ready` answered."""
    return ("" if answer else "ready() answered False") if isinstance(answer, bool) else answer


def _refuse_async_ready(target: type) -> None:
    if inspect.iscoroutinefunction(getattr(target, "ready", None)):
        problem = f"'{target.__qualname__}.ready' is async def, and is called on a thread without an event loop"
        raise ConfigError([Problem(problem, hint="write def ready(self), which may block")])


def _execute_of(target: type) -> Callable[..., Any]:
    execute: Callable[..., Any] | None = getattr(target, "execute", None)
    if execute is None:
        raise TypeError(f"class '{target.__qualname__}' has no method execute; write def execute(self, ...)")
    return execute
