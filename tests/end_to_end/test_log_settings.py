"""Log settings of a whole server, changed while it runs and seen in what it writes."""

import re
from collections.abc import Iterator

import pytest

from . import models
from .conftest import ending_well
from .running import Running, until

SAYS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        value = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()[0]
        for say in ("log_error", "log_warn", "log_info", "log_verbose"):
            getattr(pb_utils.Logger, say)(f"it says {say} of {value:.0f}.")
        return [pb_utils.InferenceResponse([pb_utils.get_input_tensor_by_name(each, "x")]) for each in requests]
"""


@pytest.fixture(scope="module")
def saying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of a model that says something at every level."""
    folder = tmp_path_factory.mktemp("saying")
    models.write(folder / "models", "says", SAYS, models.triton_config({"x": "FP32"}, {"x": "FP32"}, "-1"))
    with ending_well(Running(folder / "models", folder / "log")) as running:
        yield running


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, {"log_error", "log_warn", "log_info"}),
        ({"log_verbose_level": 1}, {"log_error", "log_warn", "log_info", "log_verbose"}),
        ({"log_warning": False}, {"log_error", "log_info"}),
        ({"log_error": False, "log_info": False}, {"log_warn"}),
        ({"log_error": False, "log_warning": False, "log_info": False}, set()),
    ],
)
def test_what_a_model_logs_follows_the_settings(saying: Running, changes: dict, said: set[str]) -> None:
    restored = {"log_verbose_level": 0, "log_error": True, "log_warning": True, "log_info": True}
    assert saying.ask("POST", "/v2/logging", changes).status == 200
    before = len(saying.log)
    assert saying.infer("says", 1).status == 200
    assert saying.ask("POST", "/v2/logging", restored).status == 200
    assert saying.infer("says", 2).status == 200
    until(lambda: "log_info of 2." in saying.log[before:])  # a thread writes the lines, in their order

    assert set(re.findall(r"(log_\w+) of 1\.", saying.log[before:])) == said
