"""The pytest fixture `naiad_serve`; every pytest run with naiad installed has it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from naiad_testing.serving import Client


class Serve(Protocol):
    """The type of the fixture `naiad_serve`: `naiad_testing.serve` without a `with`."""

    def __call__(
        self,
        *targets: str | Path | Callable[..., Any],
        plugins: Sequence[object] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> "Client":
        """Serve the targets until the test ends."""
        ...


@pytest.fixture
def naiad_serve() -> Iterator[Serve]:
    """Call it with a model's folder, a repository, or a marked function or class; it is served until the test ends."""
    from naiad_testing.serving import serve

    with ExitStack() as stack:

        def start(
            *targets: str | Path | Callable[..., Any],
            plugins: Sequence[object] | None = None,
            options: Mapping[str, Any] | None = None,
        ) -> "Client":
            return stack.enter_context(serve(*targets, plugins=plugins, options=options))

        yield start
