"""The build of ONNX Runtime that has OpenVINO, in an environment of its own: its module is that of the usual build.

It takes two seconds where uv has that build already, the one thing here that is downloaded, and some 20 where not.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .environments import UV, link, needed, packages_in, requires, with_members

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "plugins" / "onnx" / "tests"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """A folder for an environment, which is removed afterwards: that build is 400 MB."""
    yield tmp_path / "venv"
    shutil.rmtree(tmp_path / "venv")


def test_the_accelerator_openvino_works_in_the_build_that_has_it(environment: Path) -> None:
    naiad = with_members(environment, ["naiad-onnx", "naiad-testing"])
    python = naiad.with_name("python")
    packages = packages_in(environment)
    for name in ("onnx", "pytest", "pytest-timeout"):
        for distribution in (name, *needed(requires(name))):
            link(distribution, packages)
    build = [UV, "pip", "install", "--python", python, "--no-deps", "--constraint", ROOT / "constraints.txt"]
    downloaded = subprocess.run([*build, "onnxruntime-openvino"], capture_output=True, text=True, check=False)
    if downloaded.returncode:
        pytest.skip(f"onnxruntime-openvino cannot be installed here: {downloaded.stderr.strip().splitlines()[-1]}")
    for distribution in needed(requires("onnxruntime")):
        link(distribution, packages)

    listed = subprocess.run([naiad, "plugins"], capture_output=True, text=True, check=True).stdout
    ran = subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", "-rs", TESTS / "test_openvino.py"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "onnxruntime (onnxruntime-openvino " in listed
    assert ran.returncode == 0, ran.stdout
    assert "SKIPPED" not in ran.stdout
