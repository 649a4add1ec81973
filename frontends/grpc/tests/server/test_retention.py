"""Memory of finished calls: with the garbage collector off, no outcome of a call keeps its messages or tensors.

Counted are the bytes that the C library has handed out in this process, which are those of grpcio's core too.
"""

import ctypes
import gc
import logging
import threading
from collections import deque
from contextlib import suppress
from itertools import repeat

import grpc
import numpy as np
import pytest

import naiad_grpc
import naiad_scheduler_dynamic
import naiad_shared_memory
from naiad.backend import Reply
from naiad_grpc.messages import message_class
from naiad_testing import serve
from naiad_testing.backends import FakeBackend

from .conftest import mirror

PAYLOAD_BYTES = 1 << 20
RUNS = 8
MOST_KEPT = RUNS // 2 * PAYLOAD_BYTES
ROUNDS = 3
"""Calls that keep their messages do so in each round; the read buffers of grpcio's core grow by some MB once."""
QUEUE = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }"
ENDS_AT_ERROR = (("triton_grpc_error", "true"),)
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class AllocationCounters(ctypes.Structure):
    """`struct mallinfo2` (mallinfo(3))."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated_bytes():
    """How many bytes of this process are in use, by malloc's own count."""
    count = ctypes.CDLL(None).mallinfo2
    count.restype = AllocationCounters
    counters = count()
    return counters.uordblks + counters.hblkhd


def thrice(batch):
    """Three responses, each of them the input."""
    sender = batch.sender(0)
    for _ in range(3):
        if not sender.send(Reply({"OUTPUT": batch.requests[0].inputs["INPUT"].array})):
            break
    sender.send(None, final=True)
    return [None]


