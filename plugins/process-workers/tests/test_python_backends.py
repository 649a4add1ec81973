"""Python-based backends whose models live in processes, and the environments that such a backend brings."""

import json
import os
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from naiad.errors import NaiadError

from .conftest import Serve

REPORT = """
    import json
    import os
    import sys

    import numpy as np
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        @staticmethod
        def auto_complete_config(config):
            config.add_input({"name": "X", "data_type": "TYPE_INT64", "dims": [1]})
            config.add_output({"name": "REPORT", "data_type": "TYPE_STRING", "dims": [1]})
            return config

        def initialize(self, args):
            try:
                import only_here
            except ImportError:
                only_here = None
            self.report = {
                "pid": os.getpid(),
                "prefix": sys.prefix,
                "repository": args["model_repository"],
                "model_dir": pb_utils.get_model_dir(),
                "only_here": getattr(only_here, "NUMBER", None),
            }

        def execute(self, requests):
            report = np.array([json.dumps(self.report)], dtype=object)
            return [pb_utils.InferenceResponse([pb_utils.Tensor("REPORT", report)]) for request in requests]
"""


@pytest.fixture
def backends(tmp_path: Path) -> Path:
    """A backend directory with the backend `report`."""
    folder = tmp_path / "backends" / "report"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(dedent(REPORT))
    return folder.parent


def model(tmp_path: Path, **parameters: str) -> Path:
    folder = tmp_path / "models" / "m"
    (folder / "1").mkdir(parents=True)
    lines = [f'parameters {{ key: "{k}" value {{ string_value: "{v}" }} }}' for k, v in parameters.items()]
    (folder / "config.pbtxt").write_text("\n".join(['backend: "report"', *lines]))
    return folder


def report(served: Serve, backends: Path, folder: Path) -> dict:
    with served(folder, backend_directory=str(backends)) as client:
        (text,) = client.infer(X=np.array([1]))["REPORT"]
    return dict(json.loads(text))


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_the_backend_serves_the_model_where_its_configuration_says(
    tmp_path: Path, served: Serve, backends: Path, isolation: str
) -> None:
    folder = model(tmp_path, isolation=isolation)

    said = report(served, backends, folder)

    assert (said["pid"] == os.getpid()) is (isolation == "thread")
    assert (said["repository"], said["model_dir"]) == (str(folder), str(folder / "1"))


def test_a_backend_s_archive_is_the_environment_of_its_models(
    tmp_path: Path, served: Serve, backends: Path, environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (backends / "report" / "pb_exec_env_report").symlink_to(environment)

    said = report(served, backends, model(tmp_path))

    assert said["pid"] != os.getpid()
    assert said["only_here"] == 41


def test_the_environment_that_a_model_names_comes_before_that_of_its_backend(
    tmp_path: Path, served: Serve, backends: Path, environment: Path
) -> None:
    (backends / "report" / "pb_exec_env_report.tar.gz").write_bytes(b"no archive")

    said = report(served, backends, model(tmp_path, python=str(environment)))

    assert said["prefix"] == str(environment)


def test_an_archive_that_is_none_is_refused_with_the_backend_s_name(
    tmp_path: Path, served: Serve, backends: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = backends / "report" / "pb_exec_env_report.tar.gz"
    archive.write_bytes(b"no archive")

    with pytest.raises(NaiadError) as raised:
        report(served, backends, model(tmp_path))

    assert f"the environment of backend 'report' is '{archive}', which cannot be unpacked" in str(raised.value)


def test_isolation_thread_keeps_the_model_in_the_server(
    tmp_path: Path, served: Serve, backends: Path, environment: Path
) -> None:
    (backends / "report" / "pb_exec_env_report").symlink_to(environment)

    said = report(served, backends, model(tmp_path, isolation="thread"))

    assert (said["pid"], said["prefix"]) == (os.getpid(), sys.prefix)
