"""The example repository as a clean clone has it and then built: once in a run of tests, for all of its processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .environments import made_once

EXAMPLES = Path(__file__).parents[1] / "examples"
BUILT = ("*.onnx", "labels.txt", "__pycache__", "daylight", "life", "outline", "slug")
"""What building writes, beside what stands in the checkout; `tests/test_examples.py` compares."""


def built_examples(factory: pytest.TempPathFactory) -> Path:
    """The built repository, which tests must leave as it is."""
    return made_once(factory, "examples", _copy_and_build) / "models"


def _copy_and_build(folder: Path) -> None:
    shutil.copytree(EXAMPLES / "models", folder / "models", ignore=shutil.ignore_patterns(*BUILT))
    build(folder / "models")


def build(models: Path) -> str:
    """What `examples/build.py` says when it builds into that repository."""
    command = [sys.executable, EXAMPLES / "build.py", models]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