def message(model="mirror", name="INPUT", shape=(PAYLOAD_BYTES // 4,), datatype="FP32", classes=0, region="", fail=""):
    """A request with one input of PAYLOAD_BYTES, in itself or in a region."""
    request = message_class("ModelInferRequest")(model_name=model, id="7")
    tensor = request.inputs.add(name=name, datatype=datatype, shape=shape)
    if fail:
        request.parameters["fail"].string_param = fail
    if classes:
        request.outputs.add(name="OUTPUT").parameters["classification"].int64_param = classes
    if region:
        tensor.parameters["shared_memory_region"].string_param = region
        tensor.parameters["shared_memory_byte_size"].int64_param = PAYLOAD_BYTES
    else:
        request.raw_input_contents.append(np.zeros(PAYLOAD_BYTES // 4, np.float32).tobytes())
    return request.SerializeToString()


class Caller:
    """A client without Triton's library, which keeps nothing of its calls, and the backend of its models."""

    def __init__(self, target, backend):
        self.target = target
        self.backend = backend
        self.channel = grpc.insecure_channel(target, options=UNLIMITED)

    def method(self, name, channel=None, kind="unary_unary"):
        return getattr(channel or self.channel, kind)(f"/inference.GRPCInferenceService/{name}")

    def call(self, sent, method="ModelInfer", **more):
        """One unary call; the name of its status."""
        try:
            self.method(method)(sent, **more)
        except grpc.RpcError as error:
            error.__traceback__ = None
            return error.code().name
        return "OK"

    def stream(self, *sent, most=99, **more):
        """The responses of a stream, cancelled after `most`; then the name of its status."""
        stream = self.method("ModelStreamInfer", kind="stream_stream")(iter(sent), **more)
        try:
            for _ in range(most):
                next(stream)
        except StopIteration:
            return "OK"
        except grpc.RpcError as error:
            error.__traceback__ = None
            return error.code().name
        stream.cancel()
        return "CANCELLED"

    def held(self, act):
        """What `act` returns while executions wait."""
        self.backend.hold()
        try:
            return act()
        finally:
            self.backend.release()

    def executing(self, act, sent=None, channel=None):
        """What `act` returns, called with a call that executes."""

        def run():
            future = self.method("ModelInfer", channel).future(sent or message())
            self.backend.wait_until_held()
            return act(future)

        return self.held(run)

    def full_queue(self):
        """Refusals because of a full queue, which takes one of the three requests that come while one executes."""
        small = message("small")

        def fill(first):
            ended = threading.Semaphore(0)
            others = [self.method("ModelInfer").future(small) for _ in range(3)]
            for each in others:
                each.add_done_callback(lambda _: ended.release())
            refused = [ended.acquire(timeout=30) for _ in range(2)]
            self.backend.release()
            first.result()
            statuses = sorted(each.code().name for each in others)
            return "UNAVAILABLE" if all(refused) and statuses == ["OK", "UNAVAILABLE", "UNAVAILABLE"] else str(statuses)

        return self.executing(fill, small)

    def queued_deadline(self):
        """A call that waits until its deadline has passed."""

        def wait(first):
            status = self.call(message(), timeout=0.1)
            self.backend.release()
            first.result()
            return status

        return self.executing(wait)

    def streaming(self, act):
        """What `act` returns, called with a channel and a stream on it whose request executes."""

        def run():
            channel = grpc.insecure_channel(self.target, options=UNLIMITED)
            stream = self.method("ModelStreamInfer", channel, "stream_stream")(iter([message()]))
            self.backend.wait_until_held()
            return act(channel, stream)

        return self.held(run)

    def leave(self):
        """A connection that ends in a call."""
        channel = grpc.insecure_channel(self.target, options=UNLIMITED)
        return self.executing(lambda _: channel.close() or "CANCELLED", channel=channel)


OUTCOMES = {
    "answered": (lambda c: c.call(message()), "OK"),
    "unknown model": (lambda c: c.call(message("dream")), "NOT_FOUND"),
    "wrong name": (lambda c: c.call(message(name="X")), "INVALID_ARGUMENT"),
    "wrong shape": (lambda c: c.call(message(shape=(1, PAYLOAD_BYTES // 4))), "INVALID_ARGUMENT"),
    "wrong size": (lambda c: c.call(message(shape=(3,))), "INVALID_ARGUMENT"),
    "wrong datatype": (lambda c: c.call(message(datatype="INT32")), "INVALID_ARGUMENT"),
    "wrong typed contents": (lambda c: c.call(message()[: PAYLOAD_BYTES // 2]), "INVALID_ARGUMENT"),
    "garbage": (lambda c: c.call(b"\xff" * PAYLOAD_BYTES), "INVALID_ARGUMENT"),
    "model raises": (lambda c: c.call(message(fail="ouch")), "INTERNAL"),
    "decoupled model": (lambda c: c.call(message("thrice")), "UNIMPLEMENTED"),
    "no such RPC": (lambda c: c.call(message(), "Dream"), "UNIMPLEMENTED"),
    "restricted": (lambda c: c.call(message(), "ModelStatistics"), "UNAVAILABLE"),
    "another message": (lambda c: c.call(message(), "RepositoryModelLoad"), "INVALID_ARGUMENT"),
    "classification": (lambda c: c.call(message(classes=3)), "OK"),
    "shared memory": (lambda c: c.call(message(region="none")), "NOT_FOUND"),
    "full queue": (Caller.full_queue, "UNAVAILABLE"),
    "deadline in the model": (lambda c: c.held(lambda: c.call(message(), timeout=0.1)), "DEADLINE_EXCEEDED"),
    "deadline in the queue": (Caller.queued_deadline, "DEADLINE_EXCEEDED"),
    "cancelled": (lambda c: c.executing(lambda call: call.cancel() and "CANCELLED"), "CANCELLED"),
    "client leaves": (Caller.leave, "CANCELLED"),
    "stream: answered": (lambda c: c.stream(message()), "OK"),
    "stream: three requests": (lambda c: c.stream(*repeat(message(), 3)), "OK"),
    "stream: unknown model": (lambda c: c.stream(message("dream")), "OK"),
    "stream: wrong name": (lambda c: c.stream(message(name="X")), "OK"),
    "stream: wrong size": (lambda c: c.stream(message(shape=(3,))), "OK"),
    "stream: garbage": (lambda c: c.stream(b"\xff" * PAYLOAD_BYTES), "OK"),
    "stream: model raises": (lambda c: c.stream(message(fail="ouch")), "OK"),
    "stream: classification": (lambda c: c.stream(message(classes=3)), "OK"),
    "stream: decoupled model": (lambda c: c.stream(message("thrice")), "OK"),
    "stream: cancelled between responses": (lambda c: c.stream(message("thrice"), most=1), "CANCELLED"),
    "stream: first error ends it": (
        lambda c: c.stream(message(fail="ouch"), message(), metadata=ENDS_AT_ERROR),
        "INTERNAL",
    ),
    "stream: deadline": (lambda c: c.held(lambda: c.stream(message(), timeout=0.1)), "DEADLINE_EXCEEDED"),
    "stream: cancelled": (lambda c: c.streaming(lambda _, s: s.cancel() and "CANCELLED"), "CANCELLED"),
    "stream: client leaves": (lambda c: c.streaming(lambda channel, _: channel.close() or "CANCELLED"), "CANCELLED"),
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Models: `mirror`, `small` with a short queue, and the decoupled `thrice`; and the backends of both."""
    folder = tmp_path_factory.mktemp("models")
    backends = FakeBackend(answer=mirror), FakeBackend("many", thrice)
    for backend in backends:
        backend.batches = deque(maxlen=0)
    backends[0].write(folder, "mirror")
    backends[0].write(folder, "small", QUEUE)
    backends[1].write(folder, "thrice", "model_transaction_policy { decoupled: true }")
    return folder, backends


@pytest.fixture(scope="module")
def start(repository, transport):
    """Starts a server over the models."""
    folder, backends = repository
    plugins = [*backends, naiad_grpc, naiad_scheduler_dynamic, naiad_shared_memory]
    listening = {"grpc-port": 0, "grpc-address": "127.0.0.1", "grpc-transport": transport}
    options = {**listening, "grpc-restricted-protocol": ("statistics:key=value",)}
    return lambda: serve(folder, plugins=plugins, options=options)


@pytest.fixture(scope="module")
def caller(start, repository):
    with start() as serving:
        yield Caller(serving.server.plugins.frontends()["grpc"].target, repository[1][0])


@pytest.fixture(scope="module", autouse=True)
def without_collections():
    """One collection for all tests: with the objects of all collected tests it takes half a second."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("this C library does not count what it hands out")
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def without_records(caplog):
    caplog.set_level(logging.CRITICAL, "naiad.model")  # pytest keeps records with their tracebacks


def is_freed(before, turn, turns=300):
    """Whether the memory comes back within some `turn`s of the server."""
    for _ in range(turns):
        if allocated_bytes() - before < MOST_KEPT:
            return True
        turn()
    return False


def requests_until(closed, sent):
    """The requests of a client that keeps its stream open."""
    yield from sent
    closed.wait()


@pytest.mark.parametrize(("act", "status"), OUTCOMES.values(), ids=OUTCOMES.keys())
def test_no_outcome_of_a_call_keeps_its_messages(caller, act, status):
    statuses = {act(caller) for _ in range(2)}  # fills caches and buffers
    kept = []

    while len(kept) < ROUNDS and min(kept, default=MOST_KEPT) >= MOST_KEPT:
        before = allocated_bytes()
        statuses |= {act(caller) for _ in range(RUNS)}
        is_freed(before, lambda: caller.call(b"", "ServerLive"))
        kept.append(allocated_bytes() - before)

    assert min(kept) < MOST_KEPT, f"rounds of {RUNS} calls keep {kept} bytes"
    assert statuses == {status}


def test_an_open_stream_keeps_nothing_of_what_it_has_answered(caller, transport):
    if transport == "grpcio":
        pytest.skip("buffers of grpcio's core keep a message of a stream now and then")
    streams, closed, sent = [], threading.Event(), [message()] * 3
    before = allocated_bytes()

    for _ in range(RUNS):
        stream = caller.method("ModelStreamInfer", kind="stream_stream")(requests_until(closed, sent))
        streams.append(stream)
        for _ in sent:
            next(stream)

    freed = is_freed(before, lambda: caller.call(b"", "ServerLive"))
    closed.set()
    for stream in streams:
        stream.cancel()
    assert freed


def test_a_server_that_stops_leaves_nothing_behind(start, repository):
    def run():
        with start() as serving:
            target = serving.server.plugins.frontends()["grpc"].target
            caller = Caller(target, repository[1][0])
            with suppress(StopIteration):
                caller.stream(*[message()] * 3)
            caller.channel.close()

    run()
    before = allocated_bytes()

    for _ in range(3):
        run()

    assert is_freed(before, lambda: None, 1)
