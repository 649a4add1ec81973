"""A model.py that gives text arguments in bytes."""

from .conftest import Ask
from .writing import PythonModel

MODELS = {
    "squares": PythonModel("return [answer(value(each.inputs()) ** 2) for each in requests]"),
    "bytes": PythonModel(
        """
        request = pb_utils.InferenceRequest(
            request_id=b"7", model_name=b"squares", requested_output_names=[b"Y"], inputs=requests[0].inputs()
        )
        assert (request.request_id(), request.requested_output_names()) == ("7", ["Y"])
        return [answer(value(request.exec().output_tensors(), "Y"))]
        """
    ),
}


def test_names_and_ids_may_be_bytes(ask: Ask) -> None:
    assert ask("bytes", 3) == 9
