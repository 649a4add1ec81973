"""Where log lines go and how they look."""

import io
import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from naiad.errors import InvalidArgumentError
from naiad.options import LOG_OPTIONS
from naiad_cli.logs import formatter, logging_to
from naiad_kit.frontends.log_control import VERBOSE_2
from naiad_kit.frontends.log_settings import update_log_settings

DEFAULTS: Mapping[str, Any] = {option.name: option.default for option in LOG_OPTIONS}
LOGGER = logging.getLogger("naiad")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(**options: Any) -> tuple[str, str]:
    """What goes to stdout and stderr when one line of each level is logged with these options."""
    out, err = io.StringIO(), io.StringIO()
    settings = DEFAULTS | {f"log-{name}": value for name, value in options.items()}
    with logging_to(settings, out, err):
        LOGGER.log(VERBOSE_2, "two")
        LOGGER.debug("one")
        LOGGER.info("info")
        LOGGER.warning("warning")
        LOGGER.error("error")
        LOGGER.critical("fatal")
    return out.getvalue(), err.getvalue()


def messages(text: str) -> list[str]:
    return [line.rsplit('"', 2)[1] for line in text.splitlines()]


def record(message: str, level: int = logging.INFO, **extra: Any) -> logging.LogRecord:
    """A record of 2026-11-21 09:30:00.000123 UTC, process 17, server.py:12."""
    entry = logging.LogRecord("naiad.model", level, "/x/server.py", 12, message, None, None)
    entry.created, entry.process = 1795253400.000123, 17
    vars(entry).update(extra)
    return entry


def test_news_goes_to_stdout_and_trouble_to_stderr() -> None:
    out, err = written()

    assert (messages(out), messages(err)) == (["info"], ["warning", "error", "fatal"])


@pytest.mark.parametrize(("verbose", "expected"), [(0, ["info"]), (1, ["one", "info"]), (2, ["two", "one", "info"])])
def test_verbosity_adds_lines(verbose: int, expected: list[str]) -> None:
    out, _ = written(verbose=verbose)

    assert messages(out) == expected


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("info", ["warning", "error", "fatal"]),
        ("warning", ["info", "error", "fatal"]),
        ("error", ["info", "warning", "fatal"]),
    ],
)
def test_each_switch_silences_its_own_level(switch: str, expected: list[str]) -> None:
    out, err = written(**{switch: False})

    assert messages(out + err) == expected


def test_a_log_file_takes_every_level_and_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text('before "kept"\n')

    streams = written(file=str(path))

    assert streams == ("", "")
    assert messages(path.read_text()) == ["kept", "info", "warning", "error", "fatal"]


def test_a_log_file_that_cannot_be_opened_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"--log-file .*missing/server\.log cannot be opened: No such file"):
        written(file=str(tmp_path / "missing" / "server.log"))


def test_logging_is_as_before_afterwards() -> None:
    before = (logging.getLogger().handlers[:], logging.getLogger().level, LOGGER.level)

    written(verbose=2)

    assert (logging.getLogger().handlers, logging.getLogger().level, LOGGER.level) == before


def test_the_default_format_is_that_of_triton() -> None:
    line = formatter("default").format(record("ready"))

    assert line == 'I1121 09:30:00.000123 17 server.py:12] "ready"'


def test_the_iso_format_is_that_of_triton() -> None:
    line = formatter("ISO8601").format(record("ready", logging.WARNING))

    assert line == '2026-11-21T09:30:00Z W 17 server.py:12] "ready"'


def test_a_message_cannot_forge_a_line() -> None:
    line = formatter("default").format(record('no model "x"\nI1121 09:30:00.000123 17 server.py:12] "ready"'))

    assert "\n" not in line
    assert json.loads(line.split("] ", 1)[1]).startswith('no model "x"\n')


@pytest.mark.parametrize("form", ["default", "ISO8601", "json"])
def test_no_letter_that_ends_lines_or_commands_terminals_is_written(form: str) -> None:
    hostile = "ü\x1b[31m\x7f\x85\x9b\u2028\u2029"
    try:
        raise ValueError(hostile)
    except ValueError as error:
        failed = record(hostile, logging.ERROR, exc_info=(type(error), error, error.__traceback__))

    text = formatter(form).format(failed)

    assert all(line.isprintable() for line in text.split("\n"))
    assert "ü\\u001b[31m\\u007f\\u0085\\u009b\\u2028\\u2029" in text
    assert form != "json" or json.loads(text)["message"] == hostile


