"""A Triton-style model that answers through response senders, in `execute`, after it, and from other threads."""

import asyncio
import threading
from pathlib import Path

import pytest

from naiad.backend import Batch
from naiad.errors import InvalidArgumentError, ModelFailedError, ShuttingDownError
from naiad.testing import serve
from naiad.testing.backends import CollectingSender

ONE = 'input { name: "X" data_type: TYPE_INT64 dims: 1 } output { name: "Y" data_type: TYPE_INT64 dims: 1 }'
MANY = f"{ONE} model_transaction_policy {{ decoupled: true }}"

HEAD = """
    import asyncio
    import threading
    import numpy as np
    import triton_python_backend_utils as pb_utils

    FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
    GO, HERE = threading.Event(), threading.Event()
    SEEN = []

    def number(request):
        return int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0])

    def response(value):
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([value]))])
"""


def written(folder, execute: str, config: str = MANY, more: str = "", definition: str = "def"):
    """The model's folder, with that body of execute, and `more` in its class."""
    lines = [HEAD, "    class TritonPythonModel:", f"        {definition} execute(self, requests):"]
    lines += [f"            {line}" for line in execute.strip().splitlines()]
    lines += [f"        {line}" for line in more.strip().splitlines()]
    folder.write("\n".join(lines), config)
    return folder.path


def numbers(stream) -> list[int]:
    return [outputs["Y"].item() for outputs in stream]


def execute(instance, batch, *senders: CollectingSender):
    return instance.execute(Batch(batch.requests, batch.sizes, senders.__getitem__))


COUNT = """
for request in requests:
    sender = request.get_response_sender()
    for value in range(number(request)):
        sender.send(response(value))
    sender.send(flags=FINAL)
"""


@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_decoupled_model_streams(folder, count):
    with serve(written(folder, COUNT)) as client:
        assert numbers(client.stream(X=[count])) == list(range(count))


def test_the_model_that_benchmarks_stream_with_gives_what_it_is_asked_for():
    model = Path(__file__).parents[3] / "bench" / "models" / "stream"

    with serve(model) as client:
        found = [outputs["OUTPUT0"].tolist() for outputs in client.stream(COUNT=[3], SIZE=[2])]

    assert found == [[0, 0], [1, 1], [2, 2]]


THREADS = """
def answer(request, sender):
    for value in range(number(request)):
        sender.send(response(value))
    sender.send(flags=FINAL)
for request in requests:
    threading.Thread(target=answer, args=(request, request.get_response_sender())).start()
"""


def test_responses_may_be_sent_by_other_threads_after_execute_has_returned(folder):
    with serve(written(folder, THREADS)) as client:
        streams = [client.stream(X=[3 + offset]) for offset in range(4)]
        found = [numbers(stream) for stream in streams]

    assert found == [list(range(3 + offset)) for offset in range(4)]


LATE = """
def answer(request):
    GO.wait(10)
    sender = request.get_response_sender()
    sender.send(response(number(request)), FINAL)
threading.Thread(target=answer, args=(requests[0],)).start()
"""


def test_a_request_that_is_kept_can_be_answered_later(folder, batch_of):
    written(folder, LATE)
    instance, sender = folder.instance(), CollectingSender()

    answer = execute(instance, batch_of({"X": [7]}), sender)
    instance._model.execute.__globals__["GO"].set()

    assert answer == [None]
    assert [reply.outputs["Y"].item() for reply in sender.wait_until_ended()] == [7]


@pytest.mark.parametrize("body", ["pass", "requests[0].get_response_sender().send(response(1))"])
def test_a_sender_that_is_dropped_fails_its_request(folder, body):
    with (
        serve(written(folder, body)) as client,
        pytest.raises(ModelFailedError, match="dropped the response sender of a request without saying that all"),
    ):
        numbers(client.stream(X=[1]))


def test_a_sender_that_its_thread_drops_fails_its_request(folder):
    body = """
def forget(sender):
    sender.send(response(1))
threading.Thread(target=forget, args=(requests[0].get_response_sender(),)).start()
"""

    with serve(written(folder, body)) as client:
        stream = client.stream(X=[1])
        first = next(stream)["Y"].item()
        with pytest.raises(ModelFailedError, match="dropped the response sender"):
            next(stream)

    assert first == 1


def test_a_caller_that_leaves_is_seen_by_request_and_sender(folder):
    body = """
request, sender = requests[0], requests[0].get_response_sender()
while not sender.is_cancelled():
    sender.send(response(1))
SEEN.append((request.is_cancelled(), sender.is_cancelled()))
sender.send(flags=FINAL)
HERE.set()
"""
    more = """
def finalize(self):
    assert SEEN == [(True, True)]
    pb_utils.Logger.log_warn("seen")
"""
    written(folder, body, more=more)

    with serve(folder.path) as client:
        stream = client.stream(X=[1])
        next(stream)
        stream.close()


def test_a_slow_reader_holds_execute_back(folder, batch_of):
    body = """
sender = requests[0].get_response_sender()
while not sender.is_cancelled():
    sender.send(response(1))
sender.send(flags=FINAL)
"""
    written(folder, body)
    instance, kernel = folder.instance(), CollectingSender(room=3)
    running = threading.Thread(target=execute, args=(instance, batch_of({"X": [1]}), kernel))
    running.start()

    kernel.wait_until_held_up()
    before = len(kernel.replies)
    kernel.leave()

    assert before == 3
    assert len(kernel.wait_until_ended()) == 3
    running.join()


