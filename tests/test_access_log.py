"""The access log of a server process: one line for each request, in both protocols and both forms."""

import http.client
import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tritonclient import grpc as triton_grpc

from .written import ECHO, ask, infer, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess

    Serve = Callable[..., ServerProcess]


def access_of(server: "ServerProcess") -> dict[str, Any]:
    """The next line of the access log, which is JSON."""
    document: dict[str, Any] = json.loads(server.wait_for(r'^\{"time":.*').group())
    return document


def test_a_request_over_http_has_a_line_with_its_sizes_times_batch_and_trace(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve("--access-log=json", tmp_path, frontends=["http"])
    trace = "0af7651916cd43dd8448eb211c80319c"
    body = {"id": 'a "name"\n', "inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [2]}]}

    ask(f"{server.url}/v2/models/echo/infer", body, traceparent=f"00-{trace}-b7ad6b7169203331-01")

    line = access_of(server)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", line["peer"])
    assert (line["protocol"], line["operation"], line["model"], line["version"]) == (
        "http",
        "POST /v2/models/echo/infer",
        "echo",
        1,
    )
    assert (line["id"], line["status"], line["trace_id"]) == ('a "name"\n', 200, trace)
    assert line["received_bytes"] == len(json.dumps(body))
    assert line["sent_bytes"] > 0
    assert 0 < line["queue_us"] + line["compute_us"] <= line["total_us"]
    assert (line["batch_size"], line["closed"]) == (1, "single")


def test_generate_and_what_is_no_request_to_a_model_have_lines_too(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve("--access-log=json", tmp_path, frontends=["http"])
    url = server.url

    assert ask(f"{url}/v2/models/echo/generate", {"x": [2], "id": "g"})[0] == 200
    with pytest.raises(json.JSONDecodeError):  # a stream of events
        ask(f"{url}/v2/models/echo/generate_stream", {"x": [2]})
    ask(f"{url}/nowhere")

    lines = [access_of(server) for _ in range(3)]
    assert [line["operation"].rpartition("/")[2] for line in lines] == ["generate", "generate_stream", "nowhere"]
    assert [(line["version"], line["status"]) for line in lines] == [(1, 200), (1, 200), (None, 404)]
    assert lines[1]["sent_bytes"] > 0


def test_a_request_that_is_no_inference_has_the_model_and_the_trace_that_it_names(
    serve: "Serve", tmp_path: Path
) -> None:
    write_model(tmp_path, "an echo", ECHO)
    server = serve("--access-log=json", tmp_path, frontends=["http"])
    url, trace = f"{server.url}/v2", "0af7651916cd43dd8448eb211c80319c"

    ask(f"{url}/models/an%20echo", traceparent=f"00-{trace}-b7ad6b7169203331-01")
    ask(f"{url}/models/an%20echo/versions/1/config")
    ask(f"{url}/models/stats")
    ask(f"{url}/repository/models/an%20echo/unload", {})

    lines = [access_of(server) for _ in range(4)]
    assert [(line["model"], line["version"], line["trace_id"]) for line in lines] == [
        ("an echo", None, trace),
        ("an echo", 1, None),
        (None, None, None),
        ("an echo", None, None),
    ]


def test_a_compressed_request_has_the_times_of_its_model(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve("--access-log=json", tmp_path, frontends=["http"])
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [2]}]}

    with pytest.raises(UnicodeDecodeError):  # the answer is compressed, which `ask` does not read
        ask(f"{server.url}/v2/models/echo/infer", body, **{"Accept-Encoding": "gzip"})

    line = access_of(server)
    assert (line["status"], line["batch_size"]) == (200, 1)
    assert line["queue_us"] + line["compute_us"] > 0


def test_requests_of_one_connection_have_lines_of_their_own(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve("--access-log=json", tmp_path, frontends=["http"])
    path = "/v2/models/echo/infer"
    bodies = [
        json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [2]}]}).encode() + b" " * more
        for more in (0, 7, 7, 3)
    ]

    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    for body in bodies:  # chunked: no head says how long the bodies are, and all answers are equally long
        connection.request("POST", path, iter([body]), {"Content-Type": "application/json"}, encode_chunked=True)
        assert connection.getresponse().read()
    connection.request("GET", "/v2/health/live")
    assert connection.getresponse().read() == b'{"live":true}'
    connection.request("POST", path, b"{")
    assert b"error" in connection.getresponse().read()
    connection.request("POST", path, bodies[0])
    assert connection.getresponse().read()
    connection.close()

    lines = [access_of(server) for _ in range(7)]
    assert [(line["received_bytes"], line["status"]) for line in lines] == [
        *((len(body), 200) for body in bodies), (0, 200), (1, 400), (len(bodies[0]), 200),
    ]  # fmt: skip
    assert [line["version"] for line in lines] == [1, 1, 1, 1, None, None, 1]
    assert len({line["sent_bytes"] for line in lines if line["version"]}) == 1


