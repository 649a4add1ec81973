"""A Triton-style model from its configuration to its end, and what it asks of the server in between."""

import json
import logging
import re

import pytest

from naiad.errors import InvalidArgumentError, ModelFailedError, UnsupportedError
from naiad_config import DataType
from naiad_custom.triton.errors import TritonModelException

ONE = 'input { name: "X" data_type: TYPE_INT64 dims: 1 } output { name: "Y" data_type: TYPE_INT64 dims: 1 }'


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
        "model_instance_name": "m_0",
        "model_instance_device_id": "0",
        "model_repository": str(folder.path),
        "model_version": "1",
        "model_name": "m",
    }


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


def test_finalize_is_called_once_when_the_instance_closes(folder):
    folder.write_triton("return []", more="def finalize(self): self.ended = True")
    instance = folder.model().instantiate(folder.placement)

    instance.close()

    assert instance._model.ended


def test_two_instances_are_two_objects_of_one_module(folder):
    folder.write_triton("return []")
    model = folder.model()

    first, second = (model.instantiate(folder.placement) for _ in range(2))

    assert first._model is not second._model
    assert type(first._model) is type(second._model)


EMPTY = """
    class TritonPythonModel:
        def execute(self, requests):
            return []
"""

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


def test_a_class_that_leaves_the_configuration_without_tensors_is_served_with_a_warning(folder, caplog):
    folder.write(EMPTY)

    folder.completed()

    assert "has no inputs and no outputs: write them into its config.pbtxt" in caplog.text


def test_auto_complete_config_fills_the_configuration(folder):
    folder.write(AUTO.format(end="return config"))

    config = folder.completed()

    assert config.max_batch_size == 4
    assert (config.input[0].name, config.input[0].dims, config.input[0].optional) == ("X", (4,), True)
    assert (config.output[0].data_type, config.output[0].dims) == (DataType.TYPE_STRING, (-1,))
    assert config.dynamic_batching is not None


@pytest.mark.parametrize(
    ("end", "config", "message"),
    [
        ("pass", "", r"must return a valid pb\.ModelConfig object\. It returned NoneType"),
        ("return config", "max_batch_size: 6", r"model\.py:7: auto_complete_config failed: ValueError: .*size 6"),
        ('config.as_dict()["inputs"] = []; return config', "", "inputs"),
    ],
)
def test_an_auto_complete_config_that_goes_wrong_is_reported(folder, end, config, message):
    folder.write(AUTO.format(end=end), config)

    with pytest.raises(InvalidArgumentError, match=message):
        folder.completed()


def test_a_model_without_execute_is_refused_at_load(folder):
    folder.write("class TritonPythonModel:\n    pass", ONE)

    with pytest.raises(InvalidArgumentError, match="has no execute"):
        folder.instance()


def test_initialize_may_set_execute(folder, batch_of):
    folder.write(
        """
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def initialize(self, args):
                self.execute = self.answer

            def answer(self, requests):
                return [pb_utils.InferenceResponse(error=pb_utils.TritonError("answered")) for request in requests]
        """,
        ONE,
    )

    (response,) = folder.instance().execute(batch_of({"X": [1]}))

    assert str(response) == "answered"


def test_an_environment_of_its_own_is_refused_with_a_warning(folder, caplog):
    folder.write(EMPTY, ONE + 'parameters { key: "EXECUTION_ENV_PATH" value: { string_value: "env.tar.gz" } }')

    folder.model()

    assert "EXECUTION_ENV_PATH is not used" in caplog.text


@pytest.mark.parametrize("call", ["load_model('other')", "unload_model('other')", "is_model_ready('other')"])
def test_without_a_server_there_are_no_models_to_look_after(folder, batch_of, call):
    folder.write_triton(f"pb_utils.{call}")
    instance = folder.instance()

    with pytest.raises(TritonModelException, match="model 'other'"):
        instance.execute(batch_of({"X": [1]}))


def test_without_a_server_a_call_to_another_model_is_answered_with_an_error(folder, batch_of):
    folder.write_triton(
        "x = requests[0].inputs()\n"
        "asked = pb_utils.InferenceRequest(model_name='other', inputs=x, requested_output_names=['Y'])\n"
        "return [pb_utils.InferenceResponse(error=asked.exec().error())]"
    )

    (answer,) = folder.instance().execute(batch_of({"X": [1]}))

    assert isinstance(answer, UnsupportedError)
    assert "cannot call model 'other'" in str(answer)


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("def is_ready(self): return True", ""),
        ("async def is_ready(self): return True", ""),
        ("def is_ready(self): return False", "is_ready() answered False"),
        ("def is_ready(self): return 1", "is_ready() answered with int; it must answer True or False"),
        ("def is_ready(self): raise OSError('gone')", "is_ready() raised OSError: gone (model.py:LINE)"),
    ],
)
def test_is_ready_is_asked_for_readiness(folder, definition, reason):
    folder.write_triton("return []", more=definition)
    instance = folder.instance()

    assert re.sub(r":\d+\)", ":LINE)", instance.ready()) == reason


def test_without_is_ready_there_is_nothing_to_ask(folder):
    folder.write_triton("return []")

    assert not hasattr(folder.instance(), "ready")


def test_the_logger_tells_model_version_file_and_line(folder, batch_of, caplog):
    folder.write_triton('pb_utils.Logger.log_warn("careful")\nreturn []')
    with caplog.at_level(logging.DEBUG, "naiad.model"), pytest.raises(ModelFailedError):
        folder.instance().execute(batch_of({"X": [1]}))

    record = next(record for record in caplog.records if record.getMessage() == "careful")
    assert (record.levelname, record.model, record.version) == ("WARNING", "m", "1")
    assert (record.pathname, record.funcName) == (str(folder.path / "1" / "model.py"), "execute")


def test_a_model_finds_its_own_folder(folder, batch_of):
    body = """found = pb_utils.get_model_dir()
return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([found], dtype=object))])]"""
    folder.write_triton(body)

    (reply,) = folder.instance().execute(batch_of({"X": [1]}))

    assert reply.outputs["Y"].tolist() == [str(folder.path / "1").encode()]
