"""Behaviours of settings that change while the server runs: traces, of all models and of one, and the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from naiad_testing.frontends.refusals import refusal
from naiad_testing.frontends.stage import Served, Stage
from naiad_testing.frontends.table import Table

SETTINGS = Table()
LOG = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}


@contextmanager
def traced(stage: Stage) -> Iterator[Served]:
    """A server with a trace file that nothing is written to."""
    with stage.serving({"trace-config": (f"triton,file={stage.folder / 't.json'}", "rate=7")}) as served:
        yield served


@contextmanager
def logging_restored() -> Iterator[None]:
    """The test's own logger is as before afterwards."""
    before = logging.getLogger("naiad").level
    try:
        yield
    finally:
        logging.getLogger("naiad").setLevel(before)


@SETTINGS.behaviour
def trace_settings_are_texts_and_a_list_of_levels(stage: Stage) -> None:
    with traced(stage) as served:
        of_all, of_one = served.adapter.trace_settings(), served.adapter.trace_settings("add_sub")

    assert of_all == of_one
    assert of_all == {
        "trace_level": ["OFF"],
        "trace_rate": ["7"],
        "trace_count": ["-1"],
        "log_frequency": ["0"],
        "trace_mode": ["triton"],
        "trace_file": [str(stage.folder / "t.json")],
    }


@SETTINGS.behaviour
def trace_settings_of_a_model_are_its_own_until_they_are_cleared(stage: Stage) -> None:
    with traced(stage) as served:
        adapter = served.adapter
        changed = adapter.set_trace({"trace_level": ["TENSORS", "TIMESTAMPS"], "trace_rate": "2"})
        rates = [
            (adapter.set_trace({"trace_rate": rate}, "add_sub")["trace_rate"], adapter.trace_settings()["trace_rate"])
            for rate in ("3", None)
        ]
        cleared = adapter.set_trace({"trace_rate": None, "trace_level": None})

    assert (changed["trace_level"], changed["trace_rate"]) == (["TIMESTAMPS", "TENSORS"], ["2"])
    assert rates == [(["3"], ["2"]), (["2"], ["2"])]
    assert (cleared["trace_level"], cleared["trace_rate"]) == (["OFF"], ["7"])


TRACE: dict[str, tuple[dict[str, Any], str, str]] = {
    "file": ({"trace_file": "x"}, "UnsupportedError", "trace file"),
    "mode": ({"trace_mode": "opentelemetry"}, "UnsupportedError", "'trace_mode'"),
    "off and a level": ({"trace_level": ["OFF", "TENSORS"]}, "InvalidArgumentError", "OFF"),
    "unknown level": ({"trace_level": ["FOO"]}, "InvalidArgumentError", "'FOO'"),
    "rate": ({"trace_rate": "x"}, "InvalidArgumentError", "'trace_rate'"),
    "count": ({"trace_count": "-2"}, "InvalidArgumentError", "'trace_count'"),
    "unknown setting": ({"trace_rates": "2"}, "InvalidArgumentError", "'trace_rates'"),
}


@SETTINGS.cases(TRACE)
def a_trace_setting_that_cannot_be_is_refused(stage: Stage, changes: dict[str, Any], error: str, fact: str) -> None:
    adapter = stage.shared.adapter
    before = adapter.trace_settings()

    assert fact in refusal(stage, lambda: adapter.set_trace({"trace_rate": "9", **changes}), error)
    assert adapter.trace_settings() == before


@SETTINGS.behaviour
def an_unknown_model_has_no_trace_settings(stage: Stage) -> None:
    adapter = stage.shared.adapter

    assert "'dream'" in refusal(stage, lambda: adapter.trace_settings("dream"), "NotFoundError")
    assert "'dream'" in refusal(stage, lambda: adapter.set_trace({"trace_rate": "1"}, "dream"), "NotFoundError")


@SETTINGS.behaviour
def log_settings_change_and_are_answered_whole(stage: Stage) -> None:
    changes = {"log_info": False, "log_verbose_level": 2, "log_format": "ISO8601"}
    with logging_restored(), stage.serving() as served:
        before = served.adapter.log_settings()
        changed = served.adapter.set_log(changes)
        after = served.adapter.log_settings()

    assert (before, changed, after) == (LOG, LOG | changes, LOG | changes)


LOGS: dict[str, tuple[dict[str, Any], str, str]] = {
    "file": ({"log_file": "x"}, "UnsupportedError", "log file"),
    "format": ({"log_format": "foo"}, "InvalidArgumentError", "log_format"),
    "unknown setting": ({"log_foo": 1}, "InvalidArgumentError", "'log_foo'"),
}


@SETTINGS.cases(LOGS)
def a_log_setting_that_cannot_be_is_refused(stage: Stage, changes: dict[str, Any], error: str, fact: str) -> None:
    adapter = stage.shared.adapter

    assert fact in refusal(stage, lambda: adapter.set_log({"log_info": False, **changes}), error)
    assert adapter.log_settings() == LOG
