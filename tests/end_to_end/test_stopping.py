"""SIGTERM in the middle of things: what is in flight is answered, and nothing new is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from . import models
from .asking import ONE
from .conftest import Start
from .gates import Gate
from .running import Answer, Running, Wire, post, until


def test_a_thread_that_a_model_left_behind_does_not_hold_the_server(start: Start, repository: Path, gate: Gate) -> None:
    models.write(
        repository,
        "leaves",
        f"from threading import Thread\n{models.ECHO}{gate.function('wait')}Thread(target=wait).start()",
    )
    running = start()
    assert running.infer("leaves", 1).status == 200

    running.terminate()

    assert running.exit_status() == 0


class Asking:
    """Clients that ask until the server is gone; `answers` has what they got, and nothing that was cut short."""

    def __init__(self, running: Running, clients: int) -> None:
        self.answers: list[list[Answer]] = [[] for _ in range(clients)]
        self.cut_short: list[Exception] = []
        self._running = running
        self._port = running.port
        self._threads = [Thread(target=self._ask, args=(mine,)) for mine in self.answers]
        for thread in self._threads:
            thread.start()

    def _ask(self, mine: list[Answer]) -> None:
        request = post("/v2/models/echo/infer", ONE)
        with self._connected() as wire:
            while wire is not None:
                try:
                    wire.send(request)
                    answer = wire.answer()
                except (BrokenPipeError, ConnectionResetError):
                    return  # closed between two requests: the server had not read this one
                except Exception as error:  # noqa: BLE001 - an answer that ends in the middle shows in many ways
                    self.cut_short.append(error)
                    return
                if answer is None:
                    return
                mine.append(answer)

    @contextmanager
    def _connected(self) -> Iterator[Wire | None]:
        with self._running.connected() as wire:
            yield wire

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def test_clients_that_go_on_asking_get_whole_answers_to_the_end(start: Start, repository: Path) -> None:
    running = start()
    asking = Asking(running, clients=20)
    until(lambda: all(len(mine) > 5 for mine in asking.answers))

    running.terminate()
    asking.join()

    assert running.exit_status() == 0
    assert asking.cut_short == []
    assert {answer.status for mine in asking.answers for answer in mine} <= {200, 503}
    assert "Traceback" not in running.log
