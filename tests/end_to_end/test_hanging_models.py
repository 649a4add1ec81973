"""Models that hang: deadlines pass, clients leave, and everybody else is served."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .asking import ONE
from .gates import Gate
from .running import Running, post, until


def test_a_request_is_told_when_its_deadline_passes_while_the_model_hangs(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "hangs")
    server.load("hangs")

    late = server.infer("hangs", 1, id="r2", headers={"Request-Timeout": "0.05"})
    waiting = server.infer("hangs", 1, headers={"Request-Timeout": "0.05"})
    others = server.infer("echo", 1)
    executions = gate.entered
    gate.open()
    again = server.infer("hangs", 1, headers={"Request-Timeout": "30"})
    server.unload("hangs")

    assert (late.status, waiting.status, others.status, again.status) == (504, 504, 200, 200)
    assert "r2" in late.error
    assert "was still executing after" in late.error
    assert "was still waiting after" in waiting.error
    assert executions == 1


def test_while_one_instance_hangs_another_serves(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "hangs", "instance_group { count: 2 }")
    server.load("hangs")

    late = server.infer("hangs", 1, headers={"Request-Timeout": "0.05"})
    first_hangs = gate.entered
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(server.infer, "hangs", 1)
        gate.wait_until_entered(2)
        ready = server.ask("GET", "/v2/models/hangs/ready").status
        gate.open()
    server.unload("hangs")

    assert (late.status, first_hangs, second.result().status, ready) == (504, 1, 200, 200)


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf", ""])
def test_a_deadline_that_makes_no_sense_is_refused(server: Running, seconds: str) -> None:
    answer = server.infer("echo", 1, headers={"Request-Timeout": seconds})

    assert answer.status == 400
    assert "Request-Timeout must be a number of seconds greater than 0" in answer.error


def test_a_client_that_leaves_takes_back_what_has_not_begun(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "hangs")
    server.load("hangs")

    with server.connected() as staying:
        staying.send(post("/v2/models/hangs/infer", ONE))
        gate.wait_until_entered()
        with server.connected() as leaving:
            leaving.send(post("/v2/models/hangs/infer", ONE))
            server.read_all()
        until(lambda: server.counted("hangs", "fail") == 1)
        gate.open()
        answer = staying.answer()
    executed = (gate.entered, server.counted("hangs", "success"))
    server.unload("hangs")

    assert (answer and answer.status, executed) == (200, (1, 1))
