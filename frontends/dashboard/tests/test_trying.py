"""Trials over HTTP: requests of the page's scripts reach the model, and those of other pages do not."""

import base64
import hashlib
import json
import select
import socket
from contextlib import ExitStack

import numpy as np
import pytest

from naiad.errors import NotFoundError
from naiad_kit.frontends.api_keys import ApiKeys
from naiad_testing.services import FakeService

OWN = {"Content_Type": "application/json", "naiad_dashboard": "1"}
PATH = "/models/m/versions/1"


def trial(text="1 2", **members):
    return json.dumps({"inputs": {"INPUT": {"kind": "values", "value": text}}, **members})


def lines(body):
    return [json.loads(line) for line in body.splitlines()]


def test_a_trial_is_answered_with_its_outputs_and_timeline(server):
    status, headers, body = server.ask(f"{PATH}/trial", "POST", trial(), **OWN)

    answer, end = lines(body)
    assert (status, headers["content-type"]) == (200, "application/x-ndjson")
    assert answer["response"]["outputs"] == [{"name": "OUTPUT", "datatype": "FP32", "shape": [2], "text": "[1., 2.]"}]
    assert [each["closed"] for each in end["end"]["timeline"]["executions"]] != []
    assert end["seconds"] >= answer["seconds"] > 0


def test_large_and_odd_outputs_are_shown_short_and_exact(server, backend):
    backend.answer = lambda batch: {"OUTPUT": np.array([np.nan] + [0.1] * 5000, np.float32)}

    answer, _ = lines(server.ask(f"{PATH}/trial", "POST", trial(), **OWN)[2])

    assert answer["response"]["outputs"][0]["text"] == "[nan, 0.1, 0.1, ..., 0.1, 0.1, 0.1]"


def test_outputs_with_labels_show_the_largest_classes(start_server, backend, models):
    output = 'output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" }'
    (backend.write(models, "c", output) / "labels.txt").write_text("<b>cat\ndog\nfish\n")
    backend.answer = lambda batch: {"OUTPUT": np.array([0.1, 0.7, 0.2], np.float32)}
    server = start_server()

    answer, _ = lines(server.ask("/models/c/versions/1/trial", "POST", trial(), **OWN)[2])

    (output,) = answer["response"]["outputs"]
    assert [(each["label"], each["value"]) for each in output["classes"]] == [
        ("dog", "0.7"),
        ("fish", "0.2"),
        ("<b>cat", "0.1"),
    ]


def test_an_error_of_the_model_ends_the_trial(server, backend):
    def fail(batch):
        raise ValueError("<b>broken</b>")

    backend.answer = fail
    (end,) = lines(server.ask(f"{PATH}/trial", "POST", trial(), **OWN)[2])

    assert "<b>broken</b>" in end["end"]["error"]


def test_a_trial_of_a_model_that_is_unloaded_meanwhile_has_a_last_line(server, monkeypatch):
    def unloaded(name, output, version=0):
        raise NotFoundError("the model 'm' is not loaded")

    monkeypatch.setattr(server.client.server, "labels", unloaded)

    (end,) = lines(server.ask(f"{PATH}/trial", "POST", trial(), **OWN)[2])

    assert end["end"]["error"] == "the model 'm' is not loaded"


