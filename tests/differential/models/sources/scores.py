"""The same five numbers as scores with labels, as whole numbers, as flags and as text."""

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        outputs = {
            "SCORES": lambda: array,
            "RANKS": lambda: array.astype(np.int32),
            "FLAGS": lambda: array > 0,
            "NAMES": lambda: np.array([[str(value).encode() for value in row] for row in array.tolist()], dtype=object),
        }
        requested = request.requested_output_names()
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, outputs[name]()) for name in outputs if name in requested]
        )
