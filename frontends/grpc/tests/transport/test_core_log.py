"""The log of grpcio's core: nothing that a client sends may reach our stderr."""

import os
import socket
import struct
import subprocess
import sys

FORGED = b"\nE1122 00:00:00.000000 1 models.py:144] model 'a' is UNAVAILABLE"

SERVE = """
import asyncio, sys
import naiad_grpc
from naiad import Server

async def main():
    listening = {"grpc-port": 0, "grpc-address": "127.0.0.1", "grpc-transport": "grpcio"}
    options = {**listening, "model-control-mode": "explicit"}
    async with Server(plugins=[naiad_grpc], options=options) as server:
        print(server.plugins.frontends()["grpc"].target, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

asyncio.run(main())
"""


def frame(kind, payload):
    """A frame of HTTP/2 on the connection itself (RFC 9113, section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, 0)) + bytes(4) + payload


def stderr_after_a_goaway(**variables):
    """What a server writes to stderr when a client ends its connection with a debug text of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")} | variables
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        host, port = server.stdout.readline().strip().rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as client:
            goaway = frame(7, struct.pack(">II", 0, 11) + FORGED)
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, b"") + goaway)
            client.shutdown(socket.SHUT_WR)
            while client.recv(1000):
                pass
        _, errors = server.communicate("end\n", timeout=60)
    return errors


def test_the_debug_text_of_a_goaway_frame_stays_out_of_our_log():
    assert stderr_after_a_goaway() == ""


def test_a_verbosity_that_the_user_has_set_counts():
    assert "models.py:144" in stderr_after_a_goaway(GRPC_VERBOSITY="INFO")
