"""A model.py written for Triton's Python backend runs as it is."""

import json
import logging

import numpy as np
import pytest

from naiad.backend import Reply
from naiad.config import DataType
from naiad.errors import (
    InvalidArgumentError,
    ModelFailedError,
    NotFoundError,
    UnsupportedError,
)
from naiad.testing import serve

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

ONE = 'input { name: "X" data_type: TYPE_INT64 dims: 1 } output { name: "Y" data_type: TYPE_INT64 dims: 1 }'


def executing(body: str, before: str = "") -> str:
    """A model whose execute has that body."""
    lines = "\n".join(" " * 12 + line for line in body.splitlines())
    return f"""
    import numpy as np
    import triton_python_backend_utils as pb_utils
    {before}
    class TritonPythonModel:
        def execute(self, requests):
{lines}
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


def test_initialize_gets_strings_about_model_and_instance(folder):
    folder.write(
        """
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def initialize(self, args):
                self.args = args

            def execute(self, requests):
                return []
        """,
        ONE,
    )

    args = folder.instance()._model.args

    config = json.loads(args.pop("model_config"))
    assert (config["name"], config["input"][0]["dims"]) == ("m", [1])
    assert args == {
        "model_instance_kind": "CPU",
        "model_instance_device_id": "0",
        "model_repository": str(folder.path),
        "model_version": "1",
        "model_name": "m",
    }


def test_finalize_is_called_once_when_the_instance_closes(folder):
    folder.write(executing("return []") + "        def finalize(self):\n            self.ended = True\n", ONE)
    instance = folder.model().instantiate(folder.placement)

    instance.close()

    assert instance._model.ended


def test_a_response_with_an_error_fails_its_request_alone(folder, batch_of):
    body = """error = pb_utils.TritonError("no such thing", pb_utils.TritonError.NOT_FOUND)
return [
    pb_utils.InferenceResponse(error=error),
    pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([1]))], parameters={"seen": True}),
]"""
    folder.write(executing(body), ONE)

    first, second = folder.instance().execute(batch_of({"X": [1]}, {"X": [2]}))

    assert isinstance(first, NotFoundError)
    assert str(first) == "no such thing"
    assert outputs_of(second) == {"Y": [1]}
    assert second.parameters == {"seen": True}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("pass", "Expected a list in the execute return, found type 'NoneType'"),
        ("return 5", "Expected a list in the execute return, found type 'int'"),
        ("return []", r"InferenceRequest\(s\) size is:1, and InferenceResponse\(s\) size is:0"),
        ("return [None]", "Expected an 'InferenceResponse' object .* found type 'NoneType'"),
    ],
)
def test_an_answer_of_the_wrong_form_fails_the_batch(folder, batch_of, body, told):
    folder.write(executing(body), ONE)
    instance = folder.instance()

    with pytest.raises(ModelFailedError, match=told):
        instance.execute(batch_of({"X": [1]}))


def test_an_exception_reaches_the_caller_with_its_type_and_text(folder):
    folder.write(executing('raise pb_utils.TritonModelException("out of luck")'), ONE)

    with serve(folder.path) as client, pytest.raises(ModelFailedError, match="TritonModelException: out of luck"):
        client.infer(X=[1])


def test_outputs_are_not_held_against_the_configuration(folder):
    body = 'return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.ones((2, 3), np.float32))]) for _ in requests]'
    folder.write(executing(body), ONE)

    with serve(folder.path) as client:
        assert client.infer(X=[1])["Y"].shape == (2, 3)


def test_an_async_execute_is_awaited(folder, batch_of):
    code = executing(
        """await asyncio.sleep(0)
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([7]))]) for _ in requests]""",
        before="import asyncio",
    ).replace("def execute", "async def execute")
    folder.write(code, ONE)

    assert outputs_of(folder.instance().execute(batch_of({"X": [1]}))[0]) == {"Y": [7]}


def test_an_input_may_be_changed_in_place(folder):
    body = """x = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
