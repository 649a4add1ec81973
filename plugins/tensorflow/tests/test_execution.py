"""How batches go through a session: without copies, on which thread, ragged; and what a server makes of a model."""

import weakref

import numpy as np
import pytest

from naiad.backend import MemoryUsage
from naiad.errors import InvalidArgumentError
from naiad_tensorflow import instance
from naiad_tensorflow.runtime import runtime
from naiad_tensors.tensors import Tensor
from naiad_testing.workbench import parameter_entry, tensor_entry

from .conftest import add_sub, frozen, identity, module_add_sub, tf, v1

SAVED = "model.savedmodel"


def aligned(rows, columns):
    """Zeros that begin where TensorFlow takes them without a copy."""
    memory = np.zeros(rows * columns * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + rows * columns * 4].view(np.float32).reshape(rows, columns)


def test_neither_the_input_nor_the_output_of_a_single_request_is_copied(workbench, zoo):
    zoo(identity, workbench.path(SAVED), "float32")
    sent = aligned(2, 3)
    sent.flags.writeable = False

    output = workbench.load().execute({"x": sent})["y"]

    assert output.ctypes.data == sent.ctypes.data


def test_an_input_at_any_address_is_taken(workbench, zoo):
    zoo(identity, workbench.path(SAVED), "float32")
    odd = np.frombuffer(b"-" + np.float32([1, 2, 3]).tobytes(), np.float32, offset=1).reshape(1, 3)
    turned = np.arange(6, dtype=np.float32).reshape(3, 2).T
    served = workbench.load()

    assert served.execute({"x": odd})["y"].tolist() == [[1, 2, 3]]
    assert served.execute({"x": turned})["y"].tolist() == turned.tolist()


def test_an_input_and_an_output_of_one_name_may_have_different_datatypes(workbench):
    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.bfloat16, name="x")])
    def serve(x):
        return {"x": tf.cast(x, tf.float32) * 2}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, str(workbench.path(SAVED)), signatures=serve)
    sent = Tensor("x", "BF16", (1, 3), np.full((1, 3), 0x3F80, np.uint16))

    assert workbench.load().execute({"x": sent})["x"].tolist() == [[2, 2, 2]]


def test_a_scalar_string_keeps_its_last_bytes(workbench):
    with tf.Graph().as_default() as graph:
        text = v1.placeholder(tf.string, [1], name="IN")
        tf.reshape(text, [], name="OUT")
        workbench.path("model.graphdef").write_bytes(graph.as_graph_def().SerializeToString())
    tensors = tensor_entry("input", "IN", "STRING", "1")
    tensors += 'output { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } }'

    served = workbench.load(f'platform: "tensorflow_graphdef" {tensors}')

    assert served.execute({"IN": np.array([b"ab\0"], object)})["OUT"].item() == b"ab\0"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_wide_and_deep_graph_runs_on_the_thread_of_the_instance_too(workbench, threads):
    with tf.Graph().as_default() as graph:
        last = v1.placeholder(tf.float32, [None, 2], name="IN")
        for _ in range(60):
            last = tf.add_n([tf.matmul(last, tf.eye(2)), tf.sin(last) * 0, tf.cos(last) * 0])
        tf.identity(last, name="OUT")
        workbench.path("model.graphdef").write_bytes(graph.as_graph_def().SerializeToString())
    config = 'platform: "tensorflow_graphdef" output { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }'

    served = workbench.load(config + parameter_entry("TF_NUM_INTER_THREADS", threads))

    np.testing.assert_allclose(served.execute({"IN": np.float32([[1, 2]])})["OUT"], [[1, 2]], rtol=1e-5)


@pytest.mark.parametrize("level", [-1, 1, 2])
def test_every_graph_level_gives_the_same(workbench, zoo, level):
    zoo(add_sub, workbench.path(SAVED))
    ones = np.ones((2, 16), np.float32)

    served = workbench.load(f"optimization {{ graph {{ level: {level} }} }}")

    assert served.execute({"a": ones * 3, "b": ones})["sum"].tolist() == (ones * 4).tolist()


@pytest.fixture
def pinned(workbench):
    """OUT = IN + 1, on a GPU if the graph had its way."""
    with tf.Graph().as_default() as graph, tf.device("/GPU:0"):
        tf.add(v1.placeholder(tf.float32, [None, 2], name="IN"), 1.0, name="OUT")
        workbench.path("model.graphdef").write_bytes(graph.as_graph_def().SerializeToString())
    return 'platform: "tensorflow_graphdef" output { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }'


