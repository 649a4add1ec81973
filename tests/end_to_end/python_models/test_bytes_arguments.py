"""A model.py that gives text arguments in bytes."""

from ..running import Running, until
from .conftest import Ask
from .writing import PythonModel

MODELS = {
    "squares": PythonModel("return [answer(value(each.inputs()) ** 2) for each in requests]"),
    "bytes": PythonModel(
        """
        x = pb_utils.get_input_tensor_by_name(requests[0], b"X")
        inputs = [pb_utils.Tensor(b"X", x.as_numpy())]
        assert pb_utils.Tensor.from_dlpack(b"Z", x.to_dlpack()).name() == "Z"
        request = pb_utils.InferenceRequest(
            request_id=b"7", model_name=b"squares", requested_output_names=[b"Y"], inputs=inputs
        )
        assert (request.request_id(), request.requested_output_names()) == ("7", {"Y"})
        y = pb_utils.get_output_tensor_by_name(request.exec(), b"Y")
        assert pb_utils.TritonError(b"text").message() == "text"
        pb_utils.Logger.log_info(b"a line of bytes \\xff")
        return [answer(int(y.as_numpy()[0]))]
        """
    ),
    "control": PythonModel(
        """
        states = [pb_utils.is_model_ready(b"squares", b"1"), pb_utils.is_model_ready(b"squares", b"2")]
        assert states == [True, False]
        config = b'{"backend": "python", "output": [{"name": "Y", "data_type": "TYPE_INT64", "dims": [1]}]}'
        source = b"class TritonPythonModel:\\n    def execute(self, requests):\\n        pass\\n"
        pb_utils.load_model(b"loaded", config, {b"file:1/model.py": source})
        assert pb_utils.is_model_ready("loaded")
        pb_utils.unload_model(b"loaded", unload_dependents=True)
        assert not pb_utils.is_model_ready("loaded")
        return [answer(7) for each in requests]
        """
    ),
}


def test_names_and_versions_of_model_control_may_be_bytes(ask: Ask) -> None:
    assert ask("control", 3) == 7


def test_names_ids_and_lines_may_be_bytes(running: Running, ask: Ask) -> None:
    assert ask("bytes", 3) == 9
    assert until(lambda: "a line of bytes" in running.log)
