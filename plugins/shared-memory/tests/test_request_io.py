"""Large tensors in shared memory: copied by the worker, each at its own risk."""

import asyncio
import threading

import numpy as np
import pytest

import naiad_scheduler_dynamic
import naiad_scheduler_ensemble
from naiad import Server
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_kit.shared_memory import SharedInput
from naiad_shared_memory.request_io import SharedContent, SharedOutput, request_io, tensor_over
from naiad_shared_memory.segments import LARGE
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend

COUNT = LARGE // 4
SIZE = 4 * COUNT

ENSEMBLE = """
    platform: "ensemble" max_batch_size: 8
    input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
    output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
    ensemble_scheduling {
      step {
        model_name: "m" model_version: -1
        input_map { key: "INPUT" value: "INPUT" } output_map { key: "OUTPUT" value: "OUTPUT" }
      }
    }
"""

RESHAPING = """
    input { name: "INPUT" data_type: TYPE_STRING dims: [ 16384 ] reshape { shape: [ 128, 128 ] } }
    output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 2 ] }
"""


class Region:
    """Memory that remembers which threads used it; `gone` is what a client does to it."""

    name = "r"

    def __init__(self, value=0.0):
        self.memory = np.full(COUNT, value, np.float32)
        self.threads = []
        self.gone = False

    def check(self, offset, byte_size):
        if offset + byte_size > self.memory.nbytes:
            raise InvalidArgumentError("outside")

    def read(self, offset, byte_size):
        self._use()
        return self.memory.view(np.uint8)[offset : offset + byte_size].copy()

    def lend(self, offset, byte_size):
        return None

    def write(self, offset, byte_size, content, output):
        self._use()
        joined = np.frombuffer(content, np.uint8)
        self.memory.view(np.uint8)[offset : offset + len(joined)] = joined

    def _use(self):
        self.threads.append(threading.get_ident())
        if self.gone:
            raise InvalidArgumentError("the segment has shrunk")


def request_over(source, target, model="m", shape=(1, COUNT)):
    tensor = Tensor("INPUT", "FP32", shape, SharedContent(source, 0, SIZE, shape, np.dtype(np.float32)))
    location = SharedOutput(target, 0, SIZE)
    request = Request(model, {"INPUT": tensor})
    request.transfer = request_io(request.inputs, {"OUTPUT": location})
    return request, location


async def serve(tmp_path, *requests, answer=None):
    backend = FakeBackend()
    if answer is not None:
        backend.answer = answer
    backend.write(tmp_path, "m", "max_batch_size: 8 dynamic_batching {}")
    (tmp_path / "e" / "1").mkdir(parents=True)
    (tmp_path / "e" / "config.pbtxt").write_text(ENSEMBLE)
    (tmp_path / "rowless" / "1").mkdir(parents=True)
    (tmp_path / "rowless" / "config.pbtxt").write_text(ENSEMBLE.replace("max_batch_size: 8", ""))
    plugins = [backend, naiad_scheduler_dynamic, naiad_scheduler_ensemble]
    async with Server(model_repository=[tmp_path], plugins=plugins) as server:
        backend.hold()
        first = asyncio.ensure_future(server.infer(Request("m", {"INPUT": Tensor.of("INPUT", np.zeros((1, 1), "f4"))})))
        await asyncio.to_thread(backend.wait_until_held)
        rest = [asyncio.ensure_future(server.infer(request)) for request in requests]
        await asyncio.sleep(0)
        backend.release()
        await first
        return await asyncio.gather(*rest, return_exceptions=True), [len(batch.requests) for batch in backend.batches]


def test_the_worker_copies_and_not_the_event_loop(tmp_path):
    source, target = Region(3.0), Region()
    request, location = request_over(source, target)

    (response,), _ = asyncio.run(serve(tmp_path, request))

    assert np.all(target.memory == 3.0)
    assert location.holds(response.outputs["OUTPUT"])
    assert threading.get_ident() not in source.threads + target.threads


def test_the_worker_writes_a_large_output_also_of_inputs_outside_of_regions(tmp_path):
    target = Region()
    inputs = {"INPUT": Tensor.of("INPUT", np.full((1, COUNT), 4.0, np.float32))}
    request = Request("m", inputs)
    request.transfer = request_io(inputs, {"OUTPUT": SharedOutput(target, 0, SIZE)})

    asyncio.run(serve(tmp_path, request))

    assert np.all(target.memory == 4.0)
    assert threading.get_ident() not in target.threads


@pytest.mark.parametrize("outputs", [{}, {"OUTPUT": Tensor.of("OUTPUT", np.empty((1, 0), np.float32))}])
def test_an_output_that_a_model_leaves_out_or_empty_is_not_written(outputs):
    target = Region(4.0)

    request_io({}, {"OUTPUT": SharedOutput(target, 0, SIZE)}).store(outputs)

    assert np.all(target.memory == 4.0)
    assert target.threads == []


