"""The bars of a timeline."""

import pytest

from naiad_dashboard.spans import Span, spans

EXECUTION = {"started": 3e6, "input_done": 4e6, "infer_done": 6e6, "output_done": 7e6}


def test_an_executed_request_waits_computes_and_is_answered():
    assert spans({"queued": 1e6, "executions": [EXECUTION]}, 8.0) == [
        Span("queue", "queue", 1, 3),
        Span("input", "input", 3, 4),
        Span("infer", "infer", 4, 6),
        Span("output", "output", 6, 7),
        Span("answer", "answer", 7, 8),
    ]


def test_a_request_that_timed_out_in_its_queue_waited_to_its_end():
    assert spans({"queued": 1e6}, 5.0) == [Span("queue", "queue", 1, 5)]


def test_a_hit_of_the_cache_does_not_wait():
    assert spans({"queued": 1e6, "looked_up": 2e6, "cache": "hit"}, 5.0) == [Span("cache hit", "cache", 1, 2)]


@pytest.mark.parametrize(("answered", "end"), [({}, 7), ({"answered": 8e6}, 8)])
def test_steps_stand_below_their_request_and_end_with_their_outputs_or_with_it(answered, end):
    step = {"model": "m", "queued": 1e6, "executions": [EXECUTION], **answered}

    labels = [(each.label, each.end) for each in spans({"queued": 0, "steps": [step, {"model": "n"}]}, 9.0)]

    assert labels == [
        ("m", end),
        ("· queue", 3),
        ("· input", 4),
        ("· infer", 6),
        ("· output", 7),
        ("n", 9),
        ("· queue", 9),
    ]
