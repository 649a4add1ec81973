"""Takes as many milliseconds as the request says."""

import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "MILLISECONDS").as_numpy()
        time.sleep(int(array.ravel()[0]) / 1000)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)])
