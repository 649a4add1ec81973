"""A well-behaved client: asks for an inference and for the health all the time, and says how long it waited at worst.

Runs until its input ends, then prints its figures as JSON. A process of its own, so that the attacker's work does not
count as the server's.
"""

import json
import select
import socket
import sys
import time

_TIMEOUT = 30.0
_PAUSE = 0.02
_INPUTS = [
    {"name": name, "datatype": "FP32", "shape": [1, 16], "data": list(range(16))} for name in ("INPUT0", "INPUT1")
]


class Prober:
    """Both kinds of probes of one server, each on a connection that it keeps while the server does."""

    def __init__(self, port: int) -> None:
        self._port = port
        body = json.dumps({"inputs": _INPUTS}).encode()
        self._probes = {
            "infer": b"POST /v2/models/add_sub/infer HTTP/1.1\r\nHost: p\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body,
            "live": b"GET /v2/health/live HTTP/1.1\r\nHost: p\r\n\r\n",
        }
        self._connections: dict[str, socket.socket] = {}
        self.worst = dict.fromkeys(self._probes, 0.0)
        self.count = 0
        self.failures: dict[str, int] = {}

    def probe(self) -> None:
        """One probe of each kind."""
        for name, request in self._probes.items():
            started = time.monotonic()
            try:
                status = self._status(name, request)
            except (OSError, ValueError, IndexError) as error:
                status = type(error).__name__
                self._drop(name)
            self.worst[name] = max(self.worst[name], time.monotonic() - started)
            self.count += 1
            if status != "200":
                self.failures[f"{name} {status}"] = self.failures.get(f"{name} {status}", 0) + 1

    def _status(self, name: str, request: bytes) -> str:
        if name not in self._connections:
            self._connections[name] = socket.create_connection(("127.0.0.1", self._port), _TIMEOUT)
        connection = self._connections[name]
        connection.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            part = connection.recv(65536)
            if not part:
                raise OSError("closed")
            received += part
        head, _, body = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:])
        while len(body) < int(fields.get("content-length", "0")):
            body += connection.recv(65536)
        if fields.get("connection") == "close":
            self._drop(name)
        return lines[0].split()[1]

    def _drop(self, name: str) -> None:
        if name in self._connections:
            self._connections.pop(name).close()


def main() -> None:
    prober = Prober(int(sys.argv[1]))
    prober.probe()
    print("started", flush=True)
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        prober.probe()
    print(json.dumps({"worst": prober.worst, "count": prober.count, "failures": prober.failures}))


if __name__ == "__main__":
    main()
