"""The responses of a streaming call: a bounded queue from the event loop to the thread of the calling model."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from typing import Any

from naiad.errors import NaiadError
from naiad.foreign_errors import raise_interrupt
from naiad.server import Outcome
from naiad.types import Response

_logger = logging.getLogger("naiad.model")

MANY = 16
"""With so many responses queued the called model is paused; it is resumed when half of them are taken."""

_Next = Future[Response | None]


class ResponseFlow:
    """The queue between the event loop, which puts outcomes, and the calling thread, which takes them.

    `pause` and `resume` stop and restart the called model: `pause` is called on the event loop's thread, `resume` on
    the thread that takes a response.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._lock = threading.Lock()
        self._waiting: deque[Outcome] = deque()
        self._next: _Next | None = None
        self._ended = False

    def put(self, outcome: Outcome) -> None:
        """Queue an outcome."""
        with self._lock:
            if self._ended:
                return
            self._ended = isinstance(outcome, NaiadError) or outcome.final
            future, self._next = self._next, None
            if future is not None and not future.set_running_or_notify_cancel():
                future = None  # the caller has cancelled it, and may ask again
            if future is None:
                self._waiting.append(outcome)
            is_crowded = len(self._waiting) >= MANY  # again where a resume of before comes late
        if future is not None:
            settle(future, outcome)
        if is_crowded:
            self._pause()

    def begin_next(self) -> _Next:
        """See `naiad_kit.calls.Responses`."""
        future: _Next = Future()
        with self._lock:
            if not self._waiting and not self._ended:
                self._next = future
                return future
            outcome = self._waiting.popleft() if self._waiting else None
            has_room = outcome is not None and len(self._waiting) == MANY // 2
        if has_room:
            self._resume()
        settle(future, outcome)
        return future

    def end(self) -> None:
        """Take no more outcomes, and drop those that are queued."""
        with self._lock:
            self._ended = True
            self._waiting.clear()
            future, self._next = self._next, None
        if future is not None:
            settle(future, None)


def settle(future: Future[Any], outcome: Outcome | None) -> None:
    """Set the outcome of a future; callbacks that the model has added to it run here, and may raise anything."""
    try:
        if isinstance(outcome, NaiadError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
    except InvalidStateError:  # the caller has cancelled it
        pass
    except BaseException as error:
        raise_interrupt(error)
        _logger.exception("a callback of a model's call failed")


class CalledResponses:
    """The responses as the calling model holds them (`naiad_kit.calls.Responses`). Dropping it cancels the request."""

    def __init__(
        self,
        flow: ResponseFlow,
        cancel: Callable[[], None],
        take_back: Callable[[], None],
        drop: Callable[[], None],
        check: Callable[[], None],
    ) -> None:
        self._flow = flow
        self._cancel = cancel
        self._take_back = take_back
        self._drop = drop
        self._check = check

    def __iter__(self) -> Iterator[Response]:
        return self

    def __next__(self) -> Response:
        self._check()
        response = self._flow.begin_next().result()
        if response is None:
            raise StopIteration
        return response

    def begin_next(self) -> "Future[Response | None]":
        """A future of the next response; its result is None after the last."""
        return self._flow.begin_next()

    def cancel(self) -> None:
        """Ask the model to stop."""
        self._cancel()

    def close(self) -> None:
        """Cancel the rest of the responses."""
        self._flow.end()
        self._take_back()

    def __del__(self) -> None:
        self._drop()  # takes no lock: the garbage collector may call this on a thread that holds the flow's own
