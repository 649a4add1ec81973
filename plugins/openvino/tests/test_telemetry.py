"""OpenVINO sends nothing to its makers."""

import subprocess
import sys

from naiad_testing.homes import files_written_at_home

RUN = "from naiad_openvino.runtime import runtime; runtime().Core()"
"""Where telemetry is on, it leaves its statistics and an identifier in the home folder."""

CONTINUOUS_INTEGRATION = ("CI", "TF_BUILD", "JENKINS_URL")
"""Variables of services where OpenVINO sends nothing in any case."""


def test_openvino_is_imported_without_its_telemetry(tmp_path):
    assert files_written_at_home(RUN, home=tmp_path, without=CONTINUOUS_INTEGRATION) == []


def test_a_model_may_import_the_package_of_telemetry_itself():
    code = "from naiad_openvino.runtime import runtime; runtime(); import openvino_telemetry"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_models_may_be_the_first_to_import_openvino_at_once():
    code = "from concurrent.futures import ThreadPoolExecutor as Pool; from naiad_openvino.runtime import runtime; "
    code += "print(len({*Pool(4).map(lambda _: runtime(), range(4))}))"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (ended.stdout, ended.stderr) == ("1\n", "")
