"""What a model raises in each stage of its life, isolated and not: that stage fails, and the server goes on."""

from pathlib import Path

import numpy as np
import pytest

from naiad.errors import NaiadError

from .conftest import Serve, Write

STAGES = """
import triton_python_backend_utils as pb_utils

def ends(stage):
    if stage == STAGE:
        raise RAISES

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        ends("auto_complete_config")
        return config

    def initialize(self, args):
        self.log = args["model_repository"] + "/log"
        ends("initialize")

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + 1)]) for x in inputs]

    def finalize(self):
        with open(self.log, "a") as log:
            log.write("finalized")
        ends("finalize")
"""
ERRORS = ["ValueError('bad')", "SystemExit('bad')", "KeyboardInterrupt('bad')"]


def written(write: Write, isolation: str, stage: str, error: str) -> tuple[Path, Path]:
    """A model that raises in that stage, and another one beside it."""
    code = STAGES.replace("STAGE", repr(stage)).replace("RAISES", error)
    return write("m", code, isolation=isolation), write("good", STAGES.replace("STAGE", "''"), isolation=isolation)


@pytest.mark.parametrize("isolation", ["process", "model", "thread"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_load_fails_with_what_its_model_raises(write: Write, served: Serve, isolation: str, error: str) -> None:
    for stage in ("auto_complete_config", "initialize"):
        model, good = written(write, isolation, stage, error)
        with served(good) as client:
            with pytest.raises(NaiadError, match=f"{error.partition('(')[0]}: bad"), served(model):
                pass

            assert client.infer(X=np.ones(1, np.float32))["Y"].tolist() == [2]


@pytest.mark.parametrize("isolation", ["process", "model", "thread"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_model_that_raises_when_it_is_unloaded_is_unloaded(
    write: Write, served: Serve, caplog: pytest.LogCaptureFixture, isolation: str, error: str
) -> None:
    model, good = written(write, isolation, "finalize", error)
    with served(model, good) as client:
        assert client["m"].infer(X=np.ones(1, np.float32))["Y"].tolist() == [2]
        client.wait_for(lambda server: server.unload("m"))
        client.wait_for(lambda server: server.load("m"))

        assert client["m"].infer(X=np.ones(1, np.float32))["Y"].tolist() == [2]
        assert client["good"].infer(X=np.ones(1, np.float32))["Y"].tolist() == [2]

    assert (model / "log").read_text() == "finalized" * 2
    assert f"{error.partition('(')[0]}: bad" in caplog.text
