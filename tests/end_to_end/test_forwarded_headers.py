"""Headers of requests that become parameters of the model, as they are on the wire."""

import json

import pytest

from .asking import ONE
from .running import Wire, post


@pytest.mark.parametrize(
    ("value", "expected"),
    [("value", "value"), ("value ", "value "), ("  two words \t", "two words \t"), ("", "")],
)
def test_a_forwarded_header_keeps_the_blanks_at_its_end(wire: Wire, value: str, expected: str) -> None:
    wire.send(post("/v2/models/telling/infer", ONE, X_Note=value))

    answer = wire.answer()
    assert answer is not None
    (report,) = answer.document["outputs"][0]["data"]
    assert json.loads(report)["parameters"] == {"X-Note": expected}
