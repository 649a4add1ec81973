"""The commands that ask a running server, against a server of canned answers."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from naiad_cli.main import main

METADATA = {
    "name": "add",
    "versions": ["2"],
    "inputs": [
        {"name": "A", "datatype": "FP32", "shape": [-1, 2]},
        {"name": "B", "datatype": "BYTES", "shape": [-1, 1]},
    ],
    "outputs": [{"name": "C", "datatype": "FP32", "shape": [-1, 2]}],
}


@dataclass
class Canned:
    """A server: `answers` by path are (status, headers, body); `asked` are the requests it got."""

    url: str
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def answer(self, path: str, document: Any, tail: bytes = b"", status: int = 200) -> None:
        body = json.dumps(document).encode()
        headers = {"Inference-Header-Content-Length": str(len(body))} if tail else {}
        self.answers[path] = (status, headers, body + tail)


@pytest.fixture
def server() -> Iterator[Canned]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            canned.requests.append((self.command, self.path, dict(self.headers), body))
            status, headers, answer = canned.answers[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, *words: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        canned = Canned(f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield canned
        listening.shutdown()
        thread.join()


def test_models_prints_the_index_with_the_reasons(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer(
        "/v2/repository/index",
        [
            {"name": "add", "version": "2", "state": "READY"},
            {"name": "bad", "version": "1", "state": "UNAVAILABLE", "reason": "no\nfile"},
            {"name": "new"},
        ],
    )

    status = main(["models", "--url", server.url])

    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        "Model\tVersion\tState\tReason",
        "add\t2\tREADY",
        "bad\t1\tUNAVAILABLE\tno file",
        "new",
    ]


def test_models_are_listed_as_json_for_programs(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    index = [{"name": "add", "version": "2", "state": "READY"}, {"name": "bad", "reason": "no\nfile"}]
    server.answer("/v2/repository/index", index)

    status = main(["models", "--url", server.url, "--json"])

    assert (status, json.loads(capsys.readouterr().out)) == (0, index)


def test_headers_of_the_command_line_and_of_the_variable_are_sent(
    server: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer("/v2/repository/index", [])
    monkeypatch.setenv("NAIAD_URL", server.url)

    main(["models", "--header", "Authorization: Bearer abc", "--header", "X-Tenant:7"])
    monkeypatch.setenv("NAIAD_HEADER", "Authorization: Bearer def\nX-Tenant: 8\n")
    main(["models"])

    sent = [{name.lower(): value for name, value in headers.items()} for _, _, headers, _ in server.requests]
    assert [(each["authorization"], each["x-tenant"]) for each in sent] == [("Bearer abc", "7"), ("Bearer def", "8")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--header", "Authorization"], "--header 'Authorization' is not a header; write --header 'Auth"),
        (["--header", "A B: c"], "--header 'A B' is not a header"),
        (["--header", "A: c\nd"], "--header 'A' is not a header"),
        (["--ca-file", "no/such.pem"], "--ca-file no/such.pem cannot be used: "),
    ],
)
def test_headers_and_authorities_that_cannot_be_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["models", *words])

    assert status == 2
    assert message in capsys.readouterr().err


def test_a_stream_is_printed_as_it_comes_and_its_error_ends_it(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer("/v2/models/add", METADATA)
    events = [{"model_name": "add", "C": [1.0, 2.0]}, {"C": 3.0}, {"error": "it broke"}]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    server.answers["/v2/models/add/generate_stream"] = (200, {}, body)

    words = ["--input", "A=1,2", "--input", "B=é", "--parameter", "k=7", "--id", "r1"]
    status = main(["infer", "add", "--url", server.url, "--stream", *words])

    printed = capsys.readouterr()
    assert (status, printed.out, printed.err) == (1, "[1.0, 2.0]\n3.0\n", "naiad infer: it broke\n")
    assert json.loads(server.requests[1][3]) == {"A": [1.0, 2.0], "B": ["é"], "k": 7, "id": "r1"}


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        ((200, {"model_transaction_policy": {"decoupled": True}}), "; here add --stream"),
        ((200, {"model_transaction_policy": {"decoupled": False}}), ""),
        ((200, {}), ""),
        ((403, {"error": "restricted"}), ""),
    ],
)
def test_a_model_whose_configuration_says_that_it_streams_is_answered_with_the_option_for_it(
    server: Canned, capsys: pytest.CaptureFixture[str], config: tuple[int, Any], advice: str
) -> None:
    server.answer("/v2/models/add", METADATA)
    server.answer("/v2/models/add/infer", {"error": "one response alone"}, status=501)
    server.answer("/v2/models/add/config", config[1], status=config[0])

    status = main(["infer", "add", "--url", server.url, "--input", "A=1,2"])

    assert (status, capsys.readouterr().err) == (1, f"naiad infer: one response alone{advice}\n")


def test_a_stream_as_json_is_one_object_a_line(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer("/v2/models/add", METADATA)
    server.answers["/v2/models/add/generate_stream"] = (200, {}, b'data: {"C":1}\n\ndata: {"C":2}\n\n')

    status = main(["infer", "add", "--url", server.url, "--stream", "--json", "--input", "A=1,2"])

    assert (status, capsys.readouterr().out) == (0, '{"C": 1}\n{"C": 2}\n')


def test_infer_prints_json_for_programs(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer("/v2/models/add", METADATA)
    output = {"name": "C", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
    answer = {"model_name": "add", "model_version": "2", "outputs": [output]}
    server.answer("/v2/models/add/infer", answer, np.array([4, 6], np.float32).tobytes())

    main(["infer", "add", "--url", server.url, "--json", "--input", "A=1,2"])

    expected = {"name": "C", "datatype": "FP32", "shape": [1, 2], "data": [4.0, 6.0]}
    assert json.loads(capsys.readouterr().out) == answer | {"outputs": [expected]}


def test_models_can_ask_for_the_ready_ones(server: Canned) -> None:
    server.answer("/v2/repository/index", [])

    main(["models", "--url", server.url, "--ready"])

    assert json.loads(server.requests[0][3]) == {"ready": True}


def test_infer_sends_the_inputs_in_the_shape_of_the_model_and_prints_the_outputs(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer("/v2/models/add", METADATA)
    output = {"name": "C", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
    answer = {"model_name": "add", "model_version": "2", "outputs": [output], "parameters": {"took": 3}}
    server.answer("/v2/models/add/infer", answer, np.array([4, 6], np.float32).tobytes())

    words = ["--input", "A=1,2", "--input", "B=x=y", "--parameter", "k=7", "--id", "r1", "--output", "C"]
    status = main(["infer", "add", "--url", server.url, *words])

    assert status == 0
    assert capsys.readouterr().out == "add version 2\nparameter took = 3\nC FP32[1, 2]\n[[4., 6.]]\n"
    _, _, headers, body = server.requests[1]
    length = int(headers["Inference-Header-Content-Length"])
    assert json.loads(body[:length]) == {
        "id": "r1",
        "inputs": [
            {"name": "A", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}},
            {"name": "B", "datatype": "BYTES", "shape": [1, 1], "parameters": {"binary_data_size": 7}},
        ],
        "outputs": [{"name": "C", "parameters": {"binary_data": True}}],
        "parameters": {"k": 7},
    }
    assert body[length:] == np.array([1, 2], np.float32).tobytes() + b"\x03\0\0\0x=y"


def test_infer_asks_one_version_where_it_is_given(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer("/v2/models/a%2Fb/versions/2", METADATA)
    server.answer("/v2/models/a%2Fb/versions/2/infer", {"error": "the model refuses"}, status=400)

    status = main(["infer", "a/b", "--model-version=2", "--url", server.url, "--input", "A=1,2"])

    assert (status, capsys.readouterr().err) == (1, "naiad infer: the model refuses\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no --input is given; the model takes A FP32[-1, 2], B BYTES[-1, 1]"),
        (["--input", "Z=1"], "model 'add' has no input 'Z'; the model takes A FP32[-1, 2], B BYTES[-1, 1]"),
        (["--input", "A"], "--input 'A' has no NAME=; write --input NAME=VALUE once for each name"),
        (["--input=A=1,2", "--input=A=1,2"], "--input names 'A' twice; write --input NAME=VALUE once for each name"),
    ],
)
def test_infer_tells_what_is_wrong_with_the_inputs(
    server: Canned, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    server.answer("/v2/models/add", METADATA)

    status = main(["infer", "add", "--url", server.url, *words])

    assert (status, capsys.readouterr().err) == (2, f"naiad infer: {message}\n")


@pytest.mark.parametrize(
    ("model", "index", "advice"),
    [
        ("ad", (200, [{"name": "add", "version": "1"}]), "; did you mean 'add'?"),
        ("xyz", (200, [{"name": "add", "version": "1"}]), "; naiad models lists those there are"),
        ("add", (200, [{"name": "add", "version": "1"}]), ""),
        ("ad", (403, {"error": "the key does not allow that"}), ""),
    ],
)
def test_infer_names_the_nearest_model_for_one_that_is_not_there(
    server: Canned, capsys: pytest.CaptureFixture[str], model: str, index: tuple[int, Any], advice: str
) -> None:
    server.answer(f"/v2/models/{model}", {"error": "no such model"}, status=404)
    server.answer("/v2/repository/index", index[1], status=index[0])

    status = main(["infer", model, "--url", server.url])

    assert (status, capsys.readouterr().err) == (1, f"naiad infer: no such model{advice}\n")


def test_infer_ends_with_status_1_where_a_value_is_not_one_of_its_input(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer("/v2/models/add", METADATA)

    status = main(["infer", "add", "--url", server.url, "--input", "A=1,2,3"])

    assert status == 1
    assert capsys.readouterr().err.startswith("naiad infer: input 'A' has 3 values")


def test_infer_asks_for_an_explanation_and_prints_it_below_the_outputs(
    server: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"model": "add", "version": 2, "received": 0.0, "queued": 5.0, "answered": 9.5}
    server.answer("/v2/models/add", METADATA)
    server.answer(
        "/v2/models/add/infer",
        {
            "model_name": "add",
            "model_version": "2",
            "parameters": {"other": 1, "naiad_explain": json.dumps(report)},
            "outputs": [{"name": "C", "datatype": "FP32", "shape": [1], "data": [2.0]}],
        },
    )

    status = main(["infer", "add", "--url", server.url, "--input", "A=1,2", "--explain"])

    *_, headers, body = server.requests[-1]
    length = next(int(value) for name, value in headers.items() if name.lower() == "inference-header-content-length")
    assert status == 0
    assert json.loads(body[:length])["parameters"]["naiad_explain"] is True
    assert capsys.readouterr().out.splitlines() == [
        "add version 2",
        "parameter other = 1",
        "C FP32[1]",
        "[2.]",
        "Phase\tStart µs\tTook µs\tNote",
        "take in\t0.0\t5.0",
        "answer\t5.0\t4.5",
    ]


def test_a_server_without_explanations_is_reported(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer("/v2/models/add", METADATA)
    server.answer("/v2/models/add/infer", {"model_name": "add", "model_version": "2", "outputs": []})

    status = main(["infer", "add", "--url", server.url, "--input", "A=1,2", "--explain"])

    assert status == 1
    assert capsys.readouterr().err == "the server gave no explanation; start it with --allow-explain\n"


def test_no_server_is_notified_with_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["models", "--url", "http://127.0.0.1:9"])

    assert status == 1
    assert capsys.readouterr().err.endswith(
        "Connection refused; start one with naiad serve DIR, or name another with --url\n"
    )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://x", "--url ftp://x is not an HTTP address"),
        ("http://127.0.0.1:x", "--url http://127.0.0.1:x is not an HTTP address: Port could not be cast"),
    ],
)
def test_what_is_no_address_is_refused(capsys: pytest.CaptureFixture[str], url: str, message: str) -> None:
    status = main(["models", "--url", url])

    assert status == 2
    assert message in capsys.readouterr().err


def test_an_answer_that_is_no_json_is_reported(server: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    server.answers["/v2/repository/index"] = (502, {}, b"<html>bad gateway")

    status = main(["models", "--url", server.url])

    assert status == 1
    assert capsys.readouterr().err == "naiad models: the server answered 502 Bad Gateway: <html>bad gateway\n"
