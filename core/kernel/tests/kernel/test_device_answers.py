"""Answers on a device: checked where they are, kept there for those who take them there, brought to the host once."""

from typing import Any

import numpy as np
import pytest

from naiad.backend import Batch, Reply
from naiad.server import Outcome
from naiad.types import Request
from naiad_tensors.devices import HOST, DeviceTensor, EveryOutput, OnDevice, gpu
from naiad_tensors.tensors import Tensor
from naiad_testing.devices import FakeDeviceArray

from .answering import BATCHED, batch, failure, floats, ints, read, responses

STAYS: OnDevice = {"X": (gpu(0),)}
BOTH: OnDevice = {"X": (gpu(0), HOST)}


def batch_with(*wishes: OnDevice | None) -> Batch:
    """A batch of one request of two rows for each wish."""
    requests = [Request("batched", {}, id=str(n), on_device=wish) for n, wish in enumerate(wishes)]
    return Batch(requests, [2] * len(wishes))


def payloads(outcomes: list[Outcome], name: str = "X") -> list[Any]:
    return [response.outputs[name].payload for response in responses(outcomes)]


def test_an_output_stays_for_the_request_that_takes_it_there() -> None:
    held = FakeDeviceArray(floats(2, 2))

    (payload,) = payloads(read({"X": held}, batch_with(STAYS)))

    assert isinstance(payload, DeviceTensor)
    assert np.shares_memory(FakeDeviceArray.over(payload).memory, held.memory)
    assert held.copies == 0


def test_every_output_may_stay_without_its_name() -> None:
    (response,) = responses(
        read({"X": FakeDeviceArray(floats(2, 2)), "Y": FakeDeviceArray(ints(2, 1))}, batch_with(EveryOutput((gpu(0),))))
    )

    assert [type(tensor.payload) for tensor in response.outputs.values()] == [DeviceTensor, DeviceTensor]


@pytest.mark.parametrize("wish", [None, {}, {"Y": (gpu(0),)}, {"X": (gpu(1),)}])
def test_it_comes_to_the_host_for_any_other(wish: OnDevice | None) -> None:
    held = FakeDeviceArray(floats(2, 2))

    (payload,) = payloads(read({"X": held}, batch_with(wish)))

    assert payload.tolist() == [[0, 1], [2, 3]]
    assert held.copies == 1


def test_what_is_wanted_in_both_locations_is_there_when_the_instance_has_answered() -> None:
    held = FakeDeviceArray(floats(2, 2))

    (payload,) = payloads(read({"X": held}, batch_with(BOTH)))

    assert isinstance(payload, DeviceTensor)
    assert held.copies == 1
    assert payload.array.tolist() == [[0, 1], [2, 3]]
    assert held.copies == 1


def test_every_request_of_a_batch_gets_its_rows_on_the_device() -> None:
    held = FakeDeviceArray(floats(4, 2))

    parts = payloads(read({"X": held}, batch_with(STAYS, STAYS)))

    assert [FakeDeviceArray.over(part).memory.tolist() for part in parts] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert all(np.shares_memory(FakeDeviceArray.over(part).memory, held.memory) for part in parts)
    assert held.copies == 0


def test_a_batch_for_both_kinds_of_requests_comes_to_the_host_once() -> None:
    held = FakeDeviceArray(floats(6, 2))

    kept, brought, both = payloads(read({"X": held}, batch_with(STAYS, None, BOTH)))

    assert [type(each) for each in (kept, brought, both)] == [DeviceTensor, np.ndarray, DeviceTensor]
    assert brought.tolist() == [[4, 5], [6, 7]]
    assert both.array.tolist() == [[8, 9], [10, 11]]
    assert held.copies == 1


def test_outputs_of_both_kinds_are_distinguished() -> None:
    answer = {"X": FakeDeviceArray(floats(4, 2)), "Y": ints(4, 1)}

    first, second = responses(read(answer, batch_with(STAYS, STAYS)))

    assert isinstance(first.outputs["X"].payload, DeviceTensor)
    assert second.outputs["Y"].array.tolist() == [[2], [3]]


def test_replies_are_read_one_by_one() -> None:
    kept, brought = FakeDeviceArray(floats(2, 2)), FakeDeviceArray(floats(2, 2))

    first, second = payloads(read([Reply({"X": kept}), Reply({"X": brought})], batch_with(STAYS, None)))

    assert isinstance(first, DeviceTensor)
    assert isinstance(second, np.ndarray)
    assert (kept.copies, brought.copies) == (0, 1)