def test_a_client_that_takes_its_memory_away_fails_its_own_request_only(tmp_path):
    broken, whole, target = Region(1.0), Region(2.0), Region()
    broken.gone = True

    outcomes, sizes = asyncio.run(serve(tmp_path, request_over(broken, Region())[0], request_over(whole, target)[0]))

    assert sizes == [1, 2]
    assert str(outcomes[0]) == "the segment has shrunk"
    assert np.all(target.memory == 2.0)


def test_a_client_of_an_ensemble_that_takes_its_memory_away_fails_its_own_request_only(tmp_path):
    broken, whole = Region(1.0), Region(2.0)
    broken.gone = True
    requests = [request_over(source, Region(), "e")[0] for source in (broken, whole)]

    outcomes, sizes = asyncio.run(serve(tmp_path, *requests))

    assert sizes == [1, 2]
    assert isinstance(outcomes[0], InvalidArgumentError)
    assert "the segment has shrunk" in str(outcomes[0])
    assert np.all(outcomes[1].outputs["OUTPUT"].array == 2.0)


def test_a_step_gets_its_input_in_its_own_shape(tmp_path):
    requests = [request_over(Region(value), Region(), "rowless", (COUNT,))[0] for value in (1.0, 2.0)]
    shapes = []

    def answer(batch):
        shapes.append(batch.input("INPUT").shape)
        return {"OUTPUT": batch.input("INPUT")[:, :1]}

    outcomes, _ = asyncio.run(serve(tmp_path, *requests, answer=answer))

    assert shapes == [(1, 1), (2, COUNT)]
    assert [outcome.outputs["OUTPUT"].array.tolist() for outcome in outcomes] == [[1.0], [2.0]]


def test_a_request_alone_without_its_memory_is_not_executed(tmp_path):
    broken = Region(1.0)
    broken.gone = True

    outcomes, sizes = asyncio.run(serve(tmp_path, request_over(broken, Region())[0]))

    assert (sizes, [str(outcome) for outcome in outcomes]) == ([1], ["the segment has shrunk"])
    assert isinstance(outcomes[0], InvalidArgumentError)


def test_zeros_for_which_there_is_no_memory_take_none():
    broken = Region()
    broken.gone = True
    content = SharedContent(broken, 0, SIZE, (2**40, 2), np.dtype(np.float32))
    tensor = Tensor("INPUT", "FP32", (2**40, 2), content)

    with pytest.raises(InvalidArgumentError):
        request_io({"INPUT": tensor}, {}).fetch({"INPUT": tensor})

    assert (tensor.array.shape, tensor.array.dtype, tensor.array[-1].tolist()) == ((2**40, 2), np.float32, [0.0, 0.0])


def test_what_was_copied_for_a_request_that_fails_is_let_go():
    whole, broken = Region(1.0), Region()
    broken.gone = True
    inputs = {
        name: Tensor(name, "FP32", (COUNT,), SharedContent(region, 0, SIZE, (COUNT,), np.dtype(np.float32)))
        for name, region in (("A", whole), ("B", broken))
    }

    with pytest.raises(InvalidArgumentError):
        request_io(inputs, {}).fetch(inputs)

    assert [tensor.array.any() for tensor in inputs.values()] == [False, False]


def test_a_location_that_is_gone_fails_its_own_request_only(tmp_path):
    source, gone, target = Region(5.0), Region(), Region()
    gone.gone = True

    outcomes, _ = asyncio.run(serve(tmp_path, request_over(source, gone)[0], request_over(source, target)[0]))

    assert isinstance(outcomes[0], InvalidArgumentError)
    assert np.all(target.memory == 5.0)


def test_the_worker_also_writes_an_output_whose_bytes_are_not_in_order(tmp_path):
    request, location = request_over(Region(1.0), target := Region())

    (response,), _ = asyncio.run(
        serve(tmp_path, request, answer=lambda batch: {"OUTPUT": np.ones((batch.size, 2 * COUNT), "f4")[:, ::2]})
    )

    assert location.holds(response.outputs["OUTPUT"])
    assert np.all(target.memory == 1.0)
    assert threading.get_ident() not in target.threads


def test_the_worker_writes_strings_each_behind_its_length():
    target = Region()
    location = SharedOutput(target, 0, SIZE)
    strings = Tensor.of("OUTPUT", [[b"ab", b""]])

    request_io({}, {"OUTPUT": location}).store({"OUTPUT": strings})

    assert target.memory.tobytes()[:10] == b"\2\0\0\0ab" + bytes(4)
    assert location.holds(strings)


def test_a_promise_is_kept_once_and_only_within_the_region():
    region = Region(7.0)
    content = SharedContent(region, 0, SIZE, (COUNT,), np.dtype(np.float32))

    first, again = content.fetch(), np.from_dlpack(content)

    assert np.shares_memory(first, again)
    assert len(region.threads) == 1
    with pytest.raises(InvalidArgumentError, match="outside"):
        SharedContent(region, 4, SIZE, (COUNT,), np.dtype(np.float32))


