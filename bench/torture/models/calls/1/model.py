"""Calls a model that fails, and one that does not exist, with its own input; answers how many calls failed."""

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        tensor = pb_utils.get_input_tensor_by_name(request, "INPUT0")
        failed = 0
        for name in ("raises", "missing"):
            call = pb_utils.InferenceRequest(model_name=name, requested_output_names=["OUTPUT0"], inputs=[tensor])
            failed += call.exec().has_error()
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("OUTPUT0", np.array([failed], np.float32))])
