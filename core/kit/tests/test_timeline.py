"""What a timeline says, from the events of a request."""

from naiad.types import JoinedBatch
from naiad_kit.explanation import Explanation
from naiad_kit.timeline import timeline
from naiad_testing.tracing import FakeTrace


def test_each_execution_of_a_request_that_came_back_is_reported() -> None:
    explained = Explanation("m", 2)
    explained.record("QUEUE_START", 1_000)
    for start in (2_000, 9_000):
        explained.executing(JoinedBatch("m_0", 4, 3, "full"), start)
        explained.record("COMPUTE_INPUT_END", start + 1_000)
        explained.record("COMPUTE_OUTPUT_START", start + 2_000)
        explained.record("COMPUTE_END", start + 3_000)

    report = timeline(explained, received_ns=0, answered_ns=20_000)

    batch = {"instance": "m_0", "batch_size": 4, "requests": 3, "closed": "full"}
    assert report == {
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
    step.executing(JoinedBatch("first_0", 1, 1, "next"), 6_000)
    step.record("REQUEST_END", 8_000)
    step.end()

    report = timeline(explained, received_ns=1_000, answered_ns=9_000)

    assert report["steps"] == [
        {
            "model": "first",
            "version": 3,
            "queued": 4.0,
            "executions": [{"instance": "first_0", "batch_size": 1, "requests": 1, "closed": "next", "started": 5.0}],
            "answered": 7.0,
        }
    ]
    assert inner.children[0].events == ["QUEUE_START", "COMPUTE_START", "REQUEST_END", "end"]


def test_a_hit_of_the_cache_is_reported() -> None:
    explained = Explanation("m", 1)
    explained.record("CACHE_HIT_LOOKUP_START", 1_000)
    explained.record("CACHE_HIT_LOOKUP_END", 3_000)

    report = timeline(explained, received_ns=0, answered_ns=4_000)

    assert (report["cache"], report["looked_up"], "executions" in report) == ("hit", 3.0, False)
