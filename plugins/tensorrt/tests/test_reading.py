"""Describing engines: over an engine that answers with the types of the real modules."""

from types import SimpleNamespace

import pytest
import tensorrt_lean_bindings as lean
import tensorrt_rtx_bindings as rtx

from naiad_config import DataType
from naiad_tensorrt.description import EngineDescription, EngineTensor, Profile
from naiad_tensorrt.engines import Opening
from naiad_tensorrt.machine import Gpus
from naiad_tensorrt.reading import DATA_TYPES, description_of

from . import building


class PretendedEngine:
    """An `ICudaEngine` with an input `x` in two profiles, a shape tensor `size` and an output `y`."""

    num_io_tensors = 3
    num_optimization_profiles = 2

    def __init__(self, trt, kind="HALF"):
        self._trt = trt
        self._kind = kind

    def get_tensor_name(self, index):
        return ("x", "size", "y")[index]

    def get_tensor_mode(self, name):
        return self._trt.TensorIOMode.OUTPUT if name == "y" else self._trt.TensorIOMode.INPUT

    def get_tensor_dtype(self, name):
        return self._trt.DataType.INT32 if name == "size" else getattr(self._trt.DataType, self._kind)

    def get_tensor_shape(self, name):
        return self._trt.Dims([2] if name == "size" else [-1, 8, 4, 4])

    def get_tensor_location(self, name):
        return self._trt.TensorLocation.HOST if name == "size" else self._trt.TensorLocation.DEVICE

    def is_shape_inference_io(self, name):
        return name == "size"

    def get_tensor_vectorized_dim(self, name):
        return 1 if name == "x" else -1

    def get_tensor_components_per_element(self, name):
        return 4 if name == "x" else -1

    def get_tensor_format(self, name):
        if self._trt is lean:
            raise TypeError("Unregistered type : nvinfer1::TensorFormat")
        return self._trt.TensorFormat.CHW4 if name == "x" else self._trt.TensorFormat.LINEAR

    def get_tensor_format_desc(self, name):
        return "Four wide channel vectorized row major FP16 format" if name == "x" else "Row major linear FP16 format"

    def get_tensor_profile_shape(self, name, profile_index):
        assert name == "x"
        return [self._trt.Dims([rows, 8, 4, 4]) for rows in (1, 2 + profile_index, 4 + profile_index)]

    def get_tensor_profile_values(self, index, name):
        assert (name, isinstance(index, int)) == ("size", True)
        return [[1, 1], [2, 8], [4, 16 + index]]


@pytest.mark.parametrize(
    ("trt", "packed"), [(rtx, "CHW4"), (lean, "Four wide channel vectorized row major FP16 format")]
)
def test_an_engine_is_described_by_either_module(trt, packed):
    described = description_of(trt, PretendedEngine(trt))

    assert described.tensors == (
        EngineTensor("x", True, "HALF", DataType.TYPE_FP16, (-1, 8, 4, 4), False, False, packed, 1, 4),
        EngineTensor("size", True, "INT32", DataType.TYPE_INT32, (2,), is_shape_tensor=True, on_host=True),
        EngineTensor("y", False, "HALF", DataType.TYPE_FP16, (-1, 8, 4, 4)),
    )
    assert [tensor.is_linear for tensor in described.tensors] == [False, True, True]
    second = described.profiles[1]
    assert (second.index, second.shapes["size"]) == (1, ((2,), (2,), (2,)))
    assert second.shapes["x"] == ((1, 8, 4, 4), (3, 8, 4, 4), (5, 8, 4, 4))
    assert second.values == {"size": ((1, 1), (2, 8), (4, 17))}


@pytest.mark.parametrize("trt", [rtx, lean])
def test_every_type_of_tensorrt_has_a_datatype_or_is_known_to_have_none(trt):
    kinds = {kind.name for kind in trt.DataType.__members__.values()}

    assert kinds - DATA_TYPES.keys() == {"FP8", "FP4", "INT4", "E8M0"}
    assert DATA_TYPES.keys() <= kinds


def test_a_type_without_datatype_is_described_all_the_same():
    described = description_of(rtx, PretendedEngine(rtx, "FP8"))

    assert (described.inputs[0].type, described.inputs[0].datatype) == ("FP8", None)


def test_an_engine_of_fixed_shapes_has_them_three_times():
    engine = SimpleNamespace(
        num_io_tensors=1,
        num_optimization_profiles=0,
        get_tensor_name=lambda _index: "x",
        get_tensor_mode=lambda _name: rtx.TensorIOMode.INPUT,
        get_tensor_dtype=lambda _name: rtx.DataType.FLOAT,
        get_tensor_shape=lambda _name: rtx.Dims([2, 3]),
        get_tensor_location=lambda _name: rtx.TensorLocation.DEVICE,
        is_shape_inference_io=lambda _name: False,
        get_tensor_vectorized_dim=lambda _name: -1,
        get_tensor_components_per_element=lambda _name: -1,
        get_tensor_format=lambda _name: rtx.TensorFormat.LINEAR,
    )

    described = description_of(rtx, engine)

    assert described.profiles[0].shapes == {"x": ((2, 3), (2, 3), (2, 3))}


@pytest.mark.gpu
def test_real_engines_are_described_as_they_were_built():
    opened = Gpus().open_engine(building.add_sub(batches=((1, 2, 4), (1, 8, 16))), "m", 0, Opening())

    assert opened.description == EngineDescription(
        (
            EngineTensor("A", True, "FLOAT", DataType.TYPE_FP32, (-1, 16)),
            EngineTensor("B", True, "FLOAT", DataType.TYPE_FP32, (-1, 16)),
            EngineTensor("SUM", False, "FLOAT", DataType.TYPE_FP32, (-1, 16)),
            EngineTensor("DIFF", False, "FLOAT", DataType.TYPE_FP32, (-1, 16)),
        ),
        tuple(
            Profile(index, dict.fromkeys("AB", tuple((rows, 16) for rows in bounds)), {})
            for index, bounds in enumerate(((1, 2, 4), (1, 8, 16)))
        ),
    )
    assert opened.weights >= 0


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8", "int32", "int64", "bool", "uint8"])
def test_real_engines_of_every_type_are_described(kind):
    plan = building.identity(2, 3, kind=getattr(rtx, kind))

    opened = Gpus().open_engine(plan, "m", 0, Opening())

    assert [tensor.datatype is not None for tensor in opened.description.tensors] == [True, True]
    assert opened.description.profiles[0].shapes == {"IN": ((2, 3), (2, 3), (2, 3))}


@pytest.mark.gpu
def test_shape_tensors_of_real_engines_have_ranges_of_values():
    opened = Gpus().open_engine(building.filled(), "m", 0, Opening())

    size = next(tensor for tensor in opened.description.inputs if tensor.name == "size")
    assert (size.is_shape_tensor, size.dims) == (True, (2,))
    assert opened.description.profiles[0].values == {"size": ((1, 1), (2, 8), (4, 16))}
