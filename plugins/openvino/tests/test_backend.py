"""OpenVINO models through the backend."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import naiad_openvino
import naiad_scheduler_dynamic
from naiad.errors import ConfigError, InvalidArgumentError, ModelFailedError, NotFoundError, UnsupportedError
from naiad.types import Tensor
from naiad_config import DataType
from naiad_openvino.backend import OpenVinoBackend
from naiad_testing.backends import BackendCase, check_backend, check_imports_no_framework
from naiad_testing.serving import serve
from naiad_testing.workbench import parameter_entry, tensor_entry


def rows(count, value=1.0, columns=16):
    return np.full((count, columns), value, np.float32)


def test_the_backend_keeps_its_contract(workbench, zoo):
    workbench.write(zoo.add_sub())
    (workbench.directory / "config.pbtxt").write_text('backend: "openvino"\n')
    chance = np.random.default_rng(0)
    requests = [{name: chance.standard_normal((n, 16)).astype(np.float32) for name in ("A", "B")} for n in (1, 2, 1)]
    expected = [{"SUM": each["A"] + each["B"], "DIFFERENCE": each["A"] - each["B"]} for each in requests]

    check_backend(OpenVinoBackend(), BackendCase(workbench.directory, requests, expected))


def test_the_plugin_imports_no_framework():
    check_imports_no_framework("naiad_openvino", "openvino")


def test_a_model_needs_no_configuration(workbench, zoo):
    workbench.write(zoo.add_sub())

    served = workbench.load()

    config = served.config
    assert (config.max_batch_size, config.dynamic_batching is not None) == (4, True)
    assert [(each.name, each.data_type, each.dims) for each in config.input] == [
        ("A", DataType.TYPE_FP32, (16,)),
        ("B", DataType.TYPE_FP32, (16,)),
    ]
    assert {each.name for each in config.output} == {"SUM", "DIFFERENCE"}
    answer = served.execute({"A": rows(1, 3), "B": rows(1)}, {"A": rows(2, 5), "B": rows(2)})
    assert answer["DIFFERENCE"][:, 0].tolist() == [2.0, 4.0, 4.0]


def test_an_answer_is_not_changed_by_the_next_batch(workbench, zoo):
    workbench.write(zoo.add_sub())
    served = workbench.load()

    first = served.execute({"A": rows(1, 3), "B": rows(1)})
    served.execute({"A": rows(1, 9), "B": rows(1)})

    assert first["SUM"][0, 0] == 4.0


@pytest.mark.parametrize(
    ("kind", "datatype"),
    [
        ("boolean", "BOOL"),
        ("u8", "UINT8"),
        ("u16", "UINT16"),
        ("u32", "UINT32"),
        ("u64", "UINT64"),
        ("i8", "INT8"),
        ("i16", "INT16"),
        ("i32", "INT32"),
        ("i64", "INT64"),
        ("f16", "FP16"),
        ("f32", "FP32"),
        ("f64", "FP64"),
        ("bf16", "BF16"),
        ("string", "BYTES"),
    ],
)
def test_every_datatype_passes_unchanged(workbench, zoo, kind, datatype):
    workbench.write(zoo.identity(kind))
    values = [[b"a", b"\xff\0\xfe", b""]] if datatype == "BYTES" else [[1, 0, 1]]
    given = Tensor.of("IN", np.array(values, object if datatype == "BYTES" else np.float32), datatype)

    answer = workbench.load().execute({"IN": given})

    assert answer["OUT"].dtype == given.array.dtype
    assert answer["OUT"].tolist() == given.array.tolist()


def test_a_string_that_would_lose_its_end_is_refused(workbench, zoo):
    workbench.write(zoo.identity("string"))

    with pytest.raises(InvalidArgumentError, match="input 'IN' of model 'm' has an element that ends in a zero byte"):
        workbench.load().execute({"IN": np.array([[b"a", b"b\0", b""]], object)})


def test_a_request_that_fails_does_not_fail_the_others(workbench, zoo):
    workbench.write(zoo.to_rows())
    served = workbench.load(
        "max_batch_size: 8 " + tensor_entry("input", "IN", "FP32", "-1") + tensor_entry("output", "OUT", "FP32", "4")
    )

    with pytest.raises(ModelFailedError, match="model 'm': "):
        served.execute({"IN": rows(1, 2, 3)})
    good, bad = served.execute({"IN": rows(1, 2, 4)}, {"IN": rows(1, 2, 3)})

    assert good.outputs["OUT"].tolist() == [[2.0] * 4]
    assert isinstance(bad, ModelFailedError)


def test_a_fixed_batch_dimension_is_made_to_vary(workbench, zoo):
    workbench.write(zoo.add_sub((1, 16)))

    assert workbench.complete().max_batch_size == 0
    served = workbench.load("max_batch_size: 8")

    assert served.execute({"A": rows(3, 3), "B": rows(3)})["SUM"].shape == (3, 16)


def test_a_batch_is_padded_where_its_dimension_stays_fixed(workbench, zoo):
    workbench.write(zoo.add_sub((4, 16)))
    names = [("input", "A"), ("input", "B"), ("output", "SUM")]
    config = "max_batch_size: 4\n" + "".join(tensor_entry(kind, name, "FP32", "16") for kind, name in names)
    fixed = config + parameter_entry("SKIP_OV_DYNAMIC_BATCHSIZE", "YES")
    given = {"A": rows(1, 3), "B": rows(1)}

    with pytest.raises(ModelFailedError):
        workbench.load(fixed).execute(given)
    padded = workbench.load(fixed + parameter_entry("ENABLE_BATCH_PADDING", "YES"))

    assert padded.execute(given, {"A": rows(2, 5), "B": rows(2)})["SUM"][:, 0].tolist() == [4.0, 6.0, 6.0]
    with pytest.raises(InvalidArgumentError, match="has the fixed batch dimension 4, and max_batch_size is 8"):
        workbench.load(fixed.replace("max_batch_size: 4", "max_batch_size: 8"))


def test_a_batch_is_padded_where_its_dimension_cannot_vary(workbench, zoo):
    workbench.write(zoo.in_fours())
    config = "max_batch_size: 4 " + tensor_entry("output", "OUT", "FP32", "4, 4")

    with pytest.raises(ConfigError, match="'OUT' has shape \\[4,4,4\\]"):
        workbench.load(config)
    padded = workbench.load(config + parameter_entry("ENABLE_BATCH_PADDING", "YES"))

    assert padded.execute({"IN": rows(1, 3)}, {"IN": rows(2, 5)})["OUT"][:, 0, 0].tolist() == [3.0, 5.0, 5.0]


def test_dims_that_the_model_cannot_have_are_told_with_the_names_of_its_inputs(workbench, zoo):
    workbench.write(zoo.add_sub((1, 16)))
    config = tensor_entry("input", "A", "FP32", "2, 5") + tensor_entry("input", "B", "FP32", "2, 7")

    with pytest.raises(InvalidArgumentError, match=r"cannot have the shapes input 'A': \[2,5\], input 'B': \[2,7\]: "):
        workbench.load(config + parameter_entry("RESHAPE_IO_LAYERS", "YES"))


def test_the_model_gets_the_dims_of_the_configuration_where_that_is_asked_for(workbench, zoo):
    workbench.write(zoo.add_sub((1, 16)))
    names = [("input", "A"), ("input", "B"), ("output", "SUM")]
    config = "".join(tensor_entry(kind, name, "FP32", "2, 5") for kind, name in names)

    served = workbench.load(config + parameter_entry("RESHAPE_IO_LAYERS", "YES"))

    assert served.execute({"A": rows(2, 3, 5), "B": rows(2, 1, 5)})["SUM"].shape == (2, 5)


@pytest.fixture
def exported(workbench):
    """OUT = IN, over FP32[n, 16], as an ONNX model."""
    node = helper.make_node("Identity", ["IN"], ["OUT"])
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in ("IN", "OUT")]
    graph = helper.make_graph([node], "graph", made[:1], made[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(workbench.path("model.onnx")),
    )


def test_other_formats_are_found_where_there_is_none_of_openvino(workbench, exported):
    assert workbench.load().execute({"IN": rows(1, 7)})["OUT"][0, 0] == 7.0

    (workbench.directory / "config.pbtxt").write_text('backend: "openvino"')
    with serve(workbench.directory, plugins=[naiad_openvino, naiad_scheduler_dynamic]) as client:
        assert client.infer(IN=rows(1, 7))["OUT"][0, 0] == 7.0


def test_a_file_of_any_name_is_read_where_it_is_named(workbench, exported):
    workbench.path("model.onnx").rename(workbench.path("exported.onnx"))

    served = workbench.load('backend: "openvino" default_model_filename: "exported.onnx"')

    assert served.execute({"IN": rows(1, 7)})["OUT"][0, 0] == 7.0


def test_controls_and_states_are_inputs_and_outputs(workbench, zoo):
    workbench.write(zoo.accumulator())
    served = workbench.load(
        """max_batch_size: 4
