"""Models in processes, and a server in the test's own process that serves them."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad_testing import Client, serve

ADD = """
    import os, signal, sys, time
    import numpy as np
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def execute(self, requests):
            responses = []
            for request in requests:
                x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                BODY
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + 1)]))
            return responses
"""
TENSORS = """
    input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }
"""
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[Client]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write an isolated model of the backend `python`; `body` is what the plain one does with each `x`."""

    def written(name: str, code: str = "", config: str = TENSORS, body: str = "pass", **parameters: str) -> Path:
        folder = tmp_path / "models" / name
        (folder / "1").mkdir(parents=True, exist_ok=True)
        source = textwrap.dedent(code or ADD).replace("BODY", textwrap.indent(body, " " * 12).lstrip())
        (folder / "1" / "model.py").write_text(source)
        text = 'backend: "python"\n' + textwrap.dedent(config)
        for key, value in {"isolation": "process", **parameters}.items():
            text += f'\nparameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        (folder / "config.pbtxt").write_text(text)
        return folder

    return written


def children() -> list[int]:
    """The processes that this one has started, those that ended and were not waited for included."""
    own: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            own |= set(map(int, (task / "children").read_text().split()))
    return sorted(own)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """No process stays when a test is over."""
    before = children()
    yield
    assert children() == before


@pytest.fixture
def served() -> Serve:
    """Serve models with all installed plugins."""

    def start(*models: Path, **options: Any) -> AbstractContextManager[Client]:
        return serve(*models, options={name.replace("_", "-"): value for name, value in options.items()})

    return start


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with numpy, and with a module that the server lacks."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "only_here.py").write_text("NUMBER = 41")
    numpy = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (numpy / name).exists():
            (packages / name).symlink_to(numpy / name)
    return folder
