"""A thread that takes what was put to it, all that waits at a time."""

import logging
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

_logger = logging.getLogger("naiad.cache.redis")

_TOGETHER = 128
_SECONDS_TO_END = 1.0
_END = object()


class Talker:
    """Calls `talk` with what was put, in order and several together, on its thread; first of all it calls `begin`."""

    def __init__(
        self, name: str, talk: Callable[[Sequence[Any]], None], begin: Callable[[], None] = lambda: None
    ) -> None:
        self._talk = talk
        self._begin = begin
        self._waiting: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: object) -> None:
        """Have this talked about; returns at once."""
        self._waiting.put(item)

    def close(self) -> None:
        """Talk about what was put, and end the thread; one that hangs is left after a second."""
        self._waiting.put(_END)
        self._thread.join(_SECONDS_TO_END)

    def _run(self) -> None:
        self._guarded(self._begin)
        while self._talk_once():
            pass

    def _talk_once(self) -> bool:
        """Talk about what waits; False at the end. Holds nothing while it waits for more."""
        items = self._take()
        last = _END in items
        items = [item for item in items if item is not _END]
        if items:
            self._guarded(lambda: self._talk(items))
        return not last

    def _take(self) -> list[Any]:
        items = [self._waiting.get()]
        while len(items) < _TOGETHER:
            try:
                items.append(self._waiting.get_nowait())
            except Empty:
                break
        return items

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException:  # the thread goes on: requests wait for it
            _logger.exception("talking to Redis failed")
