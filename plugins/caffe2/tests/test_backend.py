"""Nets of Caffe2 through the backend: files, configurations, instances, errors."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from naiad.errors import ConfigError, InvalidArgumentError, ModelFailedError, NotFoundError

from .nets import Net

INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: [ 3 ] }\n'
BATCHED = "max_batch_size: 8\n" + INPUT


def dense(outputs=("y",)):
    """y = x · weights + 1, weights of ones [2, 3]."""
    net = Net("x")
    net.weights("w", np.ones((2, 3), np.float32))
    net.weights("b", np.ones(2, np.float32))
    net.op("FC", "x w b", "y")
    return net.gives(*outputs)


def rows(*values):
    return np.array([[value] * 3 for value in values], np.float32)


def test_a_configuration_without_a_batch_size_has_the_dims_of_the_whole(workbench):
    dense().write(workbench.path("model.netdef"))

    served = workbench.load('input { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] }')

    assert (served.config.max_batch_size, served.config.output[0].dims) == (0, (-1, 2))
    assert served.execute({"x": rows(1, 2)})["y"].tolist() == [[4, 4], [7, 7]]


def test_both_files_are_found_under_another_name(workbench):
    dense().write(workbench.path("other.netdef"))

    served = workbench.load(BATCHED + 'default_model_filename: "other.netdef"')

    assert served.execute({"x": rows(1)})["y"].tolist() == [[4, 4]]


def test_a_net_written_as_text_is_read(workbench):
    workbench.path("model.netdef").write_text(
        'name: "t" op { input: "x" output: "y" type: "Relu" device_option { device_type: 1 } } '
        'external_input: "x" external_output: "y"'
    )
    workbench.path("init_model.netdef").write_bytes(b"")

    assert workbench.load(BATCHED).execute({"x": rows(-1, 2)})["y"].tolist() == [[0] * 3, [2] * 3]


def test_an_input_that_the_init_net_fills_as_well_is_an_input_where_the_configuration_says_so(workbench):
    net = dense()
    net.init.op.add(type="ConstantFill", output=["x"]).arg.add(name="shape", ints=[1])
    net.write(workbench.path("model.netdef"))

    assert workbench.load(BATCHED).execute({"x": rows(1)})["y"].tolist() == [[4, 4]]


def test_a_weight_may_be_an_input(workbench):
    dense().write(workbench.path("model.netdef"))
    bias = 'input { name: "b" data_type: TYPE_FP32 dims: [ 2 ] }\n'

    served = workbench.load('input { name: "x" data_type: TYPE_FP32 dims: [ 1, 3 ] }\n' + bias)

    assert served.execute({"x": rows(1), "b": np.array([10, 20], np.float32)})["y"].tolist() == [[13, 23]]


def test_a_blob_that_is_written_over_may_be_input_and_output(workbench):
    net = Net("x")
    net.op("Relu", "x", "x")
    net.op("Scale", "x", "x", scale=3.0)
    net.gives("x").write(workbench.path("model.netdef"))

    assert workbench.load(BATCHED).execute({"x": rows(-1, 2)})["x"].tolist() == [[0] * 3, [6] * 3]


def test_outputs_that_the_configuration_does_not_have_are_not_computed(workbench):
    net = dense()
    net.op("Reshape", "x shape", "z")
    net.weights("shape", np.array([-1, 7], np.int64))
    net.gives("z").write(workbench.path("model.netdef"))
    only_y = 'output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] }'

    with pytest.raises(ModelFailedError, match="model 'm': onnx runtime error"):
        workbench.load(BATCHED).execute({"x": rows(1)})
    served = workbench.load(BATCHED + only_y)

    assert set(served.execute({"x": rows(1)})) == {"y"}


def test_instances_share_a_session_and_its_memory(workbench):
    dense().write(workbench.path("model.netdef"))

    served = workbench.load(BATCHED + "instance_group { count: 3 }")

    assert len(served.instances) == 3
    assert [(each.type, each.id, each.byte_size) for each in served.model.memory_usage()] == [("CPU", 0, 32)]


def test_weights_live_as_long_as_the_model(workbench):
    net = Net("x")
    net.weights("w", np.ones((2000, 3), np.float32))
    net.op("MatMul", "x w", "y", trans_b=1)
    net.gives("y").write(workbench.path("model.netdef"))
    served = workbench.load(BATCHED + "optimization { graph { level: 2 } }")

    gc.collect()
    np.full((100, 2000, 3), 7, np.float32)  # takes memory that was let go

    assert set(served.execute({"x": rows(1)})["y"].ravel().tolist()) == {3.0}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", r"takes the input 'x', and a net of Caffe2 says neither its datatype nor its dims"),
        ('input { name: "x" dims: [ 3 ] }', 'write input { name: "x" data_type: TYPE_FP32 dims:'),
        ('input { name: "q" data_type: TYPE_FP32 dims: [ 3 ] }', "unexpected inference input 'q'"),
        ('input { name: "x" data_type: TYPE_STRING dims: [ 3 ] }', "is TYPE_STRING, which nets of Caffe2 do not take"),
        (BATCHED + 'output { name: "y" data_type: TYPE_INT32 dims: [ 2 ] }', "expects datatype TYPE_INT32 for output"),
        (BATCHED + 'output { name: "y" data_type: TYPE_FP32 dims: [ 5 ] }', "in model.netdef"),
        (BATCHED + 'output { name: "z" data_type: TYPE_FP32 dims: [ 2 ] }', "unexpected inference output 'z'"),
    ],
)
def test_a_configuration_that_does_not_fit_the_net_is_refused(workbench, config, message):
    dense().write(workbench.path("model.netdef"))

    with pytest.raises(ConfigError) as raised:
        workbench.load(config)

    assert message in str(raised.value)


def test_an_output_of_any_dims_must_be_written(workbench):
    net = Net("x", "shape")
    net.op("Reshape", "x shape", "y")
    net.gives("y").write(workbench.path("model.netdef"))
    inputs = INPUT + 'input { name: "shape" data_type: TYPE_INT64 dims: [ -1 ] }\n'

    with pytest.raises(ConfigError, match="does not say how many dims its output 'y' has"):
        workbench.load(inputs)
    served = workbench.load(inputs + 'output { name: "y" data_type: TYPE_FP32 dims: [ 3, 1 ] }')

    assert served.execute({"x": rows(1)[0], "shape": np.array([3, 1], np.int64)})["y"].tolist() == [[1], [1], [1]]


def test_files_that_are_missing_or_broken_are_reported(workbench):
    with pytest.raises(NotFoundError, match=r"unable to find '.*/1/model\.netdef'"):
        workbench.load(BATCHED)

    workbench.path("model.netdef").write_text("no net")
    with pytest.raises(NotFoundError, match=r"unable to find '.*/1/init_model\.netdef'"):
        workbench.load(BATCHED)
    workbench.path("init_model.netdef").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match=r"from 'model\.netdef': it is not a NetDef"):
        workbench.load(BATCHED)


def test_what_is_wrong_with_an_operator_is_reported_with_model_file_and_position(workbench):
    net = dense()
    net.op("Snap", "y", "z")
    net.write(workbench.path("model.netdef"))

    with pytest.raises(InvalidArgumentError) as raised:
        workbench.load(BATCHED)

    assert "failed to load model 'm' from 'model.netdef': " in str(raised.value)
    assert "does not know operator 1 Snap of the net" in str(raised.value)


def test_a_net_runs_in_the_global_thread_pool_of_onnx_runtime(workbench):
    # ONNX Runtime keeps that pool for the rest of a process, so this needs one of its own.
    dense().write(workbench.path("model.netdef"))
    program = f"""
import pathlib, numpy
from naiad_caffe2.backend import Caffe2Backend
from naiad_kit.backends.onnx_runtime import GlobalThreads, onnx_runtime, start_global_pool
from naiad_testing.workbench import Workbench

start_global_pool(onnx_runtime("naiad-caffe2"), GlobalThreads(1, 1))
served = Workbench(pathlib.Path({str(workbench.directory)!r}), Caffe2Backend()).load({BATCHED!r})
print(served.execute({{"x": numpy.ones((1, 3), numpy.float32)}})["y"].tolist())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ran.stdout, ran.stderr) == ("[[4.0, 4.0]]\n", "")