def test_the_time_of_a_request_begins_with_its_own_first_byte(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve("--access-log=json", tmp_path, frontends=["http"])
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    request = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n"

    with socket.create_connection((host, int(port))) as connection:
        for part, pause in ((request, 0.0), (request[:5], 0.5), (request[5:], 0.0), (request, 0.0)):
            connection.sendall(part)
            if part != request[:5]:
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            time.sleep(pause)  # what is measured

    _, slow, quick = [access_of(server) for _ in range(3)]
    assert slow["total_us"] > 250_000
    assert quick["total_us"] < slow["total_us"] / 2


def test_text_lines_cannot_be_forged_by_an_id(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve("--access-log=text", tmp_path, frontends=["http"])

    answer = infer(server.url, "echo", 1, id="a\nb status=500")
    assert answer[0] == 200, answer

    assert 'id="a\\nb status=500" status=200' in server.wait_for("model=echo").string


def test_calls_and_requests_of_streams_over_grpc_have_lines(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve("--access-log=json", tmp_path, frontends=["grpc"])
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    tensor = triton_grpc.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.ones(1, np.float32))
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{port}") as client:
        client.is_server_ready()
        client.get_model_metadata("echo", "1")
        client.infer("echo", [tensor], request_id="one")
        with pytest.raises(triton_grpc.InferenceServerException):
            client.infer("missing", [tensor])
        client.start_stream(lambda result, error: None)
        client.async_stream_infer("echo", [tensor], request_id="two")
        client.stop_stream()

    lines = [access_of(server) for _ in range(5)]

    assert [(line["operation"], line["model"], line["id"], line["status"]) for line in lines] == [
        ("ServerReady", None, None, "OK"),
        ("ModelMetadata", "echo", None, "OK"),
        ("ModelInfer", "echo", "one", "OK"),
        ("ModelInfer", "missing", None, "NOT_FOUND"),
        ("ModelStreamInfer", "echo", "two", "OK"),
    ]
    assert all(line["version"] == 1 and line["batch_size"] == 1 for line in (lines[2], lines[4]))
    assert lines[1]["version"] == 1
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", line["peer"]) for line in lines)


@pytest.mark.parametrize("transport", ["naiad", "grpcio"])
def test_calls_of_one_channel_have_lines_of_their_own(serve: "Serve", tmp_path: Path, transport: str) -> None:
    for name in ("echo", "else"):
        write_model(tmp_path, name, ECHO.replace("1]", "-1]").replace("return x", "return x.repeat(int(x[0]))"))
    server = serve("--access-log=json", f"--grpc-transport={transport}", tmp_path, frontends=["grpc"])
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    trace = "0af7651916cd43dd8448eb211c80319c"
    traced = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    calls: list[tuple[str, int, str, dict[str, str]]] = [  # model, how often it repeats its input, id, metadata
        ("echo", 1, "id 1", {}),
        ("echo", 1, "id 1", {}),
        ("echo", 1, "id 2", {}),
        ("echo", 2, "id 2", {}),
        ("else", 2, "id 2", {}),
        ("", 0, "", {}),
        ("else", 2, "id 2", {}),
        ("else", 2, "id 2", traced),
        ("missing", 2, "id 2", {}),
        ("else", 2, "id 2", {}),
        ("echo", 1, "id 1", {}),
    ]
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{port}") as client:
        for model, times, name, headers in calls:
            tensor = triton_grpc.InferInput("x", [1], "FP32")
            tensor.set_data_from_numpy(np.full(1, times, np.float32))
            if not model:
                client.is_model_ready("echo", "1")
            elif model == "missing":
                with pytest.raises(triton_grpc.InferenceServerException):
                    client.infer(model, [tensor], request_id=name)
            else:
                client.infer(model, [tensor], request_id=name, headers=headers)

    lines = [access_of(server) for _ in calls]

    assert [(line["model"], line["id"] or "", line["trace_id"], line["operation"]) for line in lines] == [
        (model or "echo", name, trace if headers else None, "ModelInfer" if model else "ModelReady")
        for model, _, name, headers in calls
    ]
    assert [line["status"] for line in lines] == ["NOT_FOUND" if call[0] == "missing" else "OK" for call in calls]
    of_echo = [line for line in lines if line["model"] == "echo" and line["id"]]
    assert len({line["received_bytes"] for line in of_echo}) == 1
    once, *sent = [line["sent_bytes"] for line in of_echo]
    assert sent == [once, once, once + 4, once]


@pytest.mark.parametrize("transport", ["naiad", "grpcio"])
def test_a_call_over_grpc_has_its_times_trace_and_sizes_and_one_that_is_late_too(
    serve: "Serve", tmp_path: Path, transport: str
) -> None:
    write_model(tmp_path, "echo", ECHO.replace("1]", "-1]"))
    write_model(tmp_path, "slow", ECHO.replace("return x", "import time; time.sleep(float(x[0])); return x"))
    server = serve("--access-log=json", f"--grpc-transport={transport}", tmp_path, frontends=["grpc"])
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    trace = "0af7651916cd43dd8448eb211c80319c"
    small, large = (triton_grpc.InferInput("x", [size], "FP32") for size in (1, 500_000))
    small.set_data_from_numpy(np.ones(1, np.float32))
    large.set_data_from_numpy(np.zeros(500_000, np.float32))
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{port}") as client:
        for tensor in (small, large):
            client.infer("echo", [tensor], headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
        client.infer("echo", [small])
        with pytest.raises(triton_grpc.InferenceServerException, match="Deadline Exceeded"):
            client.infer("slow", [small], request_id="late", client_timeout=0.3)

    lines = [access_of(server) for _ in range(4)]

    assert [line["trace_id"] for line in lines] == [trace, trace, None, None]
    for line in lines[:3]:
        assert (line["status"], line["version"], line["batch_size"], line["closed"]) == ("OK", 1, 1, "single")
        assert 0 < line["queue_us"] + line["compute_us"] <= line["total_us"]
    assert lines[0]["received_bytes"] == lines[2]["received_bytes"] < 200 < 2_000_000 < lines[1]["received_bytes"]
    assert lines[0]["sent_bytes"] < 200 < 2_000_000 < lines[1]["sent_bytes"]
    assert (lines[3]["model"], lines[3]["id"]) == ("slow", "late")
    assert lines[3]["status"] == "DEADLINE_EXCEEDED"  # although the client leaves then, and may be first
    assert lines[3]["total_us"] > 0  # what is left of the 0.3 s when the request has arrived


@pytest.mark.parametrize("transport", ["naiad", "grpcio"])
def test_a_request_that_fails_in_its_model_has_its_times_and_its_batch(
    serve: "Serve", tmp_path: Path, transport: str
) -> None:
    write_model(tmp_path, "fails", ECHO.replace("return x", "import time; time.sleep(0.05); raise ValueError(x)"))
    server = serve("--access-log=json", f"--grpc-transport={transport}", tmp_path, frontends=["http", "grpc"])
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    url = server.url
    tensor = triton_grpc.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.ones(1, np.float32))

    assert infer(url, "fails", 1)[0] == 500
    assert ask(f"{url}/v2/models/fails/generate", {"x": [2]})[0] == 500
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{port}") as client:
        with pytest.raises(triton_grpc.InferenceServerException):
            client.infer("fails", [tensor])
        client.start_stream(lambda result, error: None)
        client.async_stream_infer("fails", [tensor])
        client.stop_stream()

    lines = [access_of(server) for _ in range(4)]
    assert [line["status"] for line in lines] == [500, 500, "INTERNAL", "INTERNAL"]
    for line in lines:
        assert 50_000 <= line["compute_us"] <= line["total_us"]
        assert 0 < line["queue_us"] <= line["total_us"]
        assert (line["batch_size"], line["closed"]) == (1, "single")


def test_a_log_that_is_made_verbose_while_the_server_runs_has_a_line_for_each_request(
    serve: "Serve", tmp_path: Path
) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve(tmp_path, frontends=["grpc", "http"])
    port = server.wait_for(r"grpc frontend listens at \S+:(\d+)").group(1)
    url = server.url
    tensor = triton_grpc.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.ones(1, np.float32))

    with triton_grpc.InferenceServerClient(f"127.0.0.1:{port}") as client:
        for level, name in ((0, "before"), (2, "verbose"), (1, "after")):
            ask(f"{url}/v2/logging", {"log_verbose_level": level})
            client.infer("echo", [tensor], request_id=f"{name}-grpc")
            assert infer(url, "echo", 1, id=f"{name}-http")[0] == 200
    server.signal(15)
    assert server.exit_status() == 0

    lines = [line for line in server.lines if "model=echo" in line]
    assert [re.findall(r" id=(\S+) status=(\S+)", line) for line in lines] == [
        [("verbose-grpc", "OK")],
        [("verbose-http", "200")],
    ]


def test_without_the_option_there_is_no_line(serve: "Serve", tmp_path: Path) -> None:
    write_model(tmp_path, "echo", ECHO)
    server = serve(tmp_path, frontends=["http"])

    infer(server.url, "echo", 1)

    server.signal(15)
    assert server.exit_status() == 0
    assert not [line for line in server.lines if "status=" in line]
