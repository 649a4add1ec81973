"""A model whose answers tell which generation of it gave them, and clients that ask it without a pause."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from .running import Answer, Running, post, until

GENERATION = """
import numpy as np
from naiad_custom import FP32, Array, model

@model(max_batch_size={size})
def generation(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return np.full_like(x, {number})
"""


def source(number: int, size: int = 8) -> str:
    return GENERATION.format(number=number, size=size)


def replace(repository: Path, name: str, content: str) -> None:
    """Put that in the place of the model.py, in one step as a careful deployment does."""
    target = repository / name / "1" / "model.py"
    beside = repository.parent / "model.py.new"
    beside.write_text(content)
    beside.replace(target)


class Load:
    """Clients that ask a model without a pause; `answers` has all they got, client by client."""

    def __init__(self, running: Running, model: str, request: dict, clients: int = 4) -> None:
        self.answers: list[list[Answer | None]] = [[] for _ in range(clients)]
        self._running = running
        self._request = post(f"/v2/models/{model}/infer", request)
        self._ended = Event()
        self._threads = [Thread(target=self._ask, args=(mine,)) for mine in self.answers]
        for thread in self._threads:
            thread.start()

    def _ask(self, mine: list[Answer | None]) -> None:
        with self._running.connected() as wire:
            while not self._ended.is_set():
                wire.send(self._request)
                mine.append(wire.answer())

    def wait_for(self, count: int) -> None:
        """Return when each client has had so many answers more."""
        targets = [len(mine) + count for mine in self.answers]
        until(lambda: all(len(mine) >= least for mine, least in zip(self.answers, targets, strict=True)))

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def generations(self) -> list[list[int]]:
        """Which generation answered, client by client; every answer must be a good one."""
        for mine in self.answers:
            wrong = [answer for answer in mine if answer is None or answer.status != 200]
            assert wrong == []
        return [[int(answer.document["outputs"][0]["data"][0]) for answer in mine if answer] for mine in self.answers]


@contextmanager
def under_load(running: Running, model: str, request: dict) -> Iterator[Load]:
    """Clients ask the model all the while."""
    load = Load(running, model, request)
    try:
        load.wait_for(5)
        yield load
    finally:
        load.end()


def assert_each_saw_them_in_order(load: Load, newest: int) -> None:
    """No client got an older generation after a newer one, and every client had the oldest and the newest."""
    for mine in load.generations():
        assert mine == sorted(mine)
        assert (mine[0], mine[-1]) == (0, newest)
