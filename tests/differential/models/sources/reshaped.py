"""Multiplies a 2x2 matrix by a scalar, and tells the shapes that it has seen."""

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        scalar = pb_utils.get_input_tensor_by_name(request, "SCALAR").as_numpy()
        seen = np.array([[*array.shape[1:], scalar.ndim]] * len(array), np.int64)
        product = array * scalar.reshape(-1, 1, 1)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", product), pb_utils.Tensor("SEEN", seen)])
