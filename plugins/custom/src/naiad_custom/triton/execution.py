"""What a model does at the moment, and so which calls to other models it may make, and for which requests."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from naiad.calls import ModelCalls
from naiad.types import Request
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.logger import context_of_caller


class Moment:
    """A part of a model's life. `calls` are those it may make then, None where it may make none."""

    __slots__ = ("calls",)

    def __init__(self, calls: ModelCalls | None) -> None:
        self.calls = calls


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


class Executing:
    """While it is entered, the model executes these requests; tasks and threads that take the context over go on so."""

    __slots__ = ("_moment", "_token")

    def __init__(self, models: ModelCalls, requests: Sequence[Request]) -> None:
        self._moment = Moment(models.within(requests))

    def __enter__(self) -> None:
        self._token = _current.set(self._moment)

    def __exit__(self, *raised: object) -> None:
        _current.reset(self._token)


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
    if now.calls is None:
        raise TritonModelException(
            "BLS is only supported during the 'execute' function. Other models may not be loaded yet, or not any more; "
            "call them in execute"
        )
    return now.calls
