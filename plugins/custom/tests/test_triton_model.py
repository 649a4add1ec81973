"""A model.py written for Triton's Python backend runs as it is."""

import numpy as np
import pytest

from naiad.backend import Reply
from naiad.errors import ModelFailedError, NotFoundError
from naiad_testing import serve

CONFIG = """
    max_batch_size: 64
    input [{ name: "INPUT0" data_type: TYPE_FP32 dims: 16 }, { name: "INPUT1" data_type: TYPE_FP32 dims: 16 }]
    output [{ name: "OUTPUT0" data_type: TYPE_FP32 dims: 16 }, { name: "OUTPUT1" data_type: TYPE_FP32 dims: 16 }]
    dynamic_batching { }
"""

ADD_SUB = """
    import json
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def initialize(self, args):
            config = json.loads(args["model_config"])
            properties = pb_utils.get_output_config_by_name(config, "OUTPUT0")
            self.dtype = pb_utils.triton_string_to_numpy(properties["data_type"])

        def execute(self, requests):
            responses = []
            for request in requests:
                left = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
                right = pb_utils.get_input_tensor_by_name(request, "INPUT1").as_numpy()
                total = pb_utils.Tensor("OUTPUT0", (left + right).astype(self.dtype))
                difference = pb_utils.Tensor("OUTPUT1", (left - right).astype(self.dtype))
                responses.append(pb_utils.InferenceResponse(output_tensors=[total, difference]))
            return responses
"""


def outputs_of(reply: object) -> dict:
    assert isinstance(reply, Reply)
    return {name: value.tolist() for name, value in reply.outputs.items()}


def test_add_sub_answers_through_the_server(folder):
    folder.write(ADD_SUB, CONFIG)

    with serve(folder.path) as client:
        answers = client.infer_all(
            *({"INPUT0": np.full((1, 16), number), "INPUT1": np.ones((1, 16))} for number in range(5))
        )

    assert [answer["OUTPUT0"][0, 0] for answer in answers] == [1, 2, 3, 4, 5]
    assert [answer["OUTPUT1"][0, 0] for answer in answers] == [-1, 0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("policy", ["", "model_transaction_policy { decoupled: true }"])
def test_an_input_that_the_request_has_not_is_named_with_those_that_it_has(folder, kind, policy):
    folder.write(
        f"""
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            {kind} execute(self, requests):
                return pb_utils.get_input_tensor_by_name(requests[0], "INPUT").as_numpy()
        """,
        CONFIG + policy,
    )

    with serve(folder.path) as client, pytest.raises(ModelFailedError) as raised:
        list(client.stream(INPUT0=np.ones((1, 16)), INPUT1=np.ones((1, 16))))

    assert str(raised.value).endswith(
        "has no attribute 'as_numpy'; 'INPUT' is not an input of this request, which has INPUT0, INPUT1 (model.py:5)"
    )


def test_an_error_that_has_nothing_to_do_with_a_missing_input_does_not_name_it(folder):
    folder.write(
        """
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                if pb_utils.get_input_tensor_by_name(requests[0], "OPTIONAL") is None:
                    raise TypeError("something else")
        """,
        CONFIG,
    )

    with (
        serve(folder.path) as client,
        pytest.raises(ModelFailedError, match=r"TypeError: something else \(model\.py:\d+\)$"),
    ):
        client.infer(INPUT0=np.ones((1, 16)), INPUT1=np.ones((1, 16)))


def test_a_response_with_an_error_fails_its_request_alone(folder, batch_of):
    body = """error = pb_utils.TritonError("no such thing", pb_utils.TritonError.NOT_FOUND)
return [
    pb_utils.InferenceResponse(error=error),
    pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([1]))], parameters={"seen": True}),
]"""
    folder.write_triton(body)

    first, second = folder.instance().execute(batch_of({"X": [1]}, {"X": [2]}))

    assert isinstance(first, NotFoundError)
    assert str(first) == "no such thing"
    assert outputs_of(second) == {"Y": [1]}
    assert second.parameters == {"seen": True}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pass", "Expected a list in the execute return, found type 'NoneType'"),
        ("return 5", "Expected a list in the execute return, found type 'int'"),
        ("return []", r"InferenceRequest\(s\) size is:1, and InferenceResponse\(s\) size is:0"),
    ],
)
def test_an_answer_of_the_wrong_form_fails_the_batch(folder, batch_of, body, message):
    folder.write_triton(body)
    instance = folder.instance()

    with pytest.raises(ModelFailedError, match=message):
        instance.execute(batch_of({"X": [1]}))


