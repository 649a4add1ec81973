"""The memory of a server that downloads a large model from a store: `python bench/store_download.py --gigabytes 2`.

The store is a process of its own that speaks as much of S3 as a listing and a range of an object need. The figure is
the largest resident memory of `naiad serve`, which loads the same model with small and with large weights.
"""

import argparse
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

MODEL = b"""
from naiad_custom import FP32, Array, model


@model
def same(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return x
"""
_OPTIONS = ("--http-address=127.0.0.1", "--http-port=0", "--allow-grpc=false", "--allow-metrics=false")


class Bucket(BaseHTTPRequestHandler):
    """The files of the folder `root` as a bucket of S3, without checks of credentials."""

    protocol_version = "HTTP/1.1"
    root = Path()

    def log_message(self, *words: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """A listing, or a range of an object."""
        url = urlsplit(self.path)
        path = self.root / url.path.removeprefix("/bucket").lstrip("/")
        if path.is_dir():
            self._list(parse_qs(url.query).get("prefix", [""])[0])
        else:
            self._send(path)

    def _list(self, prefix: str) -> None:
        keys = {path.relative_to(self.root).as_posix(): path for path in self.root.rglob("*") if path.is_file()}
        rows = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;1&quot;</ETag>"
            f"<Size>{path.stat().st_size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for key, path in sorted(keys.items())
            if key.startswith(prefix)
        )
        self._head(200, len(body := f"<ListBucketResult>{rows}</ListBucketResult>".encode()))
        self.wfile.write(body)

    def _send(self, path: Path) -> None:
        size = path.stat().st_size
        part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        first, last = (int(part[1]), min(int(part[2]), size - 1)) if part else (0, size - 1)
        self._head(206, last + 1 - first, f"bytes {first}-{last}/{size}")
        with path.open("rb") as file:
            self.connection.sendfile(file, first, last + 1 - first)

    def _head(self, status: int, length: int, part: str = "") -> None:
        self.send_response(status)
        headers = {"Content-Length": str(length), "ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        for name, value in headers.items() | ({"Content-Range": part} if part else {}).items():
            self.send_header(name, value)
        self.end_headers()


def store(root: Path, ready: Connection) -> None:
    """Serve the folder until the process is ended; the port goes to `ready`."""
    Bucket.root = root
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    ready.send(server.server_port)
    server.serve_forever()


def write_model(root: Path, bytes_of_weights: int) -> None:
    """The model `same`, with weights of zeros that take no room on this side."""
    (root / "models" / "same" / "1").mkdir(parents=True, exist_ok=True)
    (root / "models" / "same" / "1" / "model.py").write_bytes(MODEL)
    with (root / "models" / "same" / "1" / "weights.bin").open("wb") as file:
        file.truncate(bytes_of_weights)


def measure(url: str, cache: Path) -> tuple[float, float]:
    """The largest resident memory of a server in MB, and the seconds from its start until the model is ready."""
    command = [Path(sys.executable).with_name("naiad"), "serve", url, f"--store-cache={cache}", *_OPTIONS]
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    started = time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            log = ""
            while "model 'same' version 1 is READY" not in log:
                line = run.stdout.readline() if run.stdout else ""
                if not line:
                    raise SystemExit(log)
                log += line
            seconds = time.monotonic() - started
            status = Path(f"/proc/{run.pid}/status").read_text()
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=60)
        finally:
            run.kill()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1000, seconds  # type: ignore[index]


def main() -> None:
    """Print the two measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="the size of the large weights, 10^9 bytes")
    size = int(parser.parse_args().gigabytes * 10**9)
    folder = Path(tempfile.mkdtemp(prefix="naiad-store-"))
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=store, args=(folder / "bucket", sending))
    try:
        write_model(folder / "bucket", 1000)
        process.start()
        url = f"s3://127.0.0.1:{receiving.recv()}/bucket/models"
        for bytes_of_weights in (1000, size):
            write_model(folder / "bucket", bytes_of_weights)
            memory, seconds = measure(url, folder / f"cache-{bytes_of_weights}")
            figures = f"at most {memory:.0f} MB resident, ready after {seconds:.1f} s"
            print(f"weights of {bytes_of_weights:>13,} bytes: {figures}")
    finally:
        process.kill()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
