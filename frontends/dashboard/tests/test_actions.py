"""Actions: none without a token file, and none for a request without its token."""

import json
import logging

import pytest

from naiad.errors import InvalidArgumentError

OWN = {"Content_Type": "application/json", "naiad_dashboard": "1"}
TOKEN = "0123456789abcdef"


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


@pytest.fixture
def server(start_server, token_file):
    return start_server(**{"dashboard-token-file": str(token_file)})


def act(server, path, token=TOKEN, **document):
    status, _, body = server.ask(
        f"/actions/{path}", "POST", json.dumps(document), Authorization=f"Bearer {token}", **OWN
    )
    return status, json.loads(body)


def test_without_a_token_file_nothing_can_be_changed(start_server):
    server = start_server()

    for path in ("load", "unload", "logging", "trace"):
        assert server.ask(f"/actions/{path}", "POST", "{}", Authorization=f"Bearer {TOKEN}", **OWN)[0] == 404
    assert server.ask("/control")[0] == 404
    assert "/control" not in server.ask("/")[2]


def test_models_are_loaded_and_unloaded(server, backend):
    assert act(server, "unload", model="m")[0] == 200
    assert act(server, "load", model="m") == (200, {"done": "The model m is loaded."})
    assert backend.events.count("load m 1") == 2
    assert act(server, "load", model="none")[0] in (400, 404)
    assert act(server, "load")[0] == 400


def test_log_and_trace_settings_are_changed(server):
    level = logging.getLogger("naiad").level
    try:
        status, answer = act(server, "logging", log_verbose_level=1)
        assert (status, answer["logging"]["log_verbose_level"]) == (200, 1)
        status, answer = act(server, "trace", settings={"trace_rate": "7"})
        assert (status, answer["trace"]["trace_rate"]) == (200, "7")
        assert act(server, "logging", log_level="x")[0] == 400
        assert act(server, "trace", settings={"trace_rate": 7})[0] == 400
    finally:
        logging.getLogger("naiad").setLevel(level)


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x"])
def test_a_wrong_token_changes_nothing(server, backend, token):
    status, answer = act(server, "unload", token=token, model="m")

    assert (status, answer["token"]) == (401, True)
    assert answer["error"].startswith("this is not the token in")
    assert "close m 1" not in backend.events


def test_the_token_alone_is_not_enough_for_another_page(server, backend):
    headers = {**OWN, "Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}

    assert server.ask("/actions/unload", "POST", json.dumps({"model": "m"}), **headers)[0] == 403
    assert "close m 1" not in backend.events


def test_a_new_token_counts_at_once(server, token_file):
    token_file.write_text("another-token-1234")

    assert act(server, "load", model="m")[0] == 401
    assert act(server, "load", token="another-token-1234", model="m")[0] == 200


def test_an_endless_body_is_refused(server):
    assert act(server, "load", model="m" * 70_000)[0] == 400


def test_the_page_of_actions_has_the_models_and_the_settings(server):
    _, _, page = server.ask("/control")

    assert "log_verbose_level" in page
    assert "trace_rate" in page
    assert TOKEN not in page


@pytest.mark.parametrize(("content", "words"), [("short", "16 at least"), (None, "cannot be read")])
def test_a_file_without_a_token_ends_the_start(start_server, tmp_path, content, words):
    file = tmp_path / "bad"
    if content is not None:
        file.write_text(content)

    with pytest.raises(InvalidArgumentError, match=f"--dashboard-token-file.*{words}"):
        start_server(**{"dashboard-token-file": str(file)})
