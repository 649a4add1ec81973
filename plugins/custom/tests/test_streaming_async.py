"""`async def` functions that yield: many streams at once on one instance, each as fast as its own caller reads."""

import asyncio
import threading
from collections.abc import AsyncIterator

import numpy as np
import pytest

from naiad.backend import Batch
from naiad.errors import ModelFailedError, ShuttingDownError
from naiad_custom import INT64, Array, model
from naiad_testing import serve
from naiad_testing.backends import CollectingSender


def numbers(stream) -> list:
    return [outputs["output"].item() for outputs in stream]


@pytest.fixture
def start(folder, batch_of):
    """Starts a batch of single requests on an instance; gives the instance, a sender for each, and the future."""

    def start(code: str, *inputs: int, room: int | None = None):
        folder.write(code)
        instance, senders = folder.instance(), [CollectingSender(room) for _ in inputs]
        batch = batch_of(*({"x": [number]} for number in inputs), batching=False)
        return instance, senders, instance.execute(Batch(batch.requests, batch.sizes, senders.__getitem__))

    return start


def test_each_yield_is_one_response():
    @model
    async def countdown(start: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
        for number in range(int(start[0]), 0, -1):
            await asyncio.sleep(0)
            yield np.array([number])

    with serve(countdown) as client:
        assert numbers(client.stream(start=[200])) == list(range(200, 0, -1))
        assert numbers(client.stream(start=[0])) == []


def test_streams_of_one_instance_interleave():
    turns = [asyncio.Event(), asyncio.Event()]

    @model(concurrency=2)
    async def taking_turns(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
        me = int(x[0])
        for number in range(3):
            yield np.array([number])
            turns[1 - me].set()
            await turns[me].wait()
            turns[me].clear()
        turns[1 - me].set()

    with serve(taking_turns) as client:
        streams = [client.stream(x=[number]) for number in (0, 1)]
        results = list(zip(*streams, strict=True))

    assert [[each["output"].item() for each in pair] for pair in results] == [[0, 0], [1, 1], [2, 2]]


def test_a_slow_reader_holds_back_its_own_stream_alone(start):
    _, (slow, fast), future = start(
        """
        from collections.abc import AsyncIterator
        from naiad_custom import INT64, Array, model

        @model
        async def hundred(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
            for _ in range(100):
                yield x
        """,
        1,
        2,
        room=3,
    )

    slow.wait_until_held_up()
    fast.take(100)
    got = len(fast.wait_until_ended())
    before = len(slow.replies)
    slow.take(100)
    after = len(slow.wait_until_ended())

    assert (got, before, after) == (100, 3, 100)
    assert future.result(10) == [None, None]


def test_a_caller_that_leaves_cancels_what_the_function_awaits():
    here, cancelled = threading.Event(), threading.Event()

    @model
    async def waiting(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
        yield x
        here.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with serve(waiting) as client:
        stream = client.stream(x=[0])
        next(stream)
        assert here.wait(10)
        stream.close()

        assert cancelled.wait(10)


def test_what_the_function_does_in_its_finally_is_not_cancelled(start):
    instance, (sender,), future = start(
        """
        import asyncio
        from collections.abc import AsyncIterator
        from naiad_custom import INT64, Array, model

        CLOSED = []

        @model
        async def tidy(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
            try:
                while True:
                    yield x
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)
                CLOSED.append(True)
        """,
        1,
        room=2,
    )

    sender.wait_until_held_up()
    sender.leave()

    assert future.result(10) == [None]
    assert instance._user_object.call.__globals__["CLOSED"] == [True]


def test_a_call_that_wants_to_end_the_process_ends_its_own_request_alone(start):
    _, senders, future = start(
        """
        import asyncio
        import sys
        from collections.abc import AsyncIterator
        from naiad_custom import INT64, Array, model

        @model
        async def leaving(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
            yield x
            if x[0] == 1:
                sys.exit(3)
            await asyncio.sleep(0)
            yield x
        """,
        1,
        2,
    )

    leaver, other = (sender.wait_until_ended() for sender in senders)

    assert isinstance(leaver[-1], ModelFailedError)
    assert "SystemExit: 3" in str(leaver[-1])
    assert [reply.outputs["output"].item() for reply in other] == [2, 2]
    assert future.result(10) == [None, None]


FOREVER = """
    import asyncio
    from collections.abc import AsyncIterator
    from naiad_custom import INT64, Array, model

    CLOSED = []

    @model
    async def forever(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
        try:
            yield x
            await asyncio.Event().wait()
        finally:
            CLOSED.append(True)
"""


def test_closing_an_instance_closes_its_streams(folder, start):
    instance, senders, future = start(FOREVER, 1, 2, room=1)
    for sender in senders:
        sender.wait_until_held_up()

    folder.instances.remove(instance)  # it is closed here
    instance.close()

    assert future.result(10) == [None, None]
    assert [type(sender.wait_until_ended()[-1]) for sender in senders] == [ShuttingDownError] * 2
    assert instance._user_object.call.__globals__["CLOSED"] == [True, True]


def test_a_class_may_return_the_iterator_of_what_it_holds():
    class Engine:
        async def tokens(self, most: int) -> AsyncIterator[np.ndarray]:
            for number in range(most):
                yield np.array([number])

    @model
    class Text:
        async def load(self, context: object) -> None:
            self.engine = Engine()

        def execute(self, most: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
            return self.engine.tokens(int(most[0]))

    with serve(Text) as client:
        assert numbers(client.stream(most=[4])) == [0, 1, 2, 3]
