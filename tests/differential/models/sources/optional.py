"""A plus B, or plus ten where there is no B."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        a = pb_utils.get_input_tensor_by_name(request, "A").as_numpy()
        b = pb_utils.get_input_tensor_by_name(request, "B")
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", a + (10 if b is None else b.as_numpy()))])
