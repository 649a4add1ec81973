"""A TritonPythonModel that loads, unloads and asks for other models."""

import asyncio

import pytest

from naiad.errors import ModelFailedError
from naiad_testing import serve

from .several import y

EXPLICIT = {"model-control-mode": "explicit"}
LOADER = """
def initialize(self, args):
    self.was_ready = pb_utils.is_model_ready("double")
    if not self.was_ready:
        pb_utils.load_model(model_name="double")

def finalize(self):
    pb_utils.unload_model("double")
"""


def test_a_model_loads_another_in_initialize_and_unloads_it_in_finalize(models):
    models.triton(
        "outer",
        """
        ready = pb_utils.is_model_ready("double", "1")
        return [answer(100 * self.was_ready + 10 * ready + value_of(asked("double", 1).exec().output_tensors(), "Y"))]
        """,
        more=LOADER,
    )

    with serve(models.path, options={**EXPLICIT, "load-model": ("outer",), "model-load-thread-count": 1}) as client:
        assert y(client["outer"].infer(X=[1])) == 12
        client.wait_for(lambda server: server.unload("outer"))
        client.wait_for(gone("double"))


def gone(name):
    async def wait(server):
        while any(each.name == name and each.state != "UNAVAILABLE" for each in server.index()):  # noqa: ASYNC110
            await asyncio.sleep(0)

    return wait


def test_a_model_is_loaded_with_a_configuration_and_files(models):
    body = """
    lines = [
        "from naiad_custom import INT64, Array, model",
        "@model",
        "def f(X: Array[INT64, 1]) -> Array[INT64, 1]: return X + 5",
    ]
    files = {"file:1/model.py": chr(10).join(lines).encode()}
    pb_utils.load_model("added", config=json.dumps({"backend": "python"}), files=files)
    inputs = [pb_utils.Tensor("X", np.array([1]))]
    response = pb_utils.InferenceRequest(model_name="added", inputs=inputs, requested_output_names=["output"]).exec()
    return [answer(value_of(response.output_tensors(), "output"))]
    """

    assert models.outer(body, options=EXPLICIT) == 6


@pytest.mark.parametrize(("version", "ready"), [("", 1), ("1", 1), ("0", 0), ("2", 0)])
def test_a_model_asks_whether_a_version_of_another_is_ready(models, version, ready):
    assert models.outer(f"return [answer(int(pb_utils.is_model_ready('double', '{version}')))]") == ready


@pytest.mark.parametrize("call", ['load_model("double")', 'unload_model("double")'])
def test_models_are_loaded_and_unloaded_in_explicit_mode_alone(models, call):
    with pytest.raises(ModelFailedError, match="not allowed"):
        models.outer(f"pb_utils.{call}", options={"model-control-mode": "none", "load-model": ()})


def test_a_model_that_loads_itself_while_it_is_loaded_is_refused(models):
    models.triton("outer", "pass", more="def initialize(self, args): pb_utils.load_model('outer')")

    with (
        pytest.raises(Exception, match="'outer' is being loaded"),
        serve(models.path),
    ):
        pass


def test_models_that_load_each_other_are_refused_and_do_not_wait(models):
    for name, other in (("first", "second"), ("second", "first")):
        models.triton(name, "pass", more=f"def initialize(self, args): pb_utils.load_model('{other}')")

    with pytest.raises(Exception, match="is being loaded"), serve(models.path):
        pass