def test_small_tensors_are_not_worth_it():
    small = Tensor.of("X", np.zeros(4, "f4"))

    assert request_io({"X": small}, {"Y": SharedOutput(Region(), 0, LARGE - 1)}) is None


@pytest.mark.parametrize(
    ("datatype", "dtype", "content", "value"),
    [
        ("FP32", np.float32, np.array([1, 2], np.float32).tobytes(), [1.0, 2.0]),
        ("BOOL", np.bool_, b"\x00\x02", [False, True]),
        ("BYTES", np.object_, b"\x01\x00\x00\x00a\x00\x00\x00\x00", [b"a", b""]),
    ],
)
def test_a_small_input_is_a_copy_of_what_the_region_holds(datatype, dtype, content, value):
    region = Region()
    region.write(4, len(content), content, "")
    array = SharedInput("X", datatype, (2,), np.dtype(dtype), 2, "r", 4, len(content))

    tensor = tensor_over(region, array, "m")
    region.memory[:] = 7

    assert (tensor.name, tensor.datatype, tensor.shape, tensor.array.tolist()) == ("X", datatype, (2,), value)


def test_a_large_input_is_a_promise():
    region = Region()

    tensor = tensor_over(region, SharedInput("X", "FP32", (COUNT,), np.dtype(np.float32), COUNT, "r", 0, SIZE), "m")

    assert isinstance(tensor.payload, SharedContent)
    assert region.threads == []


@pytest.mark.parametrize(("datatype", "dtype"), [("BYTES", np.object_), ("BOOL", np.bool_)])
def test_many_strings_and_booleans_are_read_by_the_worker(datatype, dtype):
    region = Region()
    count = SIZE // 4 if datatype == "BYTES" else SIZE  # an empty string takes four bytes
    described = SharedInput("X", datatype, (count,), np.dtype(dtype), count, "r", 0, SIZE)

    tensor = tensor_over(region, described, "m")
    assert region.threads == []
    transfer = request_io({"X": tensor}, {})
    assert transfer is not None
    transfer.fetch({"X": tensor}, lend=True)

    assert tensor.array.shape == (count,)
    assert set(tensor.array.tolist()) == ({b""} if datatype == "BYTES" else {False})
    assert len(region.threads) == 1


def test_strings_that_are_cut_fail_their_request_and_the_model_sees_empty_ones():
    region = Region()
    region.write(0, 4, b"\xff\xff\xff\x7f", "")
    count = SIZE // 4
    tensor = tensor_over(region, SharedInput("X", "BYTES", (count,), np.dtype(object), count, "r", 0, SIZE), "m")
    transfer = request_io({"X": tensor}, {})
    assert transfer is not None

    with pytest.raises(InvalidArgumentError, match="'X'"):
        transfer.fetch({"X": tensor})

    assert set(tensor.array.tolist()) == {b""}


def test_more_strings_than_the_bytes_can_hold_are_refused_before_they_are_read():
    region = Region()
    described = SharedInput("X", "BYTES", (10**9,), np.dtype(object), 10**9, "r", 0, SIZE)

    with pytest.raises(
        InvalidArgumentError, match=f"expected 1000000000 string .* 'X' .* 'm', got at most {SIZE // 4}"
    ):
        tensor_over(region, described, "m")

    assert region.threads == []


def test_a_model_that_reshapes_gets_many_strings_which_the_worker_reads(tmp_path):
    region, count = Region(), SIZE // 4
    strings = tensor_over(region, SharedInput("INPUT", "BYTES", (count,), np.dtype(object), count, "r", 0, SIZE), "s")
    request = Request("s", {"INPUT": strings})
    request.transfer = request_io(request.inputs, {})
    backend = FakeBackend(answer=lambda batch: {"OUTPUT": np.array(batch.input("INPUT").shape, "f4")})
    backend.write(tmp_path, "s", RESHAPING)

    async def ask():
        async with Server(model_repository=[tmp_path], plugins=[backend]) as server:
            return await server.infer(request)

    assert asyncio.run(ask()).outputs["OUTPUT"].array.tolist() == [128, 128]
    assert len(region.threads) == 1
    assert threading.get_ident() not in region.threads


def test_strings_that_cannot_be_read_are_replaced_without_memory_for_each():
    region = Region()
    region.gone = True
    count = SIZE // 4
    tensor = tensor_over(region, SharedInput("X", "BYTES", (count,), np.dtype(object), count, "r", 0, SIZE), "m")

    with pytest.raises(InvalidArgumentError):
        request_io({"X": tensor}, {}).fetch({"X": tensor})

    assert (tensor.array.shape, tensor.array.strides) == ((count,), (0,))


def test_a_location_outside_its_region_is_refused():
    with pytest.raises(InvalidArgumentError, match="outside"):
        SharedOutput(Region(), 4, SIZE)
