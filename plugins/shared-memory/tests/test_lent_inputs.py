"""Inputs in the memory of clients, which models are lent: on real segments, through a whole server."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

import naiad_cache
from naiad import Server
from naiad.backend import Reply
from naiad.errors import InvalidArgumentError, NaiadError
from naiad.types import Request
from naiad_shared_memory.guard import GUARD
from naiad_shared_memory.request_io import SharedContent, SharedOutput, request_io
from naiad_shared_memory.segments import LARGE, SegmentMemory
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend
from naiad_testing.caches import FakeCache

CACHED = "response_cache { enable: true }"

pytestmark = pytest.mark.skipif(GUARD is None, reason="built without a C compiler")

COUNT = LARGE // 4
SIZE = 4 * COUNT
HALF = os.sysconf("SC_PAGESIZE") * (SIZE // os.sysconf("SC_PAGESIZE") // 2)


class Client:
    """A client with a segment, a region over all of it, and what it puts there."""

    def __init__(self) -> None:
        self.path = Path("/dev/shm") / f"naiad_test_{uuid4().hex}"
        self.path.write_bytes(bytes(2 * SIZE))
        self.region = SegmentMemory("r", f"/{self.path.name}", os.open(self.path, os.O_RDWR), 0, 2 * SIZE)

    def put(self, value: float) -> None:
        with self.path.open("r+b") as file:
            file.write(np.full(COUNT, value, np.float32).tobytes())

    @property
    def input(self) -> np.ndarray:
        return np.fromfile(self.path, np.float32, COUNT)

    @property
    def output(self) -> np.ndarray:
        return np.fromfile(self.path, np.float32, COUNT, offset=SIZE)

    def request(self) -> Request:
        content = SharedContent(self.region, 0, SIZE, (1, COUNT), np.dtype(np.float32))
        request = Request("m", {"INPUT": Tensor("INPUT", "FP32", (1, COUNT), content)})
        request.transfer = request_io(request.inputs, {"OUTPUT": SharedOutput(self.region, SIZE, SIZE)})
        return request


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.path.unlink()


class Model:
    """Answers with its input, and remembers whether that was lent: then it lies in a mapping of a file."""

    def __init__(self) -> None:
        self.lent: list[bool] = []
        self.kept: list[np.ndarray] = []
        self.act = lambda array: None

    def __call__(self, batch):
        array = batch.input("INPUT")
        address = array.__array_interface__["data"][0]
        self.lent.append(_is_file(address))
        self.act(array)
        return {"OUTPUT": array * 1}


def _is_file(address: int) -> bool:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(each, 16) for each in line.split()[0].split("-"))
        if first <= address < last:
            return "/dev/shm/naiad_test_" in line
    return False


async def infer(tmp_path, model: Model, *steps, config: str = "") -> list[object]:
    """What the requests are answered with, one after the other; between them, `steps` say what the client does."""
    backend = FakeBackend(answer=model)
    backend.write(tmp_path, "m", f"max_batch_size: 8 {config}")
    outcomes = []
    async with Server(model_repository=[tmp_path], plugins=[backend]) as server:
        for step in steps:
            request = step()
            try:
                outcomes.append(await server.infer(request))
            except NaiadError as error:
                outcomes.append(error)
    return outcomes


def test_a_model_that_reads_is_lent_its_input_each_time(tmp_path, client):
    model = Model()
    client.put(3.0)

    asyncio.run(infer(tmp_path, model, client.request, client.request, client.request))

    assert model.lent == [True, True, True]
    assert set(client.output) == {3.0}


def test_a_model_that_changes_its_input_changes_nothing_of_the_clients(tmp_path, client):
    model = Model()
    model.act = lambda array: array.__setitem__(..., 9.0)
    client.put(3.0)

    asyncio.run(infer(tmp_path, model, client.request, client.request))

    assert model.lent == [True, False]
    assert set(client.input) == {3.0}
    assert set(client.output) == {9.0}


def test_what_a_model_keeps_stays_as_it_was(tmp_path, client):
    model = Model()
    model.act = model.kept.append

    def next_frame():
        client.put(client.input[0] + 1)
        return client.request()

    asyncio.run(infer(tmp_path, model, next_frame, next_frame, next_frame))

    assert model.lent == [True, False, False]
    assert [set(array.ravel()) for array in model.kept] == [{1.0}, {2.0}, {3.0}]


def test_a_model_that_fails_gives_back_what_it_was_lent(tmp_path, client):
    model = Model()

    def fail(_array):
        if len(model.lent) == 1:
            raise RuntimeError("not today")

    model.act = fail
    client.put(3.0)

    first, second = asyncio.run(infer(tmp_path, model, client.request, client.request))

    assert "not today" in str(first)
    assert set(client.output) == {3.0}
    assert not isinstance(second, NaiadError)


def test_a_client_that_takes_its_memory_away_during_the_execution_is_reported(tmp_path, client):
    model = Model()

    def shrink(array):
        os.truncate(client.path, HALF)
        array.sum()

    model.act = shrink
    client.put(3.0)

    (error,) = asyncio.run(infer(tmp_path, model, client.request))

    assert model.lent == [True]
    assert isinstance(error, InvalidArgumentError)
    assert "shared memory region 'r' is not all there any more" in str(error)


def test_an_input_that_goes_out_again_is_not_the_clients_any_more(tmp_path, client):
    """An output that is not in shared memory, and is the very input: it is encoded after the worker is done."""
    model = Model()
    client.put(3.0)

    def inline():
        request = client.request()
        request.transfer = request_io(request.inputs, {})
        return request

    class Echo(Model):
        def __call__(self, batch):
            super().__call__(batch)
            return {"OUTPUT": batch.input("INPUT")}

    model = Echo()
    (response,) = asyncio.run(infer(tmp_path, model, inline))
    client.put(4.0)

    assert model.lent == [True]
    assert set(response.outputs["OUTPUT"].array.ravel()) == {3.0}


def test_a_model_that_answers_with_its_input_is_lent_the_next_one_too(tmp_path, client):
    class Echo(Model):
        def __call__(self, batch):
            super().__call__(batch)
            return {"OUTPUT": batch.input("INPUT")}

    model = Echo()
    client.put(3.0)

    asyncio.run(infer(tmp_path, model, client.request, client.request))

    assert model.lent == [True, True]
    assert set(client.output) == {3.0}


@pytest.mark.parametrize("config", [CACHED, "model_transaction_policy { decoupled: true }"])
def test_models_that_keep_tensors_or_answer_at_any_time_get_copies(tmp_path, client, config):
    model = Model()
    client.put(3.0)

    async def ask() -> None:
        backend = FakeBackend(answer=model)
        backend.write(tmp_path, "m", f"max_batch_size: 8 {config}")
        options = {"cache-config": ("fake",)}
        async with Server(
            model_repository=[tmp_path], plugins=[backend, naiad_cache, FakeCache()], options=options
        ) as server:
            async for _ in server.stream(client.request()):
                pass

    asyncio.run(ask())

    assert model.lent == [False]


def test_a_client_that_takes_its_memory_away_gets_no_second_answer_from_a_model_that_sent_one(tmp_path, client):
    class Sending(Model):
        def __call__(self, batch):
            super().__call__(batch)
            batch.sender(0).send(Reply({"OUTPUT": np.zeros((1, COUNT), np.float32)}), final=True)
            return [None]

    model = Sending()

    def shrink(array):
        os.truncate(client.path, HALF)
        array.sum()

    model.act = shrink

    (response,) = asyncio.run(infer(tmp_path, model, client.request))

    assert model.lent == [True]
    assert not response.outputs["OUTPUT"].array.any()


def test_a_request_on_behalf_of_another_is_lent_nothing(client):
    request = client.request()
    io = request.transfer.for_inputs(request.inputs)

    io.fetch(request.inputs, lend=True)

    assert not _is_file(request.inputs["INPUT"].payload.__array_interface__["data"][0])
    assert io.give_back()


def test_a_request_on_behalf_of_another_without_inputs_in_shared_memory_needs_no_io(client):
    assert client.request().transfer.for_inputs({"A": Tensor.of("A", np.zeros(1, np.float32))}) is None


def test_what_was_copied_is_not_lent_afterwards(client):
    content = client.request().inputs["INPUT"].payload
    client.put(1.0)
    copied = content.fetch()
    client.put(2.0)

    assert content.lend() is None
    assert content.fetch() is copied
    assert set(copied.ravel()) == {1.0}


def test_inputs_that_were_lent_are_given_back_when_there_is_no_memory_for_another(
    client: Client,
) -> None:
    class NoMemory:
        name = "full"

        def check(self, offset: int, byte_size: int) -> None:
            return None

        def lend(self, offset: int, byte_size: int) -> None:
            return None

        def read(self, offset: int, byte_size: int) -> np.ndarray:
            raise MemoryError

    def tensor(name: str, region: object) -> Tensor:
        content = SharedContent(region, 0, SIZE, (1, COUNT), np.dtype(np.float32))  # type: ignore[arg-type]
        return Tensor(name, "FP32", (1, COUNT), content)

    inputs = {"A": tensor("A", client.region), "B": tensor("B", NoMemory())}
    io = request_io(inputs, {})
    assert io is not None

    with pytest.raises(MemoryError):
        io.fetch(inputs, lend=True)

    loan = client.region.lend(0, SIZE)
    assert loan is not None
    loan.end()
