"""Python-based backends: a `model.py` in the backend directory serves models that have a configuration and files."""

import json
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import naiad_custom
from naiad.errors import NaiadError
from naiad_custom.backend_directory import BackendDirectory
from naiad_testing import Client, serve

SCALE = """
    import json
    from pathlib import Path

    import numpy as np
    import triton_python_backend_utils as pb_utils

    from factors import factor_in

    class TritonPythonModel:
        @staticmethod
        def auto_complete_config(config):
            config.set_max_batch_size(8)
            config.add_input({"name": "X", "data_type": "TYPE_INT64", "dims": [1]})
            config.add_output({"name": "Y", "data_type": "TYPE_INT64", "dims": [1]})
            config.add_output({"name": "ARGS", "data_type": "TYPE_STRING", "dims": [1]})
            return config

        def initialize(self, args):
            self.factor = factor_in(Path(args["model_repository"], args["model_version"], "factor.txt"))
            shown = {name: value for name, value in args.items() if name != "model_config"}
            backend = json.loads(args["model_config"])["backend"]
            self.args = json.dumps({**shown, "backend": backend, "model_dir": pb_utils.get_model_dir()})

        def execute(self, requests):
            responses = []
            for request in requests:
                x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                y = pb_utils.Tensor("Y", x * self.factor)
                args = pb_utils.Tensor("ARGS", np.full(x.shape, self.args, dtype=object))
                responses.append(pb_utils.InferenceResponse([y, args]))
            return responses
"""
FACTORS = "def factor_in(path):\n    return int(path.read_text())\n"


@pytest.fixture
def backends(tmp_path: Path) -> Path:
    """A backend directory with the backend `scale`, which multiplies by the number in a model's file."""
    folder = tmp_path / "backends" / "scale"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(dedent(SCALE))
    (folder / "factors.py").write_text(FACTORS)
    return folder.parent


def model(tmp_path: Path, name: str, factor: int, version: int = 1, config: str = 'backend: "scale"\n') -> Path:
    folder = tmp_path / "models" / name
    (folder / str(version)).mkdir(parents=True)
    (folder / str(version) / "factor.txt").write_text(str(factor))
    if config:
        (folder / "config.pbtxt").write_text(config)
    return folder


def serving(backends: Path, *models: Path) -> Client:
    return serve(*models, plugins=[naiad_custom], options={"backend-directory": str(backends)})


def times(client: Client, name: str) -> int:
    return int(client[name].infer(X=np.array([[1]]))["Y"][0, 0])


def test_one_backend_serves_many_models_each_with_its_own_files(tmp_path: Path, backends: Path) -> None:
    two, three = model(tmp_path, "two", 2), model(tmp_path, "three", 3)

    with serving(backends, two, three) as client:
        assert (times(client, "two"), times(client, "three")) == (2, 3)


def test_its_arguments_and_folder_are_those_of_the_model(tmp_path: Path, backends: Path) -> None:
    folder = model(tmp_path, "m", 2, version=4)

    with serving(backends, folder) as client:
        (args,) = client.infer(X=np.array([[1]]))["ARGS"].ravel()

    assert json.loads(args) == {
        "model_instance_kind": "CPU",
        "model_instance_name": "m_0",
        "model_instance_device_id": "0",
        "model_repository": str(folder),
        "model_version": "4",
        "model_name": "m",
        "backend": "scale",
        "model_dir": str(folder / "4"),
    }


def test_a_model_py_in_the_model_s_folder_is_not_used(tmp_path: Path, backends: Path) -> None:
    folder = model(tmp_path, "m", 2)
    (folder / "1" / "model.py").write_text("raise RuntimeError")
    (folder / "1" / "factors.py").write_text("raise RuntimeError")

    with serving(backends, folder) as client:
        assert times(client, "m") == 2


def test_the_end_of_a_model_s_name_names_the_backend_too(tmp_path: Path, backends: Path) -> None:
    with serving(backends, model(tmp_path, "five.scale", 5, config="")) as client:
        assert times(client, "five.scale") == 5


def test_an_error_names_the_line_in_the_backend(tmp_path: Path, backends: Path) -> None:
    folder = model(tmp_path, "m", 2)
    (folder / "1" / "factor.txt").write_text("no number")

    with (
        pytest.raises(NaiadError, match=r"scale/factors\.py:2: initialize failed: ValueError"),
        serving(backends, folder),
    ):
        pass


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (
            "scales",
            "be '{}/scales/model.py' (--backend-directory), which is not there; naiad new backend scales",
        ),
        ("../backends/scale", "A backend of --backend-directory '{}' has "),
    ],
)
def test_an_unknown_backend_s_error_names_the_folder_that_was_searched(
    tmp_path: Path, backends: Path, backend: str, said: str
) -> None:
    folder = model(tmp_path, "m", 2, config=f'backend: "{backend}"')

    with pytest.raises(NaiadError) as raised, serving(backends, folder):
        pass

    assert f"needs the backend '{backend}'" in str(raised.value)
    assert said.format(backends) in str(raised.value)


def test_an_installed_backend_comes_before_one_of_the_directory(tmp_path: Path, backends: Path) -> None:
    (backends / "scale").rename(backends / "python")
    folder = model(tmp_path, "m", 2, config='backend: "python"')
    code = "from naiad_custom import INT64, Array, model\n\n@model\ndef m(X: Array[INT64, 1]) -> Array[INT64, 1]:\n"
    (folder / "1" / "model.py").write_text(f"{code}    return X * 100\n")

    with serving(backends, folder) as client:
        (out,) = client.infer(X=[1]).values()
        assert out.tolist() == [100]


def test_a_backend_may_come_after_the_start(backends: Path) -> None:
    directory = BackendDirectory(str(backends))

    assert directory.find_backend("late") is None
    (backends / "scale").rename(backends / "late")
    late = directory.find_backend("late")

    assert late is not None
    assert (late.traits.name, late.traits.code_directory) == ("late", backends / "late")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "scale/", "\0"])
def test_names_that_are_no_folder_of_the_directory_find_nothing(backends: Path, name: str) -> None:
    assert BackendDirectory(str(backends)).find_backend(name) is None


def test_without_a_directory_nothing_is_looked_for() -> None:
    directory = BackendDirectory("")

    assert directory.find_backend("scale") is None
    assert directory.describe_search("scale") == "No --backend-directory is set, where one written in Python could be."
