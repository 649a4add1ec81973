"""Models in processes, and a server in the test's own process that serves them."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from naiad.errors import NaiadError
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
WITH_CODE = TENSORS + 'input { name: "CODE" data_type: TYPE_STRING dims: 1 }'
RUN_CODE = 'exec(pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0], globals())'
Write = Callable[..., Path]
Serve = Callable[..., AbstractContextManager[Client]]


def writes_into(repository: Path) -> Write:
    """Write an isolated model of the backend `python`; `body` is what the plain one does with each `x`."""

    def written(name: str, code: str = "", config: str = TENSORS, body: str = "pass", **parameters: str) -> Path:
        folder = repository / name
        (folder / "1").mkdir(parents=True, exist_ok=True)
        source = textwrap.dedent(code or ADD).replace("BODY", textwrap.indent(body, " " * 12).lstrip())
        (folder / "1" / "model.py").write_text(source)
        text = 'backend: "python"\n' + textwrap.dedent(config)
        for key, value in {"isolation": "process", **parameters}.items():
            text += f'\nparameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        (folder / "config.pbtxt").write_text(text)
        return folder

    return written


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a model into the test's own repository."""
    return writes_into(tmp_path / "models")


def until(check: Callable[[], object], seconds: float = 20.0) -> None:
    """Return when the check says yes."""
    end = monotonic() + seconds
    while not check():
        assert monotonic() < end
        sleep(0.02)


def children() -> list[int]:
    """The processes that this one has started, those that ended and were not waited for included."""
    own: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            own |= set(map(int, (task / "children").read_text().split()))
    return sorted(own)


def held() -> tuple[int, int, int]:
    """How many descriptors, arenas and threads this process has."""
    maps = Path("/proc/self/maps").read_text()
    threads = len(list(Path("/proc/self/task").iterdir()))
    return len(list(Path("/proc/self/fd").iterdir())), maps.count("naiad-arena"), threads


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """No process stays when a test is over; that of a model which several tests share may have been replaced."""
    before = children()
    yield
    assert len(children()) == len(before)


@pytest.fixture
def served() -> Serve:
    """Serve models with all installed plugins."""

    def start(*models: Path, **options: Any) -> AbstractContextManager[Client]:
        return serve(*models, options={name.replace("_", "-"): value for name, value in options.items()})

    return start


class IsolatedCode:
    """A model that runs the code of each request in its process, beside one in the server that answers as usual."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._deaths = 0

    def run(self, code: str, x: Any = (1, 1, 1, 1)) -> np.ndarray:
        """`x` and 1. Raises what the code comes to."""
        answer: np.ndarray = self._client["isolated"].infer(X=np.asarray(x, np.float32), CODE=[code])["Y"]
        return answer

    def check_replaced(self, seconds: float = 60.0) -> None:
        """A process that has died is replaced, later and later in a row: after 1.5 s in all, load the model anew."""
        until = monotonic() + seconds
        while True:
            try:
                assert self.run("").tolist() == [2] * 4
                break
            except NaiadError:
                assert monotonic() < until
                sleep(0.02)
        self._deaths += 1
        if self._deaths % 5 == 0:
            self._client.wait_for(lambda server: server.unload("isolated"))
            self._client.wait_for(lambda server: server.load("isolated"))

    def check_server(self) -> None:
        """The other model answers in the server's own process."""
        assert self._client["beside"].infer(X=np.ones(1, np.float32))["Y"].tolist() == [os.getpid() + 1]


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IsolatedCode]:
    """One isolated model for the tests of a module; each of them leaves a process that answers."""
    write, before = writes_into(tmp_path_factory.mktemp("models")), children()
    models = (
        write("isolated", config=WITH_CODE, body=RUN_CODE),
        write("beside", body="x = x * 0 + os.getpid()", isolation="thread"),
    )
    with serve(*models) as client:
        yield IsolatedCode(client)
    assert children() == before


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
