"""ONNX models of sequences, made in code, and the configurations that keep their states between requests."""

from typing import Any

from onnx import TensorProto, helper

_FLOAT = TensorProto.FLOAT


def adder(shape: Any = ("n", 1), kind: int = _FLOAT) -> Any:
    """OUTPUT = OUTPUT_STATE = INPUT + INPUT_STATE: it needs a state that begins with a known value."""
    nodes = [
        helper.make_node("Add", ["INPUT", "INPUT_STATE"], ["OUTPUT_STATE"]),
        helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
    ]
    return _model(nodes, {"INPUT": kind, "INPUT_STATE": kind}, {"OUTPUT": kind, "OUTPUT_STATE": kind}, shape)


def adder_with_start(kind: int = TensorProto.INT32, shape: Any = ("n", 1)) -> Any:
    """OUTPUT_STATE = INPUT where START, else INPUT + INPUT_STATE: what the state begins with does not matter."""
    nodes = [
        helper.make_node("Add", ["INPUT", "INPUT_STATE"], ["sum"]),
        helper.make_node("Cast", ["START"], ["starts"], to=TensorProto.BOOL),
        helper.make_node("Where", ["starts", "INPUT", "sum"], ["OUTPUT_STATE"]),
        helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
    ]
    inputs = {"INPUT": kind, "INPUT_STATE": kind, "START": TensorProto.INT32}
    return _model(nodes, inputs, {"OUTPUT": kind, "OUTPUT_STATE": kind}, shape)


def delayer(kind: int) -> Any:
    """OUTPUT = INPUT_STATE and OUTPUT_STATE = INPUT: each request gets what the one before it has brought."""
    nodes = [
        helper.make_node("Identity", ["INPUT_STATE"], ["OUTPUT"]),
        helper.make_node("Identity", ["INPUT"], ["OUTPUT_STATE"]),
    ]
    return _model(nodes, {"INPUT": kind, "INPUT_STATE": kind}, {"OUTPUT": kind, "OUTPUT_STATE": kind}, ("n", 1))


def joiner() -> Any:
    """OUTPUT = OUTPUT_STATE = the text of INPUT behind that of INPUT_STATE."""
    nodes = [
        helper.make_node("StringConcat", ["INPUT_STATE", "INPUT"], ["OUTPUT_STATE"]),
        helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
    ]
    text = TensorProto.STRING
    return _model(nodes, {"INPUT": text, "INPUT_STATE": text}, {"OUTPUT": text, "OUTPUT_STATE": text}, ("n", 1), 20)


def collector() -> Any:
    """OUTPUT_STATE is INPUT_STATE with INPUT behind it, one longer each time; OUTPUT is all of it, added up."""
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    nodes = [
        helper.make_node("Concat", ["INPUT_STATE", "INPUT"], ["OUTPUT_STATE"], axis=1),
        helper.make_node("ReduceSum", ["OUTPUT_STATE", "axis"], ["OUTPUT"]),
    ]
    inputs = [_value("INPUT", ["n", 1]), _value("INPUT_STATE", ["n", "before"])]
    outputs = [_value("OUTPUT", ["n", 1]), _value("OUTPUT_STATE", ["n", "after"])]
    return _finished(nodes, inputs, outputs, 18, [axis])


def picker() -> Any:
    """OUTPUT = OUTPUT_STATE = INPUT_STATE + a row of a table of four, by INPUT: an INPUT of 4 and more fails."""
    table = helper.make_tensor("TABLE", _FLOAT, [4], [10.0, 11.0, 12.0, 13.0])
    nodes = [
        helper.make_node("Gather", ["TABLE", "INPUT"], ["found"]),
        helper.make_node("Add", ["INPUT_STATE", "found"], ["OUTPUT_STATE"]),
        helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
    ]
    inputs = [_value("INPUT", ["n", 1], TensorProto.INT64), _value("INPUT_STATE", ["n", 1])]
    return _finished(nodes, inputs, [_value("OUTPUT", ["n", 1]), _value("OUTPUT_STATE", ["n", 1])], 18, [table])


def config(
    data_type: str = "TYPE_FP32",
    dims: str = "1",
    state: str = "",
    batching: str = "max_batch_size: 8",
    more: str = "",
    output: str = "",
    sequences: str = "",
    instances: int = 1,
) -> str:
    """A configuration of a model with one state; `state` goes into the state, `sequences` beside it."""
    return f"""
    {batching}
    instance_group [ {{ count: {instances} }} ]
    input [ {{ name: "INPUT" data_type: {data_type} dims: [ 1 ] }} ]
    output [ {{ name: "OUTPUT" data_type: {data_type} dims: [ 1 ] }} {output} ]
    sequence_batching {{
      {sequences}
      state [
        {{ input_name: "INPUT_STATE" output_name: "OUTPUT_STATE" data_type: {data_type} dims: [ {dims} ] {state} }}
      ]
    }}
    {more}
    """


START = 'control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ]'


def _value(name: str, shape: Any, kind: int = _FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(nodes: list[Any], inputs: dict[str, int], outputs: dict[str, int], shape: Any, opset: int = 18) -> Any:
    taken = [_value(name, shape, kind) for name, kind in inputs.items()]
    return _finished(nodes, taken, [_value(name, shape, kind) for name, kind in outputs.items()], opset)


def _finished(nodes: list[Any], inputs: list[Any], outputs: list[Any], opset: int, initializers: Any = ()) -> Any:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
