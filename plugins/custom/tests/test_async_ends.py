"""`async def` models: the end of their instances, and of the calls and threads that these leave."""

import threading

import pytest

from naiad.backend import Batch
from naiad.errors import ModelFailedError, ShuttingDownError
from naiad_testing.backends import CollectingSender


def test_closing_an_instance_ends_the_calls_that_still_run(folder, batch_of):
    folder.write("""
        import asyncio
        from naiad_custom import INT64, Array, model

        @model
        async def forever(x: Array[INT64, 1]) -> Array[INT64, 1]:
            await asyncio.Event().wait()
            return x
    """)
    instance = folder.model().instantiate(folder.placement)
    answer = instance.execute(batch_of({"x": [1]}, batching=False))

    instance.close()

    assert isinstance(answer.exception(timeout=10), ShuttingDownError)


AWAITED = """
    async def endless(x: Array[INT64, 1]) -> Array[INT64, 1]:
        with_close()
        try:
            STARTED.set()
            await asyncio.Event().wait()
        finally:
            await clean_up()
        return x
"""
YIELDING = """
    async def endless(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
        with_close()
        try:
            yield x
            STARTED.set()
            await asyncio.Event().wait()
        finally:
            await clean_up()
"""
YIELDING_WITHOUT_WAITS = """
    async def endless(x: Array[INT64, 1]) -> AsyncIterator[Array[INT64, 1]]:
        with_close()
        try:
            STARTED.set()
            while True:
                yield x
                await asyncio.sleep(0)
        finally:
            await clean_up()
"""


@pytest.mark.parametrize("function", [AWAITED, YIELDING, YIELDING_WITHOUT_WAITS])
@pytest.mark.parametrize("size", [1, 2])
def test_closing_an_instance_lets_the_clean_up_of_a_call_end_whose_caller_has_left(folder, batch_of, function, size):
    folder.write(
        """
    import asyncio
    import threading
    from collections.abc import AsyncIterator
    from naiad_custom import INT64, Array, model

    STARTED, LEFT, CLEANED_UP = threading.Event(), threading.Event(), []
    CLOSING = asyncio.Event()
    TASKS = []

    def with_close():
        TASKS.append(asyncio.ensure_future(await_close()))

    async def await_close():
        try:
            await asyncio.Event().wait()
        finally:
            CLOSING.set()

    async def clean_up():
        LEFT.set()
        await CLOSING.wait()
        CLEANED_UP.append(1)

    @model
    """
        + function.lstrip()
    )
    instance = folder.model().instantiate(folder.placement)
    senders = [CollectingSender() for _ in range(size)]
    batch = batch_of(*[{"x": [1]}] * size, batching=False)
    instance.execute(Batch(batch.requests, batch.sizes, senders.__getitem__))
    names = instance._user_object.call.__globals__
    assert names["STARTED"].wait(10)

    for request, sender in zip(batch.requests, senders, strict=True):
        sender.leave()
        request.cancelled = True
        request.on_cancelled()
    assert names["LEFT"].wait(10)
    instance.close()

    assert names["CLEANED_UP"] == [1] * len(names["TASKS"])
    assert all(task.cancelled() for task in names["TASKS"])


def test_an_async_load_that_fails_leaves_no_thread_behind(folder):
    folder.write("""
        from naiad_custom import INT64, Array, model

        @model
        class Broken:
            async def load(self, context) -> None:
                raise OSError("no network")

            async def execute(self, x: Array[INT64, 1]) -> Array[INT64, 1]:
                return x
    """)
    loaded = folder.model()

    with pytest.raises(ModelFailedError, match="OSError: no network"):
        loaded.instantiate(folder.placement)

    for thread in threading.enumerate():
        if thread.name == "naiad-async-model":
            thread.join(10)
            assert not thread.is_alive()
