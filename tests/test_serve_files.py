"""`naiad serve model.py` as a process: a file without a repository, and how it is loaded again."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .written import ECHO, ask, infer

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]

USES_A_NEIGHBOUR = """
from pathlib import Path

import factors
from naiad_custom import FP32, Array, model

assert (Path(__file__).parent / "weights.txt").read_text() == "heavy"

@model
def scale(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return x * factors.FACTOR
"""


def test_a_file_is_served_with_its_neighbours_and_the_files_beside_it(serve: "Serve", tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(USES_A_NEIGHBOUR)
    (tmp_path / "factors.py").write_text("FACTOR = 3")
    (tmp_path / "weights.txt").write_text("heavy")

    server = serve(tmp_path / "scale.py", frontends=["http"])
    server.wait_for(re.escape(f"serves {tmp_path}/scale.py"))

    status, answer = infer(server.url, "scale", 2)
    assert (status, answer["outputs"][0]["data"]) == (200, [6.0])


def test_a_mistake_in_a_file_is_reported_with_the_users_path_and_line(serve: "Serve", tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO.replace("x: Array[FP32, 1]", "x"))

    server = serve(tmp_path / "echo.py")

    assert server.exit_status() == 1
    assert f"{tmp_path}/echo.py:5:" in "\n".join(server.lines)
    assert "/1/" not in "\n".join(server.lines)


def test_with_reload_a_change_of_the_file_or_of_a_module_beside_it_is_served(serve: "Serve", tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(USES_A_NEIGHBOUR)
    (tmp_path / "factors.py").write_text("FACTOR = 3")
    (tmp_path / "weights.txt").write_text("heavy")
    server = serve("--reload", "--repository-poll-secs=0.1", tmp_path / "scale.py", frontends=["http"])
    url = server.url

    (tmp_path / "factors.py").write_text("FACTOR = 4")

    server.wait_for("model 'scale' version 1 is READY")
    assert infer(url, "scale", 2)[1]["outputs"][0]["data"] == [8.0]


def test_a_broken_reload_names_the_users_line_and_the_earlier_model_serves(serve: "Serve", tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    server = serve("--reload", "--repository-poll-secs=0.1", tmp_path / "echo.py", frontends=["http"])
    url = server.url

    (tmp_path / "echo.py").write_text("def broken(:")

    server.wait_for(rf"'echo' was not reloaded and serves on.*{re.escape(str(tmp_path))}/echo\.py:1: SyntaxError")
    assert infer(url, "echo", 2)[0] == 200
    deadline = time.monotonic() + 30
    while "reason" not in (entry := ask(f"{url}/v2/repository/index", {})[1][0]) and time.monotonic() < deadline:
        pass
    assert (entry["state"], "earlier generation serves" in entry["reason"]) == ("READY", True)


def test_a_failed_load_is_logged_once_with_the_traceback_of_the_model(serve: "Serve", tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text("def deep():\n    return {}['weights']\n\n" + ECHO + "\ndeep()\n")

    server = serve(tmp_path / "echo.py")

    assert server.exit_status() == 1
    log = "\n".join(server.lines)
    assert log.count("Traceback (most recent call last)") == 1
    assert f'File "{tmp_path}/echo.py", line 2, in deep' in log
