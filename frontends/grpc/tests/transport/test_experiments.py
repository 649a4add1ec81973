"""What is chosen of grpcio's core: known to the one that is installed, and the user's word counts more."""

import os
import subprocess
import sys

import pytest

from naiad_grpc.transport.experiments import POLLING, VARIABLE

LISTEN = """
import asyncio, grpc
from naiad_grpc.transport.experiments import choose_polling
choose_polling()

async def main():
    server = grpc.aio.server()
    server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await server.stop(0)

asyncio.run(main())
"""


def listen(**variables):
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE} | variables
    ran = subprocess.run([sys.executable, "-c", LISTEN], env=environment, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr


def test_grpcio_knows_the_experiment_that_is_chosen():
    assert listen() == (0, "")
    assert "Unknown experiment" in listen(**{VARIABLE: "-no_such_experiment"})[1]


@pytest.mark.parametrize("given", ["", "tcp_frame_size_tuning"])
def test_whoever_started_the_process_has_the_last_word(monkeypatch, given):
    from naiad_grpc.transport.experiments import choose_polling

    monkeypatch.setenv(VARIABLE, given)
    choose_polling()

    assert os.environ[VARIABLE] == given != POLLING


STARTED = """
import asyncio, os, sys
import naiad_grpc
from naiad import Server

class Watch:
    seen = []
    def find_spec(self, name, path=None, target=None):
        if name == "grpc":
            self.seen.append(os.environ.get("GRPC_EXPERIMENTS"))

async def main():
    sys.meta_path.insert(0, Watch())
    options = {"grpc-port": 0, "grpc-address": "127.0.0.1", "model-control-mode": "explicit"}
    async with Server(plugins=[naiad_grpc], options=options):
        print(Watch.seen)

asyncio.run(main())
"""


def test_it_is_chosen_before_grpcio_is_imported():
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}

    ran = subprocess.run([sys.executable, "-c", STARTED], env=environment, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout.strip()) == (0, f"['{POLLING}']")
