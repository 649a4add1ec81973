"""Log settings of a whole server, changed while it runs and seen in what it writes."""

import json
from pathlib import Path

from .conftest import Start
from .running import Running, refusal

EXPLICIT = "--model-control-mode=explicit"


def written_by(running: Running) -> list[str]:
    """The lines about the model that loading and unloading it makes the server write."""
    before = len(running.log)
    assert running.load("echo").status == 200
    assert running.unload("echo").status == 200
    running.read_all()
    return [line for line in running.log[before:].splitlines() if "echo" in line]


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
