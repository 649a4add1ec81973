"""Model folders for the tests of real server processes, and requests to their models."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ECHO = """
from naiad_custom import FP32, Array, model

@model
def echo(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return x
"""

WAITS_TO_LOAD = """
from pathlib import Path

Path({entered!r}).write_text("in")
Path({gate!r}).read_text()
"""
"""Begins a model whose load says that it has begun, and waits until the test lets it through its Gate."""

WAITS_TO_ANSWER = """
from pathlib import Path

from naiad_custom import FP32, Array, model

@model
def waits(x: Array[FP32, 1]) -> Array[FP32, 1]:
    Path({entered!r}).write_text("in")
    Path({gate!r}).read_text()
    return x
"""
"""A model that does so with each request."""


class Gate:
    """Two named pipes: a model tells that it was entered, and waits until it is let through."""

    def __init__(self, folder: Path) -> None:
        self.paths = {name: str(folder / name) for name in ("entered", "gate")}
        for path in self.paths.values():
            os.mkfifo(path)

    def wait_until_entered(self) -> None:
        Path(self.paths["entered"]).read_text()

    def let_through(self) -> None:
        Path(self.paths["gate"]).write_text("go")


def write_model(repository: Path, name: str, source: str, config: str = "") -> Path:
    """The folder of a model with that model.py, and with that configuration or none."""
    folder = repository / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "1" / "model.py").write_text(source, encoding="utf-8")
    if config:
        (folder / "config.pbtxt").write_text(config, encoding="utf-8")
    return folder


def ask(url: str, request: dict[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
    """The status of the answer and its document: to a POST of a request as JSON, to a GET without one."""
    body = None if request is None else json.dumps(request).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def infer(url: str, model: str, *values: float, **more: Any) -> tuple[int, Any]:
    """The status and document of the answer of a model with the input x, FP32 of one dimension."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": list(values)}
    return ask(f"{url}/v2/models/{model}/infer", {**more, "inputs": [tensor]})
