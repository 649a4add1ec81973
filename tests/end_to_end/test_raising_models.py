"""Models that raise: the request fails, and no other one."""

import pytest

from . import models
from .running import Running, until

RAISES = """
import numpy as np
from naiad_custom import FP32, Array, model

class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("even the message fails")

@model
def raises(x: Array[FP32, -1]) -> Array[FP32, -1]:
    {statement}
    return x
"""


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("raise ValueError('out of cheese')", "ValueError: out of cheese"),
        ("x[0] = 1", "read-only"),
        ("np.empty(2**58)", "MemoryError"),
        ("f = lambda: f(); f()", "RecursionError"),
        ("raise StopIteration", "StopIteration"),
        ("assert False", "AssertionError"),
        ("raise ValueError('\\udc80 ' + 'long ' * 100_000)", "ValueError"),
        ("raise Unspeakable", "Unspeakable"),
    ],
)
def test_a_model_that_raises_fails_its_request_alone(server: Running, statement: str, message: str) -> None:
    with models.loaded(server, "raises", RAISES.format(statement=statement)):
        answers = [server.infer("raises", 1, id="r1") for _ in range(3)]
        until(lambda: server.ask("GET", "/v2/models/raises/ready").status == 200)

    assert [answer.status for answer in answers] == [500] * 3
    assert message in answers[0].error
    assert "r1" in answers[0].error
    assert "Traceback" not in answers[0].error
