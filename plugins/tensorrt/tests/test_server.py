"""Engines behind a whole server, without a frontend, on a machine that seems to have a GPU."""

import numpy as np
import pytest

import naiad_scheduler_dynamic
import naiad_scheduler_sequence
import naiad_tensorrt
from naiad import hookimpl
from naiad.errors import InvalidArgumentError, NaiadError
from naiad_tensorrt.backend import TensorRtBackend
from naiad_tensorrt.machine import Gpus
from naiad_tensors import gpus
from naiad_testing import serve

from . import building
from .conftest import described, tensor
from .test_interface import SHAPED


@pytest.fixture
def plugins(machine, monkeypatch):
    """The plugin over the pretended machine, and a kernel that finds its GPU."""
    monkeypatch.setattr(gpus, "gpu_count", machine.device_count)

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

    assert "needs an NVIDIA GPU" in str(caught.value)