def test_eight_trials_run_at_once_also_when_their_forms_arrive_together(server, backend):
    head = (
        f"POST {PATH}/trial HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nNaiad-Dashboard: 1\r\n"
        f"Content-Length: {len(trial())}\r\n\r\n"
    )
    backend.hold()
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(server.address)) for _ in range(9)]
        for client in clients:
            client.sendall((head + trial()[:-1]).encode())
        assert server.ask()[0] == 200  # all of that was read
        for client in clients:
            client.sendall(trial()[-1:].encode())
        received = b""
        while b"8 trials run already" not in received:
            (client, *_), _, _ = select.select(clients, (), (), 20)
            received += client.recv(1 << 16)
        refused = server.ask(f"{PATH}/trial", "POST", trial(), **OWN)
        backend.release()

    assert refused[0] == 503
    assert "8 trials run already" in refused[2]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[]", "with 'inputs'"),
        ("{", "not valid JSON"),
        (json.dumps({"inputs": {"NONE": {}}}), "no input 'NONE'; there are INPUT"),
        (trial("x"), "'x' of input 'INPUT'"),
        (trial(parameters={"sequence_start": 1}), "must be bool"),
        (trial(parameters={"triton_x": 1}), "reserved"),
        (json.dumps({"inputs": {"INPUT": {"kind": "npy", "value": base64.b64encode(b"x").decode()}}}), ".npy"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(server, body, words):
    status, _, text = server.ask(f"{PATH}/trial", "POST", body, **OWN)

    assert status == 400
    assert words in json.loads(text)["error"]


@pytest.mark.parametrize("path", [f"{PATH}/trial", f"{PATH}/snippets"])
@pytest.mark.parametrize(
    "headers",
    [
        {"naiad_dashboard": ""},
        {"Content_Type": "text/plain"},
        {"Origin": "http://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "null"},
        {"Origin": "http://[x"},
    ],
)
def test_other_pages_can_make_no_requests(server, backend, path, headers):
    status, answered, body = server.ask(path, "POST", trial(), **{**OWN, **headers})

    assert status == 403
    assert "does not come from a page of this dashboard" in body
    assert not [name for name in answered if name.startswith("access-control")]
    assert backend.batches == []
    assert server.ask(path, "OPTIONS")[0] == 405  # a preflight is not granted


def test_a_page_of_the_dashboard_behind_a_proxy_may(server):
    own = {**OWN, "Origin": "https://models.example", "X_Forwarded_Host": "models.example"}

    assert server.ask(f"{PATH}/trial", "POST", trial(), **own)[0] == 200


def test_restricted_inference_needs_its_header_and_the_timeline_that_of_traces(start_server, http_options):
    rules = ("inference:key=secret", "trace:other=secret")
    server = start_server(http_options, **{"http-restricted-api": rules})

    status, _, body = server.ask(f"{PATH}/trial", "POST", trial(), **OWN)
    assert (status, json.loads(body)["header"]) == (403, "key")
    assert server.ask(f"{PATH}/snippets", "POST", trial(), **OWN)[0] == 403
    (_, end) = lines(server.ask(f"{PATH}/trial", "POST", trial(), key="secret", **OWN)[2])
    assert end["end"] == {}


def test_api_keys_open_trials_of_their_models(start_server, backend, models, tmp_path):
    backend.write(models, "other")
    text = 'without_key = []\n[[key]]\nname = "app"\nsha256 = "%s"\nmodels = ["m"]\n'
    (tmp_path / "keys.toml").write_text(text % hashlib.sha256(b"app-key").hexdigest())

    class Keys(ApiKeys, FakeService):
        def __init__(self, path):
            ApiKeys.__init__(self, path)
            FakeService.__init__(self)

    server = start_server(Keys(str(tmp_path / "keys.toml")))

    status, _, body = server.ask(f"{PATH}/trial", "POST", trial(), **OWN)
    assert (status, json.loads(body)["header"]) == (403, "x-api-key")
    assert server.ask("/models/other/versions/1/trial", "POST", trial(), x_api_key="app-key", **OWN)[0] == 403
    (_, end) = lines(server.ask(f"{PATH}/trial", "POST", trial(), x_api_key="app-key", **OWN)[2])
    assert end["end"] == {}  # the timeline is of the group `trace`
    assert server.ask("/models/m")[0] == 200


def test_the_bytes_of_a_trial_count_in_the_budget_until_they_are_read(start_server):
    server = start_server(**{"max-bytes-in-flight": 10_000})

    status, _, body = server.ask(f"{PATH}/trial", "POST", trial("1 " * 10_000), **OWN)

    assert status == 503
    assert "--max-bytes-in-flight" in json.loads(body)["error"]
    assert server.ask(f"{PATH}/trial", "POST", trial(), **OWN)[0] == 200
    assert server.ask(f"{PATH}/trial", "GET")[0] == 405


def test_an_input_that_is_no_object_is_not_an_unknown_one(server):
    status, _, body = server.ask(f"{PATH}/trial", "POST", json.dumps({"inputs": {"INPUT": 1}}), **OWN)

    assert status == 400
    assert json.loads(body)["error"].startswith("input 'INPUT' of a trial is a JSON object")


def test_a_client_that_leaves_within_its_form_is_no_failure_of_the_dashboard(server, caplog):
    pieces = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"naiad-dashboard", b"1")]
    scope = {"type": "http", "method": "POST", "path": f"{PATH}/trial", "query_string": b"", "headers": headers}
    sent = []

    async def run(_server):
        async def receive():
            return pieces.pop(0)

        async def send(message):
            sent.append(message)

        await server.frontend._dashboard.application(scope, receive, send)

    server.client.wait_for(run)

    assert sent[0]["status"] == 499
    assert "the dashboard failed" not in caplog.text


def test_an_unknown_model_is_not_there(server):
    assert server.ask("/models/none/versions/1/trial", "POST", trial(), **OWN)[0] == 404
