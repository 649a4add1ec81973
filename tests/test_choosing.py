"""Error messages for models that need a plugin or framework that is not installed: real commands without it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest

from naiad_config.detection import KNOWN_FORMATS

from .environments import hint_of_checkout, with_members
from .written import ask, infer, write_model

if TYPE_CHECKING:
    from .conftest import ServerProcess

ROOT = Path(__file__).parents[1]
DOUBLE = """
from naiad_custom import FP32, Array, model

@model
def double(x: Array[FP32, 2]) -> Array[FP32, 2]:
    return x + x
"""
COMPLETE = """
{chosen} max_batch_size: 0
input {{ name: "INPUT__0" data_type: TYPE_FP32 dims: 2 }} output {{ name: "OUTPUT__0" data_type: TYPE_FP32 dims: 2 }}
"""
FRAMEWORKS = (
    ("onnxruntime", "model.onnx", "ONNX Runtime", "naiad-onnx"),
    ("openvino", "model.xml", "OpenVINO", "naiad-openvino"),
    ("pytorch", "model.pt", "PyTorch", "naiad-torch"),
    ("tensorflow", "model.graphdef", "TensorFlow", "naiad-tensorflow"),
)
MODULES = ("onnxruntime", "openvino", "torch", "tensorflow")
PLUGINS = tuple(plugin for *_, plugin in FRAMEWORKS)


@pytest.fixture(scope="module")
def without_plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `naiad` where Python models are served, and those of no framework."""
    return with_members(tmp_path_factory.mktemp("bare") / "venv", ["naiad", "naiad-custom", "naiad-http"])


@pytest.fixture(scope="module")
def without_frameworks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `naiad` with the plugins of frameworks, as `pip install naiad-torch` without `[cpu]` leaves them."""
    members = ["naiad", "naiad-caffe2", "naiad-tensorrt", *PLUGINS]
    return with_members(tmp_path_factory.mktemp("plugins") / "venv", members)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A repository with the Python model `double`."""
    put(tmp_path / "models", "double", "model.py", DOUBLE)
    return tmp_path / "models"


def put(models: Path, name: str, file: str, content: str = "", config: str = "") -> None:
    write_model(models, name, content, config)
    if file != "model.py":
        (models / name / "1" / "model.py").rename(models / name / "1" / file)


