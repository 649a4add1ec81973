"""OpenVINO sends nothing to its makers."""

import json
import os
import subprocess
import sys

RUN = """
import json, os, sys
from naiad_openvino.runtime import runtime

runtime().Core()
json.dump([os.path.join(folder, name) for folder, _, names in os.walk(sys.argv[1]) for name in names], sys.stdout)
"""
"""Prints the files below the home folder. Where telemetry is on, they are its statistics and an identifier."""

CONTINUOUS_INTEGRATION = ("CI", "TF_BUILD", "JENKINS_URL")
"""Variables of services where OpenVINO sends nothing in any case."""


def test_openvino_is_imported_without_its_telemetry(tmp_path):
    kept = {name: value for name, value in os.environ.items() if name not in CONTINUOUS_INTEGRATION}

    ended = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)],
        env=kept | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(ended.stdout) == []


def test_a_model_may_import_the_package_of_telemetry_itself():
    code = "from naiad_openvino.runtime import runtime; runtime(); import openvino_telemetry"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