def test_nodes_go_to_another_device_where_theirs_is_not_unless_that_is_forbidden(workbench, pinned):
    on_cpu = f"{pinned} instance_group {{ kind: KIND_CPU }}"

    outputs = workbench.load(on_cpu).execute({"IN": np.float32([[1, 2]])})

    assert outputs["OUT"].tolist() == [[2, 3]]
    with pytest.raises(InvalidArgumentError, match="model 'm' cannot be run: Cannot assign a device for operation"):
        workbench.load(on_cpu, {"allow-soft-placement": "false"})


def test_any_order_of_inputs_and_any_choice_of_outputs_shares_few_calls(workbench):
    names = [f"y{number}" for number in range(7)]

    @tf.function(input_signature=[tf.TensorSpec([None, 1], name="a"), tf.TensorSpec([None, 1], name="b")])
    def outputs(a, b):
        return {name: a - b * number for number, name in enumerate(names)}

    module = tf.Module()
    module.serve = outputs
    tf.saved_model.save(module, str(workbench.path(SAVED)), signatures=outputs)
    served = workbench.load()
    one, two = np.float32([[10]]), np.float32([[1]])

    for choice in range(1, 100):
        expected = tuple(name for number, name in enumerate(names) if choice >> number & 1)
        sent = {"a": one, "b": two} if choice % 2 else {"b": two, "a": one}
        answer = served.execute(sent, requested=expected)
        assert {name: answer[name].item() for name in expected} == {name: 10.0 - int(name[1:]) for name in expected}

    assert len(served.instance._calls) == 32


def test_memory_is_reported_for_each_session(workbench, zoo):
    module = module_add_sub()
    module.weight = tf.Variable(np.ones((100, 16), np.float32)[0])
    tf.saved_model.save(module, str(workbench.path(SAVED)), signatures=module.serve)

    served = workbench.load("instance_group { kind: KIND_CPU count: 2 }")

    (usage,) = served.model.memory_usage()
    assert (usage.type, usage.id) == ("CPU", 0)
    assert 2 * 64 <= usage.byte_size < 2 * 1000
    served.model.close()
    assert served.model.memory_usage() == []


def test_an_instance_that_is_replaced_frees_its_session(workbench, zoo):
    zoo(frozen, workbench.path("model.graphdef"))
    config = 'platform: "tensorflow_graphdef" output { name: "SUM" data_type: TYPE_FP32 dims: [ 16 ] }'
    served = workbench.load(config + "instance_group { kind: KIND_CPU count: 2 }")
    session = weakref.ref(served.instance._session)

    served.instances.pop(0).close()

    assert session() is None
    assert served.model.memory_usage() == [MemoryUsage("CPU", 0, 2 * 4)]


def test_the_constants_of_a_graph_are_its_memory(workbench, zoo):
    zoo(frozen, workbench.path("model.graphdef"))
    config = 'platform: "tensorflow_graphdef" output { name: "SUM" data_type: TYPE_FP32 dims: [ 16 ] }'

    served = workbench.load(config + "instance_group { kind: KIND_CPU count: 1 }")

    assert served.model.memory_usage() == [MemoryUsage("CPU", 0, 2 * 4)]  # the shape of ROWS, two INT32


@pytest.mark.parametrize("config", ["", parameter_entry("TF_NUM_INTRA_THREADS", "1")], ids=["pool", "one thread"])
def test_a_release_that_is_not_tested_prepares_calls_by_the_public_interface(workbench, zoo, monkeypatch, config):
    assert runtime().__version__ in instance.TESTED_VERSIONS
    monkeypatch.setattr(instance, "TESTED_VERSIONS", ())
    monkeypatch.setattr(v1.Session, "_make_callable_from_options", None)
    zoo(add_sub, workbench.path(SAVED))
    rows = np.ones((2, 16), np.float32)

    served = workbench.load(config)

    assert served.execute({"a": rows, "b": rows})["sum"].tolist() == (rows + rows).tolist()
    assert (
        served.execute({"a": rows, "b": rows}, requested=("difference",))["difference"].tolist() == (rows * 0).tolist()
    )
