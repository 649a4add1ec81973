"""The library @grpc/grpc-js of Node.js as the client, which shares no code with grpcio."""

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest

from .conftest import Calls, listening, needed, run_program

PROGRAM = Path(__file__).with_name("grpc_js_client.js")
PACKAGE = "@grpc/grpc-js@1"
MODULES = Path(__file__).parents[4] / ".venv" / "node"
"""Where the package is installed, once for all runs."""

EXPECTED = {
    "echo": "hello",
    "empty": 0,
    "large": True,
    "refused": ["INVALID_ARGUMENT", "no: ärger\nhere"],
    "unknown": "UNIMPLEMENTED",
    "deadline": "DEADLINE_EXCEEDED",
    "cancelled": "CANCELLED",
    "metadata": r"[('x-text', 'one'), ('x-text', 'two'), ('x-raw-bin', b'\x00\xff\x01'), ('x-raw-bin', b'\x02')]",
    "stream": [["a", "b", "c", "3"], "OK"],
    "streams": True,
    "many": True,
    "deflate": True,
    "gzip": True,
}


@pytest.fixture(scope="module")
def environment():
    """The variables with which node finds the package, which npm installs where it is missing."""
    needed("node", "nodejs")
    MODULES.mkdir(parents=True, exist_ok=True)
    with (MODULES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may run tests of this module
        install()
    return {**os.environ, "NODE_PATH": str(MODULES / "node_modules")}


def install():
    """Have npm install the package, unless it is complete; skips the test where that is not possible."""
    complete = MODULES / "complete"
    if complete.exists():
        return
    npm = needed("npm", "npm")
    command = [npm, "install", "--prefix", str(MODULES), "--no-audit", "--no-fund", "--no-save", PACKAGE]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    if ended.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: {ended.stderr.strip()[-200:]}")
    complete.touch()


def calls_of(target, environment, *more):
    return run_program(needed("node", "nodejs"), PROGRAM, target, *more, env=environment)


def test_every_kind_of_call_comes_to_its_end(run, environment):
    async def main():
        async with listening(Calls()) as listener:
            answered = json.loads(await calls_of(listener.target, environment))
            return answered, listener.calls_in_flight

    assert run(main()) == (EXPECTED, 0)


def test_every_kind_of_call_comes_to_its_end_over_tls_and_with_compressed_answers(run, environment, certificates):
    files = {"grpc-server-cert": certificates.file("cert"), "grpc-server-key": certificates.file("key")}

    async def main():
        options = {"grpc-use-ssl": True, "grpc-infer-response-compression-level": "high", **files}
        async with listening(Calls(), **options) as listener:
            answered = json.loads(await calls_of(listener.target, environment, certificates.file("root")))
            return answered, listener.calls_in_flight

    assert run(main()) == (EXPECTED, 0)
