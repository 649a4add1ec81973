"""HTTP through Ray Serve: one Naiad alone, behind Ray's proxies, and behind HAProxy, as a table in Markdown.

    .venv-ray/bin/python bench/ray_ingress.py

Needs wrk, and naiad-ray with Ray Serve in the environment of the interpreter (`make test-ray` makes one).
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from servers import OWN_COMMAND, Ports, Running, free_port

_BENCH = Path(__file__).resolve().parent
_SIZES = {"1 KB": 256, "1 MB": 262_144}
_READY_WITHIN = 240.0
_STOPPED_WITHIN = 60.0
_AT_REST = 0.3
"""Seconds of processor time within a second."""
_TRIES = 3
_ROWS: tuple[tuple[str, str, int, Mapping[str, str]], ...] = (
    ("`naiad serve`", "", 1, {}),
    ("Ray's proxy, 1 replica", "proxy", 1, {}),
    ("the same, `RAY_SERVE_USE_GRPC_BY_DEFAULT=1`", "proxy", 1, {"RAY_SERVE_USE_GRPC_BY_DEFAULT": "1"}),
    ("Ray's proxy, 3 replicas", "proxy", 3, {}),
    ("HAProxy, 1 replica", "haproxy", 1, {}),
    ("HAProxy, 3 replicas", "haproxy", 3, {}),
)
"""The name, ingress, replicas and environment of each server; an empty ingress is `naiad serve`."""
_PATIENCE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
}
_FILE = """
repository: models
ingress: {ingress}
http: {{host: 127.0.0.1, port: {port}}}
grpc: null
groups: [{{name: only, replicas: {replicas}, num_cpus: 0.1}}]
"""


class MeasurementError(Exception):
    """A server did not start, or a request failed."""


def main() -> None:
    """Measure every server, and print the table; the status is 1 where a row could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5, help="how long each measurement lasts (default: 5)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the rows whose name contains this")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None or find_spec("ray") is None or find_spec("naiad_ray") is None:
        sys.exit("needs wrk, and naiad-ray with Ray Serve in this environment: `make test-ray` makes .venv-ray")
    print("| server | " + " | ".join(f"{size}: a second | p99 | alone | processor time" for size in _SIZES) + " |")
    print("|---" * (1 + 4 * len(_SIZES)) + "|", flush=True)
    failed = [row for row in _ROWS if arguments.only in row[0] and not print_row(*row, arguments.seconds)]
    sys.exit(1 if failed else 0)


def print_row(name: str, ingress: str, replicas: int, environment: Mapping[str, str], seconds: int) -> bool:
    """Measure a server and print its row; whether that was possible. What a busy machine prevents is tried again."""
    for _ in range(_TRIES):
        try:
            with served(ingress, replicas, environment) as running:
                cells = [cell for elements in _SIZES.values() for cell in measured(running, elements, seconds)]
        except (MeasurementError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
        else:
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            return True
    return False


def measured(running: Running, elements: int, seconds: int) -> tuple[str, ...]:
    """Requests a second and p99 (ms) at 16 connections, the median (ms) of one request at a time.

    The last is the processor time (ms) of the server for a request at 16 connections, with all processes of Ray.
    """
    load(running.port, elements, 16, 2)
    before = running.cpu_seconds()
    many = load(running.port, elements, 16, seconds)
    used = running.cpu_seconds() - before
    alone = load(running.port, elements, 1, max(2, seconds // 2))
    return (
        f"{many['requests'] / many['seconds']:,.0f}",
        f"{many['p99_microseconds'] / 1000:.1f} ms",
        f"{alone['p50_microseconds'] / 1000:.2f} ms",
        f"{used / many['requests'] * 1000:.2f} ms",
    )


def load(port: int, elements: int, connections: int, seconds: int) -> dict[str, float]:
    """What wrk reports. Raises MeasurementError if a request failed."""
    url = f"http://127.0.0.1:{port}/v2/models/identity/infer"
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--timeout",
        "20s",
        "-s",
        str(_BENCH / "identity_bodies.lua"),
        url,
    ]
    ended = subprocess.run([*command, "--", str(elements)], capture_output=True, text=True, check=True)
    report: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    if report["failed"] or not report["requests"]:
        raise MeasurementError(f"{report['failed']:.0f} of {report['requests']:.0f} requests failed at {url}")
    return report


@contextmanager
def served(ingress: str, replicas: int, added: Mapping[str, str]) -> Iterator[Running]:
    """A server with the model `identity`, once it is ready. An empty ingress is `naiad serve`.

    `added` is added to its environment.
    """
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(_BENCH / "models" / "identity", folder / "models" / "identity")
        if ingress:
            (folder / "naiad-ray.yaml").write_text(_FILE.format(ingress=ingress, port=port, replicas=replicas))
            command = ["ray", "up", "--address", "local", name]
        else:
            own = ("--http-address=127.0.0.1", f"--http-port={port}", "--grpc-port=0", "--metrics-port=0")
            command = ["serve", str(folder / "models"), *own, "--dashboard-port=0"]
        environment = {
            **os.environ,
            **_PATIENCE,
            **added,
            "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{name}/haproxy.cfg",
            "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{name}/admin.sock",
            "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
            "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "1",
        }
        with (folder / "log").open("w") as log:
            process = subprocess.Popen([str(OWN_COMMAND), *command], env=environment, stdout=log, stderr=log)
            try:
                running = Running(folder.name, Ports(port, 0, 0), process, 0.0)
                wait_until_idle(running, folder / "log")
                yield running
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(_STOPPED_WITHIN)
                except subprocess.TimeoutExpired:
                    process.kill()  # the processes of Ray end with the one that started them
                    process.wait()


def wait_until_idle(running: Running, log: Path) -> None:
    """Return when the server is ready and its processes have come to rest, as those of a new cluster do late.

    Raises MeasurementError where it has ended, or does not do so in time.
    """
    end = time.monotonic() + _READY_WITHIN
    while time.monotonic() < end and running.process.poll() is None:
        before = running.cpu_seconds()
        time.sleep(1)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/v2/health/ready", timeout=5):
                if running.cpu_seconds() - before < _AT_REST:
                    return
        except OSError:
            continue
    raise MeasurementError(f"not ready and at rest within {_READY_WITHIN:g} s:\n{log.read_text()[-2000:]}")


if __name__ == "__main__":
    main()