sequence_batching {
  control_input [{ name: "START" control [{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }] }]
  state [{ input_name: "STATE" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] }]
}"""
    )
    column = np.array([[1.0], [2.0]], np.float32)

    answer = served.execute({"IN": column, "START": np.array([[1], [0]], np.float32), "STATE": column * 10})

    assert [each.name for each in served.config.input] == ["IN"]
    assert (answer["OUT"].tolist(), answer["STATE_OUT"].tolist()) == ([[1.0], [22.0]], [[1.0], [22.0]])


def test_a_configuration_that_does_not_fit_the_model_is_refused(workbench, zoo):
    workbench.write(zoo.add_sub())
    config = (
        "max_batch_size: 4\n"
        + tensor_entry("input", "A", "INT32", "16")
        + tensor_entry("output", "PRODUCT", "FP32", "16")
    )

    with pytest.raises(ConfigError) as raised:
        workbench.load(config)

    for message in (
        "configuration expects 1 inputs, model provides 2: not configured is 'B'",
        "configuration expects datatype TYPE_INT32 for input 'A', model provides TYPE_FP32",
        "unexpected inference output 'PRODUCT', allowed outputs are: ",
        "in model.xml",
    ):
        assert message in str(raised.value)


def test_files_that_are_missing_or_broken_are_told(workbench):
    with pytest.raises(NotFoundError, match=r"unable to find '.*model\.xml'"):
        workbench.load()

    workbench.path("model.xml").write_text("no model")
    with pytest.raises(InvalidArgumentError, match=r"failed to load model 'm' from 'model\.xml'"):
        workbench.load()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("instance_group [{ kind: KIND_GPU gpus: [ 0 ] }]", "has instances of KIND_GPU, which are NVIDIA's"),
        (parameter_entry("TARGET_DEVICE", "NPU.7"), "wants TARGET_DEVICE 'NPU.7'; OpenVINO finds CPU"),
        (parameter_entry("CPU_EXTENSION_PATH", "../x.so"), "leaves the model's folder"),
        (parameter_entry("CPU_EXTENSION_PATH", "x.so"), "CPU_EXTENSION_PATH 'x.so' of model 'm' cannot be loaded"),
    ],
)
def test_what_is_not_there_is_refused(workbench, zoo, written, message):
    workbench.write(zoo.add_sub())
    workbench.gpus = 1

    with pytest.raises((UnsupportedError, InvalidArgumentError), match=message):
        workbench.load(written)