def test_an_item_of_the_wrong_type_fails_its_request_alone(folder, batch_of):
    folder.write_triton('return [5, pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([1]))])]')

    first, second = folder.instance().execute(batch_of({"X": [1]}, {"X": [2]}))

    assert isinstance(first, ModelFailedError)
    assert "Expected an 'InferenceResponse' object in the execute function return list, found type 'int'" in str(first)
    assert outputs_of(second) == {"Y": [1]}


def test_an_exception_reaches_the_caller_with_its_type_and_text(folder):
    folder.write_triton('raise pb_utils.TritonModelException("out of luck")')

    with serve(folder.path) as client, pytest.raises(ModelFailedError, match="TritonModelException: out of luck"):
        client.infer(X=[1])


def test_outputs_are_not_held_against_the_configuration(folder):
    body = 'return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.ones((2, 3), np.float32))]) for _ in requests]'
    folder.write_triton(body)

    with serve(folder.path) as client:
        assert client.infer(X=[1])["Y"].shape == (2, 3)


def test_an_async_execute_is_awaited(folder, batch_of):
    body = """await asyncio.sleep(0)
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([7]))]) for _ in requests]"""
    folder.write_triton(body, "import asyncio", definition="async def")

    assert outputs_of(folder.instance().execute(batch_of({"X": [1]}))[0]) == {"Y": [7]}


def test_an_input_may_be_changed_in_position(folder):
    body = """x = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
x += 1
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)])]"""
    folder.write_triton(body)

    with serve(folder.path) as client:
        array = np.array([1])
        array.flags.writeable = False
        assert client.infer(X=array)["Y"].tolist() == [2]


def test_an_input_handed_back_is_not_copied(folder, batch_of):
    body = """x = requests[0].inputs()[0]
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x.as_numpy())])]"""
    folder.write_triton(body)
    batch = batch_of({"X": np.arange(1)})

    (reply,) = folder.instance().execute(batch)

    assert reply.outputs["Y"] is batch.requests[0].inputs["X"].payload


def test_a_buffer_that_is_filled_anew_does_not_change_earlier_answers(folder, batch_of):
    body = """BUFFER[:] = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", BUFFER)])]"""
    folder.write_triton(body, before="BUFFER = np.zeros(1, np.int64)")
    instance = folder.instance()

    replies = [instance.execute(batch_of({"X": [number]}))[0] for number in (1, 2)]

    assert [outputs_of(reply) for reply in replies] == [{"Y": [1]}, {"Y": [2]}]


def test_fresh_outputs_are_not_copied(folder, batch_of):
    body = """made = [np.array([1]), np.array([2])]
MADE.extend(each.__array_interface__["data"] for each in made)
tensors = [pb_utils.Tensor(name, made.pop(0)) for name in ("Y", "Z")]
return [pb_utils.InferenceResponse(tensors)]"""
    folder.write_triton(body, before="MADE = []")
    instance = folder.instance()

    (reply,) = instance.execute(batch_of({"X": [1]}))

    addresses = instance._model.execute.__globals__["MADE"]
    assert [each.__array_interface__["data"] for each in reply.outputs.values()] == addresses


def test_strings_are_answered_as_bytes(folder, batch_of):
    body = 'return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array(["grün", b"x"], dtype=object))])]'
    folder.write_triton(body)

    assert outputs_of(folder.instance().execute(batch_of({"X": [1]}))[0]) == {"Y": ["grün".encode(), b"x"]}
