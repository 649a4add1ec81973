"""Callbacks of asynchronous calls, as tests wait for them."""

from queue import Queue
from typing import Any

from ..running import PATIENCE


class Gathered:
    """A callback that keeps what comes."""

    def __init__(self) -> None:
        self._came: Queue[Any] = Queue()

    def __call__(self, result: Any, error: Any) -> None:
        self._came.put(error if result is None else result)

    def next(self) -> Any:
        return self._came.get(timeout=PATIENCE)

    def take(self, count: int) -> list[Any]:
        return [self.next() for _ in range(count)]
