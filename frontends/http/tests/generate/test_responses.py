"""Outcomes to what the caller of generate and generate_stream reads."""

import json

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, ModelFailedError, QueueFullError
from naiad.types import Response
from naiad_http.generate import EventStream, OneResponse
from naiad_http.statuses import HttpResponse
from naiad_tensors.tensors import Tensor


def response(*, final=False, error=None, parameters=None, request_id="", **outputs):
    tensors = {name: value if isinstance(value, Tensor) else Tensor.of(name, value) for name, value in outputs.items()}
    return Response("m", 3, request_id, tensors, parameters or {}, final, error)


END = response(final=True)


def document(outcome):
    """The JSON of one response, by way of an event."""
    event = EventStream().take(outcome)
    assert event.startswith(b"data: ")
    assert event.endswith(b"}\n\n")
    return json.loads(event.removeprefix(b"data: "))


def error_of(answer):
    assert ("Content-Type", "application/json") in answer.headers
    return json.loads(answer.body)["error"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["hello"], "hello"),
        ([["hello"]], "hello"),
        (["a", "b"], ["a", "b"]),
        (np.array([0.1], np.float32), 0.1),
        (np.array([[1, 2], [3, 4]]), [1, 2, 3, 4]),
        (np.array(7, np.uint8), 7),
        (np.array([True]), True),
        (np.zeros((0,), np.int32), []),
        (np.array([2**63 - 1]), 2**63 - 1),
        (['line\n"quoted" ü'], 'line\n"quoted" ü'),
    ],
)
def test_outputs_are_flat_and_single_elements_bare(value, expected):
    assert document(response(OUT=value)) == {"model_name": "m", "model_version": "3", "OUT": expected}


def test_what_is_not_finite_is_reported_as_triton_does():
    event = EventStream().take(response(A=np.array([np.nan], np.float32), B=np.array([np.inf, 1.5])))

    assert event == b'data: {"model_name":"m","model_version":"3","A":NaN,"B":[Infinity,1.5]}\n\n'


def test_parameters_and_the_id_stand_beside_the_outputs():
    encoded = document(response(request_id="9", parameters={"finish": "stop", "tokens": 5, "score": 0.5}, OUT=["x"]))

    assert encoded == {
        "id": "9",
        "finish": "stop",
        "tokens": 5,
        "score": 0.5,
        "model_name": "m",
        "model_version": "3",
        "OUT": "x",
    }


def test_of_two_members_with_one_name_the_output_counts_and_the_model_before_parameters():
    encoded = document(response(parameters={"OUT": 1, "model_name": "other"}, OUT=["x"]))

    assert encoded == {"OUT": "x", "model_name": "m", "model_version": "3"}


def test_a_stream_has_an_event_for_each_response_and_ends_without_a_word():
    stream = EventStream()

    events = [stream.take(each) for each in (response(N=[1]), response(N=[2]), END)]

    assert [json.loads(event[6:])["N"] for event in events[:2]] == [1, 2]
    assert (events[2], stream.over) == (b"", True)


def test_a_final_response_with_outputs_is_an_event_and_the_end():
    stream = EventStream()

    event = stream.take(response(N=[1], final=True))

    assert (json.loads(event[6:])["N"], stream.over) == (1, True)


def test_a_stream_without_responses_is_empty():
    stream = EventStream()

    assert (stream.take(END), stream.over) == (b"", True)


@pytest.mark.parametrize(
    "failure",
    [
        QueueFullError("full"),
        response(error=QueueFullError("full")),
        response(error=QueueFullError("full"), final=True),
    ],
)
def test_an_error_in_front_of_all_responses_has_its_status(failure):
    stream = EventStream("42")

    answer = stream.take(failure)

    assert (answer.status, stream.over) == (503, True)
    assert answer.body == b'data: {"error":"[request id: 42] full"}\n\n'
    assert dict(answer.headers)["Content-Type"] == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize(
    "failure",
    [
        ModelFailedError("broke"),
        response(error=ModelFailedError("broke")),
        response(OUT=Tensor.of("OUT", np.ones(2, np.float16))),
        response(OUT=[b"\xff"]),
        response(parameters={"odd": object()}),
    ],
)
def test_an_error_within_the_stream_is_its_last_event(failure):
    stream = EventStream("42")
    stream.take(response(N=[1]))

    event = stream.take(failure)

    assert json.loads(event.removeprefix(b"data: "))["error"].startswith("[request id: 42] ")
    assert event.endswith(b"\n\n")
    assert stream.over


@pytest.mark.parametrize(
    "outcomes", [[response(N=[1], final=True)], [response(N=[1]), END]], ids=["final", "final afterwards"]
)
def test_one_response_is_the_answer_of_generate(outcomes):
    one = OneResponse()

    *before, answer = [one.take(each) for each in outcomes]

    assert before in ([], [None])
    assert answer == HttpResponse(
        200, b'{"model_name":"m","model_version":"3","N":1}', (("Content-Type", "application/json"),)
    )


@pytest.mark.parametrize(
    ("outcomes", "sent"),
    [
        ([END], "none"),
        ([response(N=[1]), response(N=[2])], "more than one"),
        ([response(N=[1]), response(N=[2], final=True)], "more than one"),
    ],
)
def test_another_number_of_responses_is_the_mistake_of_who_asked_for_one(outcomes, sent):
    one = OneResponse("42")

    *before, answer = [one.take(each) for each in outcomes]

    assert set(before) <= {None}
    assert answer.status == 400
    assert error_of(answer).startswith("[request id: 42] generate expects model to produce exactly 1 response")
    assert error_of(answer).endswith(f"it sent {sent}")


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (InvalidArgumentError("no"), 400),
        (response(error=ModelFailedError("broke")), 500),
        (response(OUT=[b"\xff"]), 400),
        (response(parameters={"odd": object()}), 500),
    ],
)
def test_an_error_is_the_answer_of_generate_at_once(failure, status):
    answer = OneResponse("42").take(failure)

    assert answer.status == status
    assert error_of(answer).startswith("[request id: 42] ")


@pytest.mark.parametrize("failure", [ModelFailedError("broke"), response(error=ModelFailedError("broke"))])
def test_an_error_after_the_one_response_counts(failure):
    one = OneResponse()
    one.take(response(N=[1]))

    assert error_of(one.take(failure)) == "broke"


@pytest.mark.parametrize("output", [Tensor.of("OUT", np.ones(2, np.float16)), [b"\xff"], [b"\xff", b"\xfe"]])
def test_what_json_cannot_carry_is_reported_with_the_ways_that_can(output):
    answer = OneResponse().take(response(OUT=output, final=True))

    assert answer.status == 400
    assert error_of(answer).endswith("generate has JSON alone")
