"""Builder of an ONNX graph, node by node, with the types and shapes that are known of its values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper, shape_inference

OPSET = 18
IR_VERSION = 9
Shape = tuple[int | str | None, ...]
"""Sizes, the names of variable ones, and None for what is not known at all."""

_WRITTEN_OUT = 1024
"""Constants of so many bytes stand in the model themselves."""

_MOST_FOR_INFERENCE = 64
"""Constants of so many elements are shown to shape inference: they are shapes, axes and sizes."""


class Graph:
    """Values are named once and never change; a name that is taken gets a number behind it."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._types: dict[str, onnx.TypeProto] = {}
        self._constants: dict[str, np.ndarray] = {}
        self._inputs: list[str] = []
        self._small: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def input(self, name: str, element_type: int, shape: Shape) -> str:
        """A value that the caller gives; its name."""
        self._types[name] = helper.make_tensor_type_proto(element_type, shape)
        self._inputs.append(name)
        return name

    def constant(self, array: np.ndarray, name: str = "constant") -> str:
        """A value that never changes; small ones that are alike are one."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        key = (array.dtype.str, array.shape, array.tobytes() if array.size <= _MOST_FOR_INFERENCE else b"")
        if name == "constant" and key in self._small:
            return self._small[key]
        constant_name = self._free(name)
        self._constants[constant_name] = array
        self._types[constant_name] = helper.make_tensor_type_proto(
            helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        if name == "constant" and key[2]:
            self._small[key] = constant_name
        return constant_name

    def value(self, name: str) -> np.ndarray | None:
        """The array of a constant, None for what is computed."""
        return self._constants.get(name)

    def add(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, Any]) -> list[str]:
        """The values that a node of this kind gives, named after `outputs`.

        Raises ValueError, with what ONNX says, when the inputs do not fit each other or the attributes.
        """
        names = [self._free(name) for name in outputs]
        node = helper.make_node(kind, list(inputs), names, name=names[0], **attributes)
        types = {name: self._types[name] for name in inputs if name}
        data = {name: numpy_helper.from_array(self._constants[name], name) for name in inputs if self._tells(name)}
        schema = defs.get_schema(kind, OPSET, "")
        try:
            inferred = shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
            )
        except Exception as error:
            raise ValueError(_message(error)) from error
        for name in names:
            self._types[name] = inferred.get(name, onnx.TypeProto())
        self._nodes.append(node)
        return names

    def shape(self, name: str) -> Shape | None:
        """The shape of a value, None where not even its rank is known."""
        tensor = self._types[name].tensor_type
        if not tensor.HasField("shape"):
            return None
        return tuple(
            dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or None) for dim in tensor.shape.dim
        )

    def set_shape(self, name: str, shape: Shape) -> str:
        """Tell the shape of a value that is made of other shapes, which inference of one node cannot see; its name."""
        self._types[name] = helper.make_tensor_type_proto(self.element_type(name), shape)
        return name

    def element_type(self, name: str) -> int:
        """The element type of a value, a number of `onnx.TensorProto`; 0 where it is not known."""
        return int(self._types[name].tensor_type.elem_type)

    def is_computed(self, name: str) -> bool:
        """Whether a node computes the value: it is neither an input nor a constant."""
        return name not in self._constants and name not in self._inputs

    def model(self, outputs: Sequence[str]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The graph as a model that gives these values, without what they do not need, and its large constants.

        Those are in the model by name only, as external data: written into it they were copied five times on their way
        to ONNX Runtime, and 2 GB would be all there can be.
        """
        nodes, needed = self._needed(outputs)
        constants = {name: array for name, array in self._constants.items() if name in needed}
        large = {name: array for name, array in constants.items() if array.nbytes > _WRITTEN_OUT}
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_value_info(name, self._types[name]) for name in self._inputs],
            [helper.make_value_info(name, self._types[name]) for name in outputs],
            [
                _external(name, array) if name in large else numpy_helper.from_array(array, name)
                for name, array in constants.items()
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        return model, large

    def _needed(self, outputs: Sequence[str]) -> tuple[list[onnx.NodeProto], set[str]]:
        needed, nodes = set(outputs), []
        for node in reversed(self._nodes):
            if needed.intersection(node.output):
                nodes.append(node)
                needed.update(node.input)
        return nodes[::-1], needed

    def _tells(self, name: str) -> bool:
        constant = self._constants.get(name)
        return constant is not None and constant.size <= _MOST_FOR_INFERENCE

    def _free(self, name: str) -> str:
        unique, number = name, 0
        while unique in self._types:
            number += 1
            unique = f"{name}.{number}"
        return unique


def _external(name: str, array: np.ndarray) -> onnx.TensorProto:
    """A constant without its values, which the session is given beside the model."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    proto = onnx.TensorProto(name=name, dims=array.shape, data_type=kind, data_location=onnx.TensorProto.EXTERNAL)
    proto.external_data.add(key="location", value="weights")
    return proto


def _message(error: Exception) -> str:
    """The message of an error of ONNX, without the name of the check that raised it."""
    text = str(error).strip()
    for start in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        _, separator, rest = text.partition(start)
        text = rest.strip() if separator else text
    return text.splitlines()[0] if text else type(error).__name__
