"""The example repository as a clean clone has it and then built: once in a run of tests, for all of its processes."""

import fcntl
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

import pytest

from .environments import made_once

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
BUILT = ("*.onnx", "labels.txt", "__pycache__", "daylight", "life", "outline", "slug")
"""What building writes, beside what stands in the checkout; `tests/test_examples.py` compares."""


def built_examples(request: pytest.FixtureRequest) -> Path:
    """The built repository, which tests must leave as it is.

    Building takes 14 s of a processor: pytest's cache keeps what was built for further runs with the same examples and
    constraints.
    """
    kept = request.config.cache.mkdir(f"examples-{_version()}")
    factory = request.getfixturevalue("tmp_path_factory")
    return made_once(factory, "examples", lambda folder: _build_or_copy(folder, kept)) / "models"


def _version() -> str:
    """A digest of everything that building reads."""
    digest = sha256((ROOT / "constraints.txt").read_bytes())
    for path in sorted(EXAMPLES.rglob("*")):
        name = path.relative_to(EXAMPLES)
        if path.is_file() and not any(fnmatch(part, left_out) for part in name.parts for left_out in (*BUILT, ".*")):
            digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build_or_copy(folder: Path, kept: Path) -> None:
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / "models").exists():
            new = kept / "new"
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(EXAMPLES / "models", new, ignore=shutil.ignore_patterns(*BUILT))
            build(new)
            new.rename(kept / "models")
    shutil.copytree(kept / "models", folder / "models")


def build(models: Path) -> str:
    """What `examples/build.py` says when it builds into that repository."""
    command = [sys.executable, EXAMPLES / "build.py", models]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
