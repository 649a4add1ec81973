"""A worker thread with a queue that processes all queued items in one call."""

import logging
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

_logger = logging.getLogger("naiad.cache.redis")

_TOGETHER = 128
_SECONDS_TO_END = 1.0
_END = object()


class BatchingWorker:
    """Calls `begin` once, then `work` with the queued items, in order and several at a time, on its own thread."""

    def __init__(
        self, name: str, work: Callable[[Sequence[Any]], None], begin: Callable[[], None] = lambda: None
    ) -> None:
        self._work = work
        self._begin = begin
        self._waiting: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: object) -> None:
        """Queue an item; returns at once."""
        self._waiting.put(item)

    def close(self) -> None:
        """Process the queued items and end the thread; waits for it at most a second."""
        self._waiting.put(_END)
        self._thread.join(_SECONDS_TO_END)

    def _run(self) -> None:
        self._guarded(self._begin)
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        """Process the queued items; returns False after the last. Keeps no item alive while it waits for more."""
        items = self._take()
        last = _END in items
        items = [item for item in items if item is not _END]
        if items:
            self._guarded(lambda: self._work(items))
            items.clear()  # the frames of an error may live on in a cycle
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
        except BaseException:  # the thread must survive: requests wait for it
            _logger.exception("a round trip to Redis failed")
