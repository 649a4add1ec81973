"""Log settings over HTTP."""

import json
import logging

import pytest

DEFAULTS = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}


@pytest.fixture(autouse=True)
def level():
    """The logger of the test's own process is as before afterwards."""
    before = logging.getLogger("naiad").level
    yield
    logging.getLogger("naiad").setLevel(before)


def ask(server, method, document=None):
    status, headers, body = server.ask(method, "/v2/logging", None if document is None else json.dumps(document))
    assert headers["content-type"] == "application/json"
    return status, json.loads(body)


def test_all_settings_are_told(server):
    assert ask(server, "GET") == (200, DEFAULTS)


def test_a_change_is_answered_with_all_settings(server):
    changes = {"log_info": False, "log_verbose_level": 2, "log_format": "ISO8601"}

    assert ask(server, "POST", changes) == (200, {**DEFAULTS, **changes})
    assert ask(server, "GET") == (200, {**DEFAULTS, **changes})


def test_no_body_changes_nothing(server):
    assert ask(server, "POST") == (200, DEFAULTS)


@pytest.mark.parametrize(
    ("document", "status", "message"),
    [
        ({"log_file": ""}, 501, "log file location can not be updated through network protocol"),
        ({"log_format": "foo"}, 400, "invalid argument for log_format, got: foo"),
        ({"log_info": 1}, 400, "expect boolean for 'log_info'"),
        ({"log_verbose_level": -1}, 400, "expect int32 for 'log_verbose_level'"),
        ({"log_foo": 1}, 400, "unknown log setting 'log_foo'"),
        ("x", 400, "must be an object"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(server, document, status, message):
    got, answer = ask(server, "POST", document if isinstance(document, str) else {"log_info": False, **document})

    assert got == status
    assert message in answer["error"]
    assert ask(server, "GET") == (200, DEFAULTS)
