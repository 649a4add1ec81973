"""Payloads of a Triton model's requests die by reference counts, whatever the model does with them."""

from concurrent.futures import Future

import pytest

from naiad.errors import NaiadError
from naiad_testing.retention import freed_by_reference_counts

READ = 'x = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()\n'
ANSWER = 'pb_utils.InferenceResponse([pb_utils.Tensor("Y", x + 1)])'
BODIES = {
    "answers": f"{READ}return [{ANSWER}]",
    "answers an error": f'{READ}return [pb_utils.InferenceResponse(error=pb_utils.TritonError("no"))]',
    "raises": f'{READ}raise ValueError("no")',
    "raises in a helper": f"{READ}return [(lambda array: array.no)(x)]",
    "answers no list": f"{READ}return x",
    "answers too few": f"{READ}return []",
    "answers something else": f"{READ}return [x]",
    "sends": f"{READ}sender = requests[0].get_response_sender()\nsender.send({ANSWER}, 1)\nreturn None",
    "sends twice": f"{READ}s = requests[0].get_response_sender()\ns.send({ANSWER})\ns.send({ANSWER})",
    "raises beside its sender": f"{READ}s = requests[0].get_response_sender()\nraise ValueError",
    "calls nobody": f"{READ}r = pb_utils.InferenceRequest(inputs=requests[0].inputs(), model_name='n',"
    " requested_output_names=['Y'])\nr.exec()\nreturn [None]",
}


@pytest.mark.parametrize("definition", ["def", "async def"])
@pytest.mark.parametrize("body", BODIES)
def test_the_payload_of_a_request_is_freed(folder, batch_of, body, definition):
    folder.write_triton(BODIES[body], definition=definition)
    instance = folder.instance()
    execute(instance, batch_of({"X": [0]}, batching=False))

    with freed_by_reference_counts(5) as watch:
        batch = batch_of({"X": [1]}, batching=False)
        watch.watch_request(batch.requests[0])
        execute(instance, batch)
        del batch


def execute(instance, batch):
    try:
        answer = instance.execute(batch)
        if isinstance(answer, Future):
            answer.exception(20)  # result would raise it here, in a frame that refers to the future
    except (NaiadError, ValueError, AttributeError):  # what the bodies raise
        pass


MARKED = {
    "answers": "def m(x: X) -> X:\n    return x + 1",
    "raises": "def m(x: X) -> X:\n    raise ValueError(len(x))",
    "answers nothing": "def m(x: X) -> X:\n    return None",
    "is awaited": "async def m(x: X) -> X:\n    return x + 1",
    "raises when awaited": "async def m(x: X) -> X:\n    raise ValueError(len(x))",
}


@pytest.mark.parametrize("kind", MARKED)
def test_the_payload_of_a_marked_model_is_freed(folder, batch_of, kind):
    folder.write(f"from naiad_custom import INT64, Array, model\nX = Array[INT64, 1]\n@model\n{MARKED[kind]}")
    instance = folder.instance()
    execute(instance, batch_of({"x": [0]}, batching=False))

    with freed_by_reference_counts(5) as watch:
        batch = batch_of({"x": [1]}, batching=False)
        watch.watch_request(batch.requests[0])
        execute(instance, batch)
        del batch
