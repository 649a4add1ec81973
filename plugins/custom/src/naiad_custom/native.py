"""Models written as a function or class with the `model` decorator."""

import inspect
from collections.abc import Callable
from typing import Any

from naiad.backend import Answer, Batch, Instance, Placement
from naiad.errors import ConfigError, ModelFailedError, NaiadError, Problem
from naiad_custom.annotations import Way
from naiad_custom.asynchronous import AsyncInstance, Awaited
from naiad_custom.context import PythonContext
from naiad_custom.conversion import Conversion
from naiad_custom.declaration import MARK, Declaration
from naiad_custom.failures import Failures
from naiad_custom.hints import explain_read_only, line_of, location_of
from naiad_custom.signature import read_signature
from naiad_custom.streaming import AsyncStreams, StreamInstance
from naiad_custom.user_object import UserInstance, UserObject


class ModelDefinition:
    """A function or class that `@model` marked, the `function` that executes, and its signature.

    Raises ConfigError for annotations that do not say what the model takes and gives, for a class without `execute`,
    and for an `async def ready`.
    """

    def __init__(self, target: Callable[..., Any]) -> None:
        self.target = target
        self.declaration: Declaration = vars(target)[MARK]
        self.is_class = inspect.isclass(target)
        if inspect.isclass(target):
            _refuse_async_ready(target)
        self.function = _execute_of(target) if inspect.isclass(target) else target
        self.signature = read_signature(self.function, self.declaration, self.is_class)


class DefinedModel:
    """One loaded version of a marked function or class; a class is made once an instance.

    Raises ConfigError when the function gives several responses and the configuration does not say so.
    """

    def __init__(
        self,
        definition: ModelDefinition,
        context: PythonContext,
        on_close: Callable[[], None] = lambda: None,
        location: Callable[[BaseException], str] = lambda error: "",
    ) -> None:
        policy = context.config.model_transaction_policy
        if definition.signature.way is not Way.ONCE and (policy is None or not policy.decoupled):
            message = f"'{definition.signature.function}' gives several responses to a request"
            hint = "write model_transaction_policy { decoupled: true }"
            raise ConfigError([Problem(message, "model_transaction_policy.decoupled", hint=hint)])
        self._definition = definition
        self._context = context
        self._on_close = on_close
        self._location = location
        location_of_function = location_of(definition.function)
        self._convert = Conversion(definition.signature, context.models, context.config, location_of_function)

    def instantiate(self, placement: Placement) -> Instance:
        """Make and load the object there. Raises ModelFailedError with file, line and what the user's load raised."""
        try:
            return self._instantiated(placement)
        except NaiadError:
            raise
        except Exception as error:
            message = f"{self._location(error)}: loading the model failed: {type(error).__name__}: {error}"
            raise ModelFailedError(message) from error

    def _instantiated(self, placement: Placement) -> Instance:
        definition = self._definition
        user_object = UserObject(definition.target() if definition.is_class else definition.target, definition.is_class)
        failures = Failures(self._context, placement)
        if not definition.signature.is_async:
            user_object.load(self._context, placement)
            if definition.signature.way is Way.ONCE:
                return MarkedInstance(user_object, self._convert)
            return StreamInstance(user_object, self._convert, failures)
        answer: Awaited | AsyncStreams = Awaited(user_object.call, self._convert)
        if definition.signature.way is not Way.ONCE:
            answer = AsyncStreams(user_object.call, self._convert, failures)
        instance = AsyncInstance(user_object, answer, definition.declaration.concurrency)
        try:
            instance.wait_for(lambda: user_object.load(self._context, placement))
        except BaseException:
            instance.abandon()
            raise
        return instance

    def close(self) -> None:
        """Forget the model's modules."""
        self._on_close()


class MarkedInstance(UserInstance):
    """One copy of a plain function or object: a batch in, one call, its arrays out."""

    def __init__(self, user_object: UserObject, convert: Conversion) -> None:
        super().__init__(user_object)
        self._call = user_object.call
        self._convert = convert

    def execute(self, batch: Batch) -> Answer:
        """Call the function with the whole batch."""
        arguments = self._convert.arguments(batch)
        try:
            return self._convert.outputs(self._call(**arguments), arguments)
        except ValueError as error:
            explain_read_only(error)
            raise


def _refuse_async_ready(target: type) -> None:
    ready = getattr(target, "ready", None)
    if inspect.iscoroutinefunction(ready):
        problem = f"'{target.__qualname__}.ready' is async def, and is called on a thread without an event loop"
        raise ConfigError([Problem(problem, "", *line_of(ready), hint="write def ready(self), which may block")])


def _execute_of(target: type) -> Callable[..., Any]:
    execute: Callable[..., Any] | None = getattr(target, "execute", None)
    if execute is None:
        problem = f"class '{target.__qualname__}' has no method execute"
        raise ConfigError([Problem(problem, "", *line_of(target), hint="write def execute(self, ...)")])
    return execute
