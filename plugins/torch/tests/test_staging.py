"""What crosses the bus to a GPU and what stays there, over the memory of a machine without one."""

import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from naiad_config.text import parse_text
from naiad_tensors.devices import HOST, DeviceTensor, gpu
from naiad_testing.workbench import batch_of
from naiad_torch.gpu import Gpu, Pinned, Resident, Staging, arrays_of, laid_out, pinned_of

BITS = np.array([[0x3F80], [0x4000]], np.uint16)


@pytest.fixture
def staging():
    return Staging(torch.device("cpu"), Pinned(inputs=False, outputs=False))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "uint16", "uint64", "int8", "int64", "float16", "float32", "float64"]
)
def test_arrays_are_joined_on_their_way(staging, dtype):
    arrays = [np.ones((rows, 3), dtype) for rows in (1, 2)]

    tensor = staging.to_device(arrays, is_bf16=False)

    assert tensor.numpy().tolist() == np.concatenate(arrays).tolist()
    assert tensor.numpy().dtype == dtype


def test_an_array_is_free_to_change_when_it_was_staged(staging):
    array = np.ones((1, 3), np.float32)

    tensor = staging.to_device([array], is_bf16=False)
    array[:] = 5

    assert tensor.tolist() == [[1.0] * 3]


def test_memory_of_any_order_and_location_is_staged(staging):
    raw = np.zeros(13, np.uint8)
    unaligned = raw[1:13].view(np.float32).reshape(1, 3)
    strided = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]

    assert staging.to_device([unaligned], is_bf16=False).tolist() == [[0.0] * 3]
    assert staging.to_device([strided, unaligned], is_bf16=False).tolist() == [[0, 2, 4], [6, 8, 10], [0, 0, 0]]


@pytest.mark.parametrize(
    ("said", "pinned"),
    [
        ("", (True, True)),
        ("optimization { graph { level: 1 } }", (True, True)),
        ("optimization { input_pinned_memory { enable: false } }", (False, True)),
        ("optimization { output_pinned_memory { enable: false } }", (True, False)),
    ],
)
def test_configurations_switch_pinned_memory_off(monkeypatch, said, pinned):
    requested = []
    plain = torch.empty
    monkeypatch.setattr(
        torch, "empty", lambda *shape, pin_memory, **more: requested.append(pin_memory) or plain(*shape, **more)
    )
    staging = Staging(torch.device("cpu"), pinned_of(parse_text(said)))

    tensor = staging.to_device([np.ones((1, 2), np.float32)], is_bf16=False)
    staging.to_host(tensor)

    assert tuple(requested) == pinned


def test_bits_of_bf16_are_numbers_on_the_device(staging):
    tensor = staging.to_device([BITS[:1], BITS[1:]], is_bf16=True)

    assert (tensor.dtype, tensor.tolist()) == (torch.bfloat16, [[1.0], [2.0]])


def test_rows_of_several_requests_are_not_joined_before():
    first, second = np.ones((1, 2), np.float32), np.ones((2, 2), np.float32)

    arrays = arrays_of(batch_of({"x": first}, {"x": second}), "x")

    assert [array is sent for array, sent in zip(arrays, (first, second), strict=True)] == [True, True]


def test_what_stays_is_described_and_copied_as_the_kernel_asks(staging):
    with torch.inference_mode():
        value = torch.arange(4.0).reshape(2, 2)

    tensor = DeviceTensor.of(Resident(value, staging))

    assert (tensor.datatype, tensor.shape, tensor.address) == ("FP32", (2, 2), value.data_ptr())
    assert tensor.array.tolist() == [[0, 1], [2, 3]]
    assert tensor.array.ctypes.data != value.data_ptr()


def test_bf16_that_stays_comes_to_the_host_as_bits(staging):
    tensor = DeviceTensor.of(Resident(torch.ones(2, dtype=torch.bfloat16), staging))

    assert (tensor.datatype, tensor.array.tolist()) == ("BF16", [0x3F80] * 2)


def test_pytorch_takes_in_the_views_that_the_kernel_makes():
    class Memory:
        array = np.arange(6, dtype=np.float32)

    memory = Memory()
    seen = weakref.ref(memory)
    view = DeviceTensor.at(memory.array.ctypes.data, HOST, "FP32", (3, 2), memory)[1:3].reshape((4,))

    tensor = torch.from_dlpack(view)
    del memory, view

    assert tensor.tolist() == [2, 3, 4, 5]
    assert seen() is not None
    del tensor
    assert seen() is None


class RecordingObject:
    """A stream and an event, which write down what is asked of them."""

    def __init__(self, name, calls):
        self._name, self._calls = name, calls

    def synchronize(self):
        self._calls.append(f"wait for {self._name}")

    def record(self, _stream):
        self._calls.append(f"mark {self._name}")


@pytest.fixture
def calls():
    return []


@pytest.fixture
def on_host(monkeypatch, staging, calls):
    """The GPU of an instance, whose memory is the host's."""
    monkeypatch.setattr(torch.cuda, "Stream", lambda _device: RecordingObject("stream", calls))
    monkeypatch.setattr(torch.cuda, "Event", lambda: RecordingObject("event", calls))
    monkeypatch.setattr(torch.cuda, "stream", lambda _stream: nullcontext())
    device = Gpu(0)
    device._device, device._staging = torch.device("cpu"), staging
    return device


def test_outputs_are_whole_when_they_are_handed_on(on_host, calls):
    batch = batch_of({"x": np.ones((1, 2), np.float32)})
    batch.requests[0].on_device = {"stays": [gpu(0)]}

    outputs = on_host.fetch(batch, {"stays": torch.ones(2), "comes": torch.zeros(2)})

    assert calls == ["mark event", "wait for event", "wait for stream"]
    assert isinstance(outputs["stays"], Resident)
    assert outputs["comes"].tolist() == [0, 0]


def test_what_is_overwritten_by_the_next_run_is_copied(on_host):
    batch = batch_of({"x": np.ones((1, 2), np.float32)})
    batch.requests[0].on_device = {"y": [gpu(0)]}
    on_host._copies_outputs = True
    value = torch.ones(2)

    kept = on_host.fetch(batch, {"y": value})["y"]
    value[:] = 5

    assert DeviceTensor.of(kept).array.tolist() == [1, 1]


def test_what_fails_is_waited_for(on_host, calls):
    with pytest.raises(ValueError, match="the model"), on_host.active():
        raise ValueError("the model")

    assert calls == ["wait for stream"]


def test_what_is_in_the_host_is_staged(on_host):
    tensor = on_host.bring(
        batch_of({"x": np.ones((1, 2), np.float32)}, {"x": np.zeros((1, 2), np.float32)}), "x", False
    )

    assert tensor.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2, 3).t(),
        torch.ones(2, requires_grad=True),
        torch.ones(2, dtype=torch.complex64).conj().imag,
    ],
)
def test_what_others_read_lies_in_order_and_is_computed(staging, tensor):
    plain = laid_out(tensor)

    assert plain.is_contiguous()
    assert DeviceTensor.of(Resident(plain, staging)).array.tolist() == tensor.detach().resolve_neg().tolist()
