"""Tells what a request says beside its tensors."""

import json

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        report = {
            "id": request.request_id(),
            "parameters": json.loads(request.parameters()),
            "correlation_id": request.correlation_id(),
            "flags": request.flags(),
            "timeout": request.timeout(),
            "outputs": sorted(request.requested_output_names()),
        }
        text = np.array([json.dumps(report, sort_keys=True).encode()], dtype=object)
        return pb_utils.InferenceResponse([pb_utils.Tensor("REPORT", text)])
