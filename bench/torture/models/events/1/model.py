"""Answers with COUNT responses of SIZE bytes each, but with no more than 20 of no more than 2,000."""

import numpy as np

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count = int(pb_utils.get_input_tensor_by_name(request, "COUNT").as_numpy().flat[0])
            size = int(pb_utils.get_input_tensor_by_name(request, "SIZE").as_numpy().flat[0])
            for number in range(min(count, 20)):
                content = pb_utils.Tensor("OUTPUT0", np.full(max(0, min(size, 2000)), number, np.uint8))
                sender.send(pb_utils.InferenceResponse(output_tensors=[content]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
