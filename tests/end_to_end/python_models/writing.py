"""Model files of Triton's Python backend, written by a test; input X and output Y are INT64 of one element."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

from .. import models

_HEAD = """
import asyncio
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def value(tensors, name="X"):
    return int(next(each for each in tensors if each.name() == name).as_numpy()[0])


def answer(number):
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([number]))])


def asked(model, number):
    inputs = [pb_utils.Tensor("X", np.array([number]))]
    return pb_utils.InferenceRequest(model_name=model, inputs=inputs, requested_output_names=["Y"])
"""
_TENSORS = 'input { name: "X" data_type: TYPE_INT64 dims: 1 } output { name: "Y" data_type: TYPE_INT64 dims: 1 }'
DECOUPLED = "model_transaction_policy { decoupled: true }"


@dataclass(frozen=True)
class PythonModel:
    """The body of execute, what stands above the class, other methods, and more configuration."""

    execute: str
    above: str = ""
    methods: str = ""
    config: str = ""
    definition: str = "def"
    tensors: str = _TENSORS

    def write(self, repository: Path, name: str) -> None:
        """Write it into the repository."""
        lines = [
            _HEAD,
            dedent(self.above),
            "class TritonPythonModel:",
            indent(dedent(self.methods), "    "),
            f"    {self.definition} execute(self, requests):",
            indent(dedent(self.execute), "        "),
        ]
        models.write(repository, name, "\n".join(lines), f"{self.tensors}\n{self.config}")
