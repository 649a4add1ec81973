"""A decoupled Triton-style model answers through response senders: in `execute`, after it, and from other threads."""

import threading
from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad_testing import serve
from naiad_testing.backends import CollectingSender

from .answering import ONE, execute, numbers, written

COUNT = """
for request in requests:
    sender = request.get_response_sender()
    for value in range(number(request)):
        sender.send(response(value))
    sender.send(flags=FINAL)
"""


EMPTY = """
for request in requests:
    sender = request.get_response_sender()
    sender.send(response(7))
    sender.send(pb_utils.InferenceResponse([]), FINAL)
"""


def test_a_last_response_without_outputs_is_a_response(folder):
    with serve(written(folder, EMPTY)) as client:
        answers = list(client.stream(X=[1]))

    assert [list(each) for each in answers] == [["Y"], []]


@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_decoupled_model_streams(folder, count):
    with serve(written(folder, COUNT)) as client:
        assert numbers(client.stream(X=[count])) == list(range(count))


def test_the_model_that_benchmarks_stream_with_gives_what_it_is_asked_for():
    model = Path(__file__).parents[3] / "bench" / "models" / "stream"

    with serve(model) as client:
        results = [outputs["OUTPUT0"].tolist() for outputs in client.stream(COUNT=[3], SIZE=[2])]

    assert results == [[0, 0], [1, 1], [2, 2]]


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
        results = [numbers(stream) for stream in streams]

    assert results == [list(range(3 + offset)) for offset in range(4)]


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
    with serve(written(folder, body)) as client, pytest.raises(ModelFailedError, match="response sender"):
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
        with pytest.raises(ModelFailedError, match="response sender"):
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
        pytest.raises(ModelFailedError, match="is using the decoupled mode and the execute function must return None"),
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
