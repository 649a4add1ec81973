"""Traces of the requests of a stream."""

import pytest

from naiad.errors import QueueFullError


def test_each_response_of_a_request_that_is_traced_is_recorded(stream, server, ask):
    server.tracing.active = True
    stream.feed(ask("7", model="d"))

    server.calls[0].answer(final=False)
    stream.take()
    server.calls[0].answer(final=False)
    server.calls[0].end()
    recorded = server.tracing.traces[0].events
    sent = ["GRPC_SEND_START", "GRPC_SEND_END"]
    assert recorded == ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", *sent, "GRPC_SEND_START"]
    stream.take()

    assert recorded[-3:] == [*sent, "end"]


@pytest.mark.parametrize("way", ["cancel", "refuse", "answer", "answer in part"])
def test_no_trace_is_left_open(stream, server, ask, way):
    server.tracing.active = True
    if way == "refuse":
        server.refusal = QueueFullError("full")
    stream.feed(ask("7", model="d"))
    if way.startswith("answer"):
        server.calls[0].answer(final=way == "answer")
    assert server.tracing.traces[0].events[-1] != "end"

    stream.cancel()

    assert server.tracing.traces[0].events[-1] == "end"
