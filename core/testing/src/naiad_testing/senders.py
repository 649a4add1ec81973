"""Fake response sender that keeps what is sent, for tests of decoupled instances."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from naiad.backend import Reply
from naiad.errors import InternalError, NaiadError


class CollectingSender:
    """Keeps what an instance sends: pass `senders.__getitem__` of a list of them to `Batch`.

    `replies` are the replies and errors sent so far. With `room`, so many of them may wait to be taken with `take`;
    a model that sends more waits, as it does for a slow reader. `leave()` is the caller going away. Any thread may use
    all of it.
    """

    def __init__(self, room: int | None = None) -> None:
        self.replies: list[Reply | NaiadError] = []
        self._room = room
        self._ended = threading.Event()
        self._cancelled = False
        self._lock = threading.Lock()
        self._waiting: Future[None] | None = None
        self._held_up = threading.Event()

    def send(self, reply: Reply | NaiadError | None, final: bool = False) -> bool:
        """Keep the reply, and wait for room; False once the caller has left. Raises InternalError after `final`."""
        room = self.post(reply, final)
        if room is not None:
            room.result()
        return not self._cancelled

    def post(self, reply: Reply | NaiadError | None, final: bool = False) -> "Future[None] | None":
        """Keep the reply; a future that is done when there is room again, None while there is."""
        with self._lock:
            if self._ended.is_set():
                raise InternalError("something was sent after the last response; send it before")
            if reply is not None:
                self.replies.append(reply)
                self._room = None if self._room is None else self._room - 1
            if final:
                self._ended.set()
            if final or self._cancelled or not self._is_full():
                return None
            if self._waiting is None:
                self._waiting = Future()
            self._held_up.set()
            return self._waiting

    def is_cancelled(self) -> bool:
        """Whether `leave` was called."""
        return self._cancelled

    def take(self, count: int = 1) -> None:
        """Make room for so many more replies."""
        with self._lock:
            self._room = None if self._room is None else self._room + count
            waiting = None if self._is_full() else self._released()
        _let_go(waiting)

    def leave(self) -> None:
        """Be a caller that wants no more."""
        with self._lock:
            self._cancelled = True
            waiting = self._released()
        _let_go(waiting)

    def wait_until_held_up(self, timeout: float = 10.0) -> None:
        """Return when a sender waits for room. Raises TimeoutError after `timeout` seconds."""
        if not self._held_up.wait(timeout):
            raise TimeoutError(f"no sender has had to wait for room for {timeout:g} seconds")

    def wait_until_ended(self, timeout: float = 10.0) -> Sequence[Reply | NaiadError]:
        """Everything that was sent, when all is sent. Raises TimeoutError after `timeout` seconds."""
        if not self._ended.wait(timeout):
            raise TimeoutError(f"{len(self.replies)} responses came, and after {timeout:g} seconds not the last one")
        return self.replies

    def _is_full(self) -> bool:
        return self._room is not None and self._room <= 0

    def _released(self) -> "Future[None] | None":
        waiting, self._waiting = self._waiting, None
        self._held_up.clear()
        return waiting


def _let_go(waiting: "Future[None] | None") -> None:
    if waiting is not None:
        waiting.set_result(None)
