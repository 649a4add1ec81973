"""What a model does at the moment, and so which calls to other models it may make, and for which requests."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token

from naiad.calls import ModelCalls
from naiad.types import Request
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.logger import context_of_caller


class Moment:
    """A part of a model's life: it executes these requests, or, without `models`, does something else.

    Light to make, for there is one for every batch, and most models call nobody.
    """

    __slots__ = ("_calls", "_models", "_requests")

    def __init__(self, models: ModelCalls | None, requests: Sequence[Request] = ()) -> None:
        self._models = models
        self._requests = requests
        self._calls: ModelCalls | None = None

    def calls(self) -> ModelCalls | None:
        """The calls that may be made then, None where none may be; to be asked first on the thread that executes."""
        if self._calls is None and self._models is not None:
            self._calls = self._models.within(self._requests)
        return self._calls


_NOT_NOW = Moment(None)
_current: ContextVar[Moment | None] = ContextVar("naiad_custom_moment", default=None)


@contextmanager
def outside_of_execute() -> Iterator[None]:
    """The model is initialized or finalized: it calls nobody, as other models may not be there yet, or any more."""
    token = _current.set(_NOT_NOW)
    try:
        yield
    finally:
        _current.reset(token)


def enter(now: Moment) -> Token[Moment | None]:
    """The running code executes from here on; tasks and threads that take the context over go on so."""
    return _current.set(now)


leave = _current.reset
"""It does no longer."""


def moment() -> Moment | None:
    """The moment of the running code, None for a thread of the model's own."""
    return _current.get()


def calls_at(made: Moment | None) -> ModelCalls:
    """The calls that the running code may make, with a request that was made at that moment.

    A thread of the model's own may call as well, for no request in particular. Raises TritonModelException outside of
    `execute`, and in code that belongs to no model.
    """
    now = _current.get() or made
    if now is None:
        context = context_of_caller()
        if context is None:
            raise TritonModelException("a request can be executed by the code of a model only, within its 'execute'")
        return context.models
    calls = now.calls()
    if calls is None:
        raise TritonModelException(
            "BLS is only supported during the 'execute' function. Other models may not be loaded yet, or not any more; "
            "call them in execute"
        )
    return calls
