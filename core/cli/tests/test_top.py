"""The figures of `naiad top`, and the command against a server of canned metrics."""

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from naiad_cli.main import main
from naiad_cli.top_figures import figures_between, quantile, read_metrics

PAGE = """# TYPE nv_inference_request_success counter
nv_inference_request_success{model="add",version="1",gpu_uuid="a"} %d
nv_inference_request_success{model="add",version="1",gpu_uuid="b"} %d
nv_inference_request_failure{model="add",version="1",reason="OTHER"} %d
nv_inference_count{model="add",version="1"} %d
nv_inference_exec_count{model="add",version="1"} %d
naiad_queue_depth{model="add",version="1"} 3
naiad_requests_in_flight{model="add",version="1"} 5
naiad_instance_busy_seconds{model="add",version="1",instance="add_0"} 61.25
naiad_instance_busy_seconds{model="add",version="1",instance="add_1"} 2
naiad_request_duration_seconds_bucket{model="add",version="1",le="0.001"} %d
naiad_request_duration_seconds_bucket{model="add",version="1",le="0.01"} %d
naiad_request_duration_seconds_bucket{model="add",version="1",le="+Inf"} %d
naiad_request_duration_seconds_sum{model="add",version="1"} 7.5
nv_cpu_utilization 0.5
"""
BEFORE, AFTER = PAGE % (10, 0, 1, 10, 10, 10, 10, 10), PAGE % (20, 10, 3, 50, 20, 20, 30, 30)


def test_two_readings_become_rates_and_quantiles() -> None:
    before, after = read_metrics(BEFORE)["add", "1"], read_metrics(AFTER)["add", "1"]

    figures = figures_between(before, after, seconds=2.0)

    assert (figures.rate, figures.errors, figures.queued, figures.in_flight, figures.mean_batch) == (11, 1, 3, 5, 4)
    assert figures.p50 == pytest.approx(1.0)
    assert figures.p99 == pytest.approx(9.82)


def test_a_version_that_was_loaded_anew_counts_from_zero() -> None:
    figures = figures_between(read_metrics(AFTER)["add", "1"], read_metrics(BEFORE)["add", "1"], seconds=1.0)

    assert figures.rate == 11


def test_names_of_models_are_unescaped_and_other_lines_ignored() -> None:
    read = read_metrics('nv_inference_count{model="a\\\\b\\"c\\nd",version="1"} 1\nnonsense\n')

    assert list(read) == [('a\\b"c\nd', "1")]


@pytest.mark.parametrize(
    ("counts", "rank", "expected"),
    [
        ([(1.0, 4.0), (math.inf, 4.0)], 0.5, 0.5),
        ([(1.0, 0.0), (2.0, 4.0), (math.inf, 4.0)], 0.5, 1.5),
        ([(1.0, 1.0), (math.inf, 4.0)], 0.99, 1.0),
        ([], 0.5, math.nan),
        ([(1.0, 0.0), (math.inf, 0.0)], 0.5, math.nan),
    ],
)
def test_quantiles_are_linear_within_a_bucket(counts: list[tuple[float, float]], rank: float, expected: float) -> None:
    assert quantile(counts, rank) == pytest.approx(expected, nan_ok=True)


@pytest.fixture
def url() -> Iterator[str]:
    pages = iter([BEFORE])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(next(pages, AFTER).encode())

        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps([{"name": "add", "version": "1", "state": "READY"}, {"name": "idle"}]).encode())

        def log_message(self, *words: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["", "/metrics", "/metrics/"])
def test_in_a_pipe_it_is_one_table(url: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["top", "--url", url, "--metrics-url", url + path, "--interval", "0.1"])

    head, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert status == 0
    assert head[:4] == ["Model", "Version", "State", "Req/s"]
    assert row[:3] == ["add", "1", "READY"]
    assert row[4:9] == ["1.00", "9.82", "4.00", "3", "5"]
    assert (head[9], row[9]) == ("Busy s", "61.2")  # of the instance that has executed longest


def test_json_is_for_programs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["top", "--url", url, "--metrics-url", url, "--interval", "0.1", "--json"])

    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["state"], row["queued"], row["busy"], row["p50"]) == (
        "add",
        "READY",
        3,
        61.25,
        pytest.approx(1.0),
    )


@pytest.mark.parametrize("text", ["soon", "0", "nan", "3601"])
def test_an_interval_out_of_bounds_is_a_mistake(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["top", f"--interval={text}"])

    assert f"'{text}' is not a number of seconds from 0.1, at most 3600" in capsys.readouterr().err


def test_metrics_that_are_not_there_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["top", "--metrics-url", "http://127.0.0.1:9"])

    assert status == 1
    message = capsys.readouterr().err
    assert "the metrics cannot be read: no answer from http://127.0.0.1:9" in message
    assert message.endswith(", or name the address of its metrics with --metrics-url\n")