x += 1
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)])]"""
    folder.write(executing(body), ONE)

    with serve(folder.path) as client:
        given = np.array([1])
        given.flags.writeable = False
        assert client.infer(X=given)["Y"].tolist() == [2]


def test_an_input_handed_back_is_not_copied(folder, batch_of):
    body = """x = requests[0].inputs()[0]
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x.as_numpy())])]"""
    folder.write(executing(body), ONE)
    batch = batch_of({"X": np.arange(1)})

    (reply,) = folder.instance().execute(batch)

    assert reply.outputs["Y"] is batch.requests[0].inputs["X"].payload


def test_a_buffer_that_is_filled_anew_does_not_change_earlier_answers(folder, batch_of):
    body = """BUFFER[:] = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", BUFFER)])]"""
    folder.write(executing(body, before="BUFFER = np.zeros(1, np.int64)"), ONE)
    instance = folder.instance()

    replies = [instance.execute(batch_of({"X": [number]}))[0] for number in (1, 2)]

    assert [outputs_of(reply) for reply in replies] == [{"Y": [1]}, {"Y": [2]}]


def test_fresh_outputs_are_not_copied(folder, batch_of):
    body = """made = [np.array([1]), np.array([2])]
MADE.extend(each.__array_interface__["data"] for each in made)
tensors = [pb_utils.Tensor(name, made.pop(0)) for name in ("Y", "Z")]
return [pb_utils.InferenceResponse(tensors)]"""
    folder.write(executing(body, before="MADE = []"), ONE)
    instance = folder.instance()

    (reply,) = instance.execute(batch_of({"X": [1]}))

    made = instance._model.execute.__globals__["MADE"]
    assert [each.__array_interface__["data"] for each in reply.outputs.values()] == made


def test_strings_are_answered_as_bytes(folder, batch_of):
    body = 'return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array(["grün", b"x"], dtype=object))])]'
    folder.write(executing(body), ONE)

    assert outputs_of(folder.instance().execute(batch_of({"X": [1]}))[0]) == {"Y": ["grün".encode(), b"x"]}


AUTO = """
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        @staticmethod
        def auto_complete_config(auto_complete_model_config):
            config = auto_complete_model_config
            config.set_max_batch_size(4)
            config.add_input({{"name": "X", "data_type": "TYPE_FP32", "dims": [4], "optional": True}})
            config.add_output({{"name": "Y", "data_type": "TYPE_STRING", "dims": [-1]}})
            config.set_dynamic_batching()
            {end}

        def execute(self, requests):
            return []
"""


def test_auto_complete_config_fills_the_configuration(folder):
    folder.write(AUTO.format(end="return config"))

    config = folder.completed()

    assert config.max_batch_size == 4
    assert (config.input[0].name, config.input[0].dims, config.input[0].optional) == ("X", (4,), True)
    assert (config.output[0].data_type, config.output[0].dims) == (DataType.TYPE_STRING, (-1,))
    assert config.dynamic_batching is not None


@pytest.mark.parametrize(
    ("end", "config", "told"),
    [
        ("pass", "", r"must return a valid pb\.ModelConfig object\. It returned NoneType"),
        ("return config", "max_batch_size: 6", r"model\.py:7: auto_complete_config failed: ValueError: .*size 6"),
        ('config.as_dict()["inputs"] = []; return config', "", "inputs"),
    ],
)
def test_an_auto_complete_config_that_goes_wrong_is_told(folder, end, config, told):
    folder.write(AUTO.format(end=end), config)

    with pytest.raises(InvalidArgumentError, match=told):
        folder.completed()


def test_an_initialize_that_raises_names_the_line(folder):
    folder.write(
        """
        class TritonPythonModel:
            def initialize(self, args):
                raise MemoryError("too big")

            def execute(self, requests):
                return []
        """,
        ONE,
    )

    with pytest.raises(ModelFailedError, match=r"model\.py:3: initialize failed: MemoryError: too big"):
        folder.instance()


