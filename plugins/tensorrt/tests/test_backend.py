"""Engines through the backend, on machines with pretended GPUs."""

import logging
from pathlib import Path

import numpy as np
import pytest

from naiad.backend import MemoryUsage
from naiad.errors import ConfigError, InvalidArgumentError, NotFoundError, UnsupportedError
from naiad_tensorrt.backend import TensorRtBackend
from naiad_tensorrt.machine import Gpus
from naiad_tensors.devices import gpu, is_on_device
from naiad_tensors.tensors import Tensor
from naiad_testing.devices import FakeDeviceArray
from naiad_testing.workbench import Workbench, batch_of

from .conftest import ADD_SUB, FakeMachine, described, tensor

WHOLE = """
    max_batch_size: 4
    input [{ name: "A" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "B" data_type: TYPE_FP32 dims: [ 16 ] }]
    output [{ name: "SUM" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "DIFF" data_type: TYPE_FP32 dims: [ 16 ] }]
"""


def rows(count, value=1.0):
    return np.full((count, 16), value, np.float32)


def test_a_batch_runs_on_the_nearest_of_the_profiles_of_its_group(workbench, machine):
    machine.description = described(*ADD_SUB.tensors, batches=[(1, 1, 4), (1, 32, 64), (1, 16, 32)])
    served = workbench.load('instance_group [{ profile: [ "0", "2" ] }]')

    for count in (1, 3, 12, 32):
        served.execute({"A": rows(count), "B": rows(count)})

    assert served.config.max_batch_size == 32
    assert machine.executors[0].options.profiles == (0, 2)
    assert [profile for _, profile in machine.executors[0].runs] == [0, 0, 2, 2]


def test_without_profiles_in_the_configuration_the_first_is_taken(workbench, machine):
    machine.description = described(*ADD_SUB.tensors, batches=[(1, 2, 4), (1, 16, 32)])

    served = workbench.load()

    assert served.config.max_batch_size == 4
    assert machine.executors[0].options.profiles == (0,)


def test_a_shape_that_no_profile_takes_fails_its_own_request_alone(workbench, machine):
    machine.description = described(
        tensor("A", -1, -1), tensor("B", -1, 16), tensor("SUM", -1, 16, output=True), batches=[(1, 4, 16)]
    )
    served = workbench.load("max_batch_size: 8")

    with pytest.raises(InvalidArgumentError) as caught:
        served.execute({"A": np.zeros((1, 17), np.float32), "B": rows(1)})
    first, second = served.execute(
        {"A": np.zeros((12, 16), np.float32), "B": rows(12)}, {"A": np.zeros((5, 16), np.float32), "B": rows(5)}
    )

    assert str(caught.value) == (
        "model 'm' has no optimisation profile for this batch: input 'A' has shape [1,17], and profile 0 takes [1,1] "
        "to [16,16]; send other shapes, or name further profiles of the engine in 'profile' of the instance group"
    )
    assert (first.outputs["SUM"].shape, second.outputs["SUM"].shape) == ((12, 16), (5, 16))


def test_inputs_on_the_gpu_of_the_instance_stay_there(workbench, machine):
    served = workbench.load()
    machine.executors[0].compute = lambda inputs: {"SUM": rows(3), "DIFF": rows(3)}
    here = [Tensor.of("A", FakeDeviceArray(rows(count), gpu(0))) for count in (1, 2)]

    served.execute(*({"A": sent, "B": rows(sent.shape[0])} for sent in here))

    (inputs, profile) = machine.executors[0].runs[0]
    assert [part.shape for part in inputs["A"]] == [(1, 16), (2, 16)]
    assert (inputs["B"].shape, profile) == ((3, 16), 0)
    assert served.instance.input_devices == (gpu(0),)


def test_outputs_stay_on_the_gpu_where_somebody_takes_them_there(workbench):
    served = workbench.load()
    batch = batch_of({"A": rows(1), "B": rows(1)})
    batch.requests[0].on_device = {"SUM": [gpu(0)], "DIFF": [gpu(1)]}

    answer = served.instance.execute(batch)

    assert (is_on_device(answer["SUM"]), is_on_device(answer["DIFF"])) == (True, False)


def test_each_gpu_opens_the_engine_once_and_its_instances_share_it(tmp_path):
    machine = FakeMachine(("8.0", "9.0"))
    bench = Workbench(tmp_path / "m", TensorRtBackend(machine), gpus=2)
    bench.path("model.plan").write_bytes(b"ftrt")
    bench.path("hopper.plan").write_bytes(b"ftrt hopper")

    served = bench.load(
        f'cc_model_filenames {{ key: "9.0" value: "hopper.plan" }} instance_group {{ count: 2 }} {WHOLE}'
    )

    assert sorted((plan, device) for plan, device, _ in machine.opened) == [(b"ftrt", 0), (b"ftrt hopper", 1)]
    assert sorted(executor.device for executor in machine.executors) == [0, 0, 1, 1]
    assert served.model.memory_usage() == [MemoryUsage("GPU", 0, 1200), MemoryUsage("GPU", 1, 1200)]


def test_an_instance_that_is_closed_holds_no_memory(workbench, machine):
    served = workbench.load("instance_group { count: 2 }")

    served.instances[0].close()

    assert not machine.executors[0].is_open
    assert served.model.memory_usage() == [MemoryUsage("GPU", 0, 1100)]


