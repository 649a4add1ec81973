"""The checks of `naiad_testing.retention` hold for code without cycles, and fail for code that keeps a payload."""

import gc
import threading

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad.types import Request, Response
from naiad_tensors.tensors import Tensor
from naiad_testing.retention import RetentionError, check_no_growth, freed_by_reference_counts, growth_per_run


class Cycle:
    """Holds a payload, and itself."""

    def __init__(self, payload):
        self.payload = payload
        self.me = self


def test_a_payload_that_dies_by_its_count_passes():
    with freed_by_reference_counts() as watch:
        watch.watch("array", np.zeros(3))

    assert (watch.watched, watch.alive()) == (1, [])


def test_a_payload_in_a_cycle_is_named_with_its_holder():
    message = r"1 of 1 payloads outlive their requests:\narray: held by .*Cycle"
    with pytest.raises(RetentionError, match=message) as caught, freed_by_reference_counts() as watch:
        Cycle(watch.watch("array", np.zeros(3)))

    assert isinstance(caught.value, AssertionError)
    gc.collect()


def test_the_collector_is_off_within_and_on_again_after_a_failure():
    def fail():
        enabled.append(gc.isenabled())
        raise ValueError("mine")

    enabled = []
    with pytest.raises(ValueError, match="mine"), freed_by_reference_counts():
        fail()

    assert (enabled, gc.isenabled()) == ([False], True)


def test_requests_and_outcomes_are_watched_on_their_way_through_submit():
    kept = []

    def submit(request, deliver, streams=False):
        deliver(Response(request.model_name, 1, request.id, dict(request.inputs)))
        deliver(InvalidArgumentError("no"))
        return streams

    with freed_by_reference_counts() as watch:
        recorded = watch.recording(submit)
        inputs = {"X": Tensor("X", "FP32", (3,), np.zeros(3, np.float32))}
        streams = recorded(Request("m", inputs), kept.append, streams=True)
        alive = watch.alive()
        inputs.clear()
        kept.clear()

    assert streams is True
    assert alive == ["input 'X' of request 0 to 'm'", "output 'X' of 'm'", "error 'no'"]


def test_payloads_that_die_on_another_thread_are_waited_for():
    held = [np.zeros(3)]
    release = threading.Event()
    thread = threading.Thread(target=lambda: (release.wait(), held.clear()))
    thread.start()

    with freed_by_reference_counts(seconds=30) as watch:
        watch.watch("array", held[0])
        release.set()

    thread.join()
    assert watch.alive() == []


def test_growth_counts_what_each_run_keeps():
    kept = []

    growth = growth_per_run(lambda: kept.append(bytes(100_000)))

    assert 100_000 <= growth < 110_000


def test_a_run_that_keeps_its_payload_in_a_cycle_is_refused():
    check_no_growth(lambda: bytes(100_000))

    with pytest.raises(RetentionError, match=r"each run keeps 1\d{5} bytes of memory, and 65536 are free"):
        check_no_growth(lambda: Cycle(bytearray(100_000)))
    gc.collect()