def test_an_exception_fails_every_request_of_the_call(folder):
    body = """
requests[0].get_response_sender().send(response(1))
raise ValueError("broken")
"""

    with serve(written(folder, body)) as client:
        stream = client.stream(X=[1])
        first = next(stream)["Y"].item()
        with pytest.raises(ModelFailedError, match="ValueError: broken"):
            next(stream)

    assert first == 1


def test_a_decoupled_model_must_return_none(folder):
    with (
        serve(written(folder, "return [response(1)]")) as client,
        pytest.raises(ModelFailedError, match="using the decoupled mode and the execute function must return None"),
    ):
        numbers(client.stream(X=[1]))


def test_the_error_of_one_response_is_not_the_end(folder):
    body = """
sender = requests[0].get_response_sender()
sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("no ones", pb_utils.TritonError.INVALID_ARG)))
sender.send(response(2), FINAL)
"""

    with serve(written(folder, body)) as client:
        first, second = client.responses(client.request(X=[1]))

    assert isinstance(first.error, InvalidArgumentError)
    assert (first.final, second.final, second.outputs["Y"].array.tolist()) == (False, True, [2])


def test_auto_complete_config_may_make_a_model_decoupled(folder):
    more = """
@staticmethod
def auto_complete_config(config):
    config.set_model_transaction_policy({"decoupled": True})
    return config

def initialize(self, args):
    import json
    assert pb_utils.using_decoupled_model_transaction_policy(json.loads(args["model_config"]))
"""

    with serve(written(folder, COUNT, config=ONE, more=more)) as client:
        assert numbers(client.stream(X=[2])) == [0, 1]


# async def execute


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
        found = [numbers(stream) for stream in streams]

    assert found == [list(range(count)) for count in (3, 100, 0)]


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

        found = [response.outputs["Y"].array.item() for response in client.wait_for(both)]

    assert found == [1, 2]


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


def test_an_async_execute_must_return_none(folder):
    with (
        serve(written(folder, "return []", definition="async def")) as client,
        pytest.raises(ModelFailedError, match="the execute function must return None; it returned 'list'"),
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
    assert [thread for thread in threading.enumerate() if thread.name == "naiad-async-execute"] == []


# Models that are not decoupled


@pytest.mark.parametrize(
    "body",
    [
        "requests[0].get_response_sender().send(response(5), FINAL)\nreturn [None]",
        "requests[0].get_response_sender().send(response(5), FINAL)",
        "sender = requests[0].get_response_sender()\nsender.send(response(5))\nsender.send(flags=FINAL)\nreturn [None]",
        "requests[0].get_response_sender()\nreturn [response(5)]",
        "threading.Thread(target=requests[0].get_response_sender().send, args=(response(5), FINAL)).start()",
    ],
    ids=["in the list", "no list", "in two steps", "taken and not used", "by another thread"],
)
def test_a_model_that_answers_once_may_do_so_by_its_sender(folder, body):
    with serve(written(folder, body, config=ONE)) as client:
        assert client.infer(X=[1])["Y"].tolist() == [5]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            "requests[0].get_response_sender().send(response(5))\nreturn [response(6)]",
            "Non-decoupled model cannot send more than one response",
        ),
        ("return [None]", "Expected an 'InferenceResponse' object .* found type 'NoneType'"),
        ("requests[0].get_response_sender()\nreturn [None]", "dropped the response sender"),
        ("requests[0].get_response_sender().send(response(5))", "dropped the response sender"),
        ("return None", "Expected a list in the execute return, found type 'NoneType'"),
    ],
)
def test_a_model_that_answers_once_must_do_so_once(folder, body, told):
    with serve(written(folder, body, config=ONE)) as client, pytest.raises(ModelFailedError, match=told):
        client.infer(X=[1])


def test_requests_of_a_batch_may_be_answered_in_either_way(folder):
    config = f"max_batch_size: 4 dynamic_batching {{ }} {ONE}"
    body = """
answers = []
for request in requests:
    value = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
    made = pb_utils.InferenceResponse([pb_utils.Tensor("Y", value)])
    if value[0, 0] % 2:
        request.get_response_sender().send(made, FINAL)
    answers.append(None if value[0, 0] % 2 else made)
return answers
"""
    written(folder, body, config=config)

    with serve(folder.path) as client:
        answers = client.infer_all(*({"X": [[number]]} for number in range(8)))

    assert [answer["Y"].item() for answer in answers] == list(range(8))


def test_a_request_that_is_kept_keeps_no_sender_of_another(folder, batch_of):
    body = """
SEEN.append(requests[1])
requests[0].get_response_sender()
return [None, response(1)]
"""
    written(folder, body, config=ONE)
    instance, told = folder.instance(), []

    class Told(CollectingSender):
        def __del__(self) -> None:
            told.append("dropped")

    senders = [Told(), CollectingSender()]
    batch = batch_of({"X": [1]}, {"X": [2]})
    batch = Batch(batch.requests, batch.sizes, lambda index: senders.pop(0) if index == 0 else senders[0])
    instance.execute(batch)
    del batch

    assert told == ["dropped"]