@pytest.mark.parametrize(
    ("code", "config", "kind", "told"),
    [
        ("class TritonPythonModel:\n    pass", ONE, InvalidArgumentError, "has no execute"),
        (ADD_SUB, "max_batch_size: 1", InvalidArgumentError, "has no inputs and outputs: write config.pbtxt, or auto"),
        (ADD_SUB, ONE + "model_transaction_policy { decoupled: true }", UnsupportedError, "several responses to one"),
    ],
)
def test_a_model_that_cannot_be_served_is_refused_at_load(folder, code, config, kind, told):
    folder.write(code, config)

    with pytest.raises(kind, match=told):
        folder.model()


@pytest.mark.parametrize(
    "call",
    [
        "requests[0].get_response_sender()",
        "requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)",
        'pb_utils.InferenceRequest(model_name="other", inputs=requests[0].inputs()).exec()',
        'pb_utils.load_model("other")',
        'pb_utils.unload_model("other")',
        'pb_utils.is_model_ready("other")',
        'pb_utils.MetricFamily("name", "description", pb_utils.MetricFamily.COUNTER)',
    ],
)
def test_what_comes_later_is_refused_in_words(folder, batch_of, call):
    folder.write(executing(call), ONE)
    instance = folder.instance()

    with pytest.raises(UnsupportedError, match="yet"):
        instance.execute(batch_of({"X": [1]}))


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("def is_ready(self): return True", ""),
        ("async def is_ready(self): return True", ""),
        ("def is_ready(self): return False", "is_ready() answered False"),
        ("def is_ready(self): return 1", "is_ready() answered with int; it must answer True or False"),
        ("def is_ready(self): raise OSError('gone')", "is_ready() raised OSError: gone"),
    ],
)
def test_is_ready_is_asked_for_readiness(folder, definition, reason):
    folder.write(executing("return []") + f"        {definition}\n", ONE)
    instance = folder.instance()

    instance.ready()
    instance._ready._executor.submit(int).result()

    assert instance.ready() == reason


def test_an_is_ready_that_hangs_is_not_ready_and_blocks_nobody(folder, monkeypatch):
    hanging = executing("return []", before="import threading; GO = threading.Event()")
    folder.write(hanging + "        def is_ready(self): return GO.wait()\n", ONE)
    instance = folder.instance()
    now = [0.0]
    monkeypatch.setattr("naiad_custom.triton.readiness.monotonic", lambda: now[0])

    instance.ready()
    now[0] = 6.0
    reason = instance.ready()

    instance._model.execute.__globals__["GO"].set()
    assert reason == "is_ready() has not answered for 5 seconds"


def test_the_logger_tells_model_version_file_and_line(folder, batch_of, caplog):
    folder.write(executing('pb_utils.Logger.log_warn("careful")\nreturn []'), ONE)
    with caplog.at_level(logging.DEBUG, "naiad.model"), pytest.raises(ModelFailedError):
        folder.instance().execute(batch_of({"X": [1]}))

    record = next(record for record in caplog.records if record.getMessage() == "careful")
    assert (record.levelname, record.model, record.version) == ("WARNING", "m", "1")
    assert (record.pathname, record.funcName) == (str(folder.path / "1" / "model.py"), "execute")


def test_a_model_finds_its_own_folder(folder, batch_of):
    body = """found = pb_utils.get_model_dir()
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([found], dtype=object))])]"""
    folder.write(executing(body), ONE)

    (reply,) = folder.instance().execute(batch_of({"X": [1]}))

    assert outputs_of(reply) == {"Y": [str(folder.path / "1").encode()]}


def test_two_instances_are_two_objects_of_one_module(folder):
    folder.write(ADD_SUB, CONFIG)
    model = folder.model()

    first, second = (model.instantiate(folder.placement) for _ in range(2))

    assert first._model is not second._model
    assert type(first._model) is type(second._model)
