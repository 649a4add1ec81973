"""TensorFlow models through the backend."""

import json

import numpy as np
import pytest
import tensorflow as tf

from naiad.errors import ConfigError, InvalidArgumentError, ModelFailedError, NotFoundError, UnsupportedError
from naiad.types import Tensor
from naiad_config import DataType
from naiad_tensorflow.backend import TensorFlowBackend
from naiad_testing.backends import BackendCase, check_backend, check_imports_no_framework
from naiad_testing.workbench import parameter_entry, tensor_entry

from .conftest import accumulator, add_sub, frozen, identity, look_up, old_add_sub

SAVED, GRAPH = "model.savedmodel", "model.graphdef"
TENSORRT = 'optimization { execution_accelerators { gpu_execution_accelerator [{ name: "tensorrt" }] } }'


def rows(count, value=1.0, columns=16):
    return np.full((count, columns), value, np.float32)


def test_the_backend_keeps_its_contract(workbench, zoo):
    zoo(add_sub, workbench.path(SAVED))
    (workbench.directory / "config.pbtxt").write_text('platform: "tensorflow_savedmodel"\n')
    chance = np.random.default_rng(0)
    requests = [{name: chance.standard_normal((n, 16)).astype(np.float32) for name in ("a", "b")} for n in (1, 2, 1)]
    expected = [{"sum": each["a"] + each["b"], "difference": each["a"] - each["b"]} for each in requests]

    check_backend(TensorFlowBackend(), BackendCase(workbench.directory, requests, expected))


def test_the_plugin_imports_no_framework():
    check_imports_no_framework("naiad_tensorflow", "tensorflow")


@pytest.mark.parametrize("make", [add_sub, old_add_sub])
def test_a_saved_model_needs_no_configuration(workbench, zoo, make):
    zoo(make, workbench.path(SAVED))

    served = workbench.load('platform: "tensorflow_savedmodel"')

    config = served.config
    assert (config.max_batch_size, config.instance_group[0].count) == (4, 2)
    assert [(each.name, each.data_type, each.dims) for each in config.input] == [
        ("a", DataType.TYPE_FP32, (16,)),
        ("b", DataType.TYPE_FP32, (16,)),
    ]
    answer = served.execute({"a": rows(1, 3), "b": rows(1)}, {"a": rows(2, 5), "b": rows(2)})
    assert answer["sum"][:, 0].tolist() == [4.0, 6.0, 6.0]
    assert answer["difference"][:, 0].tolist() == [2.0, 4.0, 4.0]


def test_only_what_is_asked_for_is_computed(workbench, zoo):
    zoo(add_sub, workbench.path(SAVED))
    served = workbench.load(tensor_entry("output", "sum", "FP32", "16"))

    assert list(served.execute({"a": rows(1), "b": rows(1)})) == ["sum"]
    assert served.execute({"a": rows(1), "b": rows(1)}, requested=("nothing",)) == {}


def test_another_signature_can_be_asked_for(workbench, zoo):
    zoo(add_sub, workbench.path(SAVED))

    served = workbench.load(parameter_entry("TF_SIGNATURE_DEF", "doubled"))

    assert served.execute({"a": rows(1, 4)})["twice"][0, 0] == 8.0
    with pytest.raises(InvalidArgumentError, match="has no signature 'tripled', only doubled, serving_default"):
        workbench.load(parameter_entry("TF_SIGNATURE_DEF", "tripled"))


def test_another_tag_can_be_asked_for(workbench, zoo):
    zoo(old_add_sub, workbench.path(SAVED), "mine")

    served = workbench.load(parameter_entry("TF_GRAPH_TAG", "mine"))

    assert served.execute({"a": rows(1), "b": rows(1)})["sum"][0, 0] == 2.0
    with pytest.raises(InvalidArgumentError, match="has no graph with the tag 'serve', only with mine"):
        workbench.load()


@pytest.mark.parametrize("folder", [".", "1"])
def test_operations_run_when_a_session_opens(workbench, zoo, folder):
    zoo(old_add_sub, workbench.path(SAVED))
    (workbench.directory / folder / "init.json").write_text(json.dumps({"init_ops": ["make_it_ten"]}))

    served = workbench.load(parameter_entry("TF_INIT_OPS_FILE", "init.json"))

    assert served.execute({"a": rows(1), "b": rows(1)})["sum"][0, 0] == 20.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is neither in the version's folder nor in the model's"),
        ("[]", 'must hold {"init_ops": '),
        ('{"init_ops": "x"}', "a list of names"),
        ('{"init_ops": ["x"]}', "init op 'x' of model 'm' failed"),
    ],
)
def test_operations_that_cannot_run_fail_the_load(workbench, zoo, content, message):
    zoo(old_add_sub, workbench.path(SAVED))
    if content is not None:
        workbench.path("init.json").write_text(content)

    with pytest.raises(InvalidArgumentError, match=message):
        workbench.load(parameter_entry("TF_INIT_OPS_FILE", "init.json"))


def test_a_graph_is_served_by_the_names_of_its_nodes(workbench, zoo):
    zoo(frozen, workbench.path(GRAPH))

    served = workbench.load(f'platform: "tensorflow_graphdef" {tensor_entry("output", "SUM", "FP32", "16")}')

    assert [each.name for each in served.config.input] == ["A", "B"]
    assert served.execute({"A": rows(2, 3), "B": rows(2)})["SUM"][:, 0].tolist() == [4.0, 4.0]


