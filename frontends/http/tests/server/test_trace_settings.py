"""Trace settings over HTTP."""

import json

import pytest

SETTING = "/v2/trace/setting"
OF_MODEL = "/v2/models/add_sub/trace/setting"


@pytest.fixture
def server(start_server, tmp_path):
    """A running server with a trace file that nothing is written to yet."""
    return start_server(**{"trace-config": (f"triton,file={tmp_path / 't.json'}", "rate=7")})


def ask(server, method, path, document=None):
    status, headers, body = server.ask(method, path, None if document is None else json.dumps(document))
    assert headers["content-type"] == "application/json"
    return status, json.loads(body)


def test_settings_are_texts_and_a_list_of_levels(server, tmp_path):
    expected = {
        "trace_level": ["OFF"],
        "trace_rate": "7",
        "trace_count": "-1",
        "log_frequency": "0",
        "trace_mode": "triton",
        "trace_file": str(tmp_path / "t.json"),
    }

    assert ask(server, "GET", SETTING) == (200, expected)
    assert ask(server, "GET", OF_MODEL) == (200, expected)


def test_a_change_is_answered_with_what_counts_then(server):
    status, changed = ask(server, "POST", SETTING, {"trace_level": ["TENSORS", "TIMESTAMPS"], "trace_rate": "2"})

    assert (status, changed["trace_level"], changed["trace_rate"]) == (200, ["TIMESTAMPS", "TENSORS"], "2")


def test_a_model_s_change_is_its_own_until_it_is_cleared(server):
    changes = []

    for document in ({"trace_rate": "3"}, {"trace_rate": None}):
        status, changed = ask(server, "POST", OF_MODEL, document)
        changes.append((status, changed["trace_rate"], ask(server, "GET", SETTING)[1]["trace_rate"]))

    assert changes == [(200, "3", "7"), (200, "7", "7")]


def test_no_body_changes_nothing(server):
    assert ask(server, "POST", SETTING) == ask(server, "GET", SETTING)


@pytest.mark.parametrize(
    ("document", "status", "message"),
    [
        ({"trace_file": "x"}, 501, "trace file location can not be updated through network protocol"),
        ({"trace_mode": "opentelemetry"}, 501, "'trace_mode' is 'triton' and can not be updated"),
        ({"trace_level": ["OFF", "TENSORS"]}, 400, "Expect only one trace level 'OFF' is specified"),
        ({"trace_level": ["FOO"]}, 400, "unknown trace_level 'FOO'"),
        ({"trace_level": "OFF"}, 400, "'trace_level': it must be an array"),
        ({"trace_level": [1]}, 400, "'trace_level': it must be a string"),
        ({"trace_rate": "x"}, 400, "Unable to parse 'trace_rate', got: x"),
        ({"trace_rate": 2}, 400, "'trace_rate': it must be a string"),
        ({"trace_count": "-2"}, 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"),
        ({"trace_rates": "2"}, 400, "unknown trace setting 'trace_rates'"),
        ([], 400, "must be an object"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(server, document, status, message):
    before = ask(server, "GET", SETTING)

    got, answer = ask(server, "POST", SETTING, document)

    assert got == status
    assert message in answer["error"]
    assert ask(server, "GET", SETTING) == before


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_model_has_no_settings(server, method):
    status, answer = ask(server, method, "/v2/models/dream/trace/setting", {} if method == "POST" else None)

    assert (status, answer["error"]) == (404, "Request for unknown model: 'dream' is not found")


def test_a_version_has_no_settings_of_its_own(server):
    assert ask(server, "GET", "/v2/models/add_sub/versions/1/trace/setting")[0] == 404
