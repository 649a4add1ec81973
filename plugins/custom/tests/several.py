"""Several models in one repository, which call each other."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from naiad_testing import serve

from .answering import MANY, ONE

TRITON_HEAD = """
import asyncio
import json
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

def value_of(tensors, name="X"):
    return int(next(each for each in tensors if each.name() == name).as_numpy()[0])

def asked(model, value, **more):
    inputs = [pb_utils.Tensor("X", np.array([value]))]
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["Y"], inputs=inputs, **more)

def answer(value, **more):
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([value]))], **more)
"""


class Repository:
    """Models with input X and output Y, INT64[1], that tests write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def triton(
        self,
        name: str,
        execute: str,
        *,
        definition: str = "def",
        decoupled: bool = False,
        config: str = "",
        more: str = "",
    ) -> None:
        """A TritonPythonModel with that body of execute, and `more` in its class."""
        body = "\n".join(f"        {line}" for line in dedent(execute).strip().splitlines())
        members = "\n".join(f"    {line}" for line in dedent(more).strip().splitlines())
        code = (
            f"{TRITON_HEAD}\nclass TritonPythonModel:\n{members}\n    {definition} execute(self, requests):\n{body}\n"
        )
        self.write(name, code, (MANY if decoupled else ONE) + config)

    def native(self, name: str, code: str, config: str = "") -> None:
        """A model file with functions of `naiad_custom`."""
        head = (
            "import asyncio\nfrom collections.abc import AsyncIterator, Iterator\nimport numpy as np\n"
            "from naiad_custom import FP32, INT64, Array, AsyncServer, Server, model\n\n"
        )
        self.write(name, head + dedent(code), config)

    def write(self, name: str, code: str, config: str = "") -> None:
        folder = self.path / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.py").write_text(code, encoding="utf-8")
        (folder.parent / "config.pbtxt").write_text(f'backend: "python" {config}', encoding="utf-8")

    def double(self) -> None:
        """The model double: Y is twice X."""
        self.triton("double", "return [answer(2 * value_of(request.inputs())) for request in requests]")

    def count(self) -> None:
        """The decoupled model count: Y is 0, 1, ... up to X."""
        self.triton(
            "count",
            """
            for request in requests:
                sender = request.get_response_sender()
                for value in range(value_of(request.inputs())):
                    sender.send(answer(value))
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            """,
            decoupled=True,
        )

    def outer(self, execute: str, x: int = 1, *, options: Mapping[str, Any] | None = None, **more: Any) -> int:
        """Write the model outer with that body of execute, serve all models, and return its Y for X."""
        self.triton("outer", execute, **more)
        with serve(self.path, options=options) as client:
            return y(client["outer"].infer(X=[x]))


def y(outputs: Mapping[str, Any]) -> int:
    """The one value of Y."""
    results: int = outputs["Y"].item()
    return results
