"""Models in C and C++: the examples and the page on native code, built by this machine's compiler and really served."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

from naiad_custom.include import include_dir
from naiad_custom.shared_library import abi

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("make", "cc", "c++"))),
    reason="this machine has no make and C and C++ compiler to build with",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example repository, built by its Makefile."""
    folder = tmp_path_factory.mktemp("native") / "native"
    shutil.copytree(ROOT / "examples" / "native", folder, ignore=shutil.ignore_patterns("*.so"))
    command = ["make", "-s", "-C", folder, f"PYTHON={sys.executable}", "CC=cc -Werror", "CXX=c++ -Werror"]
    subprocess.run(command, check=True)
    return folder / "models"


def ask(
    server: client.InferenceServerClient, model: str, inputs: dict[str, list[list[float]]], **more: object
) -> object:
    supplied = []
    for name, values in inputs.items():
        array = np.array(values, np.float32)
        supplied.append(client.InferInput(name, list(array.shape), "FP32"))
        supplied[-1].set_data_from_numpy(array)
    return server.infer(model, supplied, **more)


def test_a_real_server_serves_the_examples(serve: "Serve", built: Path) -> None:
    process = serve(built)

    with client.InferenceServerClient(process.url.removeprefix("http://")) as server:
        config = server.get_model_config("add_sub_c")
        answer = ask(server, "add_sub_c", {"A": [[1, 2, 3, 4]] * 2, "B": [[1, 1, 1, 1], [2, 2, 2, 2]]})
        one, two = {"sequence_id": 7}, {"sequence_id": 8}
        means = [
            ask(server, "running_mean_cpp", {"VALUE": [[value]]}, **of, sequence_start=start).as_numpy("MEAN").item()
            for of, value, start in ((one, 1, True), (two, 10, True), (one, 2, False), (two, 30, False))
        ]
        with pytest.raises(InferenceServerException) as failed:
            ask(server, "running_mean_cpp", {"VALUE": [[np.nan]]}, **one)

    assert (config["max_batch_size"], [each["name"] for each in config["input"]]) == (32, ["A", "B"])
    assert answer.as_numpy("SUM").tolist() == [[2, 3, 4, 5], [3, 4, 5, 6]]
    assert answer.as_numpy("DIFFERENCE").tolist() == [[0, 1, 2, 3], [-1, 0, 1, 2]]
    assert means == [1, 10, 1.5, 20]
    assert (failed.value.status(), failed.value.message()) == ("400", "VALUE is not a number")


@pytest.mark.skipif(shutil.which("rustc") is None, reason="this machine has no Rust compiler")
def test_the_example_in_rust_is_served(serve: "Serve", built: Path) -> None:
    subprocess.run(["make", "-s", "-C", built.parent, "rust"], check=True)

    url = serve(built.parent / "rust").url.removeprefix("http://")
    with client.InferenceServerClient(url) as server:
        answer = ask(server, "negate_rust", {"x": [1, 2, 3]})

    assert answer.as_numpy("y").tolist() == [-1, -2, -3]


@pytest.mark.parametrize("scale", ["much", "1x", ""])
def test_a_wrong_parameter_is_reported_by_the_library_when_the_model_is_loaded(
    serve: "Serve", built: Path, tmp_path: Path, scale: str
) -> None:
    models = tmp_path / "models"
    shutil.copytree(built / "add_sub_c", models / "add_sub_c")
    config = models / "add_sub_c" / "config.pbtxt"
    config.write_text(config.read_text().replace('string_value: "1"', f'string_value: "{scale}"'))

    server = serve(models)

    server.wait_for("instance 'add_sub_c_0_0' of model 'add_sub_c': the parameter 'scale' is not a number")


def test_the_first_library_of_the_page_is_served(serve: "Serve", tmp_path: Path) -> None:
    page = (ROOT / "docs" / "native.md").read_text()
    source, config = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL).group(1) for kind in ("c", "pbtxt"))
    (tmp_path / "twice.c").write_text(source)
    version = tmp_path / "models" / "twice" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(config)
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", f"-I{include_dir()}"]
    subprocess.run(["cc", *flags, tmp_path / "twice.c", "-o", version / "libcustom.so"], check=True)

    url = serve(tmp_path / "models").url.removeprefix("http://")
    with client.InferenceServerClient(url) as server:
        answer = ask(server, "twice", {"x": [1, 2, 3]})

    assert answer.as_numpy("y").tolist() == [2, 4, 6]


def test_every_function_code_and_constant_of_the_header_is_on_the_page() -> None:
    page = (ROOT / "docs" / "native.md").read_text()
    header = (include_dir() / "naiad_custom.h").read_text()

    names = set(re.findall(r"\b(naiad_\w+)\(", header)) | set(re.findall(r"\bNAIAD_(?!CUSTOM|EXPORT)\w+", header))

    assert {name for name in names if name not in page} == set()
    assert f"1 << 32 | {abi.STAMP & 0xFFFFFFFF}" in page
