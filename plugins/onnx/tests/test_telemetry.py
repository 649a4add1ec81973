"""ONNX Runtime sends nothing about models to its makers."""

import json
import os
import subprocess
import sys

import onnx

RUN = """
import json, os, sys
from naiad_onnx.sessions import runtime

session = runtime().InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
json.dump([os.path.join(folder, name) for folder, _, names in os.walk(sys.argv[2]) for name in names], sys.stdout)
"""
"""Prints the files below the home folder. Where telemetry is on, they are its database and the device's identifier."""

VARIABLES_OF_TELEMETRY = ("ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI")


def test_a_model_is_loaded_without_telemetry(tmp_path, models):
    model, home = tmp_path / "model.onnx", tmp_path / "home"
    home.mkdir()
    onnx.save(models.add_sub(), model)
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES_OF_TELEMETRY}

    ended = subprocess.run(
        [sys.executable, "-c", RUN, str(model), str(home)],
        env=kept | {"HOME": str(home), "XDG_CACHE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(ended.stdout) == []
