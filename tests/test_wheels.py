"""Each plugin works alone beside `naiad`, installed from wheels, with what it declares to need and nothing else.

The wheels are built once in a run of tests, and installed once, into an environment that has nothing else. Those that a
test is about are linked from there into an environment of its own, with exactly the distributions that the wheels' own
metadata asks for, and what these ask for, from the environment of the tests; uv checks that nothing is missing. Nothing
is downloaded. The README's own command is run by pip.
"""

import email
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import onnx
import pytest
import tritonclient.grpc as triton
from packaging.requirements import Requirement

from .environments import (
    PIP,
    UNCHECKED,
    Wheels,
    built_wheels,
    check,
    empty,
    link,
    members_of,
    needed,
    packages_in,
    requires,
    write_commands,
)
from .house.workspace import Member, members
from .reading import Reader, packages_of

if TYPE_CHECKING:
    from conftest import ServerProcess

ROOT = Path(__file__).parents[1]
PLUGINS = [member for member in members() if member.group == "plugins" and member.distribution != "naiad-ray"]
"""All but the one whose framework has an environment of its own."""

GUARD = "naiad_shared_memory/libguard.so"

PROVE = """
import runpy, sys
proof, repository, naiad = sys.argv[1:]
sys.argv[1:] = [repository]
runpy.run_path(proof, run_name="__main__")
print("LISTED")
sys.argv[1:] = ["plugins"]
runpy.run_path(naiad, run_name="__main__")
"""
"""Runs the program that proves a plugin, and then `naiad plugins` in the same process, which has imported the rest."""

GREETINGS = ("WARNING: All log messages before absl", "I0000 ")
"""What TensorFlow writes when it is imported, past every log."""

FRAMEWORKS = {
    "naiad-caffe2": "cpu",
    "naiad-onnx": "cpu",
    "naiad-openvino": "cpu",
    "naiad-tensorflow": "cpu",
    "naiad-tensorrt": "rtx",
    "naiad-torch": "cpu",
}
"""The extra that brings the framework of each plugin that has one."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return built_wheels(tmp_path_factory)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A model repository with the ONNX model `double`, FP32[2] to FP32[2]."""
    folder = tmp_path / "repository"
    (folder / "double" / "1").mkdir(parents=True)
    tensor = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "x"], ["y"])],
        "double",
        [onnx.helper.make_tensor_value_info("x", tensor, [2])],
        [onnx.helper.make_tensor_value_info("y", tensor, [2])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "double" / "1" / "model.onnx")
    return folder


def proof_of(member: Member) -> Path:
    """The program that proves a plugin."""
    return member.folder / "tests" / "proof.py"


def environment(folder: Path, wheels: Wheels, member: str, extras: Iterable[str] = ()) -> Path:
    """The Python of a new environment with a member, the command, the test kit and what they need, from wheels."""
    python, packages = empty(folder), packages_in(folder)
    for name in members_of(["naiad-cli", "naiad-testing", member]):
        link(name, packages, wheels.packages)
        write_commands(python, name, wheels.packages)
    for wheel in metadata.distributions(path=[str(packages)]):
        for distribution in needed(wheel.requires or (), extras):
            link(distribution, packages)
    check(python)
    return python


