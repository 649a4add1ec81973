"""Gives every input back as the output of the same ending."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse(list(map(self._turned, request.inputs()))) for request in requests]

    def _turned(self, tensor):
        name = tensor.name().replace("IN", "OUT", 1)
        if name == "OUT_BF16":
            return pb_utils.Tensor.from_dlpack(name, tensor.to_dlpack())
        return pb_utils.Tensor(name, tensor.as_numpy())
