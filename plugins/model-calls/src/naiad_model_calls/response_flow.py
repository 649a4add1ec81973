"""The responses of a call that may have many: from the event loop to the thread that takes them, at its pace."""

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
"""So many responses wait to be taken before the called model has to wait as well; it goes on at half of them."""

_Next = Future[Response | None]


class ResponseFlow:
    """What is between the event loop, which puts outcomes in, and the thread that asks for the next.

    `pause` and `resume` hold the called model back: the first is called on the event loop's thread, the other on that
    of whoever takes.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._lock = threading.Lock()
        self._waiting: deque[Outcome] = deque()
        self._wanted: _Next | None = None
        self._ended = False

    def put(self, outcome: Outcome) -> None:
        """Keep an outcome until it is taken; one that only says that the call is over just ends it."""
        with self._lock:
            if self._ended:
                return
            self._ended = isinstance(outcome, NaiadError) or outcome.final
            is_told = isinstance(outcome, NaiadError) or not outcome.is_empty
            wanted, self._wanted = self._wanted, None
            if wanted is not None and not wanted.set_running_or_notify_cancel():
                wanted = None  # whoever waited has given up, and may ask again
            if wanted is None and is_told:
                self._waiting.append(outcome)
            is_crowded = len(self._waiting) == MANY
        if wanted is not None:
            settle(wanted, outcome if is_told else None)
        if is_crowded:
            self._pause()

    def begin_next(self) -> _Next:
        """See `naiad.calls.Responses`."""
        future: _Next = Future()
        with self._lock:
            if not self._waiting and not self._ended:
                self._wanted = future
                return future
            outcome = self._waiting.popleft() if self._waiting else None
            has_room = outcome is not None and len(self._waiting) == MANY // 2
        if has_room:
            self._resume()
        settle(future, outcome)
        return future

    def end(self) -> None:
        """Nobody takes any more: what waits is forgotten."""
        with self._lock:
            self._ended = True
            self._waiting.clear()
            wanted, self._wanted = self._wanted, None
        if wanted is not None:
            settle(wanted, None)


def settle(future: Future[Any], outcome: Outcome | None) -> None:
    """Give a future its outcome; callbacks that the model has set on it run here, and may raise anything."""
    try:
        if isinstance(outcome, NaiadError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
    except InvalidStateError:  # whoever waited has given up
        pass
    except BaseException as error:
        raise_interrupt(error)
        _logger.exception("a callback of a model's call failed")


class CalledResponses:
    """What a model holds: see `naiad.calls.Responses`. Dropping it takes the request back."""

    def __init__(
        self,
        flow: ResponseFlow,
        take_back: Callable[[], None],
        drop: Callable[[], None],
        check: Callable[[], None],
    ) -> None:
        self._flow = flow
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
        """The next response when it is there, None after the last."""
        return self._flow.begin_next()

    def close(self) -> None:
        """Say that no more responses are wanted."""
        self._flow.end()
        self._take_back()

    def __del__(self) -> None:
        self._drop()  # takes no lock: the garbage collector may call this on a thread that holds the flow's own
