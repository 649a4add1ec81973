"""Trace events of calls between models, in the trace of the calling request."""

from pathlib import Path

from naiad.backend import Answer, Batch
from naiad_kit.calls import ModelCalls
from naiad_testing.in_loop import request
from naiad_testing.tracing import FakeTrace

from .models_that_call import Calling, double, doubles_through, output_of


async def test_a_call_is_a_child_of_the_trace_of_its_request(tmp_path: Path) -> None:
    calling = Calling(tmp_path)
    calling.add("double", double)
    calling.add("outer", doubles_through("double"))
    trace = FakeTrace()

    async with calling.running() as server:
        await server.infer(request("outer", 1, trace=trace))

    (child,) = trace.children
    assert (child.model, child.version) == ("double", 1)
    assert child.events[0] == "REQUEST_START"
    assert child.events[-2:] == ["REQUEST_END", "end"]


async def test_a_trace_of_its_own_is_the_one_that_a_call_is_a_child_of(tmp_path: Path) -> None:
    own = FakeTrace()

    def asks(batch: Batch, models: ModelCalls) -> Answer:
        models.infer(request("double", 1, trace=own))
        return output_of(1)

    calling = Calling(tmp_path)
    calling.add("double", double)
    calling.add("outer", asks)

    async with calling.running() as server:
        await server.infer(request("outer", 1))

    assert [child.model for child in own.children] == ["double"]


async def test_a_call_that_is_refused_ends_its_trace(tmp_path: Path) -> None:
    def asks(batch: Batch, models: ModelCalls) -> Answer:
        return output_of(float(models.begin(request("nobody", 1)).exception() is not None))

    calling = Calling(tmp_path)
    calling.add("outer", asks)
    trace = FakeTrace()

    async with calling.running() as server:
        await server.infer(request("outer", 1, trace=trace))

    assert [child.events for child in trace.children] == [["end"]]
