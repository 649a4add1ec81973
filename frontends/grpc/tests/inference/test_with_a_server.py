"""Inference over a real server, without a transport: streams, slow readers, callers who leave, shared memory."""

import asyncio
import threading
from contextlib import aclosing, asynccontextmanager
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

import naiad_grpc
import naiad_shared_memory
from naiad import Server
from naiad.backend import Reply
from naiad.shared_memory import SharedMemoryApi
from naiad_grpc.inference import make_inference
from naiad_grpc.messages import message_class
from naiad_grpc.statuses import Code, RpcError
from naiad_testing.backends import FakeBackend

DECOUPLED = "model_transaction_policy { decoupled: true }"


class Teller:
    """Sends as many responses as the number in INPUT; it knows how far it has got, and whether it was stopped."""

    def __init__(self):
        self.sent = 0
        self.stopped = threading.Event()

    def __call__(self, batch):
        sender = batch.sender(0)
        for number in range(int(batch.input("INPUT")[0])):
            if not sender.send(Reply({"OUTPUT": np.array([number], np.float32)})):
                self.stopped.set()
                break
            self.sent += 1
        sender.send(None, final=True)
        return [None]


@pytest.fixture
def teller():
    return Teller()


@pytest.fixture
def backend():
    return FakeBackend()


@pytest.fixture
def serving(tmp_path, backend, teller):
    """Inference over a server with the model `echo`, and the model `teller`, which sends many responses."""
    tellers = FakeBackend("tellers", teller)
    backend.write(tmp_path, "echo")
    tellers.write(tmp_path, "teller", DECOUPLED)

    @asynccontextmanager
    async def run(**options):
        chosen = {"allow-grpc": False, **options}
        async with Server(
            model_repository=[tmp_path], plugins=[backend, tellers, naiad_grpc, naiad_shared_memory], options=chosen
        ) as server:
            yield make_inference(server), server

    return run


def ask(number, model="echo", request_id="7", **members):
    message = message_class("ModelInferRequest")(model_name=model, id=request_id, **members)
    message.inputs.add(name="INPUT", datatype="FP32", shape=[1])
    message.raw_input_contents.append(np.array([number], np.float32).tobytes())
    return message.SerializeToString()


def number_in(response):
    return np.frombuffer(response.raw_output_contents[0], np.float32)[0]


async def sent(*messages):
    for message in messages:
        yield message


async def parts(inference, context, *messages):
    async with aclosing(inference.stream(sent(*messages), context)) as responses:
        async for response in responses:
            yield message_class("ModelStreamInferResponse").FromString(response)


def test_a_model_answers(serving, context):
    async def answer():
        async with serving() as (inference, _):
            return await inference.infer(ask(2.5), context())

    response = message_class("ModelInferResponse").FromString(asyncio.run(answer()))

    assert (response.model_name, response.model_version, response.id) == ("echo", "1", "7")
    assert number_in(response) == 2.5


def test_one_response_cannot_be_had_of_a_model_that_sends_many(serving, context):
    async def answer():
        async with serving() as (inference, _):
            await inference.infer(ask(2, "teller"), context())

    with pytest.raises(RpcError, match="doesn't support models with decoupled transaction policy") as raised:
        asyncio.run(answer())

    assert raised.value.code is Code.UNIMPLEMENTED


def test_an_error_names_its_request_once(serving, context):
    async def answer():
        async with serving() as (inference, _):
            await inference.infer(ask(2, outputs=[{"name": "NONE"}]), context())

    with pytest.raises(RpcError) as raised:
        asyncio.run(answer())

    assert raised.value.message.startswith("[request id: 7] unexpected inference output 'NONE'")


def test_streams_carry_requests_to_any_models(serving, context):
    async def answers():
        async with serving() as (inference, _):
            return [
                (part.infer_response.id, part.error_message, number_in(part.infer_response))
                async for part in parts(inference, context(), ask(2, "teller", "a"), ask(5, "echo", "b"))
            ]

    assert sorted(asyncio.run(answers())) == [("a", "", 0.0), ("a", "", 1.0), ("b", "", 5.0)]


def test_a_reader_who_is_slow_holds_the_model_back_and_misses_nothing(serving, teller, context):
    async def answers():
        numbers, ahead = [], []
        async with serving() as (inference, _):
            async for part in parts(inference, context(), ask(2000, "teller")):
                ahead.append(teller.sent - len(numbers))
                numbers.append(number_in(part.infer_response))
                await asyncio.sleep(0)
        return numbers, max(ahead)

    numbers, most_ahead = asyncio.run(answers())

    assert numbers == list(range(2000))
    assert most_ahead < 300


def test_a_caller_who_leaves_stops_the_model(serving, teller, context):
    async def leave():
        async with serving() as (inference, _):
            async with aclosing(parts(inference, context(), ask(1_000_000, "teller"))) as responses:
                await anext(responses)
            return await asyncio.to_thread(teller.stopped.wait, 30)

    assert asyncio.run(leave())


def test_a_caller_who_leaves_takes_a_request_back_that_runs(serving, backend, context):
    async def leave():
        backend.hold()
        async with serving() as (inference, _):
            task = asyncio.create_task(inference.infer(ask(1), context()))
            await asyncio.to_thread(backend.wait_until_held)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            backend.release()
        return backend.batches[0].requests[0].cancelled

    assert asyncio.run(leave())


def test_a_deadline_that_has_passed_is_told(serving, backend, context):
    async def answer():
        async with serving() as (inference, _):
            backend.hold()
            try:
                await inference.infer(ask(1), context(remaining=0.0))
            finally:
                backend.release()

    with pytest.raises(RpcError) as raised:
        asyncio.run(answer())

    assert raised.value.code is Code.DEADLINE_EXCEEDED


def test_tensors_can_stay_in_shared_memory(serving, context):
    segment = SharedMemory(create=True, size=16)
    segment.buf[:4] = np.array([2.5], np.float32).tobytes()

    def shared(offset):
        return {
            "shared_memory_region": {"string_param": "r"},
            "shared_memory_byte_size": {"int64_param": 4},
            "shared_memory_offset": {"int64_param": offset},
        }

    message = message_class("ModelInferRequest")(model_name="echo")
    message.inputs.add(name="INPUT", datatype="FP32", shape=[1], parameters=shared(0))
    message.outputs.add(name="OUTPUT", parameters=shared(8))

    async def answer():
        async with serving(**{"allow-client-shm": True}) as (inference, server):
            server.service(SharedMemoryApi).register_system("r", segment.name, 0, 16)
            return await inference.infer(message.SerializeToString(), context())

    try:
        response = message_class("ModelInferResponse").FromString(asyncio.run(answer()))

        assert list(response.raw_output_contents) == [b""]
        assert np.frombuffer(segment.buf[8:12], np.float32).tolist() == [2.5]
    finally:
        segment.close()
        segment.unlink()
