"""A server for all tests of a folder, and what is theirs: models, what these tell, and clients."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .clients.driving import Driven, connect
from .conftest import ending_well
from .running import Running


@contextmanager
def serving_sources(folder: Path, write_all: Callable[[Path, Path], None], *words: str) -> Iterator[Running]:
    """A server of what `write_all` writes into the folder `models`; its models may tell something in `events`."""
    (folder / "models").mkdir(exist_ok=True)
    (folder / "events").mkdir()
    write_all(folder / "models", folder / "events")
    options = words or ("--model-control-mode=explicit", "--load-model=*")
    with ending_well(Running(folder / "models", folder / "log", *options)) as running:
        yield running


@contextmanager
def making_clients(running: Running) -> Iterator[Callable[..., Driven]]:
    """Make clients of a kind with these options; they are closed in the end."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())

        def make(kind: str, **options: Any) -> Driven:
            client = connect(kind, running.port, running.grpc_port, runner, **options)
            stack.callback(client.close)
            return client

        yield make
