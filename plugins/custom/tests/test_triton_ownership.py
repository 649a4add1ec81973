"""Answers of a `model.py` are sent without a copy, unless the model still holds what it answered with."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from naiad_custom.triton.replies import reply_of
from naiad_custom.triton.response import InferenceResponse
from naiad_custom.triton.tensor import Tensor
from naiad_tensors.laid_out import Field, InputLayout, LaidOutInputs

KEEPS = {
    "a bytearray": ("bytearray(8)", "np.frombuffer(self.kept, np.int64)", "self.kept[:] = number.tobytes()"),
    "a tensor": ('pb_utils.Tensor("Y", np.zeros(1, np.int64))', "self.kept", "self.kept.as_numpy()[:] = number"),
    "its input": ("None", "self.kept", "self.kept = number if self.kept is None else self.kept.__iadd__(number)"),
    "a view of its input": (
        "None",
        "self.kept[:]",
        "self.kept = number if self.kept is None else np.add(self.kept, number, out=self.kept)",
    ),
}


@pytest.fixture(params=["writable", "read-only", "bytes"])
def integer(request, batch_of):
    """Make a batch of one request whose input X is that number, as a tensor or still as the bytes of its request."""

    def make(number):
        batch = batch_of({"X": [number]}, batching=False)
        (one,) = batch.requests
        if request.param == "read-only":
            one.inputs["X"].payload.flags.writeable = False
        elif request.param == "bytes":
            dtype = np.dtype(np.int64)
            layout = InputLayout([Field("X", "INT64", (1,), dtype, 3, 8)])
            one.inputs = LaidOutInputs(layout, b"head" + np.int64(number).tobytes(), 1)
        return batch

    return make


@pytest.mark.parametrize("kept", KEEPS)
def test_a_triton_model_that_refills_what_it_keeps_does_not_change_its_last_answer(folder, integer, kept):
    first, answer, fill = KEEPS[kept]
    folder.write_triton(
        f"""number = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
self.kept = self.kept if hasattr(self, "kept") else {first}
{fill}
answer = {answer}
answer = answer if isinstance(answer, pb_utils.Tensor) else pb_utils.Tensor("Y", answer)
return [pb_utils.InferenceResponse([answer])]"""
    )
    instance = folder.instance()

    one = instance.execute(integer(1))[0].outputs["Y"]
    two = instance.execute(integer(2))[0].outputs["Y"]

    assert (one.item(), two.item()) == (1, 3 if "input" in kept else 2)


def test_a_triton_model_hands_back_its_input_and_a_fresh_result_without_a_copy(folder, integer):
    folder.write_triton(
        """number = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
ADDRESSES.append(number.ctypes.data)
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", number), pb_utils.Tensor("Z", fresh())])]""",
        """ADDRESSES = []
def fresh():
    array = np.ones(1)
    ADDRESSES.append(array.ctypes.data)
    return array
""",
    )
    instance = folder.instance()
    outputs = instance.execute(integer(1))[0].outputs

    addresses = sys.modules[type(instance._model).__module__].ADDRESSES
    assert [outputs["Y"].ctypes.data, outputs["Z"].ctypes.data] == addresses


@pytest.mark.parametrize("count", [16, 100_000])
@pytest.mark.parametrize("dtype", [np.float32, np.object_])
def test_what_a_model_writes_through_a_tensor_that_it_keeps_is_not_sent(count, dtype):
    payload = np.full(count, 1, dtype) if dtype is np.float32 else np.array([b"1"] * count, dtype)
    kept, fresh = Tensor("KEPT", payload), np.zeros(count, dtype)
    address = fresh.ctypes.data
    response = InferenceResponse([kept, Tensor("FRESH", fresh)])
    del payload, fresh

    reply = reply_of(response, SimpleNamespace(_payloads=list))
    kept.as_numpy()[:] = 2

    assert set(reply.outputs["KEPT"].tolist()) in ({1.0}, {b"1"})
    assert reply.outputs["FRESH"].ctypes.data == address or dtype is np.object_


def test_a_tensor_that_a_model_keeps_is_sent_without_a_copy_and_written_to_as_a_copy():
    kept = Tensor("KEPT", np.ones(16))
    address = kept.as_numpy().ctypes.data

    sent = reply_of(InferenceResponse([kept]), SimpleNamespace(_payloads=list)).outputs["KEPT"]
    kept.as_numpy()[:] = 2

    assert sent.ctypes.data == address
    assert sent.tolist() == [1] * 16
    assert kept.as_numpy().tolist() == [2] * 16


def test_an_input_that_is_handed_back_is_copied_where_the_model_keeps_its_tensor(folder, integer):
    folder.write_triton(
        """tensor = pb_utils.get_input_tensor_by_name(requests[0], "X")
if hasattr(self, "kept"):
    self.kept.as_numpy()[:] = 7
self.kept = tensor
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", tensor.as_numpy())])]"""
    )
    instance = folder.instance()
    batches = [integer(number) for number in (1, 2)]

    answers = [instance.execute(batch)[0].outputs["Y"] for batch in batches]

    assert [answer.item() for answer in answers] == [1, 2]
