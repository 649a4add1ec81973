"""ONNX Runtime sends nothing about models to its makers."""

import onnx

from naiad_testing.homes import files_written_at_home

RUN = """
import sys
from naiad_onnx.sessions import runtime

runtime().InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
"""
"""Where telemetry is on, it leaves a database and an identifier of the device in the home folder."""

VARIABLES_OF_TELEMETRY = ("ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI")


def test_a_model_is_loaded_without_telemetry(tmp_path, models):
    model, home = tmp_path / "model.onnx", tmp_path / "home"
    home.mkdir()
    onnx.save(models.add_sub(), model)

    assert files_written_at_home(RUN, str(model), home=home, without=VARIABLES_OF_TELEMETRY) == []