def test_escaping_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SERVER_ESCAPE_LOG_MESSAGES", "0")

    line = formatter("default").format(record("a\nb"))

    assert line.endswith("] a\nb")


def test_a_model_is_named_once_in_its_lines() -> None:
    plain = formatter("default").format(record("weights loaded", model="resnet", version="3"))
    named = formatter("default").format(record("resnet is ready", model="resnet", version="3"))

    assert plain.endswith("] \"model 'resnet' version 3: weights loaded\"")
    assert named.endswith('] "resnet is ready"')


def test_a_traceback_follows_indented() -> None:
    try:
        raise ValueError("I1121 forged")
    except ValueError as error:
        failed = record("broke", logging.ERROR, exc_info=(type(error), error, error.__traceback__))

    first, *others = formatter("default").format(failed).splitlines()

    assert first.endswith('] "broke"')
    assert others[-1] == "    ValueError: I1121 forged"
    assert all(line.startswith("    ") for line in others)


def test_json_lines_carry_model_version_and_request() -> None:
    entry = record("slow", logging.WARNING, model="resnet", version="3", request_id="r-7")

    line = json.loads(formatter("json").format(entry))

    assert line == {
        "time": "2026-11-21T09:30:00.000123Z",
        "level": "WARNING",
        "logger": "naiad.model",
        "message": "slow",
        "model": "resnet",
        "version": "3",
        "request_id": "r-7",
    }


def test_json_lines_without_a_model_have_no_such_keys_and_keep_a_traceback_in_one_line() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        failed = record("broke", logging.ERROR, exc_info=(type(error), error, error.__traceback__))

    text = formatter("json").format(failed)

    assert "\n" not in text
    assert set(json.loads(text)) == {"time", "level", "logger", "message", "exception"}
    assert json.loads(text)["exception"].endswith("ValueError: no")


def test_an_unknown_format_is_answered_with_the_formats() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'xml'; .* default, ISO8601 and json"):
        formatter("xml")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_colours_unless_its_user_minds(
    monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    out, err = Terminal(), Terminal()

    with logging_to(DEFAULTS, out, err):
        LOGGER.info("news")
        LOGGER.error("trouble")

    assert (out.getvalue().startswith("\033[32mI"), err.getvalue().startswith("\033[31mE")) == (coloured, coloured)
    assert re.sub(r"\033\[[0-9;]*m", "", err.getvalue()).startswith("E")


def test_other_libraries_speak_from_warning_up_in_the_same_format() -> None:
    out, err = io.StringIO(), io.StringIO()

    with logging_to(DEFAULTS, out, err):
        logging.getLogger("asyncio").info("noise")
        logging.getLogger("asyncio").warning("trouble")

    assert out.getvalue() == ""
    assert re.fullmatch(rf'W\d{{4}} [\d:.]{{15}} {os.getpid()} test_logs\.py:\d+\] "trouble"\n', err.getvalue())


def test_settings_change_while_lines_are_logged() -> None:
    out, err = io.StringIO(), io.StringIO()

    with logging_to(DEFAULTS, out, err) as control:
        for changes in ({}, {"log_info": False}, {"log_info": True, "log_verbose_level": 1}, {"log_warning": False}):
            update_log_settings(control, changes)
            LOGGER.debug("fine")
            LOGGER.info("news")
            LOGGER.warning("trouble")

    assert messages(out.getvalue()) == ["news", "fine", "news", "fine", "news"]
    assert messages(err.getvalue()) == ["trouble", "trouble", "trouble"]


def test_the_format_changes_for_every_stream() -> None:
    out, err = io.StringIO(), Terminal()

    with logging_to(DEFAULTS, out, err) as control:
        update_log_settings(control, {"log_format": "json"})
        LOGGER.info("news")
        update_log_settings(control, {"log_format": "ISO8601"})
        LOGGER.error("trouble")

    assert json.loads(out.getvalue())["message"] == "news"
    assert re.match(r"\x1b\[31m\d{4}-\d\d-\d\dT[\d:]+Z E ", err.getvalue())


def test_changes_are_undone_with_the_log() -> None:
    before = LOGGER.level

    with logging_to(DEFAULTS, io.StringIO(), io.StringIO()) as control:
        update_log_settings(control, {"log_verbose_level": 2})

    assert LOGGER.level == before
