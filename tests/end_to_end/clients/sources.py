"""Models for the tests of the client library, beside those of all end-to-end tests."""

from pathlib import Path

from .. import models

REPEAT = """
import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            self._answer(request, request.get_response_sender())

    def _answer(self, request, sender):
        count = int(pb_utils.get_input_tensor_by_name(request, "COUNT").as_numpy()[0])
        for index in range(abs(count)):
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("INDEX", np.array([index], np.int32))]))
        if count < 0:
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("counted below zero")))
        sender.send(flags=FINAL)
"""

PATIENT = """
import time
from pathlib import Path
from uuid import uuid4

import triton_python_backend_utils as pb_utils

TOLD = Path({told!r})

class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        (TOLD / f"began-{{uuid4().hex}}").touch()
        deadline = time.monotonic() + 30
        while not request.is_cancelled() and time.monotonic() < deadline:
            time.sleep(0.002)
        if request.is_cancelled():
            (TOLD / f"cancelled-{{uuid4().hex}}").touch()
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", x)])]
"""

WHOLE = """
import json

import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        told = {
            "request_id": request.request_id(),
            "sequence_id": request.correlation_id(),
            "flags": request.flags(),
            "timeout": request.timeout(),
            "outputs": request.requested_output_names(),
            "parameters": json.loads(request.parameters()),
        }
        text = np.array([json.dumps(told)], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", text)])
"""

_REPEAT_CONFIG = 'backend: "python" model_transaction_policy { decoupled: true }\n'


def write_all(repository: Path, told: Path) -> None:
    """`repeat` answers as often as it is asked to; `patient` waits until its request is cancelled, and tells both.

    `whole` answers with all that its request says, in two outputs of which a request may ask for one.
    """
    config = _REPEAT_CONFIG + models.tensors("input", {"COUNT": "INT32"}, "1")
    models.write(repository, "repeat", REPEAT, config + models.tensors("output", {"INDEX": "INT32"}, "1"))
    config = models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1")
    models.write(repository, "patient", PATIENT.format(told=str(told)), config)
    config = models.triton_config({"x": "FP32"}, {"TOLD": "BYTES", "y": "FP32"}, "1")
    models.write(repository, "whole", WHOLE, config)
