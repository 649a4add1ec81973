"""Log settings of a whole server, changed while it runs and seen in what it writes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import models
from .conftest import Start, ending_well
from .running import Running, refusal

SAYS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for say in ("log_error", "log_warn", "log_info", "log_verbose"):
            getattr(pb_utils.Logger, say)(f"it says {say}")
        return [pb_utils.InferenceResponse([pb_utils.get_input_tensor_by_name(each, "x")]) for each in requests]
"""

EXPLICIT = "--model-control-mode=explicit"


def written_by(running: Running) -> list[str]:
    """The lines about the model that loading and unloading it makes the server write."""
    before = len(running.log)
    assert running.load("echo").status == 200
    assert running.unload("echo").status == 200
    running.read_all()
    return [line for line in running.log[before:].splitlines() if "echo" in line]


@pytest.fixture(scope="module")
def saying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of a model that says something at every level."""
    folder = tmp_path_factory.mktemp("saying")
    models.write(folder / "models", "says", SAYS, models.triton_config({"x": "FP32"}, {"x": "FP32"}, "-1"))
    with ending_well(Running(folder / "models", folder / "log")) as running:
        yield running


def test_levels_are_switched_off_and_on(start: Start, repository: Path) -> None:
    running = start(EXPLICIT)
    with running.client() as client:
        loud = written_by(running)
        client.update_log_settings({"log_info": False})
        silent = written_by(running)
        client.update_log_settings({"log_info": True})
        loud_again = written_by(running)
    running.stop()

    assert loud
    assert silent == []
    assert len(loud_again) == len(loud)


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
    saying.read_all()
    told = saying.log[before:]
    assert saying.ask("POST", "/v2/logging", restored).status == 200

    assert {word.strip('"') for word in told.split() if word.startswith("log_")} == said


def test_the_format_changes_from_one_line_to_the_next(start: Start, repository: Path) -> None:
    running = start(EXPLICIT)
    answer = running.ask("POST", "/v2/logging", {"log_format": "json"})
    lines = written_by(running)
    running.stop()

    assert answer.document["log_format"] == "json"
    assert lines
    assert all("message" in json.loads(line) for line in lines)


def test_the_file_of_the_log_stays_the_command_line_s(start: Start, repository: Path, tmp_path: Path) -> None:
    running = start(EXPLICIT)
    assert running.port

    told = refusal(running.ask("POST", "/v2/logging", {"log_info": False, "log_file": str(tmp_path / "x")}), 501)
    settings = running.ask("GET", "/v2/logging").document
    running.stop()

    assert "log file location can not be updated through network protocol" in told
    assert settings["log_info"] is True
    assert not (tmp_path / "x").exists()
