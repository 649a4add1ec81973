"""What is chosen of grpcio's core: known to the one that is installed, and the user's word counts more."""

import os
import subprocess
import sys

import pytest

from naiad_grpc.transport import experiments
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


def test_the_experiment_is_not_chosen_for_a_grpcio_that_is_not_tested(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(experiments, "TESTED_VERSIONS", ("0.0.0",))

    experiments.choose_polling()

    assert VARIABLE not in os.environ


PUBLIC = """
import asyncio, grpc
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad.options import Settings
from naiad_grpc.options import OPTIONS
from naiad_grpc.service.operations import UnaryOperation
from naiad_grpc.transport import experiments
from naiad_grpc.transport.listener import Listener
experiments.TESTED_VERSIONS = ()

async def echo(message, context):
    return message

async def main():
    settings = Settings(OPTIONS, {"grpc-port": 0, "grpc-address": "127.0.0.1"})
    listener = Listener([UnaryOperation("/t/echo", "inference", echo)], settings, ByteBudget(1 << 30))
    async with grpc.aio.insecure_channel(await listener.start()) as channel:
        ask = channel.unary_unary("/t/echo")
        answers = await asyncio.gather(*(ask(b"%d" % number) for number in range(100)))
    await listener.stop(0)
    kinds = {type(server._server).__name__ for server in listener._servers}
    print(answers == [b"%d" % number for number in range(100)], *kinds)

asyncio.run(main())
"""


def test_another_grpcio_serves_by_its_public_interface():
    ran = subprocess.run([sys.executable, "-c", PUBLIC], capture_output=True, text=True, check=False, timeout=60)

    assert (ran.stdout.split(), ran.stderr) == (["True", "AioServer"], "")


@pytest.mark.parametrize("experiments_", ["", "tcp_frame_size_tuning"])
def test_the_environment_has_the_last_word(monkeypatch, experiments_):
    from naiad_grpc.transport.experiments import choose_polling

    monkeypatch.setenv(VARIABLE, experiments_)
    choose_polling()

    assert os.environ[VARIABLE] == experiments_ != POLLING


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
    listening = {"grpc-port": 0, "grpc-address": "127.0.0.1", "grpc-transport": "grpcio"}
    options = {**listening, "model-control-mode": "explicit"}
    async with Server(plugins=[naiad_grpc], options=options):
        print(Watch.seen)

asyncio.run(main())
"""


def test_it_is_chosen_before_grpcio_is_imported():
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}

    ran = subprocess.run([sys.executable, "-c", STARTED], env=environment, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout.strip()) == (0, f"['{POLLING}']")
