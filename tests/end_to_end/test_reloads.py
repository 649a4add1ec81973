"""Models that are replaced while they are asked: not one request fails, and what cannot be loaded changes nothing."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from . import models
from .conftest import Start
from .gates import Gate
from .running import Answer, Running, post, until

GENERATION = """
import numpy as np
from naiad_custom import FP32, Array, model

@model(max_batch_size={size})
def generation(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return np.full_like(x, {number})
"""
BATCHED = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [0]}]}
SINGLE = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [0]}]}
POLL = ("--model-control-mode=poll", "--repository-poll-secs=0.05")


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
        wanted = [len(mine) + count for mine in self.answers]
        until(lambda: all(len(mine) >= least for mine, least in zip(self.answers, wanted, strict=True)))

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
def asked(running: Running, model: str, request: dict) -> Iterator[Load]:
    """Clients ask the model all the while."""
    load = Load(running, model, request)
    try:
        load.wait_for(5)
        yield load
    finally:
        load.end()


def assert_each_saw_them_in_order(load: Load, newest: int) -> None:
    """No client got an older generation after a newer one, and everybody had the oldest and the newest."""
    for mine in load.generations():
        assert mine == sorted(mine)
        assert (mine[0], mine[-1]) == (0, newest)


def test_a_model_that_is_reloaded_under_load_fails_no_request(server: Running) -> None:
    models.write(server.repository, "renewed", source(0))
    server.load("renewed")

    with asked(server, "renewed", BATCHED) as load:
        for number in range(1, 11):
            replace(server.repository, "renewed", source(number))
            assert server.load("renewed").status == 200
            load.wait_for(3)
    server.unload("renewed")

    assert_each_saw_them_in_order(load, 10)


def test_a_model_that_changes_in_every_way_under_load_fails_no_request(server: Running) -> None:
    models.write(server.repository, "varied", source(0, size=0))
    server.load("varied")
    changes: list[Callable[[], object]] = [
        lambda: (server.repository / "varied" / "config.pbtxt").write_text("instance_group { count: 3 }"),
        lambda: models.write(server.repository, "varied", source(1, size=0), version=2),
        lambda: shutil.rmtree(server.repository / "varied" / "1"),
        lambda: server.load("varied", config='{"instance_group": [{"count": 2}]}'),
        lambda: models.write(server.repository, "varied", source(2, size=0), "version_policy { all { } }", 7),
        lambda: shutil.rmtree(server.repository / "varied" / "2"),
    ]

    with asked(server, "varied", SINGLE) as load:
        for change in changes:
            change()
            assert server.load("varied").status == 200
            load.wait_for(3)
    server.unload("varied")

    assert_each_saw_them_in_order(load, 2)


def test_a_reload_that_fails_under_load_changes_nothing_and_says_why(server: Running) -> None:
    models.write(server.repository, "kept", source(0))
    server.load("kept")

    with asked(server, "kept", BATCHED) as load:
        for broken in ("import no_such_module", "def broken(:", "", "raise MemoryError"):
            replace(server.repository, "kept", broken)
            assert server.load("kept").status == 400
            (entry,) = server.entries("kept")
            assert entry["state"] == "READY"
            assert "the last reload failed and the earlier generation serves" in entry["reason"]
            load.wait_for(3)
        shutil.rmtree(server.repository / "kept" / "1")
        without_a_version = server.load("kept")
        load.wait_for(3)
        models.write(server.repository, "kept", source(1))
        assert server.load("kept").status == 200
        load.wait_for(3)
        (mended,) = server.entries("kept")
    server.unload("kept")

    assert_each_saw_them_in_order(load, 1)
    assert (without_a_version.status, "reason" in mended) == (400, False)


def test_requests_that_an_old_generation_took_in_are_answered_by_it_after_the_swap(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "swapped", max_batch_size=0)
    server.load("swapped")

    with server.connections(3) as wires:
        for wire in wires:
            wire.send(post("/v2/models/swapped/infer", SINGLE))
        gate.wait_until_entered()
        server.read_all()
        replace(server.repository, "swapped", source(1, size=0))
        assert server.load("swapped").status == 200
        new = server.ask("POST", "/v2/models/swapped/infer", SINGLE)
        gate.open()
        old = [wire.answer() for wire in wires]
    server.unload("swapped")

    assert new.document["outputs"][0]["data"] == [1.0]
    assert [answer and answer.document["outputs"][0]["data"] for answer in old] == [[0.0]] * 3


def test_a_model_that_is_unloaded_answers_what_it_has_and_takes_nothing_more(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "leaving")
    server.load("leaving")

    with server.connections(3) as wires:
        for wire in wires:
            wire.send(post("/v2/models/leaving/infer", SINGLE))
        gate.wait_until_entered()
        server.read_all()
        unloaded = server.unload("leaving")
        (leaving,) = server.entries("leaving")
        refused = server.ask("POST", "/v2/models/leaving/infer", SINGLE)
        gate.open()
        answers = [wire.answer() for wire in wires]
    until(lambda: server.entries("leaving")[0]["state"] == "UNAVAILABLE")

    assert (unloaded.status, leaving["state"], refused.status) == (200, "UNLOADING", 503)
    assert [answer and answer.status for answer in answers] == [200] * 3
    assert server.entries("leaving")[0]["reason"] == "unloaded"


def test_while_a_model_takes_its_time_to_load_everything_else_goes_on(server: Running, gate: Gate) -> None:
    models.write(server.repository, "slow", source(0) + gate.function("wait") + "wait()")
    models.write(server.repository, "quick", source(0))

    with server.connected() as wire:
        wire.send(post("/v2/repository/models/slow/load", {}))
        gate.wait_until_entered()
        (loading,) = server.entries("slow")
        quick, echo = server.load("quick"), server.infer("echo", 1)
        refused = server.ask("POST", "/v2/models/slow/infer", BATCHED)
        ready = server.ready()
    gate.open()  # whoever asked for the load has gone; it goes on
    until(lambda: server.entries("slow")[0]["state"] == "READY")
    served = server.ask("POST", "/v2/models/slow/infer", BATCHED)
    server.unload("slow")
    server.unload("quick")

    assert (loading["state"], quick.status, echo.status, refused.status, ready) == ("LOADING", 200, 200, 503, False)
    assert served.status == 200


HESITANT = """
from pathlib import Path
from naiad_custom import FP32, Array, model

TRIES = Path({tries!r})

@model
class Hesitant:
    def load(self, context):
        TRIES.write_text(TRIES.read_text() + "x")
        if len(TRIES.read_text()) < 3:
            raise OSError("not yet")

    def execute(self, x: Array[FP32, -1]) -> Array[FP32, -1]:
        return x
"""


def test_a_load_that_fails_is_tried_again_as_often_as_it_may(start: Start, repository: Path, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    tries.write_text("")
    models.write(repository, "hesitant", HESITANT.format(tries=str(tries)))

    running = start("--model-load-retry-count=5")

    assert running.infer("hesitant", 1).status == 200
    assert tries.read_text() == "xxx"
    running.stop()


# Poll mode


def test_a_model_that_changes_on_disk_under_load_fails_no_request(start: Start, repository: Path) -> None:
    models.write(repository, "renewed", source(0))
    running = start(*POLL)

    with asked(running, "renewed", BATCHED) as load:
        for number in range(1, 6):
            replace(repository, "renewed", source(number))
            until(lambda number=number: load.answers[0][-1].document["outputs"][0]["data"] == [number])
        load.wait_for(5)

    assert_each_saw_them_in_order(load, 5)
    running.stop()


def test_a_file_that_is_written_slowly_is_served_when_it_is_whole(start: Start, repository: Path) -> None:
    models.write(repository, "renewed", source(0))
    running = start(*POLL)
    content = source(1)

    with asked(running, "renewed", BATCHED) as load:
        with (repository / "renewed" / "1" / "model.py").open("w") as file:
            file.write(content[:-30])
            file.flush()
            until(lambda: "the last reload failed" in running.entries("renewed")[0].get("reason", ""))
            load.wait_for(5)
            file.write(content[-30:])
        until(lambda: load.answers[0][-1].document["outputs"][0]["data"] == [1])
        load.wait_for(5)

    assert_each_saw_them_in_order(load, 1)
    assert "reason" not in running.entries("renewed")[0]
    running.stop()


def test_models_come_and_go_with_their_folders(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*POLL)

    models.write(tmp_path / "elsewhere", "newcomer", source(3))
    (tmp_path / "elsewhere" / "newcomer").rename(repository / "newcomer")
    until(lambda: running.ask("GET", "/v2/models/newcomer/ready").status == 200)
    (repository / "newcomer").rename(tmp_path / "elsewhere" / "newcomer")
    until(lambda: running.ask("GET", "/v2/models/newcomer/ready").status != 200)
    until(lambda: running.entries("newcomer") == [])

    assert running.infer("echo", 1).status == 200
    assert running.ready()
    running.stop()


def test_a_repository_that_vanishes_takes_no_model_with_it(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(*POLL)
    assert running.infer("echo", 1).status == 200

    repository.rename(tmp_path / "moved")
    until(lambda: "cannot be read" in running.log)
    without = running.infer("echo", 1)
    (tmp_path / "moved").rename(repository)
    models.write(repository, "newcomer", source(3))
    until(lambda: running.ask("GET", "/v2/models/newcomer/ready").status == 200)

    assert without.status == 200
    running.stop()
