"""The install steps of deploy/Containerfile and of docs/deploy.md in empty environments, without a container engine."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from ..environments import (
    UNCHECKED,
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
from ..house.workspace import Member, members
from ..reading import blocks_of
from ..written import ECHO, infer, write_model

if TYPE_CHECKING:
    from ..conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "deploy" / "Containerfile").read_text().replace("\\\n", " ")
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
ARGUMENTS = dict(re.findall(r"^ARG (\w+)=(\S+)$", TEXT, re.MULTILINE))
STEPS = [step for step in re.findall(r"^RUN (.*)$", TEXT, re.MULTILINE) if "pip" in step]
BUILDING = ("pip", "hatchling")
"""What the image has, and what pip would fetch to build a wheel."""
BUILT_HERE = ("naiad", "naiad-shared-memory", "naiad-http")
"""A member of each group, of which one has C; pip takes half a second for each, and all are built alike."""


def test_the_build_takes_every_member() -> None:
    (build,) = (step for step in STEPS if " wheel " in step)
    built = {folder for pattern in build.split() if pattern.endswith("*/") for folder in ROOT.glob(pattern)}

    assert {member.folder for member in members()} <= built


def test_the_build_installs_what_builds_the_wheels_once() -> None:
    (build,) = (step for step in STEPS if " wheel " in step)
    backends = {
        requirement.split(">")[0]
        for member in members()
        for requirement in tomllib.loads((member.folder / "pyproject.toml").read_text())["build-system"]["requires"]
    }

    assert "--no-build-isolation" in build.split()
    assert backends <= set(build.split("&&")[0].split())


def is_sent(path: Path) -> bool:
    """Whether a file below the repository goes into the image: the last pattern that matches it or its folder counts.

    The patterns are those of .dockerignore, of which `**/` matches any folders, and `*` all but a slash.
    """
    sent = True
    for line in IGNORED:
        pattern = re.escape(line.removeprefix("!")).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        if re.match(rf"{pattern}(?:/|$)", str(path.relative_to(ROOT))):
            sent = line.startswith("!")
    return sent


def test_the_image_gets_the_sources_of_every_member_and_nothing_else() -> None:
    for member in members():
        files = [path for path in (member.folder / "src").rglob("*") if path.is_file() and path.suffix != ".so"]
        sources = [member.folder / "pyproject.toml", *(path for path in files if path.parent.name != "__pycache__")]
        assert [path for path in sources if not is_sent(path)] == []
        others = ("tests", "build", "dist", "src/a/__pycache__/a.pyc", "src/a/built.so")
        assert [name for name in others if is_sent(member.folder / name)] == []
    groups = {member.folder.parent for member in members()}
    assert {path for path in ROOT.iterdir() if is_sent(path)} == groups


def test_docker_and_podman_read_the_same_file() -> None:
    """podman prefers a .containerignore to .dockerignore, and both prefer one beside the Containerfile."""
    others = [ROOT / ".containerignore", *(ROOT / "deploy").glob("Containerfile.*ignore")]

    assert [path for path in others if path.exists()] == []


@pytest.fixture
def index_of_a_stranger(tmp_path: Path) -> Iterator[str]:
    """The URL of a package index with a newer version of a member, and nothing else."""
    folder = tmp_path / "index" / "naiad-http"
    folder.mkdir(parents=True)
    parts = {"METADATA": "Metadata-Version: 2.1\nName: naiad-http\nVersion: 0.1.99\n", "RECORD": ""}
    parts["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / "naiad_http-0.1.99-py3-none-any.whl", "w") as wheel:
        for name, text in parts.items():
            wheel.writestr(f"naiad_http-0.1.99.dist-info/{name}", text)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path / "index"))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def installed_members() -> list[Member]:
    """The members that the image has, with the extras and the distributions that the Containerfile names."""
    extras = [{"extra": extra} for extra in ARGUMENTS["EXTRAS"].split(",")]
    chosen = [
        each for each in map(Requirement, requires("naiad")) if each.marker and any(map(each.marker.evaluate, extras))
    ]
    names = members_of(["naiad", *ARGUMENTS["ALSO"].split(), *(each.name for each in chosen)])
    return [member for member in members() if member.distribution in names]


def link_what_others_publish(environment: Path) -> None:
    """Put into an environment what the members need beside each other, and what builds their wheels."""
    packages = packages_in(environment)
    of_members = (needed(requires(member.distribution)) for member in installed_members())
    for distribution in needed(BUILDING) | needed([f"naiad[{ARGUMENTS['EXTRAS']}]"]).union(*of_members):
        link(distribution, packages)


def install_as_the_page_says(environment: Path, wheels: Path) -> None:
    """Run the page's commands for one machine, with other folders; their `naiad` then has a backend for ONNX.

    Python would take six seconds to put pip into the environment: it gets that of the tests.
    """
    (page,) = (block.text for block in blocks_of("deploy.md") if "-m venv" in block.text)
    create, install = page.replace("/opt/naiad", str(environment)).replace("dist ", f"{wheels} ").splitlines()
    variables = {
        **os.environ,
        **UNCHECKED,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_COMPILE": "false",
    }
    subprocess.run(f"{create} --without-pip", shell=True, check=True, env=variables)
    link_what_others_publish(environment)
    write_commands(environment / "bin" / "python", "pip")
    subprocess.run(install, shell=True, check=True, env=variables, stdout=subprocess.DEVNULL)
    check(environment / "bin" / "python")
    plugins = subprocess.run([environment / "bin" / "naiad", "plugins"], capture_output=True, text=True, check=True)
    assert "naiad-onnx" in plugins.stdout


def test_the_install_steps_give_an_entry_point_that_serves_models(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, index_of_a_stranger: str, serve: "Serve"
) -> None:
    source, environment, wheels = tmp_path / "source", tmp_path / "environment", tmp_path / "wheels"
    python = empty(environment)
    link_what_others_publish(environment)
    wheels.mkdir()
    for member in installed_members():
        if member.distribution in BUILT_HERE:
            shutil.copytree(member.folder, source / member.name, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        else:
            shutil.copy(built_wheels(tmp_path_factory)[member.distribution], wheels)
    variables = {
        **os.environ,
        **UNCHECKED,
        **ARGUMENTS,
        "PIP_INDEX_URL": index_of_a_stranger,
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "PIP_NO_COMPILE": "false",  # pip's word for "without bytecode": `true` compiles
        "PATH": f"{python.parent}:{os.environ['PATH']}",
    }

    for step in STEPS:
        command = step.replace("/wheels", str(wheels))
        done = subprocess.run(command, shell=True, cwd=source, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
        if " wheel " in step:
            install_as_the_page_says(tmp_path / "opt" / "naiad", wheels)
    check(python)

    for command in ("naiad", "tritonserver"):
        help_text = subprocess.run(
            [environment / "bin" / command, *(["serve"] if command == "naiad" else []), "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "--http-port" in help_text.stdout
    write_model(tmp_path / "models", "echo", ECHO)
    server = serve(tmp_path / "models", naiad=environment / "bin" / "naiad")
    status, document = infer(server.url, "echo", 7)
    server.signal(signal.SIGTERM)

    assert (status, document["outputs"][0]["data"], server.exit_status()) == (200, [7.0], 0)


def test_the_image_runs_without_rights_and_what_the_entry_point_names() -> None:
    assert re.search(r"^USER 1000:1000$", TEXT, re.MULTILINE)
    assert 'ENTRYPOINT ["naiad"]' in TEXT
    assert 'CMD ["serve", "/models"]' in TEXT