def test_a_wrong_datatype_is_reported_without_a_copy() -> None:
    held = FakeDeviceArray(np.zeros((2, 2), np.float64))

    message = failure({"X": held}, batch_with(STAYS))

    assert "FP64 for output 'X'" in message
    assert held.copies == 0


def test_a_wrong_shape_is_reported_without_a_copy() -> None:
    held = FakeDeviceArray(floats(2, 3))

    message = failure({"X": held}, batch_with(STAYS))

    assert "shape [2, 3] for output 'X'" in message
    assert held.copies == 0


def test_strings_are_never_on_a_device() -> None:
    config = 'name: "batched" max_batch_size: 8 output { name: "X" data_type: TYPE_STRING dims: 2 }'

    message = failure({"X": FakeDeviceArray(floats(2, 2))}, batch_with(STAYS), config)

    assert message.endswith("as BYTES")


def test_what_has_gaps_comes_to_the_host() -> None:
    held = FakeDeviceArray(floats(2, 4)[:, ::2])

    (payload,) = payloads(read({"X": held}, batch_with(STAYS)))

    assert payload.tolist() == [[0, 2], [4, 6]]


def test_clients_and_models_see_the_shapes_that_the_configuration_says() -> None:
    config = """name: "batched" max_batch_size: 8
    output { name: "X" data_type: TYPE_FP32 dims: [ 1, 2 ] reshape: { shape: [ 2 ] } }"""
    held = FakeDeviceArray(floats(2, 2))

    (response,) = responses(read({"X": held}, batch_with(STAYS), config))

    assert response.outputs["X"].shape == (2, 1, 2)
    assert FakeDeviceArray.over(response.outputs["X"].payload).memory.shape == (2, 1, 2)
    assert held.copies == 0


def test_bf16_stays_and_comes_as_bits() -> None:
    config = 'name: "batched" max_batch_size: 8 output { name: "X" data_type: TYPE_BF16 dims: 2 }'
    held = FakeDeviceArray(np.full((4, 2), 0x3F80, np.uint16), is_bf16=True)

    kept, brought = responses(read({"X": held}, batch_with(STAYS, None), config))

    assert (kept.outputs["X"].datatype, brought.outputs["X"].datatype) == ("BF16", "BF16")
    assert brought.outputs["X"].array.tolist() == [[0x3F80] * 2] * 2


def test_a_model_that_declares_nothing_keeps_its_own_datatype() -> None:
    held = FakeDeviceArray(np.full((2, 2), 0x3F80, np.uint16), is_bf16=True)

    (response,) = responses(read({"X": held}, batch_with(None), BATCHED, strict=False))

    assert (response.outputs["X"].datatype, held.copies) == ("BF16", 1)


# What a backend asks of its batch


def of(*tensors: Tensor) -> Batch:
    return Batch([Request("batched", {"X": tensor}) for tensor in tensors], [2] * len(tensors))


def test_a_backend_is_given_what_lies_on_its_device() -> None:
    first, second = (FakeDeviceArray(floats(2, 2)) for _ in range(2))

    result = of(Tensor.of("X", first), Tensor.of("X", second)).resident("X", [gpu(0)])

    assert result is not None
    assert all(
        np.shares_memory(FakeDeviceArray.over(tensor).memory, held.memory)
        for tensor, held in zip(result, (first, second), strict=True)
    )


@pytest.mark.parametrize("other", [floats(2, 2), FakeDeviceArray(floats(2, 2), gpu(1))])
def test_tensors_in_different_locations_are_joined_on_the_host(other: Any) -> None:
    held = FakeDeviceArray(floats(2, 2))
    mixed = of(Tensor.of("X", held), Tensor.of("X", other))

    assert mixed.resident("X", [gpu(0), gpu(1)]) is None
    assert mixed.input("X").tolist() == [[0, 1], [2, 3]] * 2
    assert mixed.input("X").shape == (4, 2)
    assert held.copies == 1


def test_a_device_that_the_backend_does_not_take_is_none() -> None:
    assert of(Tensor.of("X", FakeDeviceArray(floats(2, 2)))).resident("X", [gpu(1)]) is None


def test_a_backend_learns_what_may_stay() -> None:
    batch_of_both = batch_with(None, STAYS)

    assert batch_of_both.may_stay("X", gpu(0))
    assert not batch_of_both.may_stay("X", gpu(1))
    assert not batch_of_both.may_stay("Y", gpu(0))
    assert not batch(1, 1).may_stay("X", gpu(0))
