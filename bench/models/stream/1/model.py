"""Answers with COUNT responses of SIZE bytes each, one after the other, as a decoupled model.py of Triton's does it."""

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count = int(pb_utils.get_input_tensor_by_name(request, "COUNT").as_numpy()[0])
            size = int(pb_utils.get_input_tensor_by_name(request, "SIZE").as_numpy()[0])
            for number in range(count):
                content = pb_utils.Tensor("OUTPUT0", np.full(size, number % 256, np.uint8))
                sender.send(pb_utils.InferenceResponse(output_tensors=[content]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
