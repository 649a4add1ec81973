"""The execution scope of a Python model: which calls to other models (BLS) it may make now, and for which requests."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token

from naiad.types import Request
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.logger import context_of_caller
from naiad_kit.calls import ModelCalls


class ExecutionScope:
    """The model executes these requests; without `models` it is initialized or finalized, and may call no model.

    Cheap to create: there is one per batch, and most models make no calls. `missing` says which input the model read
    last that its request has not; it is there only once there is one.
    """

    __slots__ = ("_calls", "_models", "_requests", "missing")

    missing: str

    def __init__(self, models: ModelCalls | None, requests: Sequence[Request] = ()) -> None:
        self._models = models
        self._requests = requests
        self._calls: ModelCalls | None = None

    def calls(self) -> ModelCalls | None:
        """Calls to other models, None where the model must make none. First use it on the thread that executes."""
        if self._calls is None and self._models is not None:
            self._calls = self._models.within(self._requests)
        return self._calls


_NO_CALLS = ExecutionScope(None)
_current: ContextVar[ExecutionScope | None] = ContextVar("naiad_custom_execution_scope", default=None)


@contextmanager
def outside_of_execute() -> Iterator[None]:
    """While the model is initialized or finalized, it may call no other model: those may not be loaded."""
    token = _current.set(_NO_CALLS)
    try:
        yield
    finally:
        _current.reset(token)


def enter_scope(scope: ExecutionScope) -> Token[ExecutionScope | None]:
    """The running code is in this scope from here on, and so are tasks and threads that copy the context."""
    return _current.set(scope)


leave_scope = _current.reset
"""End the scope that `enter_scope` began, by its token."""


def current_scope() -> ExecutionScope | None:
    """The scope of the running code, None for a thread of the model's own."""
    return _current.get()


def note_missing_input(name: str, request: Request) -> None:
    """The running code has read an input of that name, which the request has not: Triton's API returns None for it."""
    scope = _current.get()
    if scope is not None and scope is not _NO_CALLS:
        scope.missing = f"'{name}' is not an input of this request, which has {', '.join(sorted(request.inputs))}"


def explain_missing_input(error: AttributeError | TypeError) -> None:
    """Append the missing input to an error that None has caused, if the model has read one."""
    missing = getattr(_current.get(), "missing", "")
    if missing and "NoneType" in str(error):
        error.args = (f"{error}; {missing}",)


def calls_in(created_in: ExecutionScope | None) -> ModelCalls:
    """The calls that the running code may make with a request that was created in the scope `created_in`.

    A thread of the model's own may call too; its calls belong to no request. Raises TritonModelException outside of
    `execute`, and in code that belongs to no model.
    """
    scope = _current.get() or created_in
    if scope is None:
        context = context_of_caller()
        if context is None:
            raise TritonModelException("a request can be executed by the code of a model only, within its 'execute'")
        return context.models
    calls = scope.calls()
    if calls is None:
        raise TritonModelException(
            "BLS is only supported during the 'execute' function. Other models may not be loaded yet, or not any more; "
            "call them in execute"
        )
    return calls
