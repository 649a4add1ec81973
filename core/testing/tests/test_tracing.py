"""The published fakes are what they stand for."""

import numpy as np

from naiad.types import Trace
from naiad_kit.tracing import Tracing
from naiad_tensors.tensors import Tensor
from naiad_testing.tracing import FakeTrace, FakeTracing


def test_a_fake_trace_remembers_what_it_records() -> None:
    fake = FakeTrace("m", context="{}")
    trace: Trace = fake

    trace.record("REQUEST_START", 5)
    trace.tensors("TENSOR_QUEUE_INPUT", [Tensor.of("x", np.zeros((1, 2), np.float32))])
    with trace.current():
        inside = fake.is_current
    trace.child("step", 1, "s").end()
    trace.record("REQUEST_END")
    trace.end()

    assert (fake.events, fake.times) == (["REQUEST_START", "REQUEST_END", "end"], {"REQUEST_START": 5})
    assert fake.shapes == {"TENSOR_QUEUE_INPUT": [(1, 2)]}
    assert (inside, fake.is_current, trace.context()) == (True, False, "{}")
    assert [(child.model, child.request_id, child.events) for child in fake.children] == [("step", "s", ["end"])]


def test_fake_tracing_traces_everything_and_takes_every_setting() -> None:
    fake = FakeTracing(active=True)
    tracing: Tracing = fake

    trace = tracing.sample("m", 2, "r", "00-ab-cd-01")
    settings = tracing.update({"trace_level": ["TENSORS"], "trace_rate": None, "trace_count": ["3"]}, "m")

    assert [trace] == fake.traces
    assert fake.samples == [("m", 2, "r", "00-ab-cd-01", "")]
    assert settings == tracing.settings() == {"trace_level": ("TENSORS",), "trace_count": "3"}
