"""The sum so far of each sequence, as a model.py for Triton's Python backend keeps it: by correlation id."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {0: 0.0}  # 0 is a row without a request

    def execute(self, requests):
        responses = []
        for request in requests:
            array = pb_utils.get_input_tensor_by_name(request, "INPUT").as_numpy()
            sequence, flags = request.correlation_id(), request.flags()
            starts = flags & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
            total = array + (0.0 if starts else self.sums[sequence])  # fails where the sequence started elsewhere
            if flags & pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END:
                self.sums.pop(sequence, None)
            elif sequence:
                self.sums[sequence] = total
            responses.append(pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("OUTPUT", total)]))
        return responses