def test_the_copy_of_the_sources_has_every_file_however_many_there_are(tmp_path: Path) -> None:
    planned = subprocess.run(["make", "-n", "dist"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (copying,) = [line for line in planned.splitlines() if "git ls-files" in line]
    names = {f"{number:0200d}" for number in range(1000)}  # more than xargs gives to one command
    for name in names:
        (tmp_path / name).touch()
    target = tmp_path / "build" / "source"
    target.mkdir(parents=True)

    for command in ("git init --quiet", "git add .", copying):
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)

    assert {path.name for path in target.iterdir()} == names


@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_wheel_says_what_it_is_and_brings_its_licence(member: Member, wheels: Wheels) -> None:
    with ZipFile(wheels[member.distribution]) as wheel:
        names = wheel.namelist()
        (text,) = [wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
        (licence,) = [wheel.read(name) for name in names if name.endswith(".dist-info/licenses/LICENSE")]

    described = email.message_from_string(text)
    assert described["License-Expression"] == "Apache-2.0"
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert any(name.endswith("/py.typed") for name in names)
    assert all(described[name] for name in ("Summary", "Keywords", "Author"))
    kinds = described.get_all("Classifier")
    assert {"Operating System :: POSIX :: Linux", "Programming Language :: Python :: 3.11", "Typing :: Typed"} <= {
        *kinds
    }
    assert described.get_payload().startswith(f"# {member.distribution}\n")


def test_the_kernel_is_pure_python(wheels: Wheels) -> None:
    assert wheels["naiad"].name.endswith("-py3-none-any.whl")


def test_shared_memory_has_its_guard_where_there_is_a_compiler_and_does_without_where_there_is_none(
    wheels: Wheels, tmp_path: Path
) -> None:
    member = ROOT / "plugins" / "shared-memory"
    command = [*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, member]
    subprocess.run(command, check=True, env={**os.environ, "CC": str(tmp_path / "none")})

    (without,) = tmp_path.glob("*.whl")
    assert without.name.endswith("-py3-none-any.whl")
    assert GUARD not in ZipFile(without).namelist()
    if shutil.which("cc"):
        assert "-py3-none-linux_" in wheels["naiad-shared-memory"].name
        assert GUARD in ZipFile(wheels["naiad-shared-memory"]).namelist()


def test_the_readme_works_with_what_its_extras_install(wheels: Wheels, tmp_path: Path) -> None:
    (installs,) = packages_of("../README.md")
    python, packages = empty(tmp_path / "venv"), packages_in(tmp_path / "venv")
    extras = Requirement(installs).extras
    requirements = [Requirement(text) for text in requires("naiad")]
    chosen = [each for each in requirements if each.marker and any(each.marker.evaluate({"extra": e}) for e in extras)]
    for member in members_of(each.name for each in chosen):
        for distribution in needed(requires(member)) | needed(
            f"{each.name}[{','.join(each.extras)}]" for each in chosen
        ):
            link(distribution, packages)
    index = {**os.environ, **UNCHECKED, "PIP_FIND_LINKS": str(wheels.folder)}
    subprocess.run([*PIP, "--python", python, "install", "-q", "--no-index", installs], check=True, env=index)
    check(python)
    reader = Reader(tmp_path / "reader", python.parent)
    celsius = "examples/models/celsius"  # those of frameworks have tests of their own
    shutil.copytree(ROOT / celsius, reader.folder / celsius)

    try:
        reader.follow("../README.md")
    finally:
        reader.stop()


def test_every_plugin_has_a_program_that_proves_it() -> None:
    assert [member.name for member in PLUGINS if not proof_of(member).is_file()] == []


@pytest.mark.parametrize("member", PLUGINS, ids=lambda member: member.distribution)
def test_a_plugin_works_alone_beside_the_kernel(
    member: Member, wheels: Wheels, repository: Path, tmp_path: Path
) -> None:
    distribution = member.distribution
    extras = [FRAMEWORKS[distribution]] if distribution in FRAMEWORKS else []

    python = environment(tmp_path / "venv", wheels, distribution, extras)
    command = [python, "-P", "-c", PROVE, proof_of(member), repository, python.with_name("naiad")]
    proof = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    complaints = [line for line in proof.stderr.splitlines() if not line.startswith(GREETINGS)]
    assert (proof.returncode, complaints) == (0, [])
    plugins = proof.stdout.partition("LISTED\n")[2]
    assert {line.split("\t")[1] for line in plugins.splitlines()[1:]} == {"naiad 0.1.0", f"{distribution} 0.1.0"}
    assert "skipped" not in plugins


def test_the_http_frontend_works_alone_beside_the_kernel(
    serve: "Callable[..., ServerProcess]", wheels: Wheels, tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv", wheels, "naiad-http")

    server = serve(tmp_path, "--model-control-mode=explicit", naiad=python.with_name("naiad"), frontends=["http"])

    with urllib.request.urlopen(f"{server.url}/v2/health/ready") as answer:
        assert answer.status == 200


def test_the_grpc_frontend_works_alone_beside_the_kernel(
    serve: "Callable[..., ServerProcess]", wheels: Wheels, tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv", wheels, "naiad-grpc")

    server = serve(tmp_path, "--model-control-mode=explicit", naiad=python.with_name("naiad"), frontends=["grpc"])
    target = server.wait_for(r"grpc frontend listens at grpc://(\S+:\d+)").group(1)

    with triton.InferenceServerClient(target) as client:
        assert client.is_server_ready()


def test_the_metrics_frontend_works_alone_beside_the_kernel(
    serve: "Callable[..., ServerProcess]", wheels: Wheels, tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv", wheels, "naiad-metrics")

    server = serve(tmp_path, "--model-control-mode=explicit", naiad=python.with_name("naiad"), frontends=["metrics"])
    url = server.wait_for(r"metrics frontend listens at (http://[^\s\"]+)").group(1)

    with urllib.request.urlopen(url) as answer:
        assert b"nv_cpu_utilization" in answer.read()


def test_the_kernel_works_alone(wheels: Wheels, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", wheels, "naiad")

    answer = subprocess.run(
        [python.parent / "naiad", "serve", "--http-port=1", tmp_path], capture_output=True, text=True, check=False
    )

    assert answer.returncode == 2
    assert answer.stderr == (
        "naiad serve: unknown option --http-port. It comes with naiad-http: "
        f"pip install --find-links '{wheels.folder}' 'naiad-http'.\n"
    )
