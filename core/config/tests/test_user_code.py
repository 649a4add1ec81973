"""The line of the user's code in the description of an error, and tracebacks that begin in that code."""

import errno
import gc
import json
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, dropwhile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from naiad_config.errors import InternalError, describe_error, drop_tracebacks
from naiad_config.user_code import RemoteTraceback, describe_failure, foreign_cause, from_user_code

SOURCE = """import json

def outer():
    inner()

def inner():
    json.loads("{")
"""
DEBIAN = "/usr/lib/python3/dist-packages/numpy/linalg/linalg.py"


@pytest.fixture
def error(tmp_path: Path) -> BaseException:
    """What a pool of threads raises that calls code of the user's, in `model.py`, and that a function of Python's."""
    names: dict[str, Any] = {}
    exec(compile(SOURCE, tmp_path / "model.py", "exec"), names)
    return raised_by(names["outer"])


def raised_by(call: Callable[..., object], *args: object) -> BaseException:
    with ThreadPoolExecutor(1) as pool:
        raised = pool.submit(call, *args).exception()
    assert raised is not None
    return raised


def functions_of(error: BaseException | None) -> list[str]:
    return [] if error is None else [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def functions_below_the_pool(error: BaseException) -> list[str]:
    """Without the frames of Python's thread pool: one named `run`, and two from Python 3.14 on."""
    return list(dropwhile("run".__eq__, functions_of(error)))


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "; raise 'ulimit -n', the most open files of this process"),
        (OSError(errno.ENFILE, "Too many open files in system"), "; raise the most open files of the machine"),
    ],
)
def test_an_error_for_a_limit_of_the_system_says_what_to_raise(error: Exception, advice: str) -> None:
    assert describe_error(error).startswith(f"{type(error).__name__}: {error}{advice}")


def test_the_last_line_of_the_users_code_is_named(error: BaseException) -> None:
    assert describe_failure(error) == f"{describe_error(error)} (model.py:7)"


def test_of_a_group_the_first_error_is_described(error: BaseException) -> None:
    group = BaseExceptionGroup("unhandled errors", [BaseExceptionGroup("inner", [ValueError("first"), error])])
    assert describe_failure(group) == (
        "ExceptionGroup: unhandled errors (1 sub-exception); the first is "
        "ExceptionGroup: inner (2 sub-exceptions); the first is ValueError: first"
    )


def test_a_traceback_begins_in_the_users_code(error: BaseException) -> None:
    assert functions_of(error)[0] == "run"
    assert functions_below_the_pool(error)[0] == "outer"
    assert functions_of(from_user_code(error)) == ["outer", "inner", "loads", "decode", "raw_decode"]


def test_the_cause_of_an_error_begins_there_too(error: BaseException) -> None:
    failed = InternalError("it failed")
    failed.__cause__ = error
    assert foreign_cause(failed) is error
    assert functions_of(error)[0] == "outer"
    assert foreign_cause(InternalError("it failed")) is None


def test_an_error_without_a_frame_of_the_users_code_stays_as_it_is() -> None:
    error = raised_by(json.loads, "{")
    assert describe_failure(error) == describe_error(error)
    assert functions_of(from_user_code(error))[0] == "run"
    assert functions_below_the_pool(from_user_code(error)) == ["loads", "decode", "raw_decode"]


def test_an_error_that_is_its_own_cause_has_no_cause_of_the_users() -> None:
    first, second = InternalError("first"), InternalError("second")
    first.__cause__, second.__cause__ = second, first
    assert foreign_cause(first) is None


@pytest.mark.parametrize("file", ["<string>", "<eval_with_key>.0 from /models/net.py:4 in forward", DEBIAN])
def test_a_line_of_generated_code_or_of_a_package_is_not_the_users(file: str) -> None:
    names: dict[str, Any] = {}
    exec(compile("def broken():\n    1 / 0", file, "exec"), names)
    exec(compile("def outer(): broken()", "/models/model.py", "exec"), names)
    assert describe_failure(raised_by(names["outer"])) == "ZeroDivisionError: division by zero (model.py:1)"


def test_a_package_of_the_users_by_a_name_of_naiad_hides_no_file_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("naiad_helpers")
    package.__path__ = ["/models/1/naiad_helpers"]
    monkeypatch.setitem(sys.modules, "naiad_helpers", package)
    names: dict[str, Any] = {}
    exec(compile("def outer(): 1 / 0", "/models/1/model.py", "exec"), names)
    assert describe_failure(raised_by(names["outer"])) == "ZeroDivisionError: division by zero (model.py:1)"


def test_modules_may_be_imported_while_the_frames_of_an_error_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the garbage collector calls may do that, on the thread of a model that logs the error."""
    names = count()

    def imports(phase: str, _: object) -> None:
        name = f"imported_{next(names)}"
        sys.modules[name] = ModuleType(name)

    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    threshold = gc.get_threshold()
    gc.callbacks.append(imports)
    was_enabled = gc.isenabled()
    gc.enable()
    gc.set_threshold(1)
    try:
        failure = ValueError("x")
        shown = from_user_code(failure)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(imports)
        if not was_enabled:
            gc.disable()

    assert shown is failure
    assert next(names) > 0


def test_of_an_error_in_another_process_the_traceback_there_is_logged() -> None:
    error = ValueError("no luck")
    error.__cause__ = RemoteTraceback("Traceback (most recent call last):\nValueError: no luck")
    logged = "".join(traceback.format_exception(from_user_code(error)))
    assert logged == ("In the model's own process: Traceback (most recent call last):\nValueError: no luck\n")


def test_no_error_of_a_group_keeps_its_traceback(error: BaseException) -> None:
    drop_tracebacks(BaseExceptionGroup("unhandled errors", [BaseExceptionGroup("inner", [error])]))
    assert functions_of(error) == []


def test_a_syntax_error_of_the_users_file_has_no_frames_as_its_text_has_the_line() -> None:
    error = raised_by(compile, "def", "model.py", "exec")
    assert functions_of(from_user_code(error)) == []
