"""The memory of a model's weights, read from the file without ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from naiad_onnx.weights import weight_bytes


@pytest.fixture
def size_of(models, tmp_path):
    """The bytes of the weights of a model with these initializers."""

    def size_of(*initializers, sparse=()):
        model = models.identity(["n", 2])
        model.graph.initializer.extend(initializers)
        model.graph.sparse_initializer.extend(sparse)
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return weight_bytes(path)

    return size_of


def test_weights_are_counted_by_shape_and_type(size_of):
    matrix = numpy_helper.from_array(np.ones((300, 20), np.float32), "matrix")
    halves = numpy_helper.from_array(np.ones(7, np.float16), "halves")
    scalar = numpy_helper.from_array(np.array(5, np.int64), "scalar")

    assert size_of(matrix, halves, scalar) == 300 * 20 * 4 + 7 * 2 + 8
    assert size_of() == 0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (TensorProto.BOOL, 9),
        (TensorProto.BFLOAT16, 18),
        (TensorProto.UINT32, 36),
        (TensorProto.DOUBLE, 72),
        (TensorProto.COMPLEX128, 144),
        (TensorProto.FLOAT8E4M3FN, 9),
        (TensorProto.INT4, 5),
    ],
)
def test_every_type_has_its_size(size_of, kind, expected):
    assert size_of(TensorProto(name="w", data_type=kind, dims=[3, 3], raw_data=bytes(expected))) == expected


def test_values_that_are_no_raw_bytes_count_alike(size_of):
    assert size_of(helper.make_tensor("w", TensorProto.FLOAT, [2, 3], range(6))) == 24


def test_the_strings_of_a_vocabulary_are_counted(size_of):
    words = helper.make_tensor("w", TensorProto.STRING, [2], [b"x" * 1000, b"y" * 500])

    assert 1500 < size_of(words) < 1550


def test_sparse_weights_count_with_their_places(size_of):
    values = helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3])
    places = helper.make_tensor("i", TensorProto.INT64, [3], [1, 2, 3])

    assert size_of(sparse=[helper.make_sparse_tensor(values, places, [1000])]) == 3 * 4 + 3 * 8


def test_weights_in_external_files_are_counted(models, tmp_path, save_with_external_weights):
    save_with_external_weights(models.dense(), tmp_path / "model.onnx")

    counted = weight_bytes(tmp_path / "model.onnx")

    assert counted == sum(
        numpy_helper.to_array(each, str(tmp_path)).nbytes
        for each in onnx.load(tmp_path / "model.onnx").graph.initializer
    )
    assert counted > 0


@pytest.mark.parametrize("content", [b"ORTM" + b"\xff" * 60, b"\x3a\x7f", b"\x0b"])
def test_a_file_of_another_format_counts_as_a_whole(tmp_path, content):
    (tmp_path / "model.ort").write_bytes(content)

    assert weight_bytes(tmp_path / "model.ort") == len(content)