def test_an_instance_whose_device_is_lost_says_so(workbench, machine):
    served = workbench.load()

    assert served.instance.ready() == ""
    machine.executors[0].broken = "GPU 0 is lost"
    assert served.instance.ready() == "GPU 0 is lost"


def test_a_machine_without_a_gpu_says_so(tmp_path):
    bench = Workbench(tmp_path / "m", TensorRtBackend(FakeMachine(())))
    bench.path("model.plan").write_bytes(b"ftrt")
    sentence = "model 'm' is an engine of TensorRT, which needs an NVIDIA GPU, and CUDA finds none on this machine"

    with pytest.raises(UnsupportedError, match=sentence):
        bench.complete()
    with pytest.raises(UnsupportedError, match=sentence):
        bench.load(WHOLE)


def test_a_configuration_that_is_whole_is_left_alone_where_no_gpu_is(tmp_path):
    bench = Workbench(tmp_path / "m", TensorRtBackend(FakeMachine(())))

    assert bench.complete(WHOLE).max_batch_size == 4


def test_where_a_gpu_is_the_engine_and_its_library_must_be_there_before_anything_is_loaded(workbench, machine):
    assert workbench.complete(WHOLE).max_batch_size == 4

    workbench.path("model.plan").write_bytes(b"ONNX")
    with pytest.raises(InvalidArgumentError, match="begins with b'ONNX'"):
        workbench.complete(WHOLE)
    workbench.path("model.plan").unlink()
    with pytest.raises(NotFoundError, match="folder is empty"):
        workbench.complete(WHOLE)
    assert machine.opened == []


@pytest.mark.parametrize("kind", ["KIND_CPU", "KIND_MODEL"])
def test_instances_that_are_on_no_gpu_are_refused(workbench, kind):
    with pytest.raises(ConfigError) as caught:
        workbench.load(f'{WHOLE} instance_group [{{ name: "slow" kind: {kind} }}]')

    (problem,) = caught.value.problems
    assert problem.message == (
        f"instance group 'slow' of model 'm' has the kind {kind}, and engines of TensorRT run on GPUs alone"
    )
    assert problem.path == "instance_group[0].kind"


def test_the_engine_may_have_another_name(workbench):
    workbench.path("model.plan").rename(workbench.path("mine.plan"))

    assert workbench.load('default_model_filename: "mine.plan"').config.max_batch_size == 8


def test_an_engine_outside_the_models_folder_is_refused(workbench):
    with pytest.raises(InvalidArgumentError, match=r"the engine '\.\./\.\./x\.plan' of model 'm' leaves the model's"):
        workbench.load('default_model_filename: "../../x.plan"')


def test_what_ultralytics_writes_before_an_engine_is_left_out(workbench, machine):
    reason = b'{"task": "detect"}'
    workbench.path("model.plan").write_bytes(len(reason).to_bytes(4, "little") + reason + b"ftrt engine")

    workbench.load()

    assert machine.opened[0][0] == b"ftrt engine"


def test_libraries_of_plugins_are_those_of_the_server_and_those_of_the_model(workbench, machine):
    own = 'model_operations { op_library_filename: [ "ops/mine.so" ] }'

    workbench.load(own, {"plugins": "/opt/theirs.so"})

    expected = (Path("/opt/theirs.so"), (workbench.directory / "ops" / "mine.so").resolve())
    assert {opening.libraries for _, _, opening in machine.opened} == {expected}
    with pytest.raises(InvalidArgumentError, match=r"op_library_filename '\.\./x\.so' of model 'm' "):
        workbench.load('model_operations { op_library_filename: [ "../x.so" ] }')


def test_cores_of_the_accelerator_get_an_engine_each(workbench, machine):
    group = "instance_group [{{ secondary_devices {{ kind: KIND_NVDLA device_id: {} }} }}{}]"

    workbench.load(WHOLE + group.format(0, ", { secondary_devices { kind: KIND_NVDLA device_id: 1 } }, { }"))

    assert sorted(opening.dla_core for _, _, opening in machine.opened) == [-1, 0, 1]


def test_an_instance_takes_one_core_of_the_accelerator_at_most(workbench):
    device = "secondary_devices {{ kind: KIND_NVDLA device_id: {} }}"
    two = f'instance_group [{{ name: "g" {device.format(0)} {device.format(1)} }}]'

    with pytest.raises(InvalidArgumentError, match="instance group 'g' names 2 secondary devices"):
        workbench.load(WHOLE + two)


def test_settings_without_effect_are_reported(workbench, caplog):
    with caplog.at_level(logging.WARNING, "naiad.model"):
        workbench.load(
            "optimization { graph { level: 1 }"
            " execution_accelerators { gpu_execution_accelerator { name: 'tensorrt' } }"
            " cuda { graph_spec { batch_size: 1 } } }"
        )

    assert [record.message.partition("'")[2].partition("'")[0] for record in caplog.records] == [
        "optimization.graph.level",
        "optimization.execution_accelerators",
        "optimization.cuda.graph_spec",
    ]


def test_this_machine_is_asked_for_its_gpus_without_an_error():
    assert Gpus().device_count() >= 0
