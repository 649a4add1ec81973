"""Explanations over gRPC: whose requests get the parameter, and what encoding adds."""

import asyncio
import json

import pytest

from naiad.types import Response
from naiad_grpc.inference import make_inference
from naiad_grpc.inference_intake import ExplainedContext
from naiad_grpc.messages import message_class
from naiad_grpc.statuses import Code, RpcError

from .teller import taken

EXPLANATION = json.dumps({"answered": 10.0})


def infer(inference, message, context, server, parameters):
    """ModelInfer, which the server answers with these response parameters."""
    server.at_once = lambda call: call.answer(parameters=parameters)
    answered = asyncio.run(inference.infer(message, context))
    return message_class("ModelInferResponse").FromString(answered)


def test_a_caller_that_asks_in_its_metadata_asks_for_its_request(inference, server, ask, context):
    explained = ExplainedContext(context(may_ask=False, remaining=30))

    infer(inference, ask(), explained, server, {})

    request = server.calls[0].request
    assert request.parameters == {"naiad_explain": "true"}
    assert request.deadline is not None
    assert request.received_ns > 0


def test_others_ask_for_nothing(inference, server, ask, context):
    infer(inference, ask(), context(may_ask=False), server, {})

    assert server.calls[0].request.parameters == {}


def test_forwarded_metadata_comes_with_it(make_server, ask, context):
    server = make_server(**{"grpc-header-forward-pattern": "^x-"})

    infer(make_inference(server), ask(), ExplainedContext(context(("x-tenant", "a"))), server, {})

    assert server.calls[0].request.parameters == {"x-tenant": "a", "naiad_explain": "true"}


def test_the_encoding_is_reported_in_the_answer(inference, server, ask, context):
    response = infer(inference, ask(), context(), server, {"naiad_explain": EXPLANATION})

    explanation = json.loads(response.parameters["naiad_explain"].string_param)
    assert explanation["answered"] == 10.0 < explanation["encoded"]


def test_an_answer_with_an_explanation_may_be_no_longer_than_others(make_server, ask, context):
    server = make_server(**{"grpc-max-response-size": 10})

    with pytest.raises(RpcError, match="--grpc-max-response-size") as refused:
        infer(make_inference(server), ask(), context(), server, {"naiad_explain": EXPLANATION})

    assert refused.value.code is Code.RESOURCE_EXHAUSTED


def test_a_stream_of_such_a_caller_asks_for_all_its_requests(inference, server, ask, context):
    stream = inference.open_stream(ExplainedContext(context()))
    stream.feed(ask("1"))
    stream.feed(ask("2", model="decoupled"))

    assert [call.request.parameters for call in server.calls] == [{"naiad_explain": "true"}] * 2


def test_the_last_message_of_a_stream_carries_it_without_outputs_where_there_are_none(inference, server, ask, context):
    stream = inference.open_stream(context())
    stream.feed(ask("2", model="decoupled"))
    server.calls[0].answer(final=False)
    server.calls[0].deliver(Response("decoupled", 5, "2", {}, {"naiad_explain": EXPLANATION}))

    first, last = taken(stream)

    assert "naiad_explain" not in first.infer_response.parameters
    assert json.loads(last.infer_response.parameters["naiad_explain"].string_param)["encoded"] > 10
    assert (len(last.infer_response.outputs), len(server.calls)) == (0, 1)
