"""Routes, options and codings of a whole server, asked with the standard library's client."""

import json

import pytest


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/v3", 404, "Not Found"),
        ("GET", "/v2/", 404, "Not Found"),
        ("GET", "/metrics", 404, "naiad-metrics"),
        ("GET", "/v2/models/add_sub/versions/x", 404, "Not Found"),
        ("GET", "/v2/models/add_sub/versions/x/ready", 404, "Not Found"),
        ("POST", "/v2/models/add_sub/versions/x/infer", 404, "Not Found"),
        ("POST", "/v2/models/add_sub/versions/0/infer", 400, "version should be an integral value > 0"),
        ("GET", f"/v2/models/add_sub/versions/{'9' * 5000}", 400, "version should be an integral value > 0"),
        ("GET", "/v2/models/..%2F..%2Fetc", 404, "Not Found"),
        ("POST", "/v2/models/..%2F..%2Fetc/infer", 404, "'../../etc'"),
        ("GET", f"/v2/models/{'x' * 5000}", 404, "is not found"),
        ("POST", "/v2/repository/models/..%2F..%2Fetc/load", 400, "must not contain path traversal characters"),
        ("POST", "/v2/repository/models/%00/load", 400, "must not contain path traversal characters"),
        ("POST", "/v2/repository/models/%20/load", 400, "Model name cannot be empty"),
        ("POST", "/v2/repository/here/models/m/load", 501, "'repository_name' specification is not supported"),
        ("POST", "/v2", 405, "Method Not Allowed"),
        ("GET", "/v2/models/add_sub/infer", 405, "Method Not Allowed"),
        ("DELETE", "/v2/models/add_sub/ready", 405, "Method Not Allowed"),
        ("GET", "/v2/repository/index", 405, "Method Not Allowed"),
        ("GET", "/v2/models/dream/ready", 404, "Request for unknown model: 'dream' is not found"),
    ],
)
def test_errors_of_other_paths_and_methods_are_json(shared_server, method, path, status, error):
    got, headers, body = shared_server.ask(method, path, b'{"inputs":[]}' if method == "POST" else None)

    assert (got, headers["content-type"]) == (status, "application/json")
    assert error in json.loads(body)["error"]
    assert ("allow" in headers) == (status == 405)


@pytest.mark.parametrize("action", ["infer", "generate", "generate_stream"])
def test_an_unknown_model_is_what_its_caller_hears_of_first(shared_server, action):
    status, _, answer = shared_server.ask("POST", f"/v2/models/dream/{action}", b"{broken")

    assert (status, b"unknown model: 'dream'" in answer) == (404, True)


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/v2/repository/index", b'{"ready":1}', "'ready': it must be true or false"),
        ("/v2/repository/index", b"{", "JSON buffer"),
        ("/v2/repository/index", b"[]", "must be an object"),
        ("/v2/repository/models/add_sub/load", b'{"parameters":{"x":"y"}}', "unrecognized load parameter 'x'"),
        ("/v2/repository/models/add_sub/load", b'{"parameters":{"config":1}}', "'config': "),
        ("/v2/repository/models/add_sub/load", b'{"config":"{}"}', "'config' belongs in 'parameters'"),
        ("/v2/repository/models/add_sub/load", b'{"file:1/a":""}', "'file:1/a' belongs in 'parameters'"),
        ("/v2/repository/models/add_sub/unload", b'{"unload_dependents":true}', "belongs in 'parameters'"),
        ("/v2/repository/models/add_sub/load", b'{"parameters":{"file:1/a":"%"}}', "is not valid base64"),
        (
            "/v2/repository/models/add_sub/load",
            b'{"parameters":{"file:1/a":""}}',
            "'config' must be specified",
        ),
        ("/v2/repository/models/add_sub/unload", b'{"parameters":{"unload_dependents":"x"}}', "must be true or false"),
        ("/v2/repository/models/add_sub/unload", b'{"parameters":{"dependents":true}}', "there is 'unload_dependents'"),
    ],
)
def test_repository_requests_that_are_invalid_are_refused(shared_server, path, body, error):
    status, _, answer = shared_server.ask("POST", path, body)

    assert status == 400
    assert error in json.loads(answer)["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/v2/repository/index",
        "/v2/repository/models/add_sub/unload",
        "/v2/systemsharedmemory/region/r/register",
        "/v2/cudasharedmemory/region/r/register",
        "/v2/trace/setting",
        "/v2/logging",
    ],
)
def test_a_document_that_has_no_need_of_more_is_small(shared_server, path):
    status, _, answer = shared_server.ask("POST", path, b" " * 65_537)

    assert status == 413
    assert json.loads(answer)["error"].startswith(
        "the body of 65537 bytes exceeds the maximum of 65536 bytes for this path"
    )


def test_the_index_tells_states_and_may_be_only_of_what_is_ready(server):
    server.ask("POST", "/v2/repository/models/add_sub/unload")

    everything = json.loads(server.ask("POST", "/v2/repository/any/index")[2])
    ready = json.loads(server.ask("POST", "/v2/repository/index", b'{"ready":true}')[2])

    (unloaded,) = [each["state"] for each in everything if each["name"] == "add_sub"]
    assert unloaded in ("UNLOADING", "UNAVAILABLE")
    assert "add_sub" not in {each["name"] for each in ready}
    assert {each["state"] for each in ready} == {"READY"}


def test_health_answers_have_their_bodies(shared_server):
    assert shared_server.ask("GET", "/v2/health/live")[::2] == (200, b'{"live":true}')
    assert shared_server.ask("GET", "/v2/health/ready")[::2] == (200, b'{"ready":true}')
    assert shared_server.ask("GET", "/v2/models/add_sub/versions/1/ready")[::2] == (
        200,
        b'{"name":"add_sub","ready":true}',
    )
    assert shared_server.ask("HEAD", "/v2/health/live")[::2] == (200, b"")


@pytest.mark.parametrize(
    ("path", "document", "error"),
    [
        ("/v2/logging", {"log_info": 1}, "expect boolean for 'log_info'"),
        ("/v2/logging", {"log_verbose_level": -1}, "expect int32 for 'log_verbose_level'"),
        ("/v2/logging", "x", "must be an object"),
        ("/v2/trace/setting", {"trace_levle": ["OFF"]}, "unknown trace setting 'trace_levle'"),
        ("/v2/trace/setting", {"trace_level": "OFF"}, "'trace_level': it must be an array"),
        ("/v2/trace/setting", {"trace_level": [1]}, "'trace_level': "),
        ("/v2/trace/setting", {"trace_rate": 2}, "'trace_rate': "),
        ("/v2/trace/setting", [], "must be an object"),
    ],
)
def test_settings_of_another_type_are_refused_and_nothing_changes(shared_server, path, document, error):
    before = shared_server.ask("GET", path)[2]

    status, headers, answer = shared_server.ask("POST", path, json.dumps(document))

    assert (status, headers["content-type"]) == (400, "application/json")
    assert error in json.loads(answer)["error"]
    assert shared_server.ask("GET", path)[2] == before


@pytest.mark.parametrize("path", ["/v2/logging", "/v2/trace/setting"])
def test_no_body_changes_no_setting(shared_server, path):
    assert shared_server.ask("POST", path)[::2] == shared_server.ask("GET", path)[::2]


def test_a_version_has_no_trace_settings_of_its_own(shared_server):
    assert shared_server.ask("GET", "/v2/models/add_sub/versions/1/trace/setting")[0] == 404
