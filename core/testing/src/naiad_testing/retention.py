"""Memory retention checks: payloads of requests must die by reference counts alone, with the garbage collector off.

A reference cycle keeps a payload until the next collection, which a server that freezes its heap hardly ever makes.
Run every outcome of a frontend or backend in `freed_by_reference_counts`, and watch what must die.
"""

import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Any, TypeVar

from naiad.types import Request, Response

_T = TypeVar("_T")
_HOLDERS_NAMED = 5
_FREE_BYTES = 65536
"""Growth of so many bytes a run counts as none: counters, caches of heads and shapes, buffers that are reused."""


class RetentionError(AssertionError):
    """A payload outlives its request; the message names the payload and the objects that refer to it."""


class PayloadWatch:
    """Weak references to payloads, by label. Payloads may die on any thread."""

    def __init__(self) -> None:
        self._alive: dict[int, tuple[str, weakref.ref[Any]]] = {}
        self._changed = Condition()
        self.watched = 0

    def watch(self, label: str, payload: _T) -> _T:
        """Watch an object that takes weak references, such as a numpy array or a memoryview, and return it."""
        key = self.watched
        self.watched += 1
        self._alive[key] = (label, weakref.ref(payload, lambda _: self._forget(key)))
        return payload

    def watch_request(self, request: Request) -> Request:
        """Watch the payload of each input."""
        for name, tensor in request.inputs.items():
            self.watch(f"input '{name}' of request {self.watched} to '{request.model_name}'", tensor.payload)
        return request

    def watch_outcome(self, outcome: _T) -> _T:
        """Watch a response's outputs, or an error, which holds the frames of its traceback."""
        if isinstance(outcome, Response):
            for name, tensor in outcome.outputs.items():
                self.watch(f"output '{name}' of '{outcome.model_name}'", tensor.payload)
        elif isinstance(outcome, BaseException):
            self.watch(f"error '{outcome}'", outcome)
        return outcome

    def recording(self, submit: Callable[..., _T]) -> Callable[..., _T]:
        """A function like `Server.submit` that watches each request, and each outcome on its way to the caller."""

        def recorded(request: Request, deliver: Callable[[Any], None], *args: Any, **kwargs: Any) -> _T:
            self.watch_request(request)
            return submit(request, lambda outcome: deliver(self.watch_outcome(outcome)), *args, **kwargs)

        return recorded

    def alive(self) -> list[str]:
        """The labels of the payloads that live."""
        return [label for label, _ in tuple(self._alive.values())]  # other threads free what is watched

    def wait(self, seconds: float) -> bool:
        """Wait until no payload lives; False after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._alive, seconds)

    def check(self) -> None:
        """Raise RetentionError if a payload lives."""
        living = [(label, reference()) for label, reference in tuple(self._alive.values())]
        lines = [f"{label}: held by {_holders(payload)}" for label, payload in living if payload is not None]
        if lines:
            raise RetentionError(
                f"{len(lines)} of {self.watched} payloads outlive their requests:\n" + "\n".join(lines)
            )

    def _forget(self, key: int) -> None:
        with self._changed:
            self._alive.pop(key, None)
            self._changed.notify_all()


@contextmanager
def freed_by_reference_counts(seconds: float = 0.0) -> Iterator[PayloadWatch]:
    """Run the block with the garbage collector off; then everything that the block watches must be dead.

    `seconds` is how long payloads that die on other threads may take for it. Raises RetentionError.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    watch = PayloadWatch()
    try:
        yield watch
        if not watch.wait(seconds):
            watch.check()
    finally:
        if was_enabled:
            gc.enable()


def growth_per_run(run: Callable[[], object], runs: int = 5) -> int:
    """The bytes of traced memory that each further call of `run` keeps, with the garbage collector off.

    The first call, which fills caches, does not count. Memory that `tracemalloc` does not see, does not count either.
    """
    was_enabled, was_tracing = gc.isenabled(), tracemalloc.is_tracing()
    gc.disable()
    if not was_tracing:
        tracemalloc.start(1)
    try:
        run()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(runs):
            run()
        return (tracemalloc.get_traced_memory()[0] - before) // runs
    finally:
        if not was_tracing:
            tracemalloc.stop()
        if was_enabled:
            gc.enable()


def check_no_growth(run: Callable[[], object], runs: int = 5, free: int = _FREE_BYTES) -> None:
    """Raise RetentionError if each call of `run` keeps more than `free` bytes; send payloads well above that."""
    growth = growth_per_run(run, runs)
    if growth > free:
        raise RetentionError(
            f"each run keeps {growth} bytes of memory, and {free} are free; something keeps its payload"
        )


def _holders(payload: object) -> str:
    """The types of the objects that refer to a payload, and of those that refer to them."""
    names = []
    for holder in gc.get_referrers(payload):
        if type(holder).__name__ != "frame" and type(holder) is not list:
            further = {type(each).__qualname__ for each in gc.get_referrers(holder)} - {"list", "frame"}
            names.append(f"{type(holder).__qualname__} (in {', '.join(sorted(further)) or 'nothing'})")
    return "; ".join(names[:_HOLDERS_NAMED]) or "frames or objects that the collector does not know"
