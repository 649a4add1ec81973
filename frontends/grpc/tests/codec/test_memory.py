"""Memory for large requests that come in parts: their tensors are views of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from naiad_grpc.codec import model_name_and_version, request_id_of, request_memory, takes_long
from naiad_kit.frontends.body_memory import no_body_memory

SIZE = 100_000


def received(message, front, reserve=no_body_memory):
    """The message in the memory that is chosen by its first bytes."""
    memory = request_memory(reserve, message[:front], len(message))
    memory[:] = message
    return memory


@pytest.mark.parametrize("datatype", ["FP32", "FP64", "INT16", "UINT8"])
@pytest.mark.parametrize("front", [100, 1000, SIZE // 2])
def test_a_large_tensor_is_an_aligned_view_wherever_it_begins(decoder, ask, datatype, front):
    content = np.arange(SIZE).astype(datatype.replace("FP", "float").lower())

    for size in range(16):
        request = ask(("X", datatype, [SIZE]), raw=[content.tobytes()], id="x" * size)
        memory = received(request.SerializeToString(), front)

        array = decoder.decode(memory)[0].inputs["X"].array

        assert array.flags.aligned
        assert np.shares_memory(array, np.frombuffer(memory, np.uint8))
        assert np.array_equal(array, content)


def test_the_tensor_that_the_first_bytes_do_not_end_is_the_one_that_is_aligned(decoder, ask):
    few, many = np.arange(10, dtype=np.float64), np.arange(SIZE, dtype=np.float64)

    for size in range(8):
        request = ask(("A", "FP64", [10]), ("B", "FP64", [SIZE]), raw=[few.tobytes(), many.tobytes()], id="x" * size)
        memory = received(request.SerializeToString(), 1000)

        inputs = decoder.decode(memory)[0].inputs

        assert np.shares_memory(inputs["B"].array, np.frombuffer(memory, np.uint8))
        assert np.array_equal(inputs["A"].array, few)
        assert np.array_equal(inputs["B"].array, many)


@pytest.mark.parametrize("front", [4, 50])
def test_the_memory_is_that_of_the_model_once_its_name_is_known(ask, front):
    reserved = []

    def reserve(model, size):
        reserved.append((model, size, memoryview(bytearray(size))))
        return reserved[-1][2]

    message = ask(("X", "UINT8", [SIZE]), raw=[bytes(SIZE)], model="model").SerializeToString()

    memory = received(message, front, reserve)

    if front == 4:  # within the name
        assert reserved == []
    else:
        ((model, size, whole),) = reserved
        assert (model, size >= len(message)) == ("model", True)
        assert memory.obj is whole.obj


@given(front=some.binary(max_size=60), more=some.integers(1, 1000))
def test_any_first_bytes_get_memory_of_the_size(front, more):
    assert len(request_memory(no_body_memory, front, len(front) + more)) == len(front) + more


@pytest.mark.parametrize("request_id", ["", "7", "é" * 90])
@pytest.mark.parametrize("raw", [True, False])
def test_a_view_is_read_as_bytes_are(decoder, ask, raw, request_id):
    strings = b"".join(len(each).to_bytes(4, "little") + each for each in (b"a", b"", b"\xff" * 300))
    request = ask(("S", "BYTES", [3]), ("X", "BOOL", [2]), raw=[strings, b"\x00\x02"], id=request_id)
    if not raw:
        request = ask(("X", "FP32", [2]), id=request_id)
        request.inputs[0].contents.fp32_contents.extend([1.5, 2.5])
    message = request.SerializeToString()
    view = memoryview(bytearray(message))

    from_bytes, from_view = decoder.decode(message)[0], decoder.decode(view)[0]

    assert from_view.id == from_bytes.id == request_id_of(view) == request_id
    assert from_view.inputs.keys() == from_bytes.inputs.keys()
    for name, tensor in from_bytes.inputs.items():
        assert from_view.inputs[name].array.tolist() == tensor.array.tolist()
    assert takes_long(view) == takes_long(message)
    assert model_name_and_version(view) == model_name_and_version(message) == ("m", "")
    template, tensors = decoder.read(view)
    assert (template.id, tensors.keys()) == (request_id, from_bytes.inputs.keys())
