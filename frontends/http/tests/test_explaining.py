"""The header that asks for an explanation, and what encoding adds to one."""

import json

import pytest

from naiad.types import Response
from naiad_http.codec import ResponseForm
from naiad_http.generate import EventStream, OneResponse
from naiad_http.request_heads import RequestHeadReader
from naiad_http.restrictions import Restrictions
from naiad_tensors.tensors import Tensor

EXPLANATION = json.dumps({"answered": 10.0})


def forwarded(*headers, pattern=""):
    read = RequestHeadReader(pattern, Restrictions(())).read(b"/v2/models/m/infer", headers)
    return read.forwarded


def explained(final=True, **outputs):
    tensors = {name: Tensor.of(name, value) for name, value in outputs.items()}
    return Response("m", 1, "", tensors, {"naiad_explain": EXPLANATION}, final)


@pytest.mark.parametrize("name", [b"naiad-explain", b"Naiad-Explain"])
def test_the_header_becomes_the_parameter(name):
    assert forwarded((name, b" 1 ")) == {"naiad_explain": "1"}
    assert forwarded((name, b"1"), (b"x-tenant", b"a"), pattern="^x-") == {"naiad_explain": "1", "x-tenant": "a"}
    assert forwarded((b"x-tenant", b"a")) == {}
    assert forwarded((name, b"0")) == {}


def test_a_request_says_when_it_had_come(make_context):
    request_head = RequestHeadReader("", Restrictions(())).read(b"/v2/models/m/infer", ())
    body = b'{"inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":[1]}]}'

    request, _ = make_context().inference.decode(request_head, body, b"", 17)

    assert request.received_ns == 17


def test_the_response_has_the_encoding_time(make_context):
    encoded = make_context().inference.encode(explained(A=[1.0]), None, ResponseForm())

    explanation = json.loads(json.loads(encoded.text)["parameters"]["naiad_explain"])
    assert explanation["answered"] == 10.0 < explanation["encoded"]


def test_an_event_tells_it_too():
    event = EventStream().take(explained(A=[1.0]))

    assert json.loads(json.loads(event.removeprefix(b"data: "))["naiad_explain"])["encoded"] > 10


def test_a_stream_that_ends_without_outputs_has_one_more_event():
    stream = EventStream()

    first, last = stream.take(Response("m", 1, "", {"A": Tensor.of("A", [1.0])}, final=False)), stream.take(explained())

    assert b"naiad_explain" not in first
    assert list(json.loads(last.removeprefix(b"data: "))) == ["naiad_explain", "model_name", "model_version"]
    assert stream.over


def test_one_response_of_a_model_that_ends_without_outputs_gets_the_explanation():
    one = OneResponse()

    early = one.take(Response("m", 1, "", {"A": Tensor.of("A", [1.0])}, {"k": 1}, final=False))
    answer = one.take(explained())

    assert early is None
    assert answer.status == 200
    assert set(json.loads(answer.body)) == {"A", "k", "naiad_explain", "model_name", "model_version"}


@pytest.mark.parametrize("sent", [0, 2])
def test_an_explanation_is_no_response(sent):
    one = OneResponse()

    answers = [one.take(Response("m", 1, "", {"A": Tensor.of("A", [1.0])}, final=False)) for _ in range(sent)]
    last = next((answer for answer in answers if answer is not None), None) or one.take(explained())

    assert last.status == 400
    assert b"exactly 1 response" in last.body
