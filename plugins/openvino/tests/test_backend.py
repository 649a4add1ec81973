"""OpenVINO models through the backend."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import naiad_openvino
import naiad_scheduler_dynamic
from naiad.errors import ConfigError, InvalidArgumentError, ModelFailedError, UnsupportedError
from naiad_testing.serving import serve
from naiad_testing.workbench import parameter_entry, tensor_entry


def rows(count, value=1.0, columns=16):
    return np.full((count, columns), value, np.float32)


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
    sent = {"A": rows(1, 3), "B": rows(1)}

    with pytest.raises(ModelFailedError):
        workbench.load(fixed).execute(sent)
    padded = workbench.load(fixed + parameter_entry("ENABLE_BATCH_PADDING", "YES"))

    assert padded.execute(sent, {"A": rows(2, 5), "B": rows(2)})["SUM"][:, 0].tolist() == [4.0, 6.0, 6.0]
    with pytest.raises(InvalidArgumentError, match="has the fixed batch dimension 4, and max_batch_size is 8"):
        workbench.load(fixed.replace("max_batch_size: 4", "max_batch_size: 8"))


def test_a_batch_is_padded_where_its_dimension_cannot_vary(workbench, zoo):
    workbench.write(zoo.in_fours())
    config = "max_batch_size: 4 " + tensor_entry("output", "OUT", "FP32", "4, 4")

    with pytest.raises(ConfigError, match="'OUT' has shape \\[4,4,4\\]"):
        workbench.load(config)
    padded = workbench.load(config + parameter_entry("ENABLE_BATCH_PADDING", "YES"))

    assert padded.execute({"IN": rows(1, 3)}, {"IN": rows(2, 5)})["OUT"][:, 0, 0].tolist() == [3.0, 5.0, 5.0]


def test_dims_that_the_model_cannot_have_are_reported_with_the_names_of_its_inputs(workbench, zoo):
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
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in ("IN", "OUT")]
    graph = helper.make_graph([node], "graph", tensors[:1], tensors[1:])
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


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (parameter_entry("TARGET_DEVICE", "NPU.7"), "needs TARGET_DEVICE 'NPU.7'; OpenVINO finds CPU"),
        (parameter_entry("CPU_EXTENSION_PATH", "../x.so"), "'../x.so'"),
        (parameter_entry("CPU_EXTENSION_PATH", "x.so"), "CPU_EXTENSION_PATH 'x.so' of model 'm' cannot be loaded"),
    ],
)
def test_what_is_not_there_is_refused(workbench, zoo, written, message):
    workbench.write(zoo.add_sub())
    workbench.gpus = 1

    with pytest.raises((UnsupportedError, InvalidArgumentError), match=message):
        workbench.load(written)
