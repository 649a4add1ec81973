"""Engines behind a whole server, without a frontend, on a machine that seems to have a GPU."""

import numpy as np
import pytest

import naiad_scheduler_dynamic
import naiad_scheduler_sequence
import naiad_tensorrt
from naiad import hookimpl
from naiad._kernel import loading
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_tensorrt.backend import TensorRtBackend
from naiad_tensorrt.machine import Gpus
from naiad_testing import serve

from . import building
from .conftest import described, tensor
from .test_interface import SHAPED


@pytest.fixture
def plugins(machine, monkeypatch):
    """The plugin over the pretended machine, and a kernel that finds its GPU."""
    monkeypatch.setattr(loading, "gpu_count", machine.device_count)

    class Pretended:
        @hookimpl
        def naiad_backends(self):
            return [TensorRtBackend(machine)]

    return [Pretended(), naiad_scheduler_dynamic, naiad_scheduler_sequence]


@pytest.fixture
def write(tmp_path):
    def write_model(config=""):
        folder = tmp_path / "m"
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.plan").write_bytes(b"ftrt")
        (folder / "config.pbtxt").write_text(config)
        return folder

    return write_model


def test_an_engine_is_served_without_a_configuration(plugins, machine, write):
    with serve(write(), plugins=plugins) as client:
        answer = client.infer(A=np.full((2, 16), 3), B=np.full((2, 16), 1))
        config = client.call(lambda server: server.model_config("m"))

    assert answer["SUM"].tolist() == [[4.0] * 16] * 2
    assert (config.platform, config.backend, config.max_batch_size) == ("tensorrt_plan", "tensorrt", 8)
    assert [executor.is_open for executor in machine.executors] == [False]


def test_the_batch_size_of_a_shape_tensor_is_that_of_all_requests(plugins, machine, write):
    machine.description = SHAPED
    machine.compute = lambda inputs: {
        "y": np.broadcast_to(inputs["x"][:, :1, None], inputs["size"].tolist()).copy(),
        "given": inputs["size"],
    }
    config = "dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 20000000 }"

    with serve(write(config), plugins=plugins) as client:
        sizes = np.array([5, 7], np.int32)
        answers = client.infer_all(*({"x": np.full((rows, 2), rows), "size": sizes} for rows in (1, 2)))

    assert [inputs["size"].tolist() for inputs, _ in machine.executors[0].runs] == [[3, 5, 7]]
    assert [answer["y"].shape for answer in answers] == [(1, 5, 7), (2, 5, 7)]
    assert [answer["y"][0, 0, 0] for answer in answers] == [1, 2]
    assert [answer["given"].tolist() for answer in answers] == [[5, 7], [5, 7]]


def test_the_state_of_a_sequence_is_an_input_and_an_output_of_the_engine(plugins, machine, write):
    machine.description = described(
        *(tensor(name, -1, 1) for name in ("x", "START", "sum")),
        *(tensor(name, -1, 1, output=True) for name in ("y", "new_sum")),
    )

    def accumulate(inputs):
        total = inputs["x"] + inputs["sum"] * (1 - inputs["START"])
        return {"y": total, "new_sum": total}

    machine.compute = accumulate
    config = """
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
          state { input_name: "sum" output_name: "new_sum" data_type: TYPE_FP32 dims: 1 }
        }
    """

    with serve(write(config), plugins=plugins) as client:
        sums = [add(client, value, start=value == 1, end=value == 3) for value in (1, 2, 3)]

    assert sums == [1, 3, 6]


def add(client, value, start, end):
    request = client.request(x=np.full((1, 1), value, np.float32))
    request.correlation_id, request.sequence_start, request.sequence_end = 7, start, end
    return client.send(request).outputs["y"].array.item()


def test_ragged_inputs_and_batch_inputs_are_inputs_of_the_engine(plugins, machine, write):
    machine.description = described(
        tensor("x", -1), tensor("ends", -1), tensor("total", -1, 1, output=True), batches=[(1, 4, 64)]
    )
    machine.compute = lambda inputs: {
        "total": np.array([[part.sum()] for part in np.split(inputs["x"], inputs["ends"].astype(int)[:-1])], np.float32)
    }
    config = """
        max_batch_size: 8
        input [{ name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }]
        batch_input {
          kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_FP32 source_input: "x"
        }
        dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 20000000 }
    """

    with serve(write(config), plugins=plugins) as client:
        answers = client.infer_all({"x": [[1, 2, 3]]}, {"x": [[4, 5]]})

    ((inputs, profile),) = machine.executors[0].runs
    assert (inputs["x"].tolist(), inputs["ends"].tolist(), profile) == ([1, 2, 3, 4, 5], [3, 5], 0)
    assert [answer["total"].tolist() for answer in answers] == [[[6.0]], [[9.0]]]


def test_a_warmup_runs_on_every_instance(plugins, machine, write):
    config = """
        instance_group { count: 2 }
        model_warmup {
          name: "full" batch_size: 8
          inputs { key: "A" value { data_type: TYPE_FP32 dims: 16 random_data: true } }
          inputs { key: "B" value { data_type: TYPE_FP32 dims: 16 zero_data: true } }
        }
    """

    with serve(write(config), plugins=plugins):
        shapes = [inputs["A"].shape for executor in machine.executors for inputs, _ in executor.runs]

    assert shapes == [(8, 16), (8, 16)]


def test_a_request_that_no_profile_takes_is_its_own_fault(plugins, machine, write):
    machine.description = described(tensor("x", -1, -1), tensor("y", -1, output=True), batches=[(1, 4, 8)])

    with (
        serve(write(), plugins=plugins) as client,
        pytest.raises(InvalidArgumentError, match="no optimisation profile"),
    ):
        client.infer(x=np.zeros((1, 9), np.float32))


@pytest.mark.skipif(Gpus().device_count() > 0, reason="there is a GPU")
def test_a_machine_without_a_gpu_refuses_a_real_engine_in_one_sentence(write):
    folder = write()
    (folder / "1" / "model.plan").write_bytes(building.add_sub())

    with pytest.raises(NaiadError) as caught, serve(folder, plugins=[naiad_tensorrt]):
        pass

    assert "is an engine of TensorRT, which needs an NVIDIA GPU, and CUDA finds none on this machine" in str(
        caught.value
    )
