"""TensorFlow models through the backend."""

import json
from pathlib import Path

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_testing.workbench import parameter_entry, tensor_entry

from .conftest import add_sub, frozen, old_add_sub

SAVED, GRAPH = "model.savedmodel", "model.graphdef"
TENSORRT = 'optimization { execution_accelerators { gpu_execution_accelerator [{ name: "tensorrt" }] } }'


def rows(count, value=1.0, columns=16):
    return np.full((count, columns), value, np.float32)


def test_a_saved_model_of_tensorflow_1_needs_no_configuration(workbench, zoo):
    zoo(old_add_sub, workbench.path(SAVED))

    served = workbench.load('platform: "tensorflow_savedmodel"')

    assert (served.config.max_batch_size, served.config.instance_group[0].count) == (4, 2)
    assert [(each.name, each.dims) for each in served.config.input] == [("a", (16,)), ("b", (16,))]
    assert served.execute({"a": rows(1, 3), "b": rows(1)})["sum"][:, 0].tolist() == [4.0]


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
    with pytest.raises(InvalidArgumentError, match="only with mine"):
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
    assert "a graph does not say which of its nodes are outputs" in caplog.text


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


def test_broken_models_are_refused(workbench):
    workbench.path(GRAPH).write_bytes(b"no graph")
    with pytest.raises(InvalidArgumentError, match=r"'model\.graphdef' is not a usable graph"):
        workbench.load('platform: "tensorflow_graphdef"')

    workbench.path(f"{SAVED}/saved_model.pb").write_bytes(b"no model")
    with pytest.raises(InvalidArgumentError, match=r"'model\.savedmodel/saved_model\.pb' cannot be read"):
        workbench.load()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            f"instance_group {{ kind: KIND_MODEL }} {TENSORRT}",
            "was built without TensorRT",
        ),
        ('model_operations { op_library_filename: [ "../x.so" ] }', "'../x.so'"),
        ('model_operations { op_library_filename: [ "x.so" ] }', "op_library_filename 'x.so' of model 'm' cannot be"),
    ],
)
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_what_is_not_there_is_refused(workbench, zoo, written, message):
    zoo(add_sub, workbench.path(SAVED))
    workbench.gpus = 1

    with pytest.raises((UnsupportedError, InvalidArgumentError), match=message):
        workbench.load(written)
