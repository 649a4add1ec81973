"""What a small call costs the server over each transport of gRPC: HTTP/2 of our own, and grpcio; 16 calls at once."""

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from statistics import median

from grpc_client import INFER, GrpcClient, add_sub_request
from servers import PROJECT, Naiad

_PROCESSES, _CONNECTIONS = 2, 8
_TRANSPORTS = ("naiad", "grpcio")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="calls of each of the 16 connections in a round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    measured: dict[str, list[tuple[float, float]]] = {transport: [] for transport in _TRANSPORTS}
    for _ in range(arguments.rounds):
        for transport in _TRANSPORTS:
            measured[transport].append(_measure(transport, arguments.calls))
    for transport, rounds in measured.items():
        rates, costs = zip(*rounds, strict=True)
        print(
            f"{transport:8} {median(rates):8,.0f} calls/s, {median(costs):6.1f} µs of processor time of the server each"
        )


def _measure(transport: str, calls: int) -> tuple[float, float]:
    """The calls a second over all connections, and the server's processor time for one in µs."""
    with (
        Naiad().serve(PROJECT / "bench" / "models", f"--grpc-transport={transport}") as running,
        get_context("spawn").Pool(_PROCESSES) as clients,
    ):
        port = running.ports.grpc
        clients.starmap(_ask, [(port, max(calls // 10, 1))] * _PROCESSES, chunksize=1)  # the first calls cost more
        began, used = time.perf_counter(), running.cpu_seconds()
        clients.starmap(_ask, [(port, calls)] * _PROCESSES, chunksize=1)
        count = calls * _PROCESSES * _CONNECTIONS
        seconds, used = time.perf_counter() - began, running.cpu_seconds() - used
    return count / seconds, used / count * 1e6


def _ask(port: int, calls: int) -> None:
    """So many calls on each connection of a process, one after the other on each."""
    message = add_sub_request("add_sub")

    def ask() -> None:
        with GrpcClient(port) as client:
            for _ in range(calls):
                _drain(client.call(INFER, message))

    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        for each in [threads.submit(ask) for _ in range(_CONNECTIONS)]:
            each.result()


def _drain(parts: Iterator[int]) -> None:
    for _ in parts:
        pass


if __name__ == "__main__":
    main()
