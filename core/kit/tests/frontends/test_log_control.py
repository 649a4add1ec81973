"""The log options of a running server."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from naiad.options import LOG_OPTIONS
from naiad_kit.frontends.log_control import VERBOSE_2, LogControl

OPTIONS: Mapping[str, Any] = {option.name: option.default for option in LOG_OPTIONS}


def test_a_change_is_applied_at_once() -> None:
    applied: list[Mapping[str, Any]] = []
    control = LogControl({**OPTIONS, "http-port": 8000}, applied.append)

    control.change({"log-warning": False, "log-format": "json"})

    assert applied == [control.options] == [{**OPTIONS, "log-warning": False, "log-format": "json"}]


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, logging.INFO),
        ({"log-info": False}, logging.WARNING),
        ({"log-info": False, "log-warning": False}, logging.ERROR),
        ({"log-info": False, "log-warning": False, "log-error": False}, logging.CRITICAL),
        ({"log-verbose": 1}, logging.DEBUG),
        ({"log-verbose": 5}, VERBOSE_2),
    ],
)
def test_within_a_program_the_level_of_the_logger_changes(changes: dict[str, Any], level: int) -> None:
    before = logging.getLogger("naiad").level
    try:
        LogControl.of_settings(OPTIONS).change(changes)

        assert logging.getLogger("naiad").level == level
    finally:
        logging.getLogger("naiad").setLevel(before)
