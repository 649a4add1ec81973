"""The sum of each sequence so far, and what the request, its control tensors and the size of its batch say."""

import json

import numpy as np

import triton_python_backend_utils as pb_utils

CONTROLS = ("START", "END", "READY", "ID")


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self._answer(request, len(requests)) for request in requests]

    def _answer(self, request, rows):
        arrays = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        tensors = {name: pb_utils.get_input_tensor_by_name(request, name) for name in CONTROLS}
        controls = {name: tensor.as_numpy() for name, tensor in tensors.items() if tensor is not None}
        sequence = request.correlation_id()
        started = request.flags() & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
        total = arrays if started else self.sums.get(sequence, 0) + arrays
        if sequence:
            self.sums[sequence] = total.copy()
        report = {name: [str(array.dtype), array.shape, self._plain(array)] for name, array in controls.items()}
        report |= {"flags": request.flags(), "correlation_id": sequence, "rows": rows}
        text = np.array([json.dumps(report, sort_keys=True).encode()], dtype=object).reshape(arrays.shape)
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", total), pb_utils.Tensor("REPORT", text)])

    def _plain(self, array):
        return [each.decode() if isinstance(each, bytes) else each for each in array.ravel().tolist()]
