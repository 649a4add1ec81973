"""Models that answer `generate_stream` with an error at first."""

import http.client
import json

import pytest

from ..running import Answer, Running
from .writing import DECOUPLED, PythonModel

_ERROR = 'pb_utils.InferenceResponse(error=pb_utils.TritonError("not today", pb_utils.TritonError.UNAVAILABLE))'
MODELS = {
    "once": PythonModel(f"return [{_ERROR} for _ in requests]"),
    "raising": PythonModel('raise ValueError("torn")'),
    "streaming": PythonModel(
        f"""
        for request in requests:
            sender = request.get_response_sender()
            for number in range(value(request.inputs())):
                sender.send(answer(number))
            sender.send({_ERROR}, FINAL)
        """,
        config=DECOUPLED,
    ),
}


def streamed(running: Running, model: str, **document: int) -> Answer:
    return running.ask("POST", f"/v2/models/{model}/generate_stream", document)


def events(answer: Answer) -> list[object]:
    """The documents of the events."""
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    return [json.loads(event.removeprefix(b"data: ")) for event in answer.body.split(b"\n\n")[:-1]]


@pytest.mark.parametrize(
    ("model", "status", "error"),
    [("once", 503, "not today"), ("streaming", 503, "not today"), ("raising", 500, "instance 'raising_0")],
)
def test_an_error_as_the_first_response_is_an_event_with_its_status(
    running: Running, model: str, status: int, error: str
) -> None:
    answer = streamed(running, model, X=0)

    (event,) = events(answer)
    assert answer.status == status
    assert isinstance(event, dict)
    assert event["error"].startswith(error)


def test_a_later_error_is_the_last_event_of_a_stream_that_went_well(running: Running) -> None:
    answer = streamed(running, "streaming", X=2)

    assert answer.status == http.client.OK
    assert [next(iter(event)) for event in events(answer)] == ["model_name", "model_name", "error"]


@pytest.mark.parametrize(("model", "status"), [("once", 400), ("dream", 404)])
def test_an_error_before_the_model_is_json(running: Running, model: str, status: int) -> None:
    answer = streamed(running, model, Z=1)

    assert (answer.status, answer.headers["content-type"], list(answer.document)) == (
        status,
        "application/json",
        ["error"],
    )