def test_a_graph_without_outputs_is_not_completed(workbench, zoo, caplog):
    zoo(frozen, workbench.path(GRAPH))

    assert workbench.complete('platform: "tensorflow_graphdef"').input == ()
    assert "a graph does not tell which of its nodes are outputs" in caplog.text


DTYPES = {
    "BOOL": tf.bool,
    "UINT8": tf.uint8,
    "UINT16": tf.uint16,
    "UINT32": tf.uint32,
    "UINT64": tf.uint64,
    "INT8": tf.int8,
    "INT16": tf.int16,
    "INT32": tf.int32,
    "INT64": tf.int64,
    "FP16": tf.float16,
    "FP32": tf.float32,
    "FP64": tf.float64,
    "BF16": tf.bfloat16,
    "BYTES": tf.string,
}


@pytest.mark.parametrize("datatype", list(DTYPES))
def test_every_datatype_passes_unchanged(workbench, zoo, datatype):
    zoo(identity, workbench.path(SAVED), DTYPES[datatype])
    values = [[b"a", b"\xff\x00", b""]] if datatype == "BYTES" else [[1, 0, 1]]
    given = Tensor.of("x", np.array(values, object if datatype == "BYTES" else np.float32), datatype)

    answer = workbench.load().execute({"x": given})

    assert answer["y"].dtype == given.array.dtype
    assert answer["y"].tolist() == given.array.tolist()


def test_a_request_that_fails_does_not_fail_the_others(workbench, zoo):
    zoo(look_up, workbench.path(SAVED))
    served = workbench.load()

    first, second, third = served.execute(*({"x": np.array([[index]])} for index in (1, 9, 3)))

    assert (first.outputs["y"].tolist(), third.outputs["y"].tolist()) == ([[11.0]], [[13.0]])
    assert isinstance(second, ModelFailedError)
    assert "indices[0,0] = 9 is not in [0, 4)" in str(second)


@pytest.mark.parametrize(("shared_by", "sessions"), [("1", 3), ("2", 2), ("3", 1)])
def test_so_many_instances_share_a_session(workbench, zoo, shared_by, sessions):
    zoo(add_sub, workbench.path(SAVED))
    served = workbench.load(
        parameter_entry("MAX_SESSION_SHARE_COUNT", shared_by) + "instance_group [{ count: 3 kind: KIND_CPU }]"
    )

    assert len({id(instance._session) for instance in served.instances}) == sessions
    for instance in served.instances:
        instance.close()
    served.model.close()


def test_controls_and_states_are_inputs_and_outputs(workbench, zoo):
    zoo(accumulator, workbench.path(SAVED))
    served = workbench.load(
        """max_batch_size: 4
sequence_batching {
  control_input [{ name: "start" control [{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }] }]
  state [{ input_name: "state" output_name: "state_out" data_type: TYPE_FP32 dims: [ 1 ] }]
}"""
    )
    column = np.array([[1.0], [2.0]], np.float32)

    answer = served.execute({"x": column, "start": np.array([[1], [0]], np.float32), "state": column * 10})

    assert [each.name for each in served.config.input] == ["x"]
    assert (answer["out"].tolist(), answer["state_out"].tolist()) == ([[1.0], [22.0]], [[1.0], [22.0]])


def test_a_configuration_that_does_not_fit_the_model_is_refused(workbench, zoo):
    zoo(add_sub, workbench.path(SAVED))
    config = (
        "max_batch_size: 4\n"
        + tensor_entry("input", "a", "INT32", "16")
        + tensor_entry("output", "product", "FP32", "16")
    )

    with pytest.raises(ConfigError) as raised:
        workbench.load(config)

    for message in (
        "configuration expects 1 inputs, model provides 2: not configured is 'b'",
        "configuration expects datatype TYPE_INT32 for input 'a', model provides TYPE_FP32",
        "unexpected inference output 'product', allowed outputs are: difference, sum",
        "in model.savedmodel",
    ):
        assert message in str(raised.value)


def test_models_that_are_missing_or_broken_are_told(workbench):
    with pytest.raises(NotFoundError, match=r"unable to find '.*model\.savedmodel'"):
        workbench.load()

    workbench.path(GRAPH).write_bytes(b"no graph")
    with pytest.raises(InvalidArgumentError, match=r"'model\.graphdef' is not a usable graph"):
        workbench.load('platform: "tensorflow_graphdef"')

    workbench.path(f"{SAVED}/saved_model.pb").write_bytes(b"no model")
    with pytest.raises(InvalidArgumentError, match=r"'model\.savedmodel/saved_model\.pb' cannot be read"):
        workbench.load()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("instance_group [{ kind: KIND_GPU gpus: [ 0 ] }]", "wants GPU 0, and this TensorFlow .* has 0"),
        (
            f"instance_group {{ kind: KIND_MODEL }} {TENSORRT}",
            "was built without TensorRT",
        ),
        ('model_operations { op_library_filename: [ "../x.so" ] }', "leaves the model's folder"),
        ('model_operations { op_library_filename: [ "x.so" ] }', "op_library_filename 'x.so' of model 'm' cannot be"),
    ],
)
@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="this machine has a GPU")
def test_what_is_not_there_is_refused(workbench, zoo, written, message):
    zoo(add_sub, workbench.path(SAVED))
    workbench.gpus = 1

    with pytest.raises((UnsupportedError, InvalidArgumentError), match=message):
        workbench.load(written)
