"""`async def` models: many requests at once on one instance, within bounds."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pytest

from naiad.errors import ModelFailedError, RequestCancelledError
from naiad_custom import BYTES, INT64, Array, model
from naiad_testing import serve
from naiad_testing.tracing import FakeTrace


def test_an_async_model_runs_many_requests_at_once():
    everyone = threading.Barrier(4)

    @model(concurrency=4)
    async def meet(x: Array[INT64, 1]) -> Array[INT64, 1]:
        await asyncio.to_thread(everyone.wait, 10)
        return x + 1

    with serve(meet) as client:
        answers = client.infer_all(*({"x": [number]} for number in range(4)))

    assert [answer["output"].item() for answer in answers] == [1, 2, 3, 4]


def test_an_async_model_never_runs_more_than_its_concurrency():
    running, most = 0, 0

    @model(concurrency=3)
    async def count(x: Array[INT64, 1]) -> Array[INT64, 1]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1
        return x

    with serve(count) as client:
        client.infer_all(*({"x": [number]} for number in range(20)))

    assert 1 <= most <= 3


def test_an_async_class_loads_executes_and_closes_on_one_event_loop():
    loops = []

    @model
    class Gateway:
        async def load(self, context: object) -> None:
            loops.append(asyncio.get_running_loop())

        async def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
            loops.append(asyncio.get_running_loop())
            return x

        async def close(self) -> None:
            loops.append(asyncio.get_running_loop())

    with serve(Gateway) as client:
        client.infer(x=[1])

    assert len(loops) == 3
    assert len(set(loops)) == 1


def test_an_async_model_that_raises_fails_its_request_alone():
    @model
    async def picky(x: Array[INT64, 1]) -> Array[INT64, 1]:
        if x[0] == 1:
            raise ValueError("not one")
        return x

    with serve(picky) as client:
        first, second = client.send_all([client.request(x=[1]), client.request(x=[2])])

    assert isinstance(first, ModelFailedError)
    assert "not one" in str(first)
    assert second.outputs["output"].array.tolist() == [2]


def test_a_call_is_cancelled_when_its_caller_leaves():
    started, cancelled = threading.Event(), threading.Event()

    @model
    async def patient(x: Array[INT64, 1]) -> Array[INT64, 1]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return x

    with serve(patient) as client:
        request = client.request(x=[1])
        call = client.call(lambda server: server.submit(request, print))
        assert started.wait(10)
        client.call(lambda server: call.cancel())

        assert cancelled.wait(10)


def test_a_call_for_a_batch_is_cancelled_when_its_last_caller_leaves(folder, batch_of):
    folder.write("""
        import asyncio
        import threading
        from naiad_custom import INT64, Array, model

        STARTED, CANCELLED = threading.Event(), threading.Event()

        @model(max_batch_size=4)
        async def patient(x: Array[INT64, 1]) -> Array[INT64, 1]:
            STARTED.set()
            try:
                await asyncio.Event().wait()
            finally:
                CANCELLED.set()
            return x
    """)
    instance, batch = folder.instance(), batch_of({"x": [[1]]}, {"x": [[2]]})
    answer = instance.execute(batch)
    globals_of_model = instance._user_object.call.__globals__
    assert globals_of_model["STARTED"].wait(10)

    states = []
    for request in batch.requests:
        request.cancelled = True
        request.on_cancelled()
        instance.wait_for(lambda: None)
        states.append(globals_of_model["CANCELLED"].is_set())

    assert states == [False, True]
    assert isinstance(answer.exception(timeout=10), RequestCancelledError)


def test_a_call_whose_caller_left_before_it_began_is_cancelled_at_its_first_wait(folder, batch_of):
    folder.write("""
        import asyncio
        from naiad_custom import INT64, Array, model

        @model
        async def patient(x: Array[INT64, 1]) -> Array[INT64, 1]:
            await asyncio.Event().wait()
            return x
    """)
    instance, batch = folder.instance(), batch_of({"x": [1]}, batching=False)
    batch.requests[0].cancelled = True

    answer = instance.execute(batch)

    assert isinstance(answer.exception(timeout=10), RequestCancelledError)


def test_a_model_that_cancels_itself_is_distinguished(folder, batch_of):
    folder.write("""
        import asyncio
        from naiad_custom import INT64, Array, model

        @model
        async def odd(x: Array[INT64, 1]) -> Array[INT64, 1]:
            raise asyncio.CancelledError
    """)

    answer = folder.instance().execute(batch_of({"x": [1]}, batching=False))

    with pytest.raises(ModelFailedError, match="the model raised CancelledError"):
        answer.result(timeout=10)


def test_a_model_that_wants_to_end_the_process_fails_its_request_alone(folder, batch_of):
    folder.write("""
        import sys
        from naiad_custom import INT64, Array, model

        @model
        async def leaving(x: Array[INT64, 1]) -> Array[INT64, 1]:
            if x[0] == 1:
                sys.exit("enough")
            return x
    """)
    instance = folder.instance()

    first = instance.execute(batch_of({"x": [1]}, batching=False))
    assert isinstance(first.exception(timeout=10), SystemExit)
    second = instance.execute(batch_of({"x": [2]}, batching=False))

    assert second.result(timeout=10)["output"].item() == 2


SPAN = ContextVar("span", default="none")


class Spanned(FakeTrace):
    """A trace whose current span is in a context variable, as OpenTelemetry's is."""

    @contextmanager
    def current(self):
        token = SPAN.set("compute")
        yield
        SPAN.reset(token)


@model
async def once(x: Array[INT64, 1]) -> Array[BYTES, 1]:
    await asyncio.sleep(0)
    return np.array([SPAN.get()], dtype=object)


@model
async def streaming(x: Array[INT64, 1]) -> AsyncIterator[Array[BYTES, 1]]:
    await asyncio.sleep(0)
    yield np.array([SPAN.get()], dtype=object)


@pytest.mark.parametrize("target", [once, streaming])
def test_the_span_of_a_traced_request_is_current_in_its_call(target):
    with serve(target) as client:
        request = client.request(x=[1])
        request.trace = Spanned()
        first = next(client.responses(request))

    assert first.outputs["output"].array.tolist() == [b"compute"]
