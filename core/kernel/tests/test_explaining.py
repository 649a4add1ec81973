"""Who asks for an explanation, and what a frontend adds to one; what a timeline says."""

import json

import pytest

from naiad._kernel.explaining.explanation import Explanation
from naiad._kernel.explaining.timeline import timeline
from naiad.explaining import add_encoding, as_text, asks, is_asked
from naiad.trace_events import JoinedBatch
from naiad.types import Response
from naiad_testing.tracing import FakeTrace


@pytest.mark.parametrize("value", [True, 1, "1", "true", "True", "TRUE"])
def test_true_asks(value: object) -> None:
    assert is_asked(value)
    assert asks({"explain": value})  # type: ignore[dict-item]


@pytest.mark.parametrize("value", [False, 0, 2, "", "0", "yes please", None])
def test_all_else_does_not(value: object) -> None:
    assert not is_asked(value)


def test_no_parameters_ask_for_nothing() -> None:
    assert not asks({})


def test_the_encoding_comes_after_the_answer() -> None:
    response = Response("m", 1, "", {}, {"explain": as_text({"answered": 10.5}), "other": 1})

    add_encoding(response, 2e-6)

    assert json.loads(str(response.parameters["explain"])) == {"answered": 10.5, "encoded": 12.5}
    assert response.parameters["other"] == 1


@pytest.mark.parametrize("parameters", [{}, {"explain": "because"}, {"explain": 7}, {"explain": "{}"}])
def test_a_parameter_of_the_models_own_stays_as_it_is(parameters: dict[str, str | int]) -> None:
    response = Response("m", 1, "", {}, dict(parameters))

    add_encoding(response, 1.0)

    assert response.parameters == parameters


def test_each_execution_of_a_request_that_came_back_is_told() -> None:
    explained = Explanation("m", 2)
    explained.record("QUEUE_START", 1_000)
    for start in (2_000, 9_000):
        explained.joined(JoinedBatch("m_0", 4, 3, "full"), start)
        explained.record("COMPUTE_START", start)
        explained.record("COMPUTE_INPUT_END", start + 1_000)
        explained.record("COMPUTE_OUTPUT_START", start + 2_000)
        explained.record("COMPUTE_END", start + 3_000)

    told = timeline(explained, received_ns=0, answered_ns=20_000)

    batch = {"instance": "m_0", "batch_size": 4, "requests": 3, "closed": "full"}
    assert told == {
        "model": "m",
        "version": 2,
        "received": 0.0,
        "queued": 1.0,
        "executions": [
            batch | {"started": 2.0, "input_done": 3.0, "infer_done": 4.0, "output_done": 5.0},
            batch | {"started": 9.0, "input_done": 10.0, "infer_done": 11.0, "output_done": 12.0},
        ],
        "answered": 20.0,
    }


def test_requests_that_a_request_causes_are_steps_on_the_same_clock() -> None:
    inner = FakeTrace()
    explained = Explanation("pipe", 1, inner)
    step = explained.child("first", 3, "id")
    step.record("QUEUE_START", 5_000)
    step.joined(JoinedBatch("first_0", 1, 1, "next"), 6_000)
    step.record("REQUEST_END", 8_000)
    step.end()

    told = timeline(explained, received_ns=1_000, answered_ns=9_000)

    assert told["steps"] == [
        {
            "model": "first",
            "version": 3,
            "queued": 4.0,
            "executions": [{"instance": "first_0", "batch_size": 1, "requests": 1, "closed": "next", "started": 5.0}],
            "answered": 7.0,
        }
    ]
    assert inner.children[0].told == ["QUEUE_START", "REQUEST_END", "end"]


def test_a_hit_of_the_cache_is_told() -> None:
    explained = Explanation("m", 1)
    explained.record("CACHE_HIT_LOOKUP_START", 1_000)
    explained.record("CACHE_HIT_LOOKUP_END", 3_000)

    told = timeline(explained, received_ns=0, answered_ns=4_000)

    assert (told["cache"], told["looked_up"], "executions" in told) == ("hit", 3.0, False)
