"""`pb_utils.Tensor`: numpy and DLPack both ways, for every datatype."""

import ml_dtypes
import numpy as np
import pytest

import triton_python_backend_utils as pb_utils
from naiad_custom.triton.tensor import received
from naiad_tensors.datatypes import TENSOR_TYPES, fp32_to_bf16
from naiad_tensors.tensors import Tensor

NUMBERS = [kind for kind in TENSOR_TYPES.values() if kind.wire not in ("BYTES", "BF16")]


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.wire)
def test_an_array_keeps_its_datatype_and_memory(kind):
    array = np.array([[1, 0]], kind.dtype)

    tensor = pb_utils.Tensor("T", array)

    assert (tensor.name(), tensor.shape(), tensor.triton_dtype(), tensor.is_cpu()) == ("T", [1, 2], kind.config, True)
    assert tensor.as_numpy() is array


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.wire)
def test_dlpack_goes_both_ways(kind):
    array = np.array([[1, 0]], kind.dtype)

    capsule = pb_utils.Tensor("T", array).to_dlpack()
    tensor = pb_utils.Tensor.from_dlpack("U", capsule)

    assert (tensor.triton_dtype(), tensor.shape()) == (kind.config, [1, 2])
    assert tensor.as_numpy().tolist() == array.tolist()


def test_an_object_with_dlpack_is_taken_without_a_copy():
    array = np.arange(4.0)

    tensor = pb_utils.Tensor.from_dlpack("T", array)

    array[0] = 7
    assert np.from_dlpack(tensor).tolist() == [7, 1, 2, 3]


def test_a_tensor_offers_dlpack_to_libraries():
    tensor = pb_utils.Tensor("T", np.arange(3))

    assert np.from_dlpack(tensor).tolist() == [0, 1, 2]
    assert tensor.__dlpack_device__() == (1, 0)


def test_a_capsule_is_used_once():
    capsule = pb_utils.Tensor("T", np.arange(3)).to_dlpack()
    pb_utils.Tensor.from_dlpack("T", capsule)

    with pytest.raises(pb_utils.TritonModelException, match="used already"):
        pb_utils.Tensor.from_dlpack("T", capsule)


def test_bf16_goes_through_dlpack_and_not_through_numpy():
    bits = fp32_to_bf16(np.array([1.5, -2.0], np.float32))
    tensor = received("T", Tensor("T", "BF16", (2,), bits))

    again = pb_utils.Tensor.from_dlpack("U", tensor.to_dlpack())

    assert again.triton_dtype() == TENSOR_TYPES["BF16"].config
    assert again._payload.tolist() == bits.tolist()
    with pytest.raises(pb_utils.TritonModelException, match="BF16, which numpy does not know; use to_dlpack"):
        tensor.as_numpy()


def test_an_ml_dtypes_array_is_bf16():
    tensor = pb_utils.Tensor("T", np.array([1.5], ml_dtypes.bfloat16))

    assert tensor.triton_dtype() == TENSOR_TYPES["BF16"].config


def test_a_strided_array_is_copied_and_strided_memory_of_a_capsule_refused():
    strided = np.arange(6).reshape(2, 3).T
    tensor = pb_utils.Tensor("T", strided)

    assert tensor.as_numpy().flags.c_contiguous
    assert tensor.as_numpy().tolist() == strided.tolist()
    assert np.from_dlpack(tensor).tolist() == strided.tolist()
    with pytest.raises(pb_utils.TritonModelException, match="not contiguous"):
        pb_utils.Tensor.from_dlpack("T", strided)


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0), (2, 0, 3)])
def test_tensors_without_elements_pass_through_dlpack(shape):
    tensor = pb_utils.Tensor("T", np.zeros(shape, np.float32))

    assert pb_utils.Tensor.from_dlpack("T", tensor.to_dlpack()).shape() == list(shape)


def test_received_memory_is_copied_when_it_may_not_be_written_to():
    memory = bytes(8)
    tensor = received("T", Tensor("T", "INT64", (1,), np.frombuffer(memory, np.int64)))

    array = tensor.as_numpy()
    array += 1

    assert tensor.as_numpy().tolist() == [1]
    assert memory == bytes(8)


@pytest.mark.parametrize(
    "array",
    [np.array([b"a", b"b"]), np.array(["a", b"b"], dtype=object)],
    ids=["S", "object"],
)
def test_strings_are_bytes_tensors(array):
    tensor = pb_utils.Tensor("T", array)

    assert tensor.triton_dtype() == TENSOR_TYPES["BYTES"].config
    with pytest.raises(pb_utils.TritonModelException, match="BYTES, which DLPack cannot carry"):
        tensor.to_dlpack()


@pytest.mark.parametrize("array", [np.array([b"a"]), np.array([b"a"], object), np.array(["a"], object)])
def test_an_array_of_texts_may_be_filled_anew(array):
    tensor = pb_utils.Tensor("T", array)

    array[0] = b"b"

    assert tensor.as_numpy().tolist() in ([b"a"], ["a"])


@pytest.mark.parametrize("dtype", ["complex128", "datetime64[s]", ">i4", "U1", "longdouble", "V4"])
def test_a_dtype_that_the_protocol_cannot_carry_is_refused(dtype):
    with pytest.raises(pb_utils.TritonModelException, match=r"NumPy dtype is not supported\. Tensor 'T' has dtype"):
        pb_utils.Tensor("T", np.zeros(2, dtype))


@pytest.mark.parametrize("value", [None, [1, 2], 5, np.float32(1), np.float32])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(TypeError, match="tensor 'T' needs a numpy array, not"):
        pb_utils.Tensor("T", value)


@pytest.mark.parametrize("make", [pb_utils.Tensor, pb_utils.Tensor.from_dlpack])
def test_a_name_is_text_or_bytes_in_utf_8(make):
    array = np.zeros(1)

    assert make("grün".encode(), array).name() == "grün"
    with pytest.raises(UnicodeDecodeError):
        make(b"\xff", array)
    for name in (None, 5):
        with pytest.raises(TypeError, match=r"the name of a pb_utils\.Tensor .* a str, not"):
            make(name, array)


def test_every_integer_of_that_size_is_one():
    assert pb_utils.Tensor("T", np.zeros(1, np.longlong)).triton_dtype() == TENSOR_TYPES["INT64"].config


def test_an_array_of_a_class_of_its_own_is_an_array():
    tensor = pb_utils.Tensor("T", np.ma.zeros((1, 2)))

    assert type(tensor.as_numpy()) is np.ndarray
    assert tensor.shape() == [1, 2]


class OnDevice:
    """Memory of a GPU, as far as the host can see."""

    shape = (2, 2)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None):
        return "a capsule"


def test_memory_of_a_device_is_passed_on_and_not_read():
    device = OnDevice()
    tensor = received("T", Tensor("T", "FP32", (2, 2), device))

    assert (tensor.is_cpu(), tensor.shape(), tensor.to_dlpack()) == (False, [2, 2], "a capsule")
    with pytest.raises(pb_utils.TritonModelException, match="not in host memory"):
        tensor.as_numpy()
