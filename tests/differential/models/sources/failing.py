"""Goes wrong in the way that the request asks for."""

import numpy as np

import triton_python_backend_utils as pb_utils

CODES = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED")


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()) for request in requests]

    def _answer(self, values):
        how = int(values[0])
        if how >= 10:
            code = getattr(pb_utils.TritonError, CODES[how - 10])
            return pb_utils.InferenceResponse([], pb_utils.TritonError("as asked for", code))
        if how == 1:
            raise ValueError("raised as asked for")
        if how == 2:
            return pb_utils.InferenceResponse([], pb_utils.TritonError("without a code"))
        outputs = {
            0: [("OUT", values)],
            3: [],
            4: [("OUT", values.astype(np.float32))],
            5: [("OTHER", values)],
            6: [("OUT", np.array([6, 6], np.int32))],
            7: [("OUT", values), ("OUT", values + 1)],
        }[how]
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, value) for name, value in outputs])