def run(naiad: Path, *words: str | Path, **environment: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of the command with these words."""
    ran = subprocess.run([naiad, *words], capture_output=True, text=True, check=False, env=environment or None)
    return ran.returncode, ran.stdout, ran.stderr


def reasons_of(checked: str) -> dict[str, str]:
    """What `naiad check` said of each model that has a problem."""
    lines = checked.splitlines()
    return {line.partition(":")[0]: lines[at + 1] for at, line in enumerate(lines) if line.endswith(": 1 problem")}


def test_models_of_missing_plugins_say_what_to_install_and_the_others_are_served(
    serve: "Callable[..., ServerProcess]", without_plugins: Path, models: Path
) -> None:
    put(models, "net", "model.pt")
    put(models, "trees", "model.onnx")

    server = serve(models, "--exit-on-error=false", naiad=without_plugins, frontends=["http"])
    url = server.url
    _, answer = infer(url, "double", 1, 2)
    index = {each["name"]: each for each in ask(f"{url}/v2/repository/index", {})[1]}

    assert answer["outputs"][0]["data"] == [2, 4]
    assert (index["net"]["state"], index["trees"]["state"]) == ("UNAVAILABLE", "UNAVAILABLE")
    assert hint_of_checkout("naiad-torch", "[cpu]") in index["net"]["reason"]
    assert hint_of_checkout("naiad-onnx", "[cpu]") in index["trees"]["reason"]


def test_a_server_that_may_not_start_without_a_model_ends_with_what_to_install_for_each(
    serve: "Callable[..., ServerProcess]", without_plugins: Path, models: Path
) -> None:
    put(models, "net", "model.pt")
    put(models, "graph", "model.savedmodel")

    server = serve(models, naiad=without_plugins, frontends=["http"])
    status = server.exit_status()

    hints = {
        "graph": hint_of_checkout("naiad-tensorflow", "[cpu]"),
        "net": hint_of_checkout("naiad-torch", "[cpu]"),
    }
    assert status == 1
    for name, hint in hints.items():
        assert [hint in line for line in server.lines if f"model '{name}'" in line] == [True]
    assert "fix graph, net, or add" in server.lines[-1]


def test_every_model_file_that_is_known_is_answered_with_its_plugin(without_plugins: Path, models: Path) -> None:
    others = {known.file: known for known in KNOWN_FORMATS if known.backend not in ("python", "custom")}
    for file in others:
        put(models, file.replace(".", "_"), file)

    status, checked, _ = run(without_plugins, "check", models)

    message = reasons_of(checked)
    assert status == 1
    assert "double: ok\n" in checked
    assert set(message) == {file.replace(".", "_") for file in others}
    for file, known in others.items():
        said = message[file.replace(".", "_")]
        assert f"the backend '{known.backend}' for its file '{file}'" in said
        assert ": pip install -e '" in said


def test_the_page_on_configurations_lists_every_model_file_with_its_backend() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()

    missing = [
        known
        for known in KNOWN_FORMATS
        if f"| `{known.file}` | `{known.backend}` | {f'`{known.platform}`' if known.platform else ''}" not in page
    ]

    assert missing == []


def test_files_of_two_frameworks_are_reported_with_the_one_that_serves_the_model(models: Path) -> None:
    put(models, "chosen", "model.py", DOUBLE, 'backend: "python"')
    tensors = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["y"])], "negate", tensors[:1], tensors[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    for name in ("double", "chosen"):
        onnx.save(model, models / name / "1" / "model.onnx")

    status, checked, complaints = run(Path(sys.executable).with_name("naiad"), "check", models)

    assert (status, checked) == (0, "chosen: ok\ndouble: ok\n2 models, 0 with problems\n")
    (complaint,) = complaints.splitlines()
    assert complaint.startswith("model 'double' ")
    assert "model.onnx (onnxruntime) and model.py (python)" in complaint
    assert "served by onnxruntime" in complaint


def test_files_of_two_frameworks_whose_first_has_no_plugin_offer_the_other(without_plugins: Path, models: Path) -> None:
    (models / "double" / "1" / "model.pt").touch()

    _, checked, _ = run(without_plugins, "check", models)

    reason = reasons_of(checked)["double"]
    assert "the backend 'pytorch' for its file 'model.pt'" in reason
    assert "set 'backend' to 'python'" in reason
    assert "'model.py'" in reason


def test_a_plugin_without_its_framework_says_what_to_install_for_complete_configurations_too(
    without_frameworks: Path, tmp_path: Path
) -> None:
    for backend, file, _, _ in FRAMEWORKS:
        put(tmp_path, backend, file, config=COMPLETE.format(chosen=f'backend: "{backend}"'))

    _, checked, _ = run(without_frameworks, "check", tmp_path)
    _, listed, _ = run(without_frameworks, "plugins")

    message = reasons_of(checked)
    rows = {line.split("\t")[1].partition(" ")[0]: line.split("\t")[-1] for line in listed.splitlines()}
    for (backend, _, named, plugin), module in zip(FRAMEWORKS, MODULES, strict=True):
        assert f"{plugin} needs {named}, " in message[backend]
        assert f"pip install '{plugin}[cpu]'" in message[backend]
        assert rows[plugin] == f"{backend} ({module} is not installed: pip install '{plugin}[cpu]')"


def test_plugins_that_run_on_several_frameworks_say_which_to_install(without_frameworks: Path, tmp_path: Path) -> None:
    put(tmp_path, "net", "model.netdef")

    _, checked, _ = run(without_frameworks, "check", tmp_path)
    _, listed, _ = run(without_frameworks, "plugins")

    report = reasons_of(checked)
    assert "naiad-caffe2 needs ONNX Runtime, " in report["net"]
    assert "pip install 'naiad-caffe2[cpu]'" in report["net"]
    assert "tensorrt (tensorrt is not installed: pip install 'naiad-tensorrt[tensorrt]')" in listed
    assert "caffe2 (onnxruntime is not installed: pip install 'naiad-caffe2[cpu]')" in listed


def test_a_framework_that_is_installed_and_broken_is_reported_with_its_version(
    without_frameworks: Path, tmp_path: Path
) -> None:
    packages, models = tmp_path / "packages", tmp_path / "models"
    for (backend, file, _, _), module in zip(FRAMEWORKS, MODULES, strict=True):
        put(models, backend, file)
        (packages / module).mkdir(parents=True)
        (packages / module / "__init__.py").write_text("raise OSError('libgreat.so: no such library')")
        (packages / f"{module}-9.9.dist-info").mkdir()
        (packages / f"{module}-9.9.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {module}\nVersion: 9.9\n"
        )

    _, checked, _ = run(without_frameworks, "check", models, PYTHONPATH=str(packages))
    _, listed, complaints = run(without_frameworks, "plugins", PYTHONPATH=str(packages))

    message = reasons_of(checked)
    for (backend, _, named, plugin), module in zip(FRAMEWORKS, MODULES, strict=True):
        assert f"{plugin} needs {named}, " in message[backend]
        assert f"{module} 9.9" in message[backend]
        assert "(OSError: libgreat.so: no such library)" in message[backend]
        assert f"{backend} ({module} 9.9)" in listed
    assert complaints == ""
