"""Large responses of decoupled models: each is encoded on a thread, and its model waits until that is done."""

from functools import partial

import numpy as np
import pytest

from naiad.types import Response
from naiad_grpc.streaming import MOST_READY
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_tensors.tensors import Tensor

from .teller import taken

LARGE = 1 << 17


@pytest.fixture
def jobs(monkeypatch):
    """Work for threads, which is done when the test calls it."""
    waiting = []

    def submit(_threads, work, on_done, _loop=None):
        waiting.append(lambda: on_done(work()))

    monkeypatch.setattr(CodecThreads, "submit", submit)
    return waiting


def send(call, size=1):
    outputs = {"Y": Tensor.of("Y", np.full(size, b"x", object))}
    call.deliver(Response("d", 1, "7", outputs, final=False))


@pytest.mark.parametrize("is_at_once", [False, True])
def test_a_model_waits_while_a_large_response_is_encoded(stream, server, ask, jobs, is_at_once):
    if is_at_once:
        server.at_once = partial(send, size=LARGE)
    stream.feed(ask(model="d"))
    (call,) = server.calls
    if not is_at_once:
        send(call, LARGE)
    send(call, LARGE)
    assert (call.commands[-1], len(jobs), taken(stream)) == ("pause", 1, [])

    jobs.pop()()
    assert (call.commands[-1], len(jobs), len(taken(stream))) == ("pause", 1, 1)
    jobs.pop()()

    assert (call.commands[-1], len(taken(stream))) == ("resume", 1)


def test_a_reader_that_catches_up_does_not_resume_a_model_whose_response_is_encoded(stream, server, ask, jobs):
    stream.feed(ask(model="d"))
    stream.feed(ask(model="d"))
    large, other = server.calls
    send(large, LARGE)
    for _ in range(MOST_READY):
        send(other)

    assert len(taken(stream)) == MOST_READY
    assert (other.commands, large.commands[-1]) == (["pause", "resume"], "pause")


def test_a_model_whose_response_is_encoded_goes_on_when_the_reader_has_caught_up(stream, server, ask, jobs):
    stream.feed(ask(model="d"))
    stream.feed(ask(model="d"))
    large, other = server.calls
    send(large, LARGE)
    for _ in range(MOST_READY):
        send(other)

    jobs.pop()()
    assert large.commands[-1] == "pause"
    taken(stream)

    assert large.commands[-1] == "resume"


def test_a_model_that_answers_once_is_not_paused(stream, server, ask, jobs):
    stream.feed(ask(model="m"))
    (call,) = server.calls

    call.deliver(Response("m", 1, "7", {"Y": Tensor.of("Y", np.full(LARGE, b"x", object))}))
    jobs.pop()()

    assert (call.commands, len(taken(stream))) == ([], 1)
