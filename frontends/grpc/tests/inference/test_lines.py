"""Lines of the access log for requests that are cancelled: each request has one."""

import json

import numpy as np
import pytest

from naiad.types import Response
from naiad_grpc.inference import make_inference
from naiad_kit.access_log import AccessLog
from naiad_kit.frontends.codec_threads import CodecThreads
from naiad_tensors.tensors import Tensor


@pytest.fixture
def logged(server, monkeypatch):
    """Inference with an access log, and a function that closes the log and gives the statuses of its lines."""
    texts = []
    log = AccessLog("json", texts.append).start()
    service = server.service
    monkeypatch.setattr(server, "service", lambda kind: log if kind is AccessLog else service(kind))

    def statuses():
        log.close()
        return [json.loads(line)["status"] for text in texts for line in text.splitlines()]

    return make_inference(server), statuses


@pytest.fixture
def jobs(monkeypatch):
    """Work for threads, which is done when the test calls it."""
    waiting = []
    monkeypatch.setattr(
        CodecThreads, "submit", lambda _threads, work, on_done, _loop=None: waiting.append(lambda: on_done(work()))
    )
    return waiting


def test_a_request_whose_responses_wait_when_the_stream_is_cancelled_has_one_line(logged, context, server, ask):
    inference, statuses = logged
    stream = inference.open_stream(context())
    stream.feed(ask(model="d"))
    for _ in range(5):
        server.calls[0].answer(final=False)

    stream.cancel()

    assert statuses() == ["CANCELLED"]


@pytest.mark.parametrize("model", ["m", "d"])
def test_a_request_that_was_answered_before_the_stream_is_cancelled_has_the_line_of_its_answer(
    logged, context, server, ask, model
):
    inference, statuses = logged
    stream = inference.open_stream(context())
    stream.feed(ask(model=model))
    server.calls[0].answer()

    stream.cancel()

    assert statuses() == ["OK"]


def test_a_call_that_is_cancelled_while_its_answer_is_encoded_has_one_line(logged, context, server, ask, jobs):
    inference, statuses = logged
    answers = []
    cancel = inference.begin(ask(), context(), answers.append)
    server.calls[0].deliver(Response("m", 1, "7", {"Y": Tensor.of("Y", np.full(1 << 17, b"x", object))}))

    cancel()
    jobs.pop()()

    assert (statuses(), answers) == (["CANCELLED"], [])
