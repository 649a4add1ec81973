"""Models that are replaced while they are asked: not one request fails, and what cannot be loaded changes nothing."""

import shutil
from collections.abc import Callable

from . import models
from .asking import ONE, ROW
from .gates import Gate
from .generations import assert_each_saw_them_in_order, source, under_load
from .running import Running, post, until


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

    with under_load(server, "varied", ONE) as load:
        for change in changes:
            change()
            assert server.load("varied").status == 200
            load.wait_for(3)
    server.unload("varied")

    assert_each_saw_them_in_order(load, 2)


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
    gate.open()  # the client of the load has gone; the load continues
    until(lambda: server.entries("slow")[0]["state"] == "READY")
    served = server.ask("POST", "/v2/models/slow/infer", ROW)
    server.unload("slow")
    server.unload("quick")

    assert (loading["state"], quick.status, echo.status, refused.status, ready) == ("LOADING", 200, 200, 503, False)
    assert served.status == 200
