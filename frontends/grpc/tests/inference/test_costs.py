"""The cost of hostile and of large requests: linear, bounded on the event loop, and in memory."""

import asyncio
import threading

import numpy as np
import pytest

from naiad.types import Response
from naiad_grpc.codec import COSTLY_BYTES, takes_long
from naiad_grpc.codec.framing import field, header, varint
from naiad_grpc.inference import make_inference
from naiad_grpc.messages import message_class
from naiad_grpc.statuses import RpcError
from naiad_tensors.tensors import Tensor
from naiad_testing.cost import check_cost

SIZE = COSTLY_BYTES
RAW, INPUT, CONTENTS, SHAPE = 0x3A, 0x2A, 0x2A, 0x1A


def tensor(datatype, shape, contents=b"", model="m"):
    """A request with one input, without its raw contents."""
    described = field(0x0A, b"X") + field(0x12, datatype) + field(SHAPE, b"".join(map(varint, shape)))
    return field(0x0A, model.encode()) + field(INPUT, described + (field(CONTENTS, contents) if contents else b""))


def strings(size, model="m"):
    """One input of empty strings."""
    count = size // 4
    return tensor(b"BYTES", [count], model=model) + header(RAW, 4 * count) + bytes(4 * count)


def typed_strings(size):
    """One input of strings of two bytes: half as many as empty ones, and the test takes half the time."""
    return tensor(b"BYTES", [size // 4], b"\x42\x02ab" * (size // 4))


def typed_booleans(size):
    return tensor(b"BOOL", [size], field(0x0A, b"\x01" * size))


def typed_floats(size):
    return tensor(b"FP32", [size // 4], field(0x32, bytes(size // 4 * 4)))


def parameters(size):
    """An input with many parameters."""
    content = b"".join(field(0x22, field(0x0A, b"%08d" % number)) for number in range(size // 12))
    return field(0x0A, b"m") + field(INPUT, field(0x0A, b"X") + content)


HOSTILE = {
    "strings": (strings, 20),
    "strings of an unknown model": (lambda size: strings(size, "unknown"), 1),
    "typed strings": (typed_strings, 30),
    "typed booleans": (typed_booleans, 12),
    "typed floats": (typed_floats, 12),
    "parameters": (parameters, 20),
    "raw contents": (lambda size: field(0x0A, b"m") + b"\x3a\x02ab" * (size // 4), 5),
    "inputs": (lambda size: field(0x0A, b"m") + b"\x2a\x02\x0a\x00" * (size // 4), 5),
    "groups": (lambda size: b"\x7b" + b"\x78\x01" * (size // 2) + b"\x7c", 5),
    "unknown fields": (lambda size: field(0x0A, b"m") + b"\x78\x01" * (size // 2), 5),
}


@pytest.mark.parametrize(("input_of", "bytes_per_byte"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_request_costs_little_for_its_size(server, context, input_of, bytes_per_byte):
    server.at_once = lambda call: call.end()
    inference = make_inference(server)

    check_cost(
        lambda message: inference.infer(message, context()),
        input_of,
        SIZE,
        bytes_per_byte=bytes_per_byte,
        refusals=(RpcError,),
    )


@pytest.mark.parametrize(("datatype", "is_slow"), [(b"BYTES", True), (b"BOOL", True), (b"INT8", False)])
def test_large_inputs_whose_elements_are_looked_at_are_decoded_on_a_thread(datatype, is_slow):
    assert takes_long(tensor(datatype, [SIZE]) + header(RAW, SIZE) + bytes(SIZE)) == is_slow


def test_a_large_request_takes_its_inputs_from_shared_memory_on_the_event_loop(server, context):
    threads = []

    class Regions:
        def tensor(self, shared, model):
            threads.append(threading.get_ident())
            return Tensor.of(shared.name, np.zeros(1, np.int8))

        def request_io(self, inputs, targets):
            threads.append(threading.get_ident())

    server.shared_memory = Regions()
    server.at_once = lambda call: call.end()
    request = message_class("ModelInferRequest").FromString(strings(SIZE))
    region = {"shared_memory_region": {"string_param": "r"}, "shared_memory_byte_size": {"int64_param": 1}}
    request.inputs.add(name="S", datatype="INT8", shape=[1], parameters=region)

    asyncio.run(make_inference(server).infer(request.SerializeToString(), context()))

    assert threads == [threading.get_ident()] * 2


def test_a_stream_reads_a_large_request_on_a_thread_and_in_order(server, context, ask):
    async def main():
        server.at_once = lambda call: call.end()
        inference = make_inference(server)

        async def messages():
            yield strings(2 * SIZE)
            yield ask("2")

        return [message async for message in inference.stream(messages(), context())]

    answers = asyncio.run(main())

    assert len(answers) == 2
    assert [call.request.id for call in server.calls] == ["", "2"]


@pytest.mark.parametrize("sent", [typed_strings(1 << 22), typed_booleans(9 << 20)], ids=["strings", "booleans"])
def test_large_typed_contents_are_refused_with_advice(server, context, sent):
    inference = make_inference(server)

    with pytest.raises(RpcError, match="raw_input_contents"):
        asyncio.run(inference.infer(sent, context()))
    assert server.calls == []


def request(classes=0, request_id="7", model="m"):
    message = message_class("ModelInferRequest")(model_name=model, id=request_id)
    if classes:
        message.outputs.add(name="Y").parameters["classification"].int64_param = classes
    return message.SerializeToString()


RESPONSES = {
    "strings": (request(), lambda size: np.full(size // 5, b"abcdef", object)),
    "classes": (request(1 << 20), lambda size: np.zeros(size // 10, np.float32)),
}


@pytest.mark.parametrize("kind", RESPONSES)
def test_a_response_of_many_strings_is_encoded_off_the_event_loop(server, context, kind):
    sent, array_of = RESPONSES[kind]
    inference = make_inference(server)

    def infer(array):
        server.at_once = lambda call: call.deliver(Response("m", 1, "7", {"Y": Tensor.of("Y", array)}))
        return inference.infer(sent, context())

    cost = check_cost(infer, array_of, SIZE, bytes_per_byte=400, refusals=())

    assert cost.longest_turn < 0.1


def test_responses_of_a_decoupled_model_keep_their_order_behind_a_large_one(server, context):
    def send(call):
        for size, final in ((1 << 17, False), (1, False), (1 << 15, True)):
            outputs = {"Y": Tensor.of("Y", np.full(size, b"x", object))}
            call.deliver(Response("d", 1, "7", outputs, final=final))

    async def main():
        server.at_once = send
        inference = make_inference(server)

        async def messages():
            yield request(model="d")

        return [message async for message in inference.stream(messages(), context())]

    answers = asyncio.run(main())

    parsed = [message_class("ModelStreamInferResponse").FromString(each).infer_response for each in answers]
    assert [list(each.outputs[0].shape) for each in parsed] == [[1 << 17], [1], [1 << 15]]
