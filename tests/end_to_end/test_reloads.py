"""Models that are replaced while they are asked: not one request fails, and what cannot be loaded changes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

from . import models
from .asking import ONE, ROW
from .conftest import Start
from .gates import Gate
from .generations import asked, assert_each_saw_them_in_order, replace, source
from .running import Running, post, until


def test_a_model_that_is_reloaded_under_load_fails_no_request(server: Running) -> None:
    models.write(server.repository, "renewed", source(0))
    server.load("renewed")

    with asked(server, "renewed", ROW) as load:
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

    with asked(server, "varied", ONE) as load:
        for change in changes:
            change()
            assert server.load("varied").status == 200
            load.wait_for(3)
    server.unload("varied")

    assert_each_saw_them_in_order(load, 2)


def test_a_reload_that_fails_under_load_changes_nothing_and_says_why(server: Running) -> None:
    models.write(server.repository, "kept", source(0))
    server.load("kept")

    with asked(server, "kept", ROW) as load:
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
            wire.send(post("/v2/models/swapped/infer", ONE))
        gate.wait_until_entered()
        server.read_all()
        replace(server.repository, "swapped", source(5, size=0))
        assert server.load("swapped").status == 200
        new = server.ask("POST", "/v2/models/swapped/infer", ONE)
        gate.open()
        old = [wire.answer() for wire in wires]
    server.unload("swapped")

    assert new.document["outputs"][0]["data"] == [5.0]
    assert [answer and answer.document["outputs"][0]["data"] for answer in old] == [[1.0]] * 3


def test_a_model_that_is_unloaded_answers_what_it_has_and_takes_nothing_more(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "leaving")
    server.load("leaving")

    with server.connections(3) as wires:
        for wire in wires:
            wire.send(post("/v2/models/leaving/infer", ONE))
        gate.wait_until_entered()
        server.read_all()
        unloaded = server.unload("leaving")
        (leaving,) = server.entries("leaving")
        refused = server.ask("POST", "/v2/models/leaving/infer", ONE)
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
        refused = server.ask("POST", "/v2/models/slow/infer", ROW)
        ready = server.ready()
    gate.open()  # whoever asked for the load has gone; it goes on
    until(lambda: server.entries("slow")[0]["state"] == "READY")
    served = server.ask("POST", "/v2/models/slow/infer", ROW)
    server.unload("slow")
    server.unload("quick")

    assert (loading["state"], quick.status, echo.status, refused.status, ready) == ("LOADING", 200, 200, 503, False)
    assert served.status == 200


HESITANT = """
from pathlib import Path
from naiad_custom import FP32, Array, model

def hesitate(place):
    tries = Path({folder!r}, place)
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    if len(tries.read_text()) < 3:
        raise OSError(f"not yet at {{place}}")

hesitate("import")

@model
class Hesitant:
    def load(self, context):
        hesitate("load")

    def execute(self, x: Array[FP32, -1]) -> Array[FP32, -1]:
        return x
"""


def test_a_load_that_fails_is_tried_again_as_often_as_it_may(start: Start, repository: Path, tmp_path: Path) -> None:
    models.write(repository, "hesitant", HESITANT.format(folder=str(tmp_path)))

    running = start("--model-load-retry-count=5")

    assert running.infer("hesitant", 1).status == 200
    assert (tmp_path / "load").read_text() == "xxx"
    assert running.log.count("not yet at import") == 2
    running.stop()


def test_a_wrong_configuration_is_not_tried_again(start: Start, repository: Path) -> None:
    models.write(repository, "wrong", models.ECHO, "max_batch_sise: 1")

    running = start("--model-load-retry-count=5", "--exit-on-error=false")

    assert running.infer("echo", 1).status == 200
    assert running.log.count("max_batch_sise: unknown key") == 1
    running.stop()
