"""An `async def execute` of a decoupled model goes on in the background, task by task."""

import asyncio
import threading

import pytest

from naiad.errors import ModelFailedError, ShuttingDownError
from naiad_testing import serve
from naiad_testing.backends import CollectingSender

from .answering import ONE, execute, numbers, written

ASYNC = """
async def answer(request):
    sender = request.get_response_sender()
    for value in range(number(request)):
        await asyncio.sleep(0)
        sender.send(response(value))
    sender.send(flags=FINAL)
await asyncio.gather(*map(answer, requests))
"""


def test_an_async_execute_answers_while_others_run(folder):
    with serve(written(folder, ASYNC, definition="async def")) as client:
        streams = [client.stream(X=[count]) for count in (3, 100, 0)]
        results = [numbers(stream) for stream in streams]

    assert results == [list(range(count)) for count in (3, 100, 0)]


def test_an_async_execute_takes_its_next_batch_while_it_waits(folder):
    body = """
if not GO.is_set():
    GO.set()
    self.event = asyncio.Event()
    await self.event.wait()
else:
    self.event.set()
requests[0].get_response_sender().send(response(number(requests[0])), FINAL)
"""

    with serve(written(folder, body, definition="async def")) as client:
        requests = [client.request(X=[number]) for number in (1, 2)]

        async def both(server):
            return await asyncio.gather(*map(anext, map(server.stream, requests)))

        outputs = [response.outputs["Y"].array.item() for response in client.wait_for(both)]

    assert outputs == [1, 2]


def test_an_async_execute_that_raises_fails_every_request_of_the_call(folder, caplog):
    body = """
requests[0].get_response_sender().send(response(1))
raise ValueError("broken")
"""

    with serve(written(folder, body, definition="async def")) as client:
        stream = client.stream(X=[1])
        next(stream)
        with pytest.raises(ModelFailedError, match="instance 'm_0' failed: ValueError: broken"):
            next(stream)

    assert any("in execute" in record.exc_text for record in caplog.records if record.exc_text)


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ("SystemExit(3)", "instance 'm_0' failed: SystemExit: 3"),
        ("KeyboardInterrupt", r"instance 'm_0' failed: KeyboardInterrupt \("),
        ("Unspeakable", r"instance 'm_0' failed: Unspeakable \("),
        ("asyncio.CancelledError", "the model raised CancelledError; catch it where a task of the model's own"),
    ],
)
def test_whatever_an_async_execute_raises_its_callers_are_notified_and_the_next_are_served(folder, raised, message):
    body = f"""
class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("even the message fails")

sender = requests[0].get_response_sender()
if number(requests[0]):
    raise {raised}
sender.send(response(7), FINAL)
"""

    with serve(written(folder, body, definition="async def")) as client:
        with pytest.raises(ModelFailedError, match=message):
            numbers(client.stream(X=[1]))
        result = numbers(client.stream(X=[0]))

    assert result == [7]


def test_an_async_execute_must_return_none(folder):
    with (
        serve(written(folder, "return []", definition="async def")) as client,
        pytest.raises(ModelFailedError, match="it returned 'list'"),
    ):
        numbers(client.stream(X=[1]))


FLOOD = """
sender = requests[0].get_response_sender()
for value in range(number(requests[0])):
    sender.send(response(value))
    await asyncio.sleep(0)
sender.send(flags=FINAL)
"""


def test_a_slow_reader_holds_back_its_own_task_alone(folder, batch_of):
    written(folder, FLOOD, definition="async def")
    instance, slow, fast = folder.instance(), CollectingSender(room=3), CollectingSender()

    execute(instance, batch_of({"X": [100]}), slow)
    slow.wait_until_held_up()
    execute(instance, batch_of({"X": [100]}), fast)
    got = len(fast.wait_until_ended())
    before = len(slow.replies)
    slow.take(1000)

    assert (got, before) == (100, 3)
    assert len(slow.wait_until_ended()) == 100


def test_an_error_of_a_task_that_is_awaited_keeps_its_traceback(folder):
    body, work = "await asyncio.gather(self.work())", "async def work(self):\n        raise LookupError('inside')"
    folder.write_triton(body, "import asyncio", work, definition="async def")

    with serve(folder.path) as client, pytest.raises(ModelFailedError, match=r"LookupError: inside \(model.py:8\)"):
        client.infer(X=[1])


def test_closing_an_instance_ends_what_runs_in_the_background(folder, batch_of):
    body = """
requests[0].get_response_sender().send(response(1))
HERE.set()
await asyncio.Event().wait()
"""
    written(folder, body, definition="async def")
    instance, kernel = folder.model().instantiate(folder.placement), CollectingSender()
    execute(instance, batch_of({"X": [1]}), kernel)
    assert instance._model.execute.__globals__["HERE"].wait(10)

    instance.close()

    assert isinstance(kernel.wait_until_ended()[-1], ShuttingDownError)
    for thread in threading.enumerate():
        if thread.name == "naiad-async-execute":
            thread.join(10)
            assert not thread.is_alive()


def test_an_async_execute_that_answers_once_may_take_a_sender(folder):
    body = """
await asyncio.sleep(0)
requests[0].get_response_sender().send(response(number(requests[0]) + 1), FINAL)
return [None]
"""

    with serve(written(folder, body, config=ONE, definition="async def")) as client:
        answer = client.infer(X=[1])

    assert answer["Y"].tolist() == [2]
