"""The install steps of deploy/Containerfile in an empty environment, which needs no container engine."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..house.workspace import members
from ..written import ECHO, infer, write_model

if TYPE_CHECKING:
    from ..conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "deploy" / "Containerfile").read_text().replace("\\\n", " ")
ARGUMENTS = dict(re.findall(r"^ARG (\w+)=(\S+)$", TEXT, re.MULTILINE))
STEPS = [step for step in re.findall(r"^RUN (.*)$", TEXT, re.MULTILINE) if "pip" in step]
MOST_SECONDS = 400


def test_the_build_takes_every_member() -> None:
    (build,) = (step for step in STEPS if " wheel " in step)
    built = {folder for pattern in build.split() if pattern.endswith("*/") for folder in ROOT.glob(pattern)}

    assert {member.folder for member in members()} <= built


@pytest.mark.timeout(2 * MOST_SECONDS)
def test_the_install_steps_give_an_entry_point_that_serves_models(tmp_path: Path, serve: "Serve") -> None:
    source, environment = tmp_path / "source", tmp_path / "environment"
    source.mkdir()
    copying = f"git ls-files -z | xargs -0 tar -c | tar -x -C {shlex.quote(str(source))}"
    subprocess.run(copying, shell=True, cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    tools = [environment / "bin" / "python", "-m", "pip", "install", "-q", "hatchling", "setuptools", "wheel"]
    subprocess.run(tools, check=True)
    # without a build environment for each member, which would be most of the time
    variables = {
        **os.environ,
        **ARGUMENTS,
        "PIP_NO_BUILD_ISOLATION": "false",
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
    }

    for step in STEPS:
        command = step.replace("/wheels", str(tmp_path / "wheels"))
        done = subprocess.run(
            command,
            shell=True,
            cwd=source,
            env=variables,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"

    for command in ("naiad", "tritonserver"):
        help_text = subprocess.run(
            [environment / "bin" / command, *(["serve"] if command == "naiad" else []), "--help"],
            capture_output=True,
            text=True,
            timeout=60,
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
