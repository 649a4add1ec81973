"""Models for the tests of the client library, beside those of all end-to-end tests."""

from pathlib import Path

from .. import models

WHOLE = """
import json

import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        report = {
            "request_id": request.request_id(),
            "sequence_id": request.correlation_id(),
            "flags": request.flags(),
            "timeout": request.timeout(),
            "outputs": sorted(request.requested_output_names()),
            "parameters": json.loads(request.parameters()),
        }
        text = np.array([json.dumps(report)], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("REPORT", text)])
"""


def write_all(repository: Path, _events: Path) -> None:
    """`whole` answers with all that its request says, in two outputs of which a request may ask for one."""
    config = models.triton_config({"x": "FP32"}, {"REPORT": "BYTES", "y": "FP32"}, "1")
    models.write(repository, "whole", WHOLE, config)
