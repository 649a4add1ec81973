"""`recorded-warmup`: stands between clients and a server, passes all on, and keeps the first requests to each model."""

import argparse
import re
from collections import Counter
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from naiad_recorded_warmup.replaying import FOLDER

_INFER = re.compile(r"/v2/models/([^/]+)(?:/versions/\d+)?/infer")
_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "expect"))


class Recorder:
    """Keeps the first `count` requests to each model of a repository. For any thread."""

    def __init__(self, repository: Path, count: int) -> None:
        self._repository = repository
        self._remaining = count
        self._kept: Counter[str] = Counter()
        self._lock = Lock()

    def keep(self, path: str, headers: dict[str, str], body: bytes) -> Path | None:
        """Keep a request that was answered well; where it was put, None when it is not to be kept."""
        match = _INFER.fullmatch(path)
        if match is None or headers.get("content-encoding", "identity") != "identity":
            return None
        folder = self._repository / match[1]
        if match[1] in (".", "..") or not folder.is_dir():
            return None
        with self._lock:
            if self._kept[match[1]] >= self._remaining:
                return None
            self._kept[match[1]] += 1
            number = self._kept[match[1]]
        kind = "bin" if "inference-header-content-length" in headers else "json"
        target = folder / "warmup" / FOLDER / f"recorded-{number:04}.{kind}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        return target


def handler(recorder: Recorder, target: str) -> type[BaseHTTPRequestHandler]:
    """What passes requests on to the server at `target` (HOST:PORT), and keeps those that it answers with 200."""

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sent = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection = HTTPConnection(target)
            try:
                connection.request(self.command, self.path, body, sent)
                response = connection.getresponse()
                answer = response.read()
            finally:
                connection.close()
            if response.status == 200:
                kept = recorder.keep(self.path, {name.lower(): value for name, value in sent.items()}, body)
                if kept is not None:
                    print(kept)
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_POST = do_HEAD = _pass_on

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name in the standard library
            """Say nothing: the number of recordings is logged."""

    return Passing


def main() -> None:
    """Run until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2])
    parser.add_argument("repository", type=Path, help="the model repository to put the requests into")
    parser.add_argument("--from-port", type=int, default=8000, help="the port that clients talk to (default: 8000)")
    parser.add_argument("--to", default="localhost:8010", metavar="HOST:PORT", help="the server behind it")
    parser.add_argument("--count", type=int, default=10, help="how many requests to keep of each model (default: 10)")
    arguments = parser.parse_args()
    with ThreadingHTTPServer(
        ("", arguments.from_port), handler(Recorder(arguments.repository, arguments.count), arguments.to)
    ) as server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
