"""Drives a server with the field's own load generators and reads what they print: perf_analyzer and wrk."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from servers import Peer, Running

_THROUGHPUT = re.compile(r"throughput: ([\d.]+) infer/sec")
_TRIES = 3
_P99 = re.compile(r"p99 latency: (\d+) usec")


class LoadError(RuntimeError):
    """A load generator is missing or could not measure."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a load generator saw: answers a second, the 99th percentile of the latency in milliseconds."""

    per_second: float
    p99_milliseconds: float


def with_cost(running: Running, model: str, measure: Callable[[], Load]) -> tuple[Load, float]:
    """A measurement, and the processor time of the server and its children for an inference meanwhile, in µs."""
    load, server, _ = _with_costs(running, model, measure)
    return load, server


def measured(running: Running, model: str, label: str, measure: Callable[[], Load]) -> dict[str, float]:
    """A measurement as the numbers of a table: rate, p99, and the processor time of both sides for an inference."""
    load, server, generator = _with_costs(running, model, measure)
    return {
        f"{label}: inferences/s": load.per_second,
        f"{label}: p99, ms": load.p99_milliseconds,
        f"{label}: server's processor time, µs each": server,
        f"{label}: load generator's processor time, µs each": generator,
    }


def _with_costs(running: Running, model: str, measure: Callable[[], Load]) -> tuple[Load, float, float]:
    """A measurement, and the processor time of the server and of the load generator for an inference, in µs."""
    count, server, generator = running.inference_count(model), running.cpu_seconds(), _children_seconds()
    load = measure()
    server, generator = running.cpu_seconds() - server, _children_seconds() - generator
    inferences = running.inference_count(model) - count
    return load, server / inferences * 1e6, generator / inferences * 1e6


def _children_seconds() -> float:
    """Processor time of the programs that have ended: load generators, since a server runs as long as it is loaded."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Generator(Protocol):
    """Loads a model with binary tensors, over HTTP unless `protocol` is `grpc`."""

    def __call__(
        self, port: int, model: str, concurrency: int, options: Sequence[str] = (), protocol: str = "http"
    ) -> Load: ...


@dataclass(frozen=True, slots=True)
class PerfAnalyzer:
    """perf_analyzer by this command (where and what is added): windows of so many milliseconds, until three agree.

    `of_peer` says that the command is the peer's script. `tolerance` is by how many percent the windows may differ;
    five windows that do not agree are tried again twice.
    """

    command: tuple[str, ...]
    window: int
    tolerance: int
    of_peer: bool = False

    def __call__(
        self, port: int, model: str, concurrency: int, options: Sequence[str] = (), protocol: str = "http"
    ) -> Load:
        """One measurement. Raises LoadError when the machine is too restless for one."""
        for _ in range(_TRIES - 1):
            try:
                return self._measured(port, model, concurrency, options, protocol)
            except LoadError as error:
                print(f"{error}; trying again", file=sys.stderr)
        return self._measured(port, model, concurrency, options, protocol)

    def _measured(self, port: int, model: str, concurrency: int, options: Sequence[str], protocol: str) -> Load:
        if self.of_peer:
            where = ["load", protocol, str(port), model]
        else:
            where = ["-i", protocol, "-u", f"localhost:{port}", "-m", model]
        settings = ["-p", str(self.window), "-s", str(self.tolerance), "-r", "5", "-b", "1"]
        settings += ["--concurrency-range", str(concurrency)]
        ended = subprocess.run([*self.command, *where, *settings, *options], capture_output=True, text=True)
        return read_perf_analyzer(ended.stdout + ended.stderr)


def perf_analyzer(peer: Peer | None, quick: bool) -> PerfAnalyzer | None:
    """The perf_analyzer that came with the peer, else the one on the path, else None."""
    window, tolerance = (500, 900) if quick else (3000, 30)
    if peer is not None:
        return PerfAnalyzer((str(peer.script),), window, tolerance, of_peer=True)
    program = os.environ.get("PERF_ANALYZER") or shutil.which("perf_analyzer")
    return PerfAnalyzer((program,), window, tolerance) if program else None


def read_perf_analyzer(text: str) -> Load:
    """The last measurement in what perf_analyzer printed. Raises LoadError where there is none."""
    throughput, p99 = _THROUGHPUT.findall(text), _P99.findall(text)
    if not throughput or not p99:
        raise LoadError(f"perf_analyzer measured nothing: {' '.join(text.split())[-200:]}")
    return Load(float(throughput[-1]), int(p99[-1]) / 1000)


def wrk(url: str, script: Path, connections: int, seconds: int, *arguments: str, threads: int = 1) -> Load:
    """One measurement with wrk; the script gets the arguments, and its `done` prints a JSON object.

    Raises LoadError.
    """
    if shutil.which("wrk") is None:
        raise LoadError("wrk is not installed (Debian and Ubuntu: apt-get install wrk)")
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "-s", str(script), url, "--", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True)
    return read_wrk(ended.stdout + ended.stderr)


def read_wrk(text: str) -> Load:
    """The summary that `json_bodies.lua` prints. Raises LoadError where requests failed or there is no summary."""
    program = re.search(r"^\{.*\}$", text, re.MULTILINE)
    if program is None:
        raise LoadError(f"wrk measured nothing: {text.strip()[-500:]}")
    summary = json.loads(program[0])
    if summary["failed"] or not summary["requests"]:
        raise LoadError(f"{summary['failed']} of {summary['requests']} requests failed")
    return Load(summary["requests"] / summary["seconds"], summary["p99_microseconds"] / 1000)
