"""How the call of a function that yields ends: with its caller, its model, its server, or an exception."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

from naiad import Request
from naiad.backend import Batch
from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad_custom import INT64, Array, model
from naiad_testing import serve
from naiad_testing.backends import CollectingSender


def endless_on_threads(closed: threading.Event) -> object:
    @model
    def endless(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
        try:
            while True:
                yield x
        finally:
            closed.set()

    return endless


def endless_on_a_loop(closed: threading.Event) -> object:
    @model
    async def endless(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
        try:
            while True:
                yield x
        finally:
            await asyncio.sleep(0)
            closed.set()

    return endless


ENDLESS = pytest.mark.parametrize("make", [endless_on_threads, endless_on_a_loop])


@ENDLESS
def test_a_caller_that_leaves_closes_the_function(make):
    closed = threading.Event()

    with serve(make(closed)) as client:
        stream = client.stream(x=[0])
        next(stream)
        stream.close()

        assert closed.wait(10)
        assert next(client.stream(x=[5]))["output"].item() == 5


@ENDLESS
def test_a_server_that_stops_closes_what_does_not_end(make):
    closed = threading.Event()

    with serve(make(closed), options={"exit-timeout-secs": 0}) as client:
        stream = client.stream(x=[0])
        next(stream)

    assert closed.wait(10)
    stream.close()


@ENDLESS
def test_a_server_that_stops_lets_a_function_close_whose_caller_just_left(make):
    closed = threading.Event()

    with serve(make(closed), options={"exit-timeout-secs": 0}) as client:
        next(client.stream(x=[0]))

    assert closed.wait(10)


def test_a_function_can_see_that_its_caller_has_left():
    here, message, seen = threading.Event(), threading.Event(), threading.Event()

    @model
    def patient(x: Array[INT64, 1], request: Request) -> Iterator[Array[INT64, 1]]:
        request.on_cancelled = message.set
        yield x
        here.set()
        message.wait(10)
        if request.cancelled:
            seen.set()

    with serve(patient) as client:
        stream = client.stream(x=[0])
        next(stream)
        assert here.wait(10)
        stream.close()
        assert seen.wait(10)


@model
def breaking_on_threads(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
    yield x
    raise ValueError("out of numbers")


@model
async def breaking_on_a_loop(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
    yield x
    raise ValueError("out of numbers")


@pytest.mark.parametrize("breaking", [breaking_on_threads, breaking_on_a_loop])
def test_an_exception_in_the_middle_ends_the_request_with_its_error(caplog, breaking):
    with serve(breaking) as client:
        stream = client.stream(x=[7])
        first = next(stream)["output"].item()
        with pytest.raises(ModelFailedError, match="_0' failed: ValueError: out of numbers"):
            next(stream)

    assert first == 7
    assert any("in breaking" in record.exc_text for record in caplog.records if record.exc_text)


def test_an_error_of_naiad_keeps_its_kind_in_the_middle():
    @model
    def picky(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
        yield x
        raise InvalidArgumentError("x is used up")

    with serve(picky) as client:
        stream = client.stream(x=[7])
        next(stream)
        with pytest.raises(InvalidArgumentError, match="x is used up"):
            next(stream)


def test_a_wrong_response_is_the_models_error_and_closes_the_function():
    closed = []

    @model
    def wrong(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
        try:
            yield x
            yield x * 0.5
        finally:
            closed.append(True)

    with serve(wrong) as client:
        stream = client.stream(x=[7])
        next(stream)
        with pytest.raises(ModelFailedError, match="output 'output'"):
            next(stream)

    assert closed == [True]


def test_a_call_is_not_made_for_a_caller_that_has_left(folder, batch_of):
    folder.write("""
        from collections.abc import Iterator
        from naiad_custom import INT64, Array, model

        CALLS = []

        @model
        def noting(x: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
            CALLS.append(x)
            yield x
    """)
    instance, sender = folder.instance(), CollectingSender()
    one = batch_of({"x": [1]}, batching=False)
    sender.leave()

    instance.execute(Batch(one.requests, one.sizes, lambda _: sender))

    assert sender.wait_until_ended() == []
    assert instance._call.__globals__["CALLS"] == []


def test_unloading_lets_a_stream_come_to_its_end():
    @model
    def counting(most: Array[INT64, 1]) -> Iterator[Array[INT64, 1]]:
        for number in range(int(most[0])):
            yield np.array([number])

    with serve(counting) as client:
        stream = client.stream(most=[300])
        next(stream)
        client.wait_for(lambda server: server.unload("counting"))

        assert [outputs["output"].item() for outputs in stream] == list(range(1, 300))
