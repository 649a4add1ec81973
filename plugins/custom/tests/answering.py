"""Triton-style models that answer through response senders, written by a test."""

from naiad.backend import Batch
from naiad_testing.backends import CollectingSender

ONE = 'input { name: "X" data_type: TYPE_INT64 dims: 1 } output { name: "Y" data_type: TYPE_INT64 dims: 1 }'
MANY = f"{ONE} model_transaction_policy {{ decoupled: true }}"

HEAD = """
    import asyncio
    import threading
    import numpy as np
    import triton_python_backend_utils as pb_utils

    FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
    GO, HERE = threading.Event(), threading.Event()
    SEEN = []

    def number(request):
        return int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0])

    def response(value):
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([value]))])
"""


def written(folder, execute: str, config: str = MANY, more: str = "", definition: str = "def"):
    """The model's folder, with that body of execute, and `more` in its class."""
    lines = [HEAD, "    class TritonPythonModel:", f"        {definition} execute(self, requests):"]
    lines += [f"            {line}" for line in execute.strip().splitlines()]
    lines += [f"        {line}" for line in more.strip().splitlines()]
    folder.write("\n".join(lines), config)
    return folder.path


def numbers(stream) -> list[int]:
    return [outputs["Y"].item() for outputs in stream]


def execute(instance, batch, *senders: CollectingSender):
    return instance.execute(Batch(batch.requests, batch.sizes, senders.__getitem__))
