"""A Triton-style model that is not decoupled may send its one response through a sender."""

import pytest

from naiad.backend import Batch
from naiad.errors import ModelFailedError
from naiad_testing import serve
from naiad_testing.backends import CollectingSender

from .answering import ONE, written


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
    ("body", "message"),
    [
        (
            "requests[0].get_response_sender().send(response(5))\nreturn [response(6)]",
            "more than one response",
        ),
        ("return [None]", "Expected an 'InferenceResponse' object .* found type 'NoneType'"),
        ("requests[0].get_response_sender()\nreturn [None]", "response sender"),
        ("requests[0].get_response_sender().send(response(5))", "response sender"),
        ("return None", "Expected a list"),
    ],
)
def test_a_model_that_answers_once_must_do_so_once(folder, body, message):
    with serve(written(folder, body, config=ONE)) as client, pytest.raises(ModelFailedError, match=message):
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
    instance, events = folder.instance(), []

    class FirstSender(CollectingSender):
        def __del__(self) -> None:
            events.append("dropped")

    senders = [FirstSender(), CollectingSender()]
    batch = batch_of({"X": [1]}, {"X": [2]})
    batch = Batch(batch.requests, batch.sizes, lambda index: senders.pop(0) if index == 0 else senders[0])
    instance.execute(batch)
    del batch

    assert events == ["dropped"]
