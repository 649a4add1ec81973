"""SIGTERM in the middle of things: what is in flight is answered, and nothing new is taken."""

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic

from . import models
from .asking import ONE, ROW
from .conftest import Start
from .gates import Gate
from .running import Answer, Running, Wire, post, until

CLINGS = """
from naiad_custom import FP32, Array, model

@model
class Clings:
    def execute(self, x: Array[FP32, -1]) -> Array[FP32, -1]:
        return x

    def close(self):
        wait()
"""


def is_stopping(running: Running) -> bool:
    return "Requests in flight have" in running.log


def has_stopped_listening(running: Running, port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_what_executes_and_what_waits_is_answered(start: Start, repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "waits", "max_batch_size: 2", max_batch_size=2)
    running = start()

    with running.connections(10) as wires:
        for wire in wires:
            wire.send(post("/v2/models/waits/infer", ROW))
        gate.wait_until_entered()
        running.read_all()
        running.terminate()
        until(lambda: is_stopping(running))
        gate.open()
        answers = [wire.answer() for wire in wires]
        ends = [wire.answer() for wire in wires]

    assert [answer and answer.status for answer in answers] == [200] * 10
    assert ends == [None] * 10
    assert running.exit_status() == 0


def test_compressed_requests_in_flight_are_answered_too(start: Start, repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "waits")
    running = start()
    body = gzip.compress(json.dumps(ONE).encode())

    with running.connections(2) as (there, back):
        there.send(post("/v2/models/waits/infer", body, Content_Encoding="gzip"))
        back.send(post("/v2/models/waits/infer", ONE, Accept_Encoding="gzip"))
        gate.wait_until_entered()
        running.read_all()
        running.terminate()
        until(lambda: is_stopping(running))
        gate.open()
        answers = [there.answer(), back.answer()]

    assert [answer and answer.status for answer in answers] == [200, 200]
    assert running.exit_status() == 0


def test_a_server_that_stops_takes_nothing_new(start: Start, repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "waits")
    running = start()
    port = running.port

    with running.connections(3) as (busy, idle, late):
        busy.send(post("/v2/models/waits/infer", ONE))
        gate.wait_until_entered()
        running.read_all()
        running.terminate()
        until(lambda: is_stopping(running) and has_stopped_listening(running, port))
        ended_at_once = idle.answer()
        gate.open()
        answer = busy.answer()
        del late

    assert (ended_at_once, answer and answer.status) == (None, 200)
    assert answer is not None
    assert answer.headers["connection"] == "close"
    assert running.exit_status() == 0


def test_a_body_that_is_on_its_way_is_still_read_and_answered_or_refused(
    start: Start, repository: Path, gate: Gate
) -> None:
    gate.write_model(repository, "waits")
    running = start()
    request = post("/v2/models/echo/infer", ONE)

    with running.connections(2) as (busy, halfway):
        busy.send(post("/v2/models/waits/infer", ONE))
        gate.wait_until_entered()
        halfway.send(request[:-10])
        running.read_all()
        running.terminate()
        until(lambda: is_stopping(running))
        halfway.send(request[-10:])
        late = halfway.answer()
        gate.open()
        answer = busy.answer()

    assert (answer and answer.status, late and late.status in (200, 503)) == (200, True)
    assert running.exit_status() == 0


def test_a_model_that_hangs_holds_the_server_no_longer_than_it_may(start: Start, repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "waits")
    running = start("--exit-timeout-secs=0.3")

    with running.connections(4) as wires:
        for wire in wires:
            wire.send(post("/v2/models/waits/infer", ONE))
        gate.wait_until_entered()
        running.read_all()
        began = monotonic()
        running.terminate()
        status = running.exit_status()
        took = monotonic() - began
        answers = [wire.answer() for wire in wires]

    assert (status, 0.3 <= took < 5) == (1, True)
    assert all(answer is None or answer.status == 503 for answer in answers)


def test_a_load_that_is_under_way_does_not_hold_the_server(start: Start, repository: Path, gate: Gate) -> None:
    models.write(repository, "slow", gate.function("wait") + "wait()")
    running = start("--model-control-mode=explicit", "--load-model=echo", "--exit-timeout-secs=20")

    with running.connected() as wire:
        wire.send(post("/v2/repository/models/slow/load", {}))
        gate.wait_until_entered()
        began = monotonic()
        running.terminate()
        answer = wire.answer()
        status = running.exit_status()

        took = monotonic() - began

    assert (answer and answer.status, status, took < 10) == (503, 0, True)
    assert answer is not None
    assert "the server is stopping" in answer.error


def test_a_model_that_hangs_while_it_is_closed_holds_the_server_no_longer_than_it_may(
    start: Start, repository: Path, gate: Gate
) -> None:
    models.write(repository, "clings", CLINGS + gate.function("wait"))
    running = start("--exit-timeout-secs=0.3")
    assert running.infer("clings", 1).status == 200

    began = monotonic()
    running.terminate()

    assert (running.exit_status(), monotonic() - began < 5) == (1, True)


def test_a_thread_that_a_model_left_behind_does_not_hold_the_server(start: Start, repository: Path, gate: Gate) -> None:
    models.write(
        repository,
        "leaves",
        f"from threading import Thread\n{models.ECHO}{gate.function('wait')}Thread(target=wait).start()",
    )
    running = start()
    assert running.infer("leaves", 1).status == 200

    began = monotonic()
    running.terminate()

    assert (running.exit_status(), monotonic() - began < 5) == (0, True)


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
                    return  # closed between two requests: nobody had read this one
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


def test_connections_that_say_nothing_hold_the_server_no_longer_than_it_may(start: Start, repository: Path) -> None:
    running = start("--exit-timeout-secs=0.5")

    with running.connections(20) as wires:
        for wire in wires[:10]:
            wire.send(b"POST /v2/models/echo/infer HTTP/1.1\r\nContent-Le")
        running.read_all()
        began = monotonic()
        running.terminate()
        status = running.exit_status()

    assert (status, monotonic() - began < 5) == (0, True)
