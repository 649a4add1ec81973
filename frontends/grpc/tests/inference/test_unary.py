"""ModelInfer: from the bytes of a request to those of its response, or to a status."""

import asyncio
from time import monotonic

import numpy as np
import pytest

from naiad.errors import DeadlineExceededError, InvalidArgumentError, ModelFailedError, QueueFullError
from naiad.types import Response
from naiad_grpc.inference import make_inference
from naiad_grpc.messages import message_class
from naiad_grpc.statuses import Code, RpcError
from naiad_tensors.tensors import Tensor


def read(message):
    return message_class("ModelInferResponse").FromString(message)


@pytest.fixture
def infer(inference, server, context):
    """What a message is answered with, when the server says `outcome` to it."""

    def run(message, outcome=None, caller=None):
        async def answered():
            task = asyncio.create_task(inference.infer(message, caller or context(may_ask=False)))
            await asyncio.sleep(0)
            if server.calls:
                call = server.calls[-1]
                call.answer() if outcome is None else call.deliver(outcome)
            return await task

        return asyncio.run(answered())

    return run


def test_a_request_is_answered(infer, server, ask):
    message = read(infer(ask("7", 2)))

    assert (message.model_name, message.model_version, message.id) == ("m", "5", "7")
    assert message.raw_output_contents[0] == np.array([6], np.int32).tobytes()
    assert not server.calls[0].streams
    assert server.calls[0].request.deadline is None


def test_a_request_may_be_answered_at_once(infer, server, ask):
    server.at_once = lambda call: call.answer()

    assert read(infer(ask("7", 3))).raw_output_contents[0] == np.array([9], np.int32).tobytes()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (QueueFullError("the queue is full"), Code.UNAVAILABLE),
        (DeadlineExceededError("too late"), Code.DEADLINE_EXCEEDED),
        (ModelFailedError("it raised"), Code.INTERNAL),
    ],
)
def test_an_error_becomes_a_status(infer, ask, error, code):
    with pytest.raises(RpcError) as raised:
        infer(ask("7"), error)

    assert (raised.value.code, raised.value.message) == (code, f"[request id: 7] {error}")


def test_what_the_server_refuses_becomes_a_status(infer, server, ask):
    server.refusal = InvalidArgumentError("unexpected inference input 'X'")

    with pytest.raises(RpcError) as raised:
        infer(ask("7"))

    assert raised.value.code is Code.INVALID_ARGUMENT
    assert raised.value.message == "[request id: 7] unexpected inference input 'X'"


def test_what_cannot_be_decoded_becomes_a_status_that_names_its_request(infer, server, ask):
    with pytest.raises(RpcError, match=r"\[request id: 7\] .*'x' .*version should be"):
        infer(ask("7", model_version="x"))

    assert server.calls == []


def test_bytes_that_are_no_message_become_a_status(infer):
    with pytest.raises(RpcError, match="failed to parse the request") as raised:
        infer(b"\x0a\x05m")

    assert raised.value.code is Code.INVALID_ARGUMENT


def test_what_a_model_puts_into_its_outputs_cannot_leave_the_caller_without_an_answer(infer, ask, caplog):
    with pytest.raises(RpcError) as raised:
        infer(ask("7"), Response("m", 1, "7", {"Y": Tensor("Y", "FP32", (1,), None)}))

    assert (raised.value.code, raised.value.message.count("Traceback")) == (Code.INTERNAL, 0)
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("most", [10_028, 10_027])
def test_a_response_over_the_limit_is_reported_with_its_option(make_server, ask, context, most):
    server = make_server(**{"grpc-max-response-size": most})
    answers = []
    make_inference(server).begin(ask("7"), context(), answers.append)

    server.calls[0].deliver(Response("m", 1, "7", {"Y": Tensor.of("Y", np.zeros(10_000, np.uint8))}))

    (answer,) = answers
    if most == 10_028:
        assert len(b"".join(answer)) == 10_028
    else:
        assert answer.code is Code.RESOURCE_EXHAUSTED
        assert answer.message.startswith(
            "[request id: 7] the response is a message of 10028 bytes, more than the 10027"
        )
        assert "--grpc-max-response-size" in answer.message


def test_the_deadline_of_the_call_is_that_of_the_request(infer, server, ask, context):
    before = monotonic()

    infer(ask(), caller=context(remaining=10.0, may_ask=False))

    assert before + 10 <= server.calls[0].request.deadline <= monotonic() + 10


def test_a_caller_who_leaves_takes_the_request_back(inference, server, ask, context, settled):
    async def leave():
        task = asyncio.create_task(inference.infer(ask(), context()))
        await settled()
        task.cancel()
        server.calls[0].answer()  # too late, and before the task gets to know
        await settled()
        return task.cancelled()

    assert asyncio.run(leave())
    assert server.calls[0].commands == ["cancel"]


def test_metadata_that_is_forwarded_becomes_parameters(make_server, ask, context):
    server = make_server(**{"grpc-header-forward-pattern": "^my"})
    server.at_once = lambda call: call.answer()
    caller = context(("my-key", "1"), ("mykey-bin", b"\x00"), ("other", "2"), ("my-own", "3"))

    asyncio.run(
        make_inference(server).infer(ask(parameters={"my-own": {"bool_param": True}, "p": {"int64_param": 1}}), caller)
    )

    assert server.calls[0].request.parameters == {"my-key": "1", "my-own": "3", "p": 1}


def test_metadata_with_a_reserved_name_cannot_be_forwarded(make_server, ask, context):
    inference = make_inference(make_server(**{"grpc-header-forward-pattern": ".*"}))

    with pytest.raises(RpcError, match="Header 'priority' is reserved") as raised:
        asyncio.run(inference.infer(ask(), context(("priority", "1"))))

    assert raised.value.code is Code.INVALID_ARGUMENT


def test_a_pattern_that_is_none_names_its_option(make_server):
    with pytest.raises(InvalidArgumentError, match="--grpc-header-forward-pattern"):
        make_inference(make_server(**{"grpc-header-forward-pattern": "("}))


def test_a_request_is_traced_from_its_bytes_to_those_of_its_response(infer, server, ask, context):
    server.tracing.active = True

    infer(ask("7"), caller=context(("traceparent", "00-1"), ("tracestate", "a=b")))

    (trace,) = server.tracing.traces
    assert server.tracing.samples == [("m", 0, "7", "00-1", "a=b")]
    assert server.calls[0].request.trace is trace
    assert trace.events[:5] == [
        "GRPC_WAITREAD_START",
        "GRPC_WAITREAD_END",
        "GRPC_SEND_START",
        "GRPC_SEND_END",
        "end",
    ]  # a further end changes nothing


def test_the_trace_of_a_request_that_is_refused_or_taken_back_ends(inference, server, ask, context, settled):
    server.tracing.active = True

    async def leave():
        task = asyncio.create_task(inference.infer(ask(), context()))
        await settled()
        task.cancel()
        await settled()
        server.refusal = QueueFullError("full")
        with pytest.raises(RpcError):
            await inference.infer(ask(), context())

    asyncio.run(leave())

    assert [trace.events[-1] for trace in server.tracing.traces] == ["end", "end"]


def test_a_transport_without_tasks_is_called_back(inference, server, ask, context):
    answers = []

    cancel = inference.begin(ask("7"), context(), answers.append)
    server.calls[0].answer()
    cancel()

    assert [read(b"".join(answer)).id for answer in answers] == ["7"]
    assert server.calls[0].commands == ["cancel"]
